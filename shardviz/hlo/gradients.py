"""The gradients of a train step: whose its collectives sum, and which collectives move what is made of them.

A compiled program does not say so; its optimizer does. Followed back from a result, element by element, an
updated parameter is the old one, and what is added to it: a gradient, scaled by whatever the optimizer has.
States of the optimizer are updated in the same way, and bear the same path in a tree of their own.

JAX names no operation after the optimizer, and metrics stand beside it: sums of activations, counts of
tokens. What tells them apart is what they are made of. Followed back, a norm of all gradients comes from an
operation of the backward pass before it comes from anything else that was differentiated; a gradient that is
itself moved is the backward pass's own. An updated parameter that a model takes at once, as an evaluation in
the same step does, is gathered for that model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

from shardviz.hlo.arguments import pieces_of, shared_steps
from shardviz.hlo.collective import Collective
from shardviz.hlo.named_scopes import joined_names, program_place
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.instructions import reached
from shardviz.hlo.text.opcodes import ADDING, ARITHMETIC, PLACES, RUNNING, SUMS, whole_op
from shardviz.hlo.text.values import MAX_LOOKS, Made, ProgramValue, Values, folded, max_looks

MAX_REACHED = 500
"""A value that is made of more arguments, sums or pairs than this is not the update of a parameter."""
MAX_STEPS = 20
"""Instructions from a sum back to one that is named after a gradient, at most."""
_ELEMENTWISE = ARITHMETIC | {"reduce-precision", "logistic"}
"""Operations that keep each element in its place, beside those that move it."""
_MODELS = ("dot", "convolution", "gather", "custom-call")
"""What a model does with its parameters: beyond it, updated ones may be used again, as for metrics."""


class _Reached(NamedTuple):
    """Arguments and sums that a value is made of element by element; pairs of both that are added up."""

    arguments: frozenset[int] = frozenset()
    sums: frozenset[str] = frozenset()
    pairs: frozenset[tuple[str, int]] = frozenset()


_NOTHING = _Reached()


def gradients(values: Values, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """The numbers of the arguments, called `names`, whose gradients each collective sums, by its name. A
    collective of which that is not certain is not among them."""
    by_collective: dict[str, list[frozenset[int]]] = defaultdict(list)
    for result in _Updates(values).of_results():
        for name in dict.fromkeys(name for name, _ in result.pairs):
            by_collective[name].append(frozenset(number for other, number in result.pairs if other == name))
    told = {name: [*_parameters(sets, names)] for name, sets in by_collective.items()}
    return {
        name: tuple(sorted(number for number in numbers if number is not None))
        for name, numbers in told.items()
        if None not in numbers
    }


def _parameters(sets: Iterable[frozenset[int]], names: Sequence[str]) -> Iterator[int | None]:
    """The parameter of each family of results that share an argument, None where none can be told; each set
    has the arguments of one result: those of Adam are {mean}, {square}, {weight, mean, square}."""
    families: list[list[frozenset[int]]] = []
    for result in dict.fromkeys(sets):
        related = [family for family in families if any(map(result.intersection, family))]
        own = [other for family in reversed(related) for other in family]
        families = [*(family for family in families if family not in related), [*own, result]]
    for family in families:
        yield _parameter(frozenset().union(*family), family, names)


def _parameter(members: frozenset[int], sets: Sequence[frozenset[int]], names: Sequence[str]) -> int | None:
    """The parameter among arguments of one path in several trees."""
    if len(members) == 1:
        return next(iter(members))
    if any(number >= len(names) or not names[number] for number in members):
        return None
    pieces = {number: pieces_of(names[number]) for number in members}
    shared = shared_steps([path[::-1] for path in pieces.values()])
    trees = {number: "".join(path[: len(path) - shared]) for number, path in pieces.items()}
    if not all(trees.values()) or (not shared and any(len(path) > 1 for path in pieces.values())):
        return None
    called = [number for number, tree in trees.items() if "param" in tree.lower()]
    if len(called) == 1:
        return called[0]
    # A weight is made of several states, each of which is made of itself: what is left is the weight.
    for result in sorted(sets, key=len):
        states = [other for other in sets if other < result]
        rest = result.difference(*states)
        if len(states) > 1 and len(rest) == 1:
            return next(iter(rest))
    return None


class _Updates:
    """Follows the results of a module back, element by element, to its arguments and sums of gradients."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._known: dict[ProgramValue, _Reached] = {}

    def of_results(self) -> Iterator[_Reached]:
        """The gradients and arguments of which each result of the program is made."""
        lines = self._values.lines
        entry = lines.computations.entry
        root = None if entry is None else lines.root(entry)
        if root is not None:
            for result in lines.taken(root) if root.opcode == "tuple" else [root]:
                most = max_looks(lines.text)
                yield folded(ProgramValue(result), self._known, self._step, _joined, most) or _NOTHING

    def _step(self, value: ProgramValue) -> tuple[Sequence[ProgramValue], _Reached]:
        if value.line.opcode in SUMS:
            return (), _Reached(sums=frozenset(self._summed(value)))
        made = self._values.made_of(value)
        if isinstance(made, Made):
            is_followed = made.only_moved or value.line.opcode in _ELEMENTWISE
            return made.operands if is_followed else (), _NOTHING
        return (), _NOTHING if made is None else _Reached(arguments=frozenset(made.arguments))

    def _summed(self, value: ProgramValue) -> Iterator[str]:
        """The names of a sum, and of those whose results it takes as they are, if they are of gradients."""
        for _ in range(MAX_STEPS):
            is_sum = value.line.opcode in SUMS
            if is_sum and self._is_of_gradient(value):
                yield value.line.name
            made = self._values.how(value)
            if not isinstance(made, Made) or len(made.operands) != 1 or not (is_sum or made.only_moved):
                return
            value = made.operands[0]

    def _is_of_gradient(self, value: ProgramValue) -> bool:
        """Return whether JAX's name of a sum, or of what it sums, is that of a gradient's operation."""
        for _ in range(MAX_STEPS):
            op_name = value.line.op_name
            phases = {program_place(name).phase for name in joined_names(op_name)} if op_name else set()
            # A sum may be named after itself, or after all that the compiler has put together with it.
            if phases == {"backward"} or (len(phases) == 1 and value.line.opcode not in SUMS):
                return phases == {"backward"}
            made = self._values.how(value)
            if not isinstance(made, Made) or not made.operands:
                return False
            value = made.operands[0]
        return False


def _joined(value: ProgramValue, parts: Sequence[_Reached]) -> _Reached:
    """A value that is made of others; where it adds them, each one's sums are added to others' arguments."""
    if len(parts) == 1:
        return parts[0]
    pairs = [part.pairs for part in parts]
    if value.line.opcode in ADDING:
        pairs += [
            frozenset((name, number) for name in one.sums for number in other.arguments)
            for one, other in permutations(parts, 2)
        ]
    merged = _Reached(
        frozenset().union(*(part.arguments for part in parts)),
        frozenset().union(*(part.sums for part in parts)),
        frozenset().union(*pairs),
    )
    return merged if max(map(len, merged)) <= MAX_REACHED else _NOTHING


class _Look(NamedTuple):
    """A value as `_GradientUses` sees it: whether an operation of the backward pass alone computes it (passes
    may share a constant), or one outside of what is differentiated; and what it is made of, if followed."""

    is_backward: bool
    is_outside: bool
    operands: Sequence[ProgramValue]


def gradient_uses(values: Values, found: Iterable[tuple[Collective, Instruction]]) -> frozenset[str]:
    """The names of collectives outside of what is differentiated that move what is made of gradients."""
    uses = _GradientUses(values)
    outside = (pair for pair in found if not program_place(pair[0].op_name).is_differentiated)
    return frozenset(record.name for record, line in outside if uses.moves_gradients(line))


class _GradientUses:
    def __init__(self, values: Values) -> None:
        self._values = values
        self._known: dict[ProgramValue, _Look] = {}
        self._has: dict[ProgramValue, bool] = {}
        self._looks = max_looks(values.lines.text)

    def moves_gradients(self, line: Instruction) -> bool:
        """Return whether all operands are certainly computed of gradients, and no model takes the result."""
        values = [*self._values.taken(line)]
        is_made = (
            bool(values) and not any(map(self._is_gradient, values)) and all(map(self._has_gradient, values))
        )
        return is_made and not self._is_for_a_model(line)

    def _is_for_a_model(self, line: Instruction) -> bool:
        """Return whether what a collective hands on may be multiplied, or looked up in, where it arrives."""
        lines = self._values.lines

        def moved_on(moved: Instruction) -> Iterable[Instruction]:
            return lines.users(moved) if whole_op(moved.opcode) in PLACES else ()

        for user in reached(lines.users(line), moved_on):
            self._looks -= 1
            inside = lines.callee(user) if user.opcode in RUNNING else None
            if self._looks < 0 or user.opcode in _MODELS:
                return True
            if inside is not None and any(next(lines.with_opcode(inside, op), None) for op in _MODELS):
                return True
        return False

    def _is_gradient(self, value: ProgramValue) -> bool:
        """Return whether a value has elements of a gradient itself, that only were moved."""

        def moved_from(moved: ProgramValue) -> Sequence[ProgramValue]:
            return () if self._known[moved].is_outside else self._known[moved].operands

        for origin in reached([value], moved_from):
            look = self._look(origin)
            if look is None or look.is_backward:
                return look is not None
        return False

    def _has_gradient(self, value: ProgramValue) -> bool:
        """Return whether an operation of the backward pass is among all that a value is made of."""
        return folded(value, self._has, self._step, lambda _, parts: any(parts), MAX_LOOKS) or False

    def _step(self, value: ProgramValue) -> tuple[Sequence[ProgramValue], bool]:
        look = self._look(value)
        return (look.operands, False) if look and not look.is_backward else ((), look is not None)

    def _look(self, value: ProgramValue) -> _Look | None:
        """A value, followed unless an activation or a model makes it; None where too many were looked at."""
        self._looks -= 1
        if self._looks < 0:
            return None
        look = self._known.get(value)
        if look is None:
            made, opcode = self._values.made_of(value), value.line.opcode
            # Of a fusion its instructions tell.
            passes = frozenset() if opcode in RUNNING else _passes(value.line.op_name)
            is_computed = isinstance(made, Made) and not made.only_moved
            is_followed = not passes or "backward" in passes
            is_followed = is_followed and not (is_computed and opcode in _MODELS)
            computes = is_computed and opcode != "broadcast"
            look = self._known[value] = _Look(
                computes and passes == {"backward"},
                computes and not passes,
                made.operands if isinstance(made, Made) and is_followed else (),
            )
        return look


@lru_cache(maxsize=65536)
def _passes(op_name: str) -> frozenset[str]:
    """The passes of the differentiated function that an operation belongs to; none for one outside of it."""
    places = ((name, program_place(name)) for name in joined_names(op_name))
    # A checkpoint outside of what is differentiated has no transposition in its name.
    return frozenset(
        "backward" if place.phase == "backward" and "transpose(" in name else "forward"
        for name, place in places
        if place.is_differentiated
    )
