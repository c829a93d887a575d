"""The instructions of one text, with the edges between them: what each takes, what takes it, what it runs.

All of it is read when it is first asked for. A name is looked up in an index of its computation's names; all
instructions of a computation are read together, in program order.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from shardviz.hlo.text.computation import Computation, Computations, line_at
from shardviz.hlo.text.instruction import HEAD, Instruction, parse_instruction
from shardviz.hlo.text.opcodes import MATMULS, WRAPPERS

MAX_CALLED = 64
"""No more computations than this are searched for the matmul of one instruction."""
MAX_SEARCHED = 16
"""So many names of a computation are searched one by one."""
MAX_NESTED = 20
"""Fusions within one another, looked into at most."""

_LINE = re.compile(rf"\n(?:{HEAD})?+")
_NAMED = re.compile(r"\n[^\S\n]*+(?:ROOT\s++)?%?([^\s=,(){}]++) = ")
_NAMED_WITHOUT_SIGN = re.compile(r"\n[^\S\n]*+(?:ROOT\s++)?[^\s=,(){}%]++ = ")
_MENTION = re.compile(r"%([^\s,(){}=%]++)[,)]")
_MENTION_WITHOUT_SIGN = re.compile(r"(?<![^\s(,%])([^\s,(){}\[\]=%]++)\s*+[,)]")
_CALLEE = re.compile(r" (?:calls|to_apply)=%?([^\s,(){}]+)")
_BODY = re.compile(r" body=%?([^\s,(){}]+)")
_KERNEL = re.compile(r'custom_call_target="[^"]{0,200}?(?:gemm|matmul|\$conv)')
"""Names that libraries give to their matmuls: ``__cublas$gemm``, ``__onednn$matmul``."""


class Instructions:
    """The instructions of one text's computations."""

    def __init__(self, computations: Computations) -> None:
        self.text = computations.text
        self.computations = computations
        self._at: dict[int, Instruction | None] = {}
        self._read: dict[int, list[Instruction]] = {}
        self._names: dict[int, dict[str, Instruction]] = {}
        self._found: dict[tuple[int, str], Instruction | None] = {}
        self._searched: Counter[int] = Counter()
        self._places: dict[int, dict[str, int]] = {}
        self._mentioned: dict[int, Mapping[str, Sequence[int]]] = {}
        self._users: dict[tuple[int, str], list[Instruction]] = {}
        self._roots: dict[int, Instruction | None] = {}
        self._callees: dict[int, Computation | None] = {}
        self._multiplies: dict[int, bool] = {}
        self._inside: dict[int, tuple[bool, list[Computation]]] = {}
        self._factors: dict[int, frozenset[int]] = {}

    def of(self, home: Computation) -> list[Instruction]:
        """Every instruction of a computation, in program order."""
        if home.start not in self._read:
            self._read[home.start] = [*self._in_order(home)]
        return self._read[home.start]

    def at(self, position: int) -> Instruction | None:
        """The instruction in whose line a position is."""
        start = self.text.rfind("\n", 0, position) + 1
        if start not in self._at:
            self._at[start] = parse_instruction(self.text, start)
        return self._at[start]

    def home(self, instruction: Instruction) -> Computation:
        """The computation in which an instruction stands."""
        return self.computations.around(instruction.start)

    def named(self, home: Computation, name: str) -> Instruction | None:
        """The instruction of a computation by its name; the last one where the name is used again."""
        names = self._names.get(home.start)
        if names is None and home.start in self._read:
            names = self._names[home.start] = {each.name: each for each in self._read[home.start]}
        if names is not None:
            return names.get(name)
        key = home.start, name
        if key not in self._found:
            self._found[key] = self._find(home, name)
        return self._found[key]

    def _find(self, home: Computation, name: str) -> Instruction | None:
        # A few names are searched from the end, some ten bytes at once; for more an index pays.
        self._searched[home.start] += 1
        if self._searched[home.start] < MAX_SEARCHED:
            stop = home.stop
            while (place := self.text.rfind(f"{name} = ", home.start, stop)) >= 0:
                instruction = self.at(place)
                if instruction is not None and instruction.name == name:
                    return instruction
                stop = place
            return None
        if home.start not in self._places:
            found = _NAMED.finditer(self.text, home.start, home.stop)
            self._places[home.start] = {each[1]: each.start() + 1 for each in found}
        place = self._places[home.start].get(name, -1 if home.start else 0)
        instruction = self.at(place) if place >= 0 else None
        if place < 0 or (instruction is not None and instruction.name == name):
            return instruction
        # Its last definition is damaged.
        return next((each for each in reversed(self.of(home)) if each.name == name), None)

    def root(self, home: Computation) -> Instruction | None:
        """The instruction whose result is the computation's: its last one, nearly always."""
        if home.start not in self._roots:
            stop, root = home.stop, None
            while root is None and (stop := self.text.rfind("ROOT ", home.start, stop)) >= 0:
                instruction = self.at(stop)
                root = instruction if instruction is not None and instruction.is_root else None
            self._roots[home.start] = root
        return self._roots[home.start]

    def parameter(self, home: Computation, number: int) -> Instruction | None:
        """A parameter of a computation by its number."""
        position = home.start
        while (position := self.text.find(" parameter(", position, home.stop)) >= 0:
            instruction = self.at(position)
            position += 1
            if instruction is None or instruction.opcode != "parameter":
                continue
            if instruction.parameter_number == number:
                return instruction
        return None

    def users(self, home: Computation, name: str) -> list[Instruction]:
        """The instructions of a computation that take a value of it, each once, in program order."""
        key = home.start, name
        if key not in self._users:
            places = self._mentions(home).get(name, ())
            found = dict.fromkeys(self.at(place) for place in places)
            self._users[key] = [each for each in found if each is not None and name in each.operands]
        return self._users[key]

    def _mentions(self, home: Computation) -> Mapping[str, Sequence[int]]:
        """The positions in a computation at which each name seems to be an operand."""
        if home.start not in self._mentioned:
            text, span = self.text, (home.start, home.stop)
            is_signed = _NAMED_WITHOUT_SIGN.search(text, *span) is None and text.startswith("\n", home.start)
            found: dict[str, list[int]] = defaultdict(list)
            for mention in (_MENTION if is_signed else _MENTION_WITHOUT_SIGN).finditer(text, *span):
                found[mention[1]].append(mention.start())
            self._mentioned[home.start] = found
        return self._mentioned[home.start]

    def callee(self, instruction: Instruction) -> Computation | None:
        """The computation that a fusion, a call or an async wrapper runs."""
        start = instruction.start
        if start not in self._callees:
            called = instruction.search(_CALLEE)
            self._callees[start] = self.computations.named(called[1], start) if called else None
        return self._callees[start]

    def body(self, loop: Instruction) -> Computation | None:
        """The computation that a while instruction repeats."""
        called = loop.search(_BODY)
        return self.computations.named(called[1], loop.start) if called else None

    def called(self, instruction: Instruction, *keys: str) -> list[Computation]:
        """The computations of the text that the attributes of these names have."""
        found = (self.computations.named(name, instruction.start) for name in instruction.called(*keys))
        return [home for home in found if home is not None]

    def is_matmul(self, instruction: Instruction) -> bool:
        """Return whether it multiplies matrices: by itself, in a library's kernel, or in what it calls."""
        if instruction.opcode in WRAPPERS:
            callee = self.callee(instruction)
            return callee is not None and self.multiplies(callee)
        if instruction.opcode == "custom-call":
            return instruction.search(_KERNEL) is not None
        return instruction.opcode in MATMULS

    def multiplies(self, home: Computation) -> bool:
        """Return whether a computation, or one that it calls, multiplies matrices."""
        if home.start not in self._multiplies:
            waiting, seen, found = [home], {home.start}, False
            while waiting and not found:
                inner = waiting.pop()
                if inner.start not in self._inside:
                    self._inside[inner.start] = self._has_matmul(inner), [*self._wrapped(inner)]
                found, called = self._inside[inner.start]
                waiting += [callee for callee in called if callee.start not in seen][: MAX_CALLED - len(seen)]
                seen.update(callee.start for callee in waiting)
            self._multiplies[home.start] = found
        return self._multiplies[home.start]

    def factors(self, instruction: Instruction, depth: int = 0) -> frozenset[int]:
        """The numbers of the operands that a matmul multiplies, whatever it does to them before."""
        if not self.is_matmul(instruction):
            return frozenset()
        callee = None if instruction.opcode == "custom-call" else self.callee(instruction)
        if callee is None:
            return frozenset((0, 1))
        if callee.start not in self._factors:
            self._factors[callee.start] = frozenset()
            if depth < MAX_NESTED:
                self._factors[callee.start] = self._multiplied_parameters(callee, depth)
        return self._factors[callee.start]

    def _multiplied_parameters(self, home: Computation, depth: int) -> frozenset[int]:
        waiting = [
            name
            for instruction in self.of(home)
            for number in self.factors(instruction, depth + 1)
            for name in instruction.operands[number : number + 1]
        ]
        seen, found = set(waiting), set()
        while waiting:
            instruction = self.named(home, waiting.pop())
            if instruction is None:
                continue
            if instruction.opcode == "parameter":
                if (number := instruction.parameter_number) is not None:
                    found.add(number)
                continue
            operands = set(instruction.operands) - seen
            seen |= operands
            waiting += operands
        return frozenset(found)

    def _has_matmul(self, home: Computation) -> bool:
        text = self.text
        return (
            any(text.find(f" {opcode}(", home.start, home.stop) >= 0 for opcode in MATMULS)
            or _KERNEL.search(text, home.start, home.stop) is not None
        )

    def _wrapped(self, home: Computation) -> Iterator[Computation]:
        for opcode in WRAPPERS:
            position = home.start
            while (position := self.text.find(f" {opcode}(", position, home.stop)) >= 0:
                instruction = self.at(position)
                callee = self.callee(instruction) if instruction else None
                if callee is not None:
                    yield callee
                position = line_at(self.text, position)[1]

    def _in_order(self, home: Computation) -> Iterator[Instruction]:
        text, known = self.text, self._at
        if not text.startswith("\n", home.start) and (first := self.at(home.start)) is not None:
            yield first
        before: Instruction | None = None
        for line in _LINE.finditer(text, home.start, home.stop):
            start = line.start() + 1
            if before is not None:
                before.stop = start - 1
                yield before
            before = known.get(start)
            if before is None:
                is_root, name, shape, opcode = line.groups()
                if name is None:
                    before = parse_instruction(text, start)
                else:
                    before = Instruction(
                        text, start, home.stop, name, shape, opcode, line.end(), is_root is not None
                    )
                known[start] = before
        if before is not None:
            yield before
