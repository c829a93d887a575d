"""Where values come from and go to among the instructions of some computations, through loops and tuples."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from shardviz.hlo.text.computation import Computation
from shardviz.hlo.text.steps import Step, Steps

MAX_FOLLOWED = 64
"""No more values than this are looked at to follow one of them."""

MOVES = frozenset(
    (
        "bitcast",
        "bitcast-convert",
        "convert",
        "copy",
        "copy-start",
        "copy-done",
        "reshape",
        "transpose",
        "optimization-barrier",
        "opt-barrier",
        "collective-permute-done",
    )
)
"""Opcodes whose result is their operand, in another place or form."""
_INDEX = re.compile(r" index=(\d{1,6})")
_BODY = re.compile(r" body=%?([^\s,(){}]+)")
_SIZES = re.compile(r"\(?[a-z][a-z0-9]*\[(\d{1,18}(?:,\d{1,18}){0,20})\]")
_ONE_ELEMENT = re.compile(r"[a-z][a-z0-9]*\[(?:1(?:,1)*)?\]")


def sizes(step: Step) -> tuple[int, ...]:
    """The dimensions of the first array that an instruction makes; none where its shape is not to be read."""
    found = _SIZES.match(step.shape)
    return tuple(map(int, found[1].split(","))) if found else ()


class Value(NamedTuple):
    """What an instruction makes; one `element` of it where that is a tuple taken apart."""

    home: int
    name: str
    element: int | None = None


class ValueFlow:
    """The values of the computations `homes`, and of those whose loops run them."""

    def __init__(self, steps: Steps, homes: Iterable[Computation]) -> None:
        self.steps = steps
        self._named: dict[int, dict[str, Step]] = {}
        self._roots: dict[int, str] = {}
        self._loops: dict[int, Value] = {}
        self._bodies: dict[Value, int] = {}
        self._parameters: dict[int, str] = {}
        self._elements: dict[Value, dict[int, list[Value]]] = defaultdict(lambda: defaultdict(list))
        self._taken: dict[Value, dict[str, list[Value]]] = defaultdict(lambda: defaultdict(list))
        self._multiplies: dict[Value, bool] = {}
        self._sources: dict[Value, list[Value]] = {}
        self._users: dict[Value, list[Value]] = defaultdict(list)
        for home in {home.start: home for home in homes}.values():
            self._add(home)
        for value, taken in [*self._elements.items()]:
            self._lead(value, [taken])
        for body, loop in self._loops.items():
            if body in self._named:
                self._join(body, loop)

    def step(self, value: Value) -> Step:
        """The instruction that makes a value."""
        return self._named[value.home][value.name]

    def sources(self, value: Value) -> list[Value]:
        """The values that it is made of; of a loop's state what it starts with and what the body makes."""
        if value not in self._sources:
            self._sources[value] = [*self._made_of(value)]
        return self._sources[value]

    def users(self, value: Value) -> Iterator[Value]:
        """The values that are made of it; of what goes into a tuple or a loop's state, what is taken out."""
        if value.element is not None:
            yield from self._elements.get(value._replace(element=None), {}).get(value.element, ())
            return
        for user in self._users.get(value, ()):
            passed = self._taken.get(user)
            if passed is None:
                yield user
            else:
                yield from passed.get(value.name, ())

    def is_matmul(self, value: Value) -> bool:
        """Whether the instruction that makes it multiplies matrices."""
        if value not in self._multiplies:
            self._multiplies[value] = self.steps.is_matmul(self.step(value))
        return self._multiplies[value]

    def is_move(self, value: Value) -> bool:
        """Whether a value is nothing but its source, in another place or form."""
        step = self.step(value)
        if step.opcode in MOVES or value.element is not None or step.opcode == "get-tuple-element":
            return True
        if step.opcode != "fusion" or self.is_matmul(value):
            return False
        names = self.steps.operands(step)
        named = self._named[value.home]
        arrays = [name for name in names if name not in named or not _ONE_ELEMENT.match(named[name].shape)]
        if len(arrays) != 1:
            return False
        # With a number beside the array it may be a part of it, or, in a loop's first round, zeros.
        return len(names) == 1 or (arrays[0] in named and sizes(named[arrays[0]]) == sizes(step))

    def back(self, value: Value, passes: Callable[[Value], bool]) -> dict[Value, bool]:
        """The values that one is made of, itself included, through those that `passes` lets through.

        Each with whether it was let through; the others are where the way ends.
        """
        return self._follow({value: passes(value)}, passes, self.sources)

    def ahead(self, value: Value, passes: Callable[[Value], bool]) -> dict[Value, bool]:
        """The values that take one, itself included and let through, in the same way."""
        return self._follow({value: True}, passes, self.users)

    def _follow(
        self,
        found: dict[Value, bool],
        passes: Callable[[Value], bool],
        following: Callable[[Value], Iterable[Value]],
    ) -> dict[Value, bool]:
        waiting = [value for value, passed in found.items() if passed]
        while waiting and len(found) < MAX_FOLLOWED:
            for each in islice(following(waiting.pop()), MAX_FOLLOWED):
                if each not in found:
                    found[each] = passes(each)
                    if found[each]:
                        waiting.append(each)
        return found

    def _add(self, home: Computation) -> None:
        steps = self.steps.of(home)
        named = self._named[home.start] = {step.name: step for step in steps}
        for step in steps:
            if step.is_root:
                self._roots[home.start] = step.name
            if step.opcode == "parameter":
                self._parameters[home.start] = step.name
            if step.opcode in ("constant", "parameter") or _ONE_ELEMENT.match(step.shape):
                continue
            for name in self.steps.operands(step):
                if name in named:
                    self._users[Value(home.start, name)].append(Value(home.start, step.name))
            if step.opcode == "get-tuple-element":
                index = _INDEX.search(self.steps.text, step.inside, step.stop)
                for name in self.steps.operands(step)[:1]:
                    if index is not None:
                        taken = self._elements[Value(home.start, name)]
                        taken[int(index[1])].append(Value(home.start, step.name))
            if step.opcode == "while" and (body := _BODY.search(self.steps.text, step.inside, step.stop)):
                called = self.steps.computations.named(body[1], step.start)
                if called is not None:
                    self._loops[called.start] = Value(home.start, step.name)
                    self._bodies[Value(home.start, step.name)] = called.start

    def _join(self, body: int, loop: Value) -> None:
        """Leads from what goes into a loop's state to what is taken of it, in the body and afterwards."""
        inside = self._elements[Value(body, self._parameters.get(body, ""))]
        after = self._elements[loop]
        for name in self.steps.operands(self.step(loop))[:1]:
            self._lead(Value(loop.home, name), [inside])
        self._lead(Value(body, self._roots.get(body, "")), [inside, after])

    def _lead(self, state: Value, taken: list[dict[int, list[Value]]]) -> None:
        step = self._named[state.home].get(state.name)
        if step is not None and step.opcode == "tuple":
            for index, name in enumerate(self.steps.operands(step)):
                self._taken[state][name] += (value for elements in taken for value in elements.get(index, ()))

    def _made_of(self, value: Value) -> Iterator[Value]:
        home, element = value.home, value.element
        step = self.step(value)
        if element is not None and step.opcode == "while":
            yield from self._result(self._bodies.get(value._replace(element=None), -1), element)
        elif element is not None and step.opcode == "parameter":
            loop = self._loops.get(home)
            if loop is not None:
                yield from self._values(loop.home, self.steps.operands(self.step(loop))[:1], element)
                yield from self._result(home, element)
        elif element is not None and step.opcode != "tuple":
            yield value._replace(element=None)
        else:
            names = self.steps.operands(step)
            index = None
            if step.opcode == "get-tuple-element":
                found = _INDEX.search(self.steps.text, step.inside, step.stop)
                index = int(found[1]) if found else None
            yield from self._values(home, names if element is None else names[element : element + 1], index)

    def _result(self, home: int, element: int) -> Iterator[Value]:
        root = self._roots.get(home)
        return self._values(home, [root] if root else [], element)

    def _values(self, home: int, names: Iterable[str], element: int | None) -> Iterator[Value]:
        named = self._named.get(home, {})
        return (Value(home, name, element) for name in names if name in named)
