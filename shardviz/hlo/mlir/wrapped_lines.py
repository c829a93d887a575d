"""MLIR text as MLIR prints it: each operation is one line, and so is each end of a region.

Text that was wrapped, formatted or written by hand breaks lines within an operation as well: in its
attributes, between its operands, before its type.
"""

from __future__ import annotations

import re

from shardviz.hlo.text.normal_form import joined, without_comments

_VALUE = r"%[\w$.#-]++(?::\d{1,6})?+"
_GAP = r"\s{0,99}+"
_NAMED = rf"[ \t]*+{_VALUE}(?:{_GAP},{_GAP}{_VALUE}){{0,99}}+{_GAP}={_GAP}(?!%)"
_BEGINS = (
    rf"(?:{_NAMED}|[ \t]*+(?:"
    r'"\w++\.[\w.]++"\(|[#!][\w.]++ = |\^|\{-#|#-\}|(?:module|func|return|call|cond|reducer)\b'
    rf"|[a-z_]\w*+\.[a-z_][\w.]*+(?!{_GAP}[=,>}}])))"
)
"""How operations, labels and aliases begin, and what MLIR itself puts on a line of its own."""
_OTHER = re.compile(
    rf"\n(?:(?<=[,=(\[<]\n)|(?<=->\n)|(?!{_BEGINS}|[ \t]*+(?:$|\}}(?!>|,(?! \{{$)))))", re.MULTILINE
)
_BEGINNING, _NAMING = re.compile(_BEGINS), re.compile(_NAMED)
_REGION_ENDS = re.compile(r"[ \t]*+\}")
_ENTRY = re.compile(rf'{_GAP}(?:(?!\w*\.?return\b)[A-Za-z_][\w.$]*+|"[^"\n]*+"){_GAP}[=,}}]')
"""An attribute of a dictionary; nothing in a region begins like that."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|->|(?P<opens>[(\[{<])|(?P<closes>[)\]}>])')


def unwrapped(text: str) -> str:
    """The same text with each operation on one line; the lines on which it went on are left empty.

    In a text that is damaged no operation is joined with a later one.
    """
    if _OTHER.search(f"\n{text}") is None:
        return text
    text = without_comments(text)
    kept: list[str] = []
    operation: list[str] = []
    before, depth, start = "", 0, 0
    for line in text.split("\n"):
        if before.endswith("{") and not _ENTRY.match(text, start):
            depth = 0
        if operation and line.strip() and not _goes_on(text, start, before, depth):
            kept += _on_the_first(operation)
            operation, depth = [], 0
        operation.append(line)
        depth = _depth(line, depth)
        before = line.strip() or before
        start += len(line) + 1
    return "\n".join([*kept, *_on_the_first(operation)])


def _goes_on(text: str, start: int, before: str, depth: int) -> bool:
    """Whether what stands at `start` belongs to the operation whose line `before` ends with brackets open."""
    if before.endswith(("=", "applies")):
        return _NAMING.match(text, start) is None
    if _BEGINNING.match(text, start):
        return False
    return depth > 0 or not (before.endswith("{") or _REGION_ENDS.match(text, start))


def _depth(line: str, depth: int) -> int:
    """How many brackets are open behind a line; a region's end closes none of them."""
    for token in _TOKEN.finditer(line):
        if token["opens"]:
            depth += 1
        elif token["closes"]:
            depth = max(0, depth - 1)
    return depth


def _on_the_first(operation: list[str]) -> list[str]:
    # Some releases print double spaces here and there: that one ends a line says nothing of the other lines.
    if len(operation) == 1:
        return operation
    return [joined("\n".join(line.rstrip() for line in operation)), *[""] * (len(operation) - 1)]
