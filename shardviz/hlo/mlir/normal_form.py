"""MLIR text in the form in which MLIR prints it by default.

Each operation is one line, and so is each end of a region; text that was wrapped, formatted or written by
hand breaks lines within an operation as well. Operations have the syntax of their dialect; in MLIR's generic
form every one is ``"name"(operands) <{attributes}> ({regions}) : type``, in older releases ``{attributes}``,
and behind the regions. See "Operations" in MLIR's language reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from shardviz.hlo.text.normal_form import joined, without_comments

_RESULT = r"%[\w$.#-]++(?::\d{1,6})?+"
_GAP = r"\s{0,99}+"
_NAMED = rf"[ \t]*+{_RESULT}(?:{_GAP},{_GAP}{_RESULT}){{0,99}}+{_GAP}={_GAP}(?!%)"
_BEGINS = (
    rf"(?:{_NAMED}|[ \t]*+(?:"
    r'"\w++\.[\w.]++"\(|[#!][\w.]++ = |\^|\{-#|#-\}|(?:module|func|return|call|cond|reducer)\b'
    rf"|[a-z_]\w*+\.[a-z_][\w.]*+(?!{_GAP}[=,>}}])))"
)
"""The beginnings of operations, labels and aliases, and of what MLIR puts on a line of its own."""
_OTHER = re.compile(
    rf"\n(?:(?<=[,=(\[<]\n)|(?<=->\n)|(?!{_BEGINS}|[ \t]*+(?:$|\}}(?!>|,(?! \{{$)))))", re.MULTILINE
)
_BEGINNING, _NAMING = re.compile(_BEGINS), re.compile(_NAMED)
_REGION_ENDS = re.compile(r"[ \t]*+\}")
_ENTRY = re.compile(rf'{_GAP}(?:(?!\w*\.?return\b)[A-Za-z_][\w.$]*+|"[^"\n]*+"){_GAP}[=,}}]')
"""An attribute of a dictionary; nothing in a region begins like that."""
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|->|(?P<opens>[(\[{<])|(?P<closes>[)\]}>])')
_GENERIC = re.compile(r'"(?:builtin\.module|func\.func|func\.call|stablehlo\.while)"\(')
_OPERATION = re.compile(r'((?:%[^"=]* = )?)"([a-z]+\.\w+)"\(([^()]*)\)(.*)')
_BLOCK = re.compile(r"\^\w+\((.*)\):")
_VALUE = re.compile(r"%[\w$.-]+")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|->|[(\[{<]|[)\]}>]|,')
_AXES = re.compile(r"#sdy<\w+([\[{].*[\]}])>$")
_DIRECTION = re.compile(r"comparison_direction<?\s*([A-Z]{2})>")


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
    """Return whether the operation with the line `before` goes on at `start`."""
    if before.endswith(("=", "applies")):
        return _NAMING.match(text, start) is None
    if _BEGINNING.match(text, start):
        return False
    return depth > 0 or not (before.endswith("{") or _REGION_ENDS.match(text, start))


def _depth(line: str, depth: int) -> int:
    """The number of brackets that are open behind a line; a region's end closes none of them."""
    for token in _BRACKET.finditer(line):
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


@dataclass
class _Open:
    """An operation whose regions are open: its line, its parts, and the blocks' arguments so far."""

    place: int
    results: str
    name: str
    operands: str
    attributes: str
    blocks: list[str] = field(default_factory=list)


def with_own_form(text: str) -> str:
    """The same text, line for line, with modules, functions and loops in the form that is their own.

    So are Shardy's meshes and collectives, and the constants, sums and comparisons by which loops count.
    """
    return text if _GENERIC.search(text) is None else "\n".join(_Translation(text.split("\n")).lines)


class _Translation:
    """One text, translated line by line; the first line of an operation is known when its regions end."""

    def __init__(self, lines: list[str]) -> None:
        self.lines: list[str] = []
        self._open: list[_Open] = []
        self._names: dict[str, str] = {}
        for line in lines:
            if self._names:
                line = _VALUE.sub(lambda value: self._names.get(value[0], value[0]), line)
            self.lines.append(self._line(line.strip()))
        for around in self._open:
            self._begin(around, "")

    def _line(self, line: str) -> str:
        block = _BLOCK.match(line)
        if block is not None and self._open:
            return self._block(self._open[-1], block[1], line)
        if line.startswith("}") and self._open:
            return self._end(self._open[-1], line)
        operation = _OPERATION.match(line)
        if operation is None:
            return line
        results, name, operands, rest = operation.groups()
        if rest.endswith("({"):
            self._open.append(_Open(len(self.lines), results, name, operands, rest[:-2]))
            return line
        return _own_form(results, name, operands, rest) or line

    def _block(self, around: _Open, arguments: str, line: str) -> str:
        around.blocks.append(arguments)
        if around.name == "func.func":
            return ""
        if around.name != "stablehlo.while":
            return line
        names = [_VALUE.findall(block) for block in around.blocks]
        if len(names) == 1:
            pairs = zip(names[0], around.operands.split(", "), strict=False)
            carried = ", ".join(f"{name} = {value}" for name, value in pairs)
            self.lines[around.place] = f"{around.results}stablehlo.while({carried})"
            return "cond {"
        # Both regions have the loop's arguments under one name.
        self._names |= dict(zip(names[1], names[0], strict=False))
        return ""

    def _end(self, around: _Open, line: str) -> str:
        regions, _, rest = line.partition("})")
        if regions.strip():
            return "} do {" if around.name == "stablehlo.while" else line
        self._open.pop()
        if around.name == "stablehlo.while":
            return "}"
        self._begin(around, rest)
        return f"}}{rest}" if around.name in ("builtin.module", "func.func") else line

    def _begin(self, around: _Open, rest: str) -> None:
        """Writes the first line of a module or a function, whose attributes may stand in its last line."""
        attributes = _attributes(around.attributes) | _attributes(rest)
        name = attributes.get("sym_name", '""')
        if around.name == "builtin.module":
            self.lines[around.place] = f"module @{name} {{"
        elif around.name == "func.func":
            self.lines[around.place] = _header(name, attributes, around.blocks)


def _own_form(results: str, name: str, operands: str, rest: str) -> str:
    """An operation without regions as the reader knows it, "" where it knows the generic form."""
    match name:
        case "stablehlo.return" | "stablehlo.add":
            return f"{results}{name} {operands} {rest}"
        case "stablehlo.constant":
            return f"{results}{name} {_attributes(rest).get('value', '')}"
        case "stablehlo.compare" if direction := _DIRECTION.search(rest):
            return f"{results}{name} {direction[1]}, {operands} {rest}"
        case "sdy.mesh":
            attributes = _attributes(rest)
            mesh = attributes.get("mesh", "").removeprefix("#sdy.mesh")
            return f"sdy.mesh @{attributes.get('sym_name', '')} = {mesh}"
        case _ if name.startswith("sdy.") and "out_sharding" in (attributes := _attributes(rest)):
            sharding = attributes.pop("out_sharding").removeprefix("#sdy.sharding")
            moved = "".join(_AXES.sub(r"\1 ", value) for value in attributes.values())
            return (
                f"{results}{name} {moved}{operands} out_sharding={sharding} : {rest.rpartition(') -> ')[2]}"
            )
    return ""


def _header(name: str, attributes: dict[str, str], blocks: list[str]) -> str:
    """``func.func public @"main"(%arg0: tensor<4xf32> {...}) -> (tensor<4xf32> {...}) {``."""
    visibility = attributes.get("sym_visibility", '"public"').strip('"')
    arguments = _with_attributes(blocks[0] if blocks else "", attributes.get("arg_attrs", ""))
    made = attributes.get("function_type", "").partition(" -> ")[2]
    results = _with_attributes(
        made[made.startswith("(") : len(made) - made.endswith(")")], attributes.get("res_attrs", "")
    )
    return f"func.func {visibility} @{name}({arguments}) -> ({results}) {{"


def _with_attributes(types: str, attributes: str) -> str:
    listed = [*_parts(attributes[1:-1])]
    each = [*_parts(types)]
    listed += [""] * (len(each) - len(listed))
    return ", ".join(f"{one} {own}".strip() for one, own in zip(each, listed, strict=False))


def _attributes(text: str) -> dict[str, str]:
    """The attributes of ``<{name = value, ...}>`` or ``{name = value, ...}``."""
    start = text.find("{")
    if start < 0 or text[:start].strip() not in ("", "<"):
        return {}
    pairs = (part.partition(" = ") for part in _parts(text[start + 1 :]))
    return {name: value for name, _, value in pairs}


def _parts(text: str) -> Iterator[str]:
    """The items between the commas of a list, until the bracket that closes it."""
    depth, start = 0, 0
    for token in _TOKEN.finditer(text):
        if token[0] in "([{<":
            depth += 1
        elif token[0] in ")]}>":
            depth -= 1
        elif token[0] == "," and depth == 0:
            yield text[start : token.start()].strip()
            start = token.end()
        if depth < 0:
            text = text[: token.start()]
            break
    if last := text[start:].strip():
        yield last
