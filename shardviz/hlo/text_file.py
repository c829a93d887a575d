"""The text of a program in a file of any bytes: unpacked, bounded, and told apart from what is no text.

A program may be saved in binary too, as XLA's protos or MLIR's bytecode: jaxlib has its text, so whoever
reads such a file says how to ask for it."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, cast

from shardviz.errors import QuestionError, plural, quote
from shardviz.user_files import named_path, open_file

T = TypeVar("T")
MAX_BYTES = 2**31
"""No compiler writes more text about one program."""
MAX_UNPACKED = 2**29
"""Of gzip, a thousandth of a text may be its file: what is unpacked is bounded more closely."""
CHUNK = 2**22
HEAD = 2**13
"""Bytes that are looked at before anything is read."""
STREAMS = ("/dev/", "/proc/self/fd/")
"""Where a shell names what it has opened, as for ``<(…)``; the writer of any other pipe may never come."""
GZIP = b"\x1f\x8b"
ZIP = b"PK\x03\x04"
_BINARY = re.compile(rb"\x0a|ML\xefR|[\x08-\xff]\0\0\0|PK\x03\x04")
"""The beginnings of XLA's protos, MLIR's bytecode, a flatbuffer, which jax.export writes, and a zip."""
CONTROLS = frozenset(range(32)) - set(b"\t\n\v\f\r\x1b")
UTF16 = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
HOW = "save compiled.as_text(), or let XLA dump text: XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"


@dataclass(frozen=True)
class TextFile:
    """A text, its lines ending in ``\\n``; `notes` tell what was cut off or is not UTF-8."""

    text: str
    notes: tuple[str, ...] = ()


def read_text_file(name: str, text_of: Callable[[bytes, str], str] | None = None) -> TextFile:
    """The text of a file; gzip and a zip of one file are unpacked, and `text_of` makes that of a program in
    binary. Raises `QuestionError` where there is no text."""
    return read_program_file(name, lambda stream, where: read_text_stream(stream, where, text_of))


def read_program_file(name: str, read: Callable[[io.BufferedReader, str], T]) -> T:
    """The result of `read` for a file and its name in messages. Raises `QuestionError` for no such file."""
    if not name:
        raise QuestionError("a file without a name", "name a file, or - for standard input")
    where = quote(name)
    try:
        with Path(name).open("rb") if name.startswith(STREAMS) else open_file(named_path(name)) as file:
            return read(file, where)
    except FileNotFoundError:
        raise QuestionError(f"file {where} does not exist", f"{HOW}; mlp.txt ships as an example") from None
    except (OSError, ValueError) as error:
        raise _unread(where, error) from None


def read_text_stream(
    stream: io.BufferedReader, where: str, text_of: Callable[[bytes, str], str] | None = None
) -> TextFile:
    """The text that a stream has, which messages call `where`. Raises `QuestionError` for none."""
    notes: list[str] = []
    data = read_bytes(stream, where, notes)
    head = data[:HEAD]
    # Text may begin with an empty line too.
    if 0 in head or (head.startswith(b"\n") and not CONTROLS.isdisjoint(head)):
        if text_of is None:
            raise QuestionError(f"{where} is binary, not text", HOW)
        return TextFile(text_of(bytes(data), where), tuple(notes))
    if data.startswith(UTF8_MARK):
        del data[: len(UTF8_MARK)]
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        notes.append(f"not UTF-8 in {where}: {plural(text.count(chr(0xFFFD)), 'character')}")
    return TextFile(text, tuple(notes))


def read_bytes(stream: io.BufferedReader, where: str, notes: list[str] | None = None) -> bytearray:
    """All that a stream has, unpacked; `notes` get what is cut off. Raises `QuestionError` for nothing."""
    try:
        data = _contents(stream, where, [] if notes is None else notes)
        if data.startswith(ZIP):
            data = _unzipped(data, where)
    except (OSError, ValueError) as error:
        raise _unread(where, error) from None
    if not data.strip():
        raise QuestionError(f"{where} is empty", HOW)
    return data


def _unread(where: str, error: OSError | ValueError) -> QuestionError:
    reason = getattr(error, "strerror", None) or str(error)
    return QuestionError(f"cannot read {where}: {reason}", HOW)


def _contents(stream: io.BufferedReader, where: str, notes: list[str]) -> bytearray:
    head = stream.peek(len(GZIP))
    if not head:
        # A terminal would wait for more after its end.
        return bytearray()
    source, most, verb, unpack = stream, MAX_BYTES, "has", ""
    if head.startswith(GZIP):
        source = cast("io.BufferedReader", gzip.GzipFile(fileobj=stream))
        most, verb, unpack = MAX_UNPACKED, "unpacks to", "unpack it with gunzip, and "
    data = bytearray()
    try:
        first = source.peek(HEAD)
        pairs = len(first) > 1 and not (any(first[::2]) and any(first[1::2]))
        if first.startswith(UTF16) or (pairs and any(first)):
            raise QuestionError(f"{where} is UTF-16", "turn it into UTF-8: iconv -f UTF-16 -t UTF-8")
        if 0 in first and not _BINARY.match(first):
            raise QuestionError(f"{where} is binary, not text", HOW)
        while chunk := source.read1(CHUNK):
            data += chunk
            if len(data) > most:
                problem = f"{where} {verb} more than {most:,} bytes"
                raise QuestionError(problem, f"{unpack}cut out the module that matters")
    except (EOFError, zlib.error) as error:
        if not data:
            hint = "unpack it, or save it again"
            raise QuestionError(f"{where} cannot be unpacked: {error}", hint) from None
        notes.append(f"{where} breaks off: {error}")
    return data


def _unzipped(data: bytearray, where: str) -> bytearray:
    """The one file of a zip. Raises `QuestionError` for more of them, and for one that cannot be read."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            inside = [member for member in packed.infolist() if not member.is_dir()]
            if len(inside) != 1:
                problem = f"{where} is a zip of {plural(len(inside), 'file')}"
                raise QuestionError(problem, "unzip it, and name one of them, or their folder")
            if inside[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise QuestionError(f"{where} is compressed in an unusual way", "unzip it")
            if inside[0].file_size > MAX_UNPACKED:
                problem = f"{where} unpacks to more than {MAX_UNPACKED:,} bytes"
                raise QuestionError(problem, "unzip it, and cut out the module that matters")
            return bytearray(packed.read(inside[0]))
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise QuestionError(f"{where} cannot be unzipped: {error}", "unzip it, or save it again") from None
