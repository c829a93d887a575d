"""The arguments of a train step whose gradients its collectives sum.

A compiled program does not say so; its optimizer does. Followed back from a result, element by element, an
updated parameter is the old one, and what is added to it: a gradient, scaled by whatever the optimizer has.
States of the optimizer are updated in the same way, and bear the same path in a tree of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from shardviz.hlo.arguments import pieces_of, shared_steps
from shardviz.hlo.named_scopes import joined_names, program_place
from shardviz.hlo.origins import InstructionOrigins, InstructionValue, Made
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import ADDING, ARITHMETIC, SUMS

MAX_LOOKS = 100_000
"""Values looked at in one module at most."""
MAX_REACHED = 500
"""A value that is made of more arguments, sums or pairs than this is not the update of a parameter."""
MAX_STEPS = 20
"""Instructions from a sum back to one that is named after a gradient, at most."""
_ELEMENTWISE = ARITHMETIC | {"reduce-precision", "logistic"}
"""Operations that keep each element in its place, beside those that move it."""
OP_NAME = re.compile(r'[ {]op_name="([^"\n]{0,400})')


class _Reached(NamedTuple):
    """The arguments and the sums that a value is made of element by element, and the pairs of both of which
    one is added to the other."""

    arguments: frozenset[int] = frozenset()
    sums: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, int]] = frozenset()


_NOTHING = _Reached()


def gradients(
    lines: Instructions, origins: InstructionOrigins, names: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """The numbers of the arguments, called `names`, whose gradients each collective sums, by its name.

    A collective of which that is not certain is not among them.
    """
    found: dict[str, list[frozenset[int]]] = {}
    for reached in _Updates(lines, origins).of_results():
        updated: dict[str, set[int]] = {}
        for name, number in reached.pairs:
            updated.setdefault(name, set()).add(number)
        for name, numbers in updated.items():
            found.setdefault(name, []).append(frozenset(numbers))
    told = {name: [*_parameters(sets, names)] for name, sets in found.items()}
    return {
        name: tuple(sorted(each for each in numbers if each is not None))
        for name, numbers in told.items()
        if None not in numbers
    }


def _parameters(sets: Iterable[frozenset[int]], names: Sequence[str]) -> Iterator[int | None]:
    """The parameter of each family of results that share an argument, None where none can be told.

    Each set has the arguments of one result: those of Adam are {mean}, {square}, {weight, mean, square}.
    """
    families: list[tuple[set[int], list[frozenset[int]]]] = []
    for each in dict.fromkeys(sets):
        members, own = set(each), [each]
        apart = []
        for numbers, others in families:
            if numbers.isdisjoint(each):
                apart.append((numbers, others))
            else:
                members |= numbers
                own = others + own
        families = [*apart, (members, own)]
    for members, own in families:
        yield _parameter(members, own, names)


def _parameter(members: set[int], sets: Sequence[frozenset[int]], names: Sequence[str]) -> int | None:
    """The parameter among arguments of one path in several trees."""
    if len(members) == 1:
        return next(iter(members))
    if any(number >= len(names) or not names[number] for number in members):
        return None
    pieces = {number: pieces_of(names[number]) for number in members}
    shared = shared_steps([each[::-1] for each in pieces.values()])
    trees = {number: "".join(each[: len(each) - shared]) for number, each in pieces.items()}
    if not all(trees.values()) or (not shared and any(len(each) > 1 for each in pieces.values())):
        return None
    called = [number for number, tree in trees.items() if "param" in tree.lower()]
    if len(called) == 1:
        return called[0]
    # A weight is made of several states, each of which is made of itself: what is left is the weight.
    for each in sorted(sets, key=len):
        states = [other for other in sets if other < each]
        rest = each.difference(*states)
        if len(states) > 1 and len(rest) == 1:
            return next(iter(rest))
    return None


def max_looks(text: str) -> int:
    """The values of a text that are looked at, at most, and no more than it has bytes: a computation has as
    many values as ways lead to it through calls, which a short text can make any number."""
    return min(MAX_LOOKS, len(text))


class _Updates:
    """Follows the results of a module back, element by element, to its arguments and its sums of
    gradients."""

    def __init__(self, lines: Instructions, origins: InstructionOrigins) -> None:
        self._lines, self._origins = lines, origins
        self._known: dict[InstructionValue, _Reached] = {}
        self._max_looks = max_looks(lines.text)

    def of_results(self) -> Iterator[_Reached]:
        """The arguments and the sums that each result of the program is made of."""
        entry = self._lines.computations.entry
        root = None if entry is None else self._lines.root(entry)
        if entry is None or root is None:
            return
        if root.opcode != "tuple":
            yield self._reached(InstructionValue(entry, root.name))
            return
        for name in root.operands:
            yield self._reached(InstructionValue(entry, name))

    def _reached(self, value: InstructionValue) -> _Reached:
        pending: list[tuple[InstructionValue, tuple[InstructionValue, ...] | None]] = [(value, None)]
        while pending:
            current, operands = pending.pop()
            if operands is not None:
                parts = [self._known.get(each, _NOTHING) for each in operands]
                line = self._lines.named(current.computation, current.name)
                self._known[current] = _joined(parts, line is not None and line.opcode in ADDING)
            elif current not in self._known:
                # What is made of itself, as in a loop, is what else it is made of.
                self._known[current] = _NOTHING
                if len(self._known) > self._max_looks:
                    return _NOTHING
                found = self._step(current)
                if isinstance(found, _Reached):
                    self._known[current] = found
                else:
                    pending.append((current, found))
                    pending.extend((each, None) for each in found)
        return self._known[value]

    def _step(self, value: InstructionValue) -> _Reached | tuple[InstructionValue, ...]:
        """The values that one is made of, element by element; or what it is."""
        line = self._lines.named(value.computation, value.name)
        if line is None:
            return _NOTHING
        if line.opcode in SUMS:
            return _Reached(sums=frozenset(self._summed(value)))
        made = self._origins.made_of(value, line)
        if isinstance(made, Made):
            return made.operands if made.only_moved or line.opcode in _ELEMENTWISE else ()
        return () if made is None else _Reached(arguments=frozenset(made.arguments))

    def _summed(self, value: InstructionValue) -> Iterator[str]:
        """The names of a sum, and of those whose results it takes as they are, if they are of gradients."""
        for _ in range(MAX_STEPS):
            line = self._lines.named(value.computation, value.name)
            if line is None:
                return
            is_sum = line.opcode in SUMS
            if is_sum and self._is_of_gradient(value, line):
                yield line.name
            made = self._origins.how(value)
            if not isinstance(made, Made) or len(made.operands) != 1 or not (is_sum or made.only_moved):
                return
            value = made.operands[0]

    def _is_of_gradient(self, value: InstructionValue, line: Instruction) -> bool:
        """Return whether JAX's name of a sum, or of what it sums, is that of a gradient's operation."""
        for _ in range(MAX_STEPS):
            op_name = line.search(OP_NAME)
            phases = {program_place(each).phase for each in joined_names(op_name[1])} if op_name else set()
            # A sum may be named after itself, or after all that the compiler has put together with it.
            if phases == {"backward"} or (len(phases) == 1 and line.opcode not in SUMS):
                return phases == {"backward"}
            made = self._origins.how(value)
            if not isinstance(made, Made) or not made.operands:
                return False
            value = made.operands[0]
            found = self._lines.named(value.computation, value.name)
            if found is None:
                return False
            line = found
        return False


def _joined(parts: Sequence[_Reached], adds: bool) -> _Reached:
    """A value that is made of others; where it `adds` them, each one's sums are added to others'
    arguments."""
    if len(parts) == 1:
        return parts[0]
    pairs = [each.pairs for each in parts]
    if adds:
        pairs += [
            frozenset((name, number) for name in one.sums for number in other.arguments)
            for one, other in permutations(parts, 2)
        ]
    found = _Reached(
        frozenset().union(*(each.arguments for each in parts)),
        frozenset().union(*(each.sums for each in parts)),
        frozenset().union(*pairs),
    )
    return found if max(map(len, found)) <= MAX_REACHED else _NOTHING
