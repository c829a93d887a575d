"""The text of a program in a file of any bytes: unpacked, bounded, and told apart from what is no text."""

from __future__ import annotations

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from shardviz.errors import QuestionError, plural, quote
from shardviz.user_files import named_path, open_file

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
UTF16 = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
HOW = "save compiled.as_text(), or let XLA dump text: XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"


@dataclass(frozen=True)
class TextFile:
    """A text, its lines ending in ``\\n``; `notes` tell what was cut off or is not UTF-8."""

    text: str
    notes: tuple[str, ...] = ()


def read_text_file(name: str) -> TextFile:
    """The text of a file; gzip is unpacked. Raises `QuestionError` where there is no text."""
    if not name:
        raise QuestionError("a file without a name", "name a file, or - for standard input")
    where = quote(name)
    try:
        with Path(name).open("rb") if name.startswith(STREAMS) else open_file(named_path(name)) as file:
            return read_text_stream(file, where)
    except FileNotFoundError:
        raise QuestionError(f"file {where} does not exist", f"{HOW}; mlp.txt ships as an example") from None
    except (OSError, ValueError) as error:
        raise _unread(where, error) from None


def read_text_stream(stream: io.BufferedReader, where: str) -> TextFile:
    """The text that a stream has, which messages call `where`. Raises `QuestionError` for none."""
    notes: list[str] = []
    try:
        data = _contents(stream, where, notes)
    except (OSError, ValueError) as error:
        raise _unread(where, error) from None
    if not data.strip():
        raise QuestionError(f"{where} is empty", HOW)
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
        if 0 in first:
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
