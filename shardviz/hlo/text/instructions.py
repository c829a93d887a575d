"""The index of a text: its computations, their instructions, and the edges between these.

The text is in normal form: a header is a line at the margin that ends with ``{``, its computation goes on
until a ``}`` at the margin, and neither is the first line. An instruction's operands, its users, and what it
runs are read when they are first asked for; so are all instructions of a computation, in program order."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import TypeVar

from shardviz.hlo.text.instruction import HEAD, NOWHERE, Computation, Instruction, line_at, parse_instruction
from shardviz.hlo.text.normal_form import Mark, NormalForm, normal_form
from shardviz.hlo.text.opcodes import CALLING, COMMUNICATING, FOLDED, MATMULS, WRAPPERS

MAX_CALLED = 64
"""No more computations than this are searched for the matmul of one instruction."""
MAX_SEARCHED = 8
"""Names of a computation are searched one by one until so many times its text has been looked through."""
MAX_NESTED = 20
"""Fusions within one another, looked into at most."""

EVERY = slice(None)
"""All operands."""

_INSTRUCTION = re.compile(r"\n[ \t]*+(?:ROOT )?%?[^\s=,(){}]++ = ")


def _any_of(words: Iterable[str]) -> str:
    """A pattern of any of some words, none of which begins another; what several begin with stands once."""
    rests: dict[str, list[str]] = defaultdict(list)
    for word in words:
        rests[word[:1]].append(word[1:])
    parts = [re.escape(first) + (_any_of(those) if first else "") for first, those in sorted(rests.items())]
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


_WORDS = {
    *(f"{opcode}(" for opcode in (*COMMUNICATING, "async-start", "while", "conditional")),
    *(f"{key}=" for key in CALLING),
    *("sharding={mesh[", "sharding={devices"),
}
# That a letter is the first of some word is asked of all letters at once: most are not, of most of a text.
NOTABLE = re.compile(
    rf" [{''.join(sorted({word[0] for word in _WORDS}))}]{_any_of(word[1:] for word in _WORDS)}"
    r"(?:(?<==)(?P<list>\{)?%?(?P<called>[^\s,{}()=]++))?"
)
"""The opcode of a collective or of what runs computations, an attribute that names some, or a sharding."""
_NEXT_CALLED = re.compile(r",\s?%?(?P<called>[^\s,{}()=]++)")

_LINE = re.compile(rf"\n(?:{HEAD})?+")
_MENTION = re.compile(r"%([^\s,(){}=%]++)[,)]")
_MENTION_WITHOUT_SIGN = re.compile(r"(?<![^\s(,%])([^\s,(){}\[\]=%]++)\s*+[,)]")
_CALLED = re.compile(r"%?([^\s,(){}]+)")
_KERNEL = re.compile(r'custom_call_target="[^"]{0,200}?(?:gemm|matmul|\$conv|\$fmha|te_fused_attn)')
"""Names that libraries give to their matmuls, or to attention: ``__cublas$gemm``, ``__cudnn$fmhaSoftmax``."""

_Item = TypeVar("_Item", bound=Hashable)


def reached(start: Iterable[_Item], step: Callable[[_Item], Iterable[_Item]]) -> Iterator[_Item]:
    """All that some items lead to by steps, and these themselves, each once, the latest found first. The
    steps from an item are taken after it was given out, so that a caller may look at it before."""
    waiting = [*start]
    seen = {*waiting}
    while waiting:
        item = waiting.pop()
        yield item
        for following in step(item):
            if following not in seen:
                seen.add(following)
                waiting.append(following)


class Computations:
    """The computations of a text in normal form, found by name and by the positions of their instructions."""

    def __init__(self, normal: NormalForm) -> None:
        self.text = normal.text
        self.unclosed: list[int] = []
        """Where a computation begins before the one above it has ended: a brace was lost."""
        self.all = [*self._read(normal.marks)]
        """Every computation, in the order of the text."""
        self._starts = [computation.start for computation in self.all]
        self._named = {computation.name: computation for computation in reversed(self.all)}
        self._again: dict[str, list[Computation]] = {}
        if len(self._named) < len(self.all):
            for computation in self.all:
                self._again.setdefault(computation.name, []).append(computation)
            self._again = {name: those for name, those in self._again.items() if those[1:]}
        self._callers: dict[str, dict[Computation, list[int]]] = {}

    def _read(self, marks: Iterable[Mark]) -> Iterator[Computation]:
        behind = 0
        header: Mark | None = None
        for mark in marks:
            start, stop, name, _ = mark
            if header is not None:
                yield Computation(header[1], start, header[2] or "", header[3])
                if name is not None:
                    self.unclosed.append(start)
            elif name is None:
                continue
            elif not behind or start - behind > 2:
                yield from self._outside(behind, start)
            header, behind = (None, stop) if name is None else (mark, behind)
        if header is not None:
            yield Computation(header[1], len(self.text), header[2] or "", header[3])
        else:
            yield from self._outside(behind, len(self.text))

    def _outside(self, start: int, stop: int) -> Iterator[Computation]:
        """The instructions between two computations, as one, if there are any."""
        if _INSTRUCTION.search(self.text, start, stop):
            yield Computation(start, stop, "", False)

    @property
    def head(self) -> str:
        """The text in front of the first computation, with the line that begins it: header and tables."""
        starts = (computation.start for computation in self.all if computation.name)
        return self.text[: next(starts, len(self.text))]

    @cached_property
    def entry(self) -> Computation | None:
        """The first entry, None where the text has none, or not all of its header."""
        return next((computation for computation in self.all if computation.is_entry), None)

    def around(self, position: int) -> Computation:
        """The computation in which a position stands; none has an instruction that stands in no other."""
        number = bisect_right(self._starts, position)
        return self.all[number - 1] if number and position < self.all[number - 1].stop else NOWHERE

    def named(self, name: str, position: int) -> Computation | None:
        """The computation that a name means at a position: the last one defined so far, else the first. A
        text may hold several modules, which use names again."""
        computations = self._again.get(name)
        if computations is None or not name:
            return self._named.get(name) if name else None
        number = bisect_right(computations, position, key=lambda computation: computation.start) - 1
        return computations[max(0, number)]

    def breaks_off(self) -> str | None:
        """The name of the computation in which the text ends, None when its last one is complete."""
        last = self.all[-1] if self.all else None
        return None if last is None or last.stop < len(self.text) else last.name or None

    @cached_property
    def _marks(self) -> tuple[dict[int, str], dict[str, int], dict[str, list[int]]]:
        """The `notable` places; by computation the first that seems to call it; by computation all others."""
        # One look at the whole text for all. Most computations are called once: lists of one would take most
        # of the time.
        notable: dict[int, str] = {}
        first: dict[str, int] = {}
        others: dict[str, list[int]] = defaultdict(list)
        text = self.text
        for match in NOTABLE.finditer(text):
            index, name = match.start(), match[2]
            if name is None:
                notable[index] = match[0]
            elif text[index - 1] == ",":
                called: re.Match[str] | None = match
                while called:
                    name = called["called"]
                    if first.setdefault(name, index) != index and others[name][-1:] != [index]:
                        others[name].append(index)
                    called = _NEXT_CALLED.match(text, called.end()) if match[1] else None
        return notable, first, others

    @property
    def notable(self) -> dict[int, str]:
        """The opcodes of collectives and of what runs computations, and the beginnings of shardings, by their
        positions; a string may pretend to be one."""
        return self._marks[0]

    def callers(self, computation: Computation) -> list[int]:
        """The places that seem to call a computation, in the order of the text."""
        name, (_, first, others) = computation.name, self._marks
        places = [first[name], *others.get(name, ())] if name in first else []
        if name not in self._again:
            return places
        if name not in self._callers:
            by_callee = self._callers[name] = defaultdict(list)
            for position in places:
                if (callee := self.named(name, position)) is not None:
                    by_callee[callee].append(position)
        return self._callers[name][computation]


class Instructions:
    """The instructions of one text's computations, each made once, with the `home` that it stands in."""

    def __init__(self, text: str) -> None:
        self.normal = normal_form(text)
        self.text = self.normal.text
        self.computations = Computations(self.normal)
        self._margin = "\n  %" if "\n  %" in self.text else "\n  "
        self._at: dict[int, Instruction | None] = {}
        self._read: dict[Computation, list[Instruction]] = {}
        self._named: dict[Computation, dict[str, Instruction | None]] = defaultdict(dict)
        self._searched: dict[Computation, int] = {}
        self._mentioned: dict[Computation, tuple[dict[str, int], dict[str, list[int]]]] = {}
        """The first position in a computation at which each name seems to be an operand, and all others."""
        self._callees: dict[Instruction, Computation | None] = {}
        self._sites: dict[Computation, Instruction | None] = {}
        self._multiplies: dict[Computation, bool] = {}
        self._factors: dict[Computation, frozenset[int]] = {}

    def of(self, home: Computation) -> list[Instruction]:
        """Every instruction of a computation, in program order."""
        if home not in self._read:
            text, known, lines = self.text, self._at, list[Instruction]()
            for match in _LINE.finditer(text, home.start, home.stop):
                start = match.start() + 1
                line = known.get(start)
                if line is None and match[2] is not None:
                    stop = text.find("\n", match.end())
                    stop = len(text) if stop < 0 else stop
                    line = known[start] = Instruction(text, start, stop, match.end(), home, match.groups())
                elif line is None:
                    line = self.at(start, home)
                lines += [line] if line is not None else []
            self._read[home] = lines
            self._named[home] = {**{line.name: line for line in lines}, **self._named[home]}
        return self._read[home]

    def at(self, position: int, home: Computation | None = None) -> Instruction | None:
        """The instruction in whose line a position is, which stands in the computation `home`."""
        start = self.text.rfind("\n", 0, position) + 1
        if start not in self._at:
            home = home or self.computations.around(start)
            self._at[start] = parse_instruction(self.text, start, home)
        return self._at[start]

    def named(self, home: Computation, name: str, before: int | None = None) -> Instruction | None:
        """The instruction of a computation by its name, which is searched for from the position `before` on.
        Where a name is used again it is the last one, or the last one in front of that position."""
        known = self._named[home]
        if name not in known:
            known[name] = self._find(home, name, home.stop if before is None else before)
        return known[name]

    def _find(self, home: Computation, name: str, before: int) -> Instruction | None:
        # A name is searched for from its use on backwards, some bytes at once. When as much of the text has
        # been looked through as reading all of it takes time, that is done.
        if home in self._read:
            return None
        start, searched = home.start, self._searched.get(home, 0)
        if searched >= MAX_SEARCHED * (home.stop - start):
            self.of(home)
            return self._named[home].get(name)
        # All but the last of a computation stand so.
        if (index := self.text.rfind(f"{self._margin}{name} = ", start, before)) >= 0:
            self._searched[home] = searched + before - index
            return self.at(index + 1, home)
        stop, definition = before, f"{name} = "
        while (index := self.text.rfind(definition, start, stop)) >= 0:
            instruction = self.at(index, home)
            if instruction is not None and instruction.name == name:
                self._searched[home] = searched + before - index
                return instruction
            stop = index
        self._searched[home] = searched + before - start
        return None if before == home.stop else self._find(home, name, home.stop)

    def root(self, home: Computation) -> Instruction | None:
        """The instruction whose result is the computation's: its last one, nearly always."""
        stop = home.stop
        while (stop := self.text.rfind("ROOT ", home.start, stop)) >= 0:
            instruction = self.at(stop, home)
            if instruction is not None and instruction.is_root:
                return instruction
        return None

    def with_opcode(self, home: Computation, opcode: str) -> Iterator[Instruction]:
        """The instructions of a computation that have this opcode, in program order."""
        position = home.start
        while (position := self.text.find(f" {opcode}(", position, home.stop)) >= 0:
            instruction = self.at(position, home)
            if instruction is not None and instruction.opcode == opcode:
                yield instruction
            position = line_at(self.text, position)[1] if instruction is None else instruction.stop

    def parameter(self, home: Computation, number: int) -> Instruction | None:
        """A parameter of a computation by its number."""
        parameters = self.with_opcode(home, "parameter")
        return next((line for line in parameters if line.parameter_number == number), None)

    def taken(self, instruction: Instruction, which: slice = EVERY) -> list[Instruction]:
        """The instructions whose results one takes, or of `which` operands they are; without those that its
        computation does not define."""
        home, start = instruction.home, instruction.start
        known = self._named[home]
        made = [
            known[name] if name in known else self.named(home, name, start)
            for name in instruction.operands[which]
        ]
        return [line for line in made if line is not None]

    def operand(self, instruction: Instruction, number: int) -> Instruction | None:
        """The instruction that makes an operand, by its number; None where the text does not tell."""
        names = instruction.operands[number : number + 1]
        return self.named(instruction.home, names[0], instruction.start) if names else None

    def users(self, instruction: Instruction) -> list[Instruction]:
        """The instructions of a computation that take the result of one, each once, in program order."""
        name, home = instruction.name, instruction.home
        if home not in self._mentioned:
            text, span = self.text, (home.start, home.stop)
            # XLA prints the sign before all names, or before none.
            is_signed = "%" in text[home.start : text.find(" = ", *span)]
            # Most are one operand only: lists of one would take most of the time.
            first: dict[str, int] = {}
            others: dict[str, list[int]] = defaultdict(list)
            for mention in (_MENTION if is_signed else _MENTION_WITHOUT_SIGN).finditer(text, *span):
                index = mention.start()
                if first.setdefault(mention[1], index) != index:
                    others[mention[1]].append(index)
            self._mentioned[home] = first, others
        first, others = self._mentioned[home]
        places = [first[name], *others.get(name, ())] if name in first else []
        candidates = dict.fromkeys(self.at(position, home) for position in places)
        return [user for user in candidates if user is not None and name in user.operands]

    def callee(self, instruction: Instruction) -> Computation | None:
        """The computation that a fusion, a call or an async wrapper runs."""
        if instruction not in self._callees:
            callee = self._run(instruction, " calls=") or self._run(instruction, " to_apply=")
            self._callees[instruction] = callee
        return self._callees[instruction]

    def site(self, home: Computation) -> Instruction | None:
        """The fusion or the wrapper that runs a computation."""
        if home not in self._sites:
            line = next(map(self.at, self.computations.callers(home)), None)
            self._sites[home] = line if line and line.opcode in FOLDED else None
        return self._sites[home]

    def _run(self, instruction: Instruction, key: str) -> Computation | None:
        """The computation that the first attribute of this name has."""
        start = self.text.find(key, instruction.inside, instruction.stop)
        name = _CALLED.match(self.text, start + len(key), instruction.stop) if start >= 0 else None
        return self.computations.named(name[1], instruction.start) if name else None

    def body(self, loop: Instruction) -> Computation | None:
        """The computation that a while instruction repeats."""
        return self._run(loop, " body=")

    def called(self, instruction: Instruction, *keys: str) -> list[Computation]:
        """The computations of the text that the attributes of these names have."""
        callees = (self.computations.named(name, instruction.start) for name in instruction.called(*keys))
        return [home for home in callees if home is not None]

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
        if home not in self._multiplies:
            called = islice(reached([home], self._called_by), MAX_CALLED)
            self._multiplies[home] = any(
                _KERNEL.search(self.text, inner.start, inner.stop)
                or any(self.text.find(f" {opcode}(", inner.start, inner.stop) >= 0 for opcode in MATMULS)
                for inner in called
            )
        return self._multiplies[home]

    def _called_by(self, home: Computation) -> Iterator[Computation]:
        for opcode in WRAPPERS:
            callees = map(self.callee, self.with_opcode(home, opcode))
            yield from (callee for callee in callees if callee is not None)

    def factors_of(self, matmul: Instruction, depth: int = 0) -> list[Instruction]:
        """The instructions whose results a matmul multiplies."""
        made = (self.operand(matmul, number) for number in self.factors(matmul, depth))
        return [line for line in made if line is not None]

    def factors(self, instruction: Instruction, depth: int = 0) -> frozenset[int]:
        """The numbers of the operands that a matmul multiplies, whatever it does to them before."""
        if not self.is_matmul(instruction):
            return frozenset()
        callee = None if instruction.opcode == "custom-call" else self.callee(instruction)
        if callee is None:
            return frozenset((0, 1))
        if callee not in self._factors:
            self._factors[callee] = frozenset()
            if depth < MAX_NESTED:
                multiplied = (line for each in self.of(callee) for line in self.factors_of(each, depth + 1))
                made_of = reached(multiplied, self.taken)
                numbers = (line.parameter_number for line in made_of if line.opcode == "parameter")
                self._factors[callee] = frozenset(number for number in numbers if number is not None)
        return self._factors[callee]
