"""Walks MLIR text line by line: functions, regions, loops, and which line defines a value."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

_FUNCTION = re.compile(r'func\.func (?:(public|private|nested) )?@("[^"]*"|[\w.$-]+)\(')
_RESULTS = re.compile(r"(%[\w$.-]+)(?::\d{1,6})?,?\s*")
_LOOP_ARGUMENT = re.compile(r"(%[\w$.-]+) = (%[\w$.#-]+)")
_STRING = r'"(?:[^"\\]|\\.)*+"?'
_ARGUMENT = re.compile(rf"{_STRING}|((?:^|,)\s*%[\w$.-]+: )")
_RESULT = re.compile(rf"{_STRING}|(tensor<|!stablehlo\.token)")
_BLOCK_ARGUMENT = re.compile(r"[(,]\s*(%[\w$.-]+): ")
_CONSTANT = re.compile(r"constant dense<(-?\d{1,18})> : tensor<[su]?i\d+>")
_COMPARE = re.compile(r"stablehlo\.compare\s+(LT|LE),\s*(%[\w$.#-]+),\s*(%[\w$.#-]+)")
_ADD = re.compile(r"stablehlo\.add\s+(%[\w$.#-]+),\s*(%[\w$.#-]+)")
_RETURN = "stablehlo.return "
_QUOTED_OR_PAREN = re.compile(rf"{_STRING}|[()]")
MAX_NESTED_LOOPS = 64
"""Loops nested deeper than in any program count as other regions do."""
BLOCK_ARGUMENT = "block argument of "
"""Precedes the line of the operation in the definition of its region's argument."""
_WANTED = (
    *("sdy.", '"stablehlo.', "call @", "func.call @", '"func.call"'),
    *("stablehlo.composite ", "stablehlo.custom_call "),
)
_CONDITIONALS = ('"stablehlo.if"', '"stablehlo.case"')


@dataclass
class Loop:
    """A ``stablehlo.while``; its length is known when a counter goes up from a constant to a constant."""

    arguments: tuple[tuple[str, str], ...] = ()
    counter: str = ""
    start: int | None = None
    stop: int | None = None
    step: int | None = None

    @property
    def trips(self) -> int | None:
        """The number of times that the body runs; None when the text does not tell."""
        if self.start is None or self.stop is None or not self.step or self.step < 0:
            return None
        return max(0, -(-(self.stop - self.start) // self.step))


@dataclass
class Function:
    """A function: its place among the module's, its header line, and what defines its values so far."""

    index: int
    name: str
    is_public: bool
    header: str
    definitions: dict[str, tuple[str, int]] = field(default_factory=dict)

    def definition(self, value: str) -> tuple[str, int] | None:
        """The line that defines a value, and as which of its results or arguments."""
        name, _, index = value.partition("#")
        found = self.definitions.get(name)
        if found is None:
            return None
        return found[0], int(index) if index.isdecimal() and len(index) < 7 else found[1]

    def constant(self, value: str) -> int | None:
        """The integer that a value is, when its definition says so."""
        found = self.definition(value)
        match = _CONSTANT.search(found[0]) if found else None
        return int(match[1]) if match else None

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The text of each argument: name, type and attributes."""
        start, stop = self._parentheses
        return _chunks(_ARGUMENT, self.header[start : stop - 1])

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The text of each result: type and attributes."""
        return _chunks(_RESULT, self.header[self._parentheses[1] :])

    @cached_property
    def _parentheses(self) -> tuple[int, int]:
        match = _FUNCTION.search(self.header)
        start = match.end() if match else len(self.header)
        return start, closing_paren(self.header, start)


@dataclass(frozen=True)
class MlirOperation:
    """An operation that may matter. One with regions comes when they end, with both lines as its text.

    `value` is the first name it defines, `text` what follows the equals sign. `loops` are those around
    it, and whether it stands in their condition; `in_branch` tells whether a conditional is around it.
    `order` counts lines from 1.
    """

    order: int
    function: Function
    value: str
    text: str
    loops: tuple[tuple[Loop, bool], ...]
    in_branch: bool


@dataclass
class _Region:
    """An open brace: what opened it, and for a loop's region which loop, and whether it is the condition."""

    names: tuple[str, ...] = ()
    opening: str = ""
    function: Function | None = None
    loop: Loop | None = None
    is_condition: bool = False
    order: int = 0


def _chunks(begin: re.Pattern[str], text: str) -> tuple[str, ...]:
    """The text cut before every match of `begin`'s group."""
    starts = [match.start() for match in begin.finditer(text) if match[1]]
    return tuple(text[start:stop] for start, stop in pairwise([*starts, len(text)]))


def closing_paren(text: str, start: int) -> int:
    """The place after the parenthesis that closes the one before `start`, strings passed over."""
    depth = 1
    for token in _QUOTED_OR_PAREN.finditer(text, start):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
            if depth == 0:
                return token.end()
    return len(text)


class Walk:
    """One walk over a module's text; afterwards `functions` lists them and `is_closed` tells a whole text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._stack: list[_Region] = []
        self._loops: list[tuple[Loop, bool]] = []
        self._pending: Loop | None = None
        self._function = Function(0, "", False, "")
        self.functions = [self._function]

    @property
    def is_closed(self) -> bool:
        return not self._stack

    def operations(self) -> Iterator[MlirOperation]:
        """Collectives, calls and whatever else has one of the wanted prefixes, in order."""
        position, order, text = 0, 0, self._text
        while position < len(text):
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            line = text[position:end].strip()
            position, order = end + 1, order + 1
            if line and (operation := self._line(line, order)) is not None:
                yield operation

    def _line(self, line: str, order: int) -> MlirOperation | None:
        opens = line[-1] == "{"
        closed = None
        if line[0] == "}":
            closed = self._pop()
            if closed is not None and not opens:
                return self._closed(closed, line)
        elif line[0] == "%":
            equals = line.find(" = ")
            body = line[equals + 3 :] if equals > 0 else ""
            names = self._define(line, equals, body)
            if opens:
                self._push(_Region(names, body, order=order))
                self._open_body(body)
                return None
            if body.startswith("stablehlo.while("):
                self._while(body)
            elif body.startswith(_WANTED):
                return self._operation(order, names, body)
            elif self._loops and body.startswith("stablehlo.compare"):
                self._compare(body)
            return None
        elif line.startswith(_WANTED) and not opens:
            return self._operation(order, (), line)
        elif self._loops and line.startswith(_RETURN):
            self._return(line)
        if opens:
            self._open(line, closed, order)
        return None

    def _define(self, line: str, equals: int, body: str) -> tuple[str, ...]:
        names = tuple(match[1] for match in _RESULTS.finditer(line, 0, max(equals, 0)))
        for index, name in enumerate(names):
            self._function.definitions[name] = (body, index)
        return names

    def _push(self, region: _Region) -> None:
        if len(self._loops) == MAX_NESTED_LOOPS:
            region.loop = None
        if region.loop is not None:
            self._loops.append((region.loop, region.is_condition))
        self._stack.append(region)

    def _pop(self) -> _Region | None:
        if not self._stack:
            return None
        region = self._stack.pop()
        if region.loop is not None:
            self._loops.pop()
        if region.function is not None:
            self._function = self.functions[0]
        return region

    def _open(self, line: str, closed: _Region | None, order: int) -> None:
        """A line that ends in an open brace and defines nothing itself."""
        if closed is not None:
            # "} do {" or "}, {": the next region of the same operation.
            self._push(_Region(closed.names, closed.opening, None, closed.loop, False, closed.order))
        elif (header := _FUNCTION.search(line)) is not None:
            self._function = Function(
                len(self.functions), header[2].strip('"'), header[1] in (None, "public"), line
            )
            self.functions.append(self._function)
            self._push(_Region(function=self._function))
            for index, argument in enumerate(self._function.arguments):
                self._function.definitions[argument.partition(":")[0].strip(", ")] = (line, index)
        elif line.startswith("cond {") and self._pending is not None:
            self._push(_Region(loop=self._pending, is_condition=True))
            self._pending = None
        else:
            self._push(_Region(opening=line, order=order))

    def _open_body(self, body: str) -> None:
        """The arguments of a region whose operation stands on the same line."""
        if body.startswith('"stablehlo.while"'):
            region = self._stack.pop()
            self._push(_Region(region.names, region.opening, None, Loop(), False, region.order))
        elif body.startswith("sdy."):
            for index, match in enumerate(_BLOCK_ARGUMENT.finditer(body)):
                self._function.definitions[match[1]] = (BLOCK_ARGUMENT + body, index)

    def _closed(self, region: _Region, line: str) -> MlirOperation | None:
        if not region.opening:
            return None
        text = f"{region.opening} {line}"
        for index, name in enumerate(region.names):
            self._function.definitions[name] = (text, index)
        if region.opening.startswith(_WANTED):
            return self._operation(region.order, region.names, text)
        return None

    def _operation(self, order: int, names: tuple[str, ...], text: str) -> MlirOperation:
        in_branch = any(region.opening.startswith(_CONDITIONALS) for region in self._stack)
        return MlirOperation(
            order, self._function, names[0] if names else "", text, tuple(self._loops), in_branch
        )

    def _while(self, body: str) -> None:
        stop = closing_paren(body, len("stablehlo.while("))
        arguments = tuple((match[1], match[2]) for match in _LOOP_ARGUMENT.finditer(body, 0, stop))
        for index, (name, _) in enumerate(arguments):
            self._function.definitions[name] = (body, index)
        self._pending = Loop(arguments)

    def _compare(self, body: str) -> None:
        loop, is_condition = self._loops[-1]
        match = _COMPARE.match(body)
        initial = dict(loop.arguments)
        if match is None or not is_condition or match[2] not in initial:
            return
        limit = self._function.constant(match[3])
        loop.counter = match[2]
        loop.start = self._function.constant(initial[match[2]])
        loop.stop = None if limit is None else limit + (match[1] == "LE")

    def _return(self, line: str) -> None:
        loop, is_condition = self._loops[-1]
        names = [name for name, _ in loop.arguments]
        if is_condition or loop.counter not in names or self._stack[-1].loop is not loop:
            return
        returned = [value.strip() for value in line[len(_RETURN) :].partition(":")[0].split(",")]
        index = names.index(loop.counter)
        found = self._function.definition(returned[index]) if index < len(returned) else None
        added = _ADD.match(found[0]) if found else None
        if added is not None and loop.counter in added.groups():
            other = added[2] if added[1] == loop.counter else added[1]
            loop.step = self._function.constant(other)
