"""A compiler's text from a file or from standard input, whatever its bytes are."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from pathlib import Path
from typing import cast

from shardviz.cli.messages import print_note
from shardviz.errors import QuestionError, plural, quote

STDIN = "-"
MAX_BYTES = 2**31
"""No compiler writes more text about one program."""
MAX_UNPACKED = 2**29
"""Of gzip, a thousandth of a text may be its file: what is unpacked is bounded more closely."""
CHUNK = 2**22
HEAD = 2**13
"""Bytes that are looked at before anything is read."""
GZIP = b"\x1f\x8b"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
HOW = "save compiled.as_text(), or let XLA dump text: XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text'"


def read_text(name: str) -> str:
    """The text of a file, ``-`` for standard input; gzip is unpacked, lines end in ``\\n``.

    What was cut off or is no UTF-8 is told on stderr and read as far as possible. Raises `QuestionError`
    where there is no text.
    """
    if not name:
        raise QuestionError("a file without a name", f"name a file, or {STDIN} for standard input")
    where = "standard input" if name == STDIN else quote(name)
    try:
        if name == STDIN:
            if sys.stdin is None:
                raise QuestionError("standard input is closed", "name a file, or pipe a text in")
            if sys.stdin.isatty():
                print_note("reading the terminal; ctrl-D ends the text")
            data = _contents(cast(io.BufferedReader, sys.stdin.buffer), where)
        else:
            with Path(name).open("rb") as file:
                data = _contents(file, where)
    except FileNotFoundError:
        raise QuestionError(f"file {where} does not exist", HOW) from None
    except IsADirectoryError:
        raise QuestionError(f"{where} is a folder", _a_text_in(Path(name))) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise QuestionError(f"cannot read {where}: {reason}", HOW) from None
    if not data.strip():
        raise QuestionError(f"{where} is empty", HOW)
    return _decoded(data, where)


def _contents(stream: io.BufferedReader, where: str) -> bytearray:
    head = stream.peek(len(GZIP))
    if not head:
        # A terminal would wait for more after its end.
        return bytearray()
    packed = head.startswith(GZIP)
    source = cast(io.BufferedReader, gzip.GzipFile(fileobj=stream)) if packed else stream
    data = bytearray()
    try:
        _check(source.peek(HEAD), where)
        while chunk := source.read1(CHUNK):
            data += chunk
            if packed and len(data) > MAX_UNPACKED:
                raise QuestionError(
                    f"{where} unpacks to more than {MAX_UNPACKED:,} bytes",
                    "unpack it with gunzip, and cut out the module that matters",
                )
            if len(data) > MAX_BYTES:
                raise QuestionError(
                    f"{where} has more than {MAX_BYTES:,} bytes", "cut out the module that matters"
                )
    except (EOFError, zlib.error) as error:
        if not data:
            raise QuestionError(
                f"{where} cannot be unpacked: {error}", "unpack it, or save it again"
            ) from None
        print_note(f"{where} breaks off: {error}")
    return data


def _check(head: bytes, where: str) -> None:
    """Raise `QuestionError` where the first bytes are none of a text in ASCII or UTF-8."""
    pairs = len(head) > 1 and not (any(head[::2]) and any(head[1::2]))
    if head.startswith(UTF16) or (pairs and any(head)):
        raise QuestionError(f"{where} is UTF-16", "turn it into UTF-8: iconv -f UTF-16 -t UTF-8")
    if 0 in head:
        raise QuestionError(f"{where} is binary, not text", HOW)


def _decoded(data: bytearray, where: str) -> str:
    if data.startswith(UTF8_MARK):
        del data[: len(UTF8_MARK)]
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        return data.decode()
    except UnicodeDecodeError:
        text = data.decode(errors="replace")
        bad = text.count(chr(0xFFFD))
        print_note(f"not UTF-8 in {where}: {plural(bad, 'character')}")
        return text


def _a_text_in(folder: Path) -> str:
    """Advice for a folder of dumps: its final program, if it has one."""
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix in (".txt", ".mlir"))
    except OSError:
        names = []
    final = [name for name in names if name.endswith("after_optimizations.txt")] or names
    return f"name a file in it, such as {final[0]}" if final else "name a file"
