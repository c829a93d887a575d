"""StableHLO and Shardy text → its operations, each with the values that it takes and the regions around it.

An operation begins on a line of its own; all until the next one, or until the end of its region, belongs to
it, so that a text may be wrapped anywhere else. It has the syntax of its dialect or, where that has none, the
quoted one, ``"name"(operands) <{attributes}> ({regions}) : types``. Both become a name and one text without
the regions:

    %1 = "stablehlo.all_reduce"(%0) <{replica_groups = …}> ({      name: stablehlo.all_reduce
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):                       text: (%0) <{replica_groups = …}> : (…) -> …
      …                                                           operands: the value %0
    }) : (tensor<4xf32>) -> tensor<4xf32>                         regions: 1

A text may be cut off or damaged anywhere: no operation is joined with a later one, and one whose regions the
text does not end `is_open`. See "Operations" and "Regions" in MLIR's language reference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from shardviz.hlo.mlir.attributes import Meshes
from shardviz.hlo.text.call_graph import trips
from shardviz.hlo.text.normal_form import joined, without_comments

_STRING = r'"(?:[^"\\]|\\.)*+"?'
_GAP = r"\s{0,99}+"
_RESULT = r"%[\w$.#-]++(?::\d{1,6})?+"
_EVENT = re.compile(
    r"\n[ \t]*+(?:(?P<end>\})|(?P<label>\^\w)|(?P<other>[#!][\w.]++ = |\{-#)"
    rf"|(?P<results>{_RESULT}(?:{_GAP},{_GAP}{_RESULT}){{0,99}}+){_GAP}={_GAP}(?!%)\"?(?P<named>[\w$.]*+)\"?"
    r'|"(?P<quoted>\w++\.[\w.]++)"(?=\()'
    r"|(?P<keyword>(?:module|return|call)\b)"
    rf"|(?P<unnamed>[a-z_]\w*+\.[a-z_][\w.]*+)(?!{_GAP}[=,>}}\]]))"
)
"""The end of a region, a block's label, an alias or the resources behind a module, or an operation."""
_KEYWORDS = {"module": "builtin.module", "return": "func.return", "call": "func.call"}
_BRACKET = re.compile(rf"{_STRING}|->|(?P<opens>[(\[{{<])|(?P<closes>[)\]}}>])")
_NAME = re.compile(r"(%[\w$.-]+)(?::\d{1,6})?")
_VALUE = re.compile(r"%[\w$.#-]+")
_CARRIED = re.compile(r"(%[\w$.-]+) = (%[\w$.#-]+)")
"""An argument of a loop and the value that it begins with, in the loop's own form."""
_ARGUMENT = re.compile(rf"{_STRING}|[(,]\s*(%[\w$.-]+)\s*: ")
_TOKEN = re.compile(rf"{_STRING}|->|[(\[{{<]|[)\]}}>]|,")
_PLACE = re.compile(r'loc\((?:(#loc\d*)|"((?:[^"\\]|\\.)*)")[^()]*\)$')
_NAMED_PLACE = re.compile(r'^(#loc\d*) = loc\("((?:[^"\\]|\\.)*)"', re.MULTILINE)
_OWN_HEADER = re.compile(r'\s*(?:(public|private|nested) )?@("[^"]*"|[\w.$-]+)\s*\(')
_SYMBOL = re.compile(r'\s*@("[^"]*"|[\w.$-]+)')
_LOGGED = re.compile(r"\n[IWEF]\d{4} \d\d:\d\d:\d\d\.[^\n]*")
"""A line of a process's log, which may stand between any two of a text that was printed beside it."""
_CONSTANT = re.compile(r"dense<(-?\d{1,18})> : tensor<[su]?i\d+>")
_RELATION = re.compile(r"([A-Z]{2}),")
MAX_NESTED_LOOPS = 64
"""Loops nested deeper than in any program count as other regions do."""
LOOP = "stablehlo.while"
_CONDITIONALS = ("stablehlo.if", "stablehlo.case")


class OperationValue(NamedTuple):
    """A result of an operation, or with `is_argument` an argument of its regions, by number. Both regions of
    a loop have the arguments in common."""

    operation: MlirOperation
    number: int
    is_argument: bool = False

    @property
    def constant(self) -> int | None:
        """The integer that it is, where it is a constant."""
        match = _CONSTANT.search(self.operation.text) if self.operation.name.endswith(".constant") else None
        return int(match[1]) if match else None


class FunctionHeader(NamedTuple):
    """A function's own text; of its arguments and results the texts, with type and attributes."""

    name: str = ""
    is_public: bool = False
    arguments: Sequence[str] = ()
    results: Sequence[str] = ()


@dataclass(eq=False)
class Region:
    """A region of an operation, its `number` among these; which function and which loops are around it, each
    with True for its condition; whether that is a branch of a conditional; and what it `returned`."""

    operation: MlirOperation
    number: int
    function: MlirOperation
    loops: tuple[tuple[MlirOperation, bool], ...] = ()
    in_branch: bool = False
    returned: tuple[OperationValue | None, ...] = ()


@dataclass(eq=False)
class MlirOperation:
    """An operation: its name, such as "sdy.all_reduce"; its text behind that, on one line and without its
    regions; the line on which it begins, from 1; and the names of its results, ``%0``. `place` is its
    location in the program, by name or as an alias. `operands` are the values in its text, None for one of
    which the text shows no definition."""

    name: str
    text: str
    line: int
    around: Region
    results: tuple[str, ...] = ()
    place: str = ""
    operands: tuple[OperationValue | None, ...] = ()
    regions: list[Region] = field(default_factory=list)
    is_open: bool = False

    @property
    def value(self) -> str:
        """The name of its first result, "" for none."""
        return self.results[0] if self.results else ""

    @cached_property
    def header(self) -> FunctionHeader:
        own = _OWN_HEADER.match(self.text)
        if own is None:
            return FunctionHeader()
        arguments, stop = items(self.text, own.end())
        made = self.text[stop:].partition("-> ")[2]
        results = items(made, 1)[0] if made.startswith("(") else [made.partition(" attributes ")[0]]
        is_public = own[1] in (None, "public")
        return FunctionHeader(own[2].strip('"'), is_public, arguments, [*filter(None, results)])

    @cached_property
    def trips(self) -> int | None:
        """The runs of a loop's body, where a counter goes from constant to constant; None if unknown."""
        # cond { %2 = compare LT, %counter, %limit; return %2 } do { %3 = add %counter, %step; return %3, … }
        if len(self.regions) != 2:
            return None
        test, *_ = (*self.regions[0].returned, None)
        if test is None or not test.operation.name.endswith(".compare") or len(test.operation.operands) < 2:
            return None
        relation = _RELATION.match(test.operation.text)
        counter, limit = test.operation.operands[:2]
        if relation is None or counter is None or limit is None or counter.operation is not self:
            return None
        returned, begins = self.regions[1].returned, self.operands
        if not counter.is_argument or counter.number >= min(len(returned), len(begins)):
            return None
        added, first = returned[counter.number], begins[counter.number]
        if added is None or first is None or not added.operation.name.endswith(".add"):
            return None
        steps = [value.constant for value in added.operation.operands if value and value != counter]
        start, stop, direction = first.constant, limit.constant, relation[1]
        if counter not in added.operation.operands or direction not in ("LT", "LE") or len(steps) != 1:
            return None
        (step,) = steps
        return None if start is None or stop is None or step is None else trips(direction, start - stop, step)


def items(text: str, start: int) -> tuple[list[str], int]:
    """The items between the commas of a list that begins at `start`, and the place behind its bracket."""
    depth, begin, pieces = 0, start, []
    for token in _TOKEN.finditer(text, start):
        if token[0] in "([{<":
            depth += 1
        elif token[0] in ")]}>":
            depth -= 1
        if depth < 0 or (token[0] == "," and depth == 0):
            pieces.append(text[begin : token.start()].strip())
            begin = token.end()
        if depth < 0:
            return [item for item in pieces if item], begin
    return [item for item in (*pieces, text[begin:].strip()) if item], len(text)


class MlirModule:
    """All operations of a text, in its order; its functions, the first of which is what stands outside of all
    and has no text; whether the text ends all regions."""

    def __init__(self, text: str) -> None:
        self.text = _LOGGED.sub("\n", f"\n{without_comments(text)}")
        self.operations: list[MlirOperation] = []
        outside = MlirOperation("", "", 0, None)  # type: ignore[arg-type]
        self.functions = [outside]
        self._stack = [Region(outside, 0, outside)]
        self._places = dict(_NAMED_PLACE.findall(self.text))
        self._is_uneven = False
        self._values: list[dict[str, OperationValue]] = [{}]
        """The definitions of this function so far, behind those of what is around it."""
        self._read()

    @property
    def is_closed(self) -> bool:
        return len(self._stack) == 1 and not self._is_uneven

    @property
    def main(self) -> MlirOperation | None:
        """The function called main, else the first public one, else the first."""

        def rank(function: MlirOperation) -> int:
            return 0 if function.header.name == "main" else 2 - function.header.is_public

        return min(self.functions[1:], key=rank, default=None)

    @cached_property
    def meshes(self) -> Meshes:
        """The meshes that it declares. Raises `NotationError` for one of too many devices."""
        return Meshes(operation.text for operation in self.operations if operation.name == "sdy.mesh")

    def place(self, operation: MlirOperation) -> str:
        """The name of the place where an operation stands in the program, "" where the text has none."""
        return self._places.get(operation.place, "") if operation.place.startswith("#") else operation.place

    @property
    def name(self) -> str:
        """The module's own name."""
        text = next((op.text for op in self.operations if op.name == "builtin.module"), "")
        own = _SYMBOL.match(text)
        return own[1].strip('"') if own else ""

    def _read(self) -> None:
        text, line, counted = self.text, 0, 0
        begun: re.Match[str] | None = None
        first = depth = scanned = 0
        for event in _EVENT.finditer(text):
            start = event.start()
            if begun is not None:
                # A brace that closes one of the operation's own, and what a reduction applies, belong to it.
                if event["end"]:
                    depth, scanned = _depth(text, scanned, start, depth), start
                    if depth > 0 and not _opens(text, begun.end(), start):
                        continue
                elif event["unnamed"] and text[max(begun.end(), start - 99) : start].rstrip().endswith(
                    "applies"
                ):
                    continue
                self._take(begun, text[begun.end() : start], first)
            line += text.count("\n", counted, start + 1)
            begun, first, counted = event, line, start + 1
            depth, scanned = 0, start
        if begun is not None:
            self._take(begun, text[begun.end() :], first)
            # What has opened within the last line, as an attribute does, has no end.
            last = begun.end(), len(text)
            self._is_uneven |= _depth(text, *last, 0) > _opens(text, *last)

    def _take(self, begun: re.Match[str], text: str, line: int) -> None:
        text = text.strip()
        if "\n" in text:
            # Some releases print double spaces here and there: that one ends a line says nothing.
            text = joined("\n".join(part.rstrip() for part in text.split("\n")))
        opens = text.endswith("{")
        if begun["other"]:
            return
        if begun["label"]:
            self._define(_ARGUMENT.findall(text))
        elif begun["end"]:
            self._end(text.lstrip("})"), opens)
        else:
            own = begun["named"] or begun["quoted"] or begun["keyword"] or begun["unnamed"] or ""
            self._operation(begun["results"] or "", _KEYWORDS.get(own, own), text, line, opens)

    def _operation(self, results: str, name: str, text: str, line: int, opens: bool) -> None:
        around, location = self._stack[-1], ""
        head = text
        if opens:
            # Without what opens its region: ``({``, ``cond {``, ``reducer(…) {``.
            text = text[:-1].rstrip().removesuffix("(").removesuffix(" cond")
            reducer = text.rfind(" reducer(")
            text = (text if reducer < 0 else text[:reducer]).rstrip()
        elif (place_match := _PLACE.search(text)) is not None:
            text, location = text[: place_match.start()].rstrip(), place_match[1] or place_match[2]
        names = tuple(match[1] for match in _NAME.finditer(results))
        operation = MlirOperation(name, text, line, around, names, location)
        if name != "func.func":
            pairs = _CARRIED.findall(text) if name == LOOP else ()
            used = [value for _, value in pairs] if pairs else _VALUE.findall(text)
            operation.operands = tuple(map(self._value, used))
            if name.endswith(".return"):
                around.returned = operation.operands
        self.operations.append(operation)
        for index, result in enumerate(names):
            self._values[-1][result] = OperationValue(operation, index)
        if opens:
            self._open(operation, head)

    def _value(self, name: str) -> OperationValue | None:
        """The value that a name means where the text has come to: an element of several as ``%0#1``."""
        name, _, index = name.partition("#")
        value = self._values[-1].get(name)
        if value is None or not index:
            return value
        return value._replace(number=int(index)) if index.isdecimal() and len(index) < 7 else value

    def _open(self, operation: MlirOperation, head: str) -> None:
        """Open the next region of an operation, whose arguments may stand in front of it."""
        around, number = operation.around, len(operation.regions)
        function, loops = around.function, around.loops
        if operation.name == "func.func" and number == 0:
            function = operation
            self.functions.append(function)
            self._values.append({})
        if operation.name == LOOP and len(loops) < MAX_NESTED_LOOPS:
            loops = (*loops, (operation, number == 0))
        in_branch = around.in_branch or operation.name in _CONDITIONALS
        region = Region(operation, number, function, loops, in_branch)
        operation.is_open = True
        operation.regions.append(region)
        self._stack.append(region)
        if number == 0 and operation.name == LOOP:
            self._define([name for name, _ in _CARRIED.findall(head)])
        elif number == 0:
            self._define(_ARGUMENT.findall(head))

    def _define(self, names: list[str]) -> None:
        """The arguments of the innermost region, by their names; "" is a string between them."""
        operation = self._stack[-1].operation
        for index, name in enumerate(filter(None, names)):
            self._values[-1][name] = OperationValue(operation, index, True)

    def _end(self, text: str, opens: bool) -> None:
        """End a region; `text` is what stands behind it, and leads to the next one or ends the operation."""
        if len(self._stack) == 1:
            self._is_uneven = True
            return
        operation = self._stack.pop().operation
        if opens:
            self._open(operation, "")
            return
        if operation.name == "func.func":
            self._values.pop()
        if (match := _PLACE.search(text)) is not None:
            text, operation.place = text[: match.start()], match[1] or match[2]
        operation.text, operation.is_open = f"{operation.text} {text.strip()}".rstrip(), False


def _depth(text: str, start: int, stop: int, depth: int) -> int:
    """The number of brackets that are open at `stop`, where `depth` are at `start`."""
    for token in _BRACKET.finditer(text, start, stop):
        if token["opens"]:
            depth += 1
        elif token["closes"]:
            depth = max(0, depth - 1)
    return depth


def _opens(text: str, start: int, stop: int) -> bool:
    """Return whether a brace opens directly before a place."""
    while stop > start and text[stop - 1].isspace():
        stop -= 1
    return text.endswith("{", start, stop)
