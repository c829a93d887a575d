"""The reason of each step of a plan: one sentence, with the numbers of the case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from shardviz.planner.plan import axes_words
from shardviz.planner.problem import Statement
from shardviz.planner.statements.planned_statement import OtherWay, PlannedStatement
from shardviz.planner.states.moves import Axes, ReshardMove, State, state_of
from shardviz.sharding import ShardedArray
from shardviz.sharding.axis_parts import finest_parts, parts_within
from shardviz.units import exact_bytes, times


def explain_einsum(choice: PlannedStatement) -> str:
    """The computation of every device, and its result."""
    part, split = choice.part, choice.work_split
    pieces = [
        f"{operand.name}[{'×'.join(map(str, choice.local_shape(operand, state)))}]"
        for operand, state in zip(part.operands, split.operands, strict=True)
    ]
    doing = _doing(part, pieces)
    if split.largest:
        parts, over = choice.mesh.group_size(split.largest), axes_words(split.largest)
        dims = " and ".join(dim for dim in part.summed if split.assignment.get(dim))
        return (
            f"Every device {doing} locally; each covers 1/{parts} of {dims}, so the maximum over {over} "
            "is still pending."
        )
    pending = split.result[1]
    summed = [dim for dim in part.summed if split.assignment.get(dim)]
    if pending and summed:
        parts = choice.mesh.group_size(axis for dim in summed for axis in split.assignment[dim])
        return (
            f"Every device {doing} locally; each covers 1/{parts} of {' and '.join(summed)}, so the "
            f"result is a partial sum over {axes_words(pending)}."
        )
    if pending:
        over = axes_words(pending)
        return f"Every device {doing} locally; the sum over {over} is still pending."
    return f"Every device {doing} and has its piece of {part.result.name}: no byte moves."


def _doing(part: Statement, pieces: Sequence[str]) -> str:
    """The work of a statement on pieces of its operands: ``multiplies its A[4×8] by its W[8×2]``."""
    first, *others = pieces
    match part.function, others:
        case "multiply", [other]:
            return f"multiplies its {first} by its {other}"
        case "multiply", []:
            return f"works on its {first}"
        case "add", [other]:
            return f"adds its {first} and its {other}"
        case "subtract", [other]:
            return f"takes its {other} from its {first}"
        case "divide", [other]:
            return f"divides its {first} by its {other}"
    *before, last = [f"its {piece}" for piece in pieces]
    taken = f"{', '.join(before)} and {last}" if before else last
    return f"takes {part.function} of {taken}"


def explain_moves(
    choice: PlannedStatement,
    next_input: ShardedArray | None,
    array: ShardedArray,
    moves: Sequence[ReshardMove],
) -> list[str]:
    """One sentence for each move of one operand, or of the result, on its way to one state; `next_input` is
    the result as the next statement is given it, None after the last."""
    return [
        _MoveReason(choice, next_input, array, move, following, moves[-1].after).sentence()
        for move, following in zip_longest(moves, moves[1:])
    ]


@dataclass(frozen=True)
class _MoveReason:
    """One move of an operand or of a result, the move after it, and the state in which they all end."""

    choice: PlannedStatement
    next_input: ShardedArray | None
    array: ShardedArray
    move: ReshardMove
    following: ReshardMove | None
    goal: State

    def sentence(self) -> str:
        match self.move.op:
            case "all_gather":
                return self._gather()
            case "slice":
                return self._slice()
            case "all_to_all":
                return self._exchange()
            case "ppermute":
                return self._permute()
            case "mask":
                return self._mask()
            case "pmax":
                return self._largest()
            case _:
                return self._reduce()

    @property
    def is_operand(self) -> bool:
        return any(operand is self.array for operand in self.choice.part.operands)

    @property
    def n(self) -> int:
        """Devices in a group."""
        return self.choice.mesh.group_size(self.move.axes)

    @property
    def axes(self) -> str:
        return axes_words(self.move.axes)

    @property
    def place(self) -> int:
        """The dimension that is gathered, scattered or cut, counted from 0."""
        assert self.move.dim is not None
        return self.move.dim

    @property
    def dim(self) -> str:
        """The name of that dimension."""
        return self.array.dims[self.place]

    @property
    def is_summed(self) -> bool:
        """The einsum sums over that dimension."""
        return self.dim in self.choice.part.einsum.contracted

    @property
    def extents(self) -> tuple[int, int]:
        """Elements of a device along that dimension, before and after the move."""
        before, after = (
            self.choice.local_shape(self.array, state)[self.place]
            for state in (self.move.before, self.move.after)
        )
        return before, after

    @property
    def price(self) -> str:
        bytes_, n = self.move.bytes, self.n
        return f"each device sends {n - 1}/{n} of {exact_bytes(bytes_)} = {self.move.wire_bytes:,}"

    def _changed(self, *, cut: bool) -> dict[int, Axes]:
        """The dimensions that a move cuts further, or less, by their number, with the axes of each."""
        states = (self.move.before[0], self.move.after[0])
        fewer, more = states if cut else states[::-1]
        size = self.choice.mesh.group_size
        places = [place for place in range(len(more)) if size(more[place]) > size(fewer[place])]
        if len(places) == 1:
            return {places[0]: self.move.axes}
        return {place: tuple(axis for axis in more[place] if axis not in fewer[place]) for place in places}

    def _splits(self, changed: Mapping[int, Axes], verb: str = "") -> str:
        """Such as ``b over X and d over Y``, or with a verb ``b is split over X and d over Y``."""
        first, *rest = [(self.array.dims[place], axes_words(axes)) for place, axes in changed.items()]
        return " and ".join(
            [f"{first[0]}{verb} over {first[1]}", *(f"{dim} over {axes}" for dim, axes in rest)]
        )

    def _gather(self) -> str:
        array, lost = self.array, self._changed(cut=False)
        before, after = self.extents
        doing = f"gather its {self.n} pieces of {before:,} into {after:,}"
        shapes = [self.choice.local_shape(array, state) for state in (self.move.before, self.move.after)]
        if len(lost) > 1:
            doing = f"gather its {self.n} pieces of {times(shapes[0])} into {times(shapes[1])}"
        stays_split = self._parts(self.move.axes) & self._parts(sum(self.goal[0], ()))
        # Axes that this move leaves out, and that split the same dimension in the end.
        is_cut = any(
            self._parts(self.goal[0][place]) - self._parts(self.move.after[0][place]) for place in lost
        )
        if stays_split or (is_cut and not self.is_operand) or (self.is_operand and self._was_moved(lost)):
            return f"On the way to the wanted split of {array.name}, {doing}; {self.price}."
        if self.is_operand:
            return self._gather_operand(doing) if len(lost) == 1 else self._gather_dims(lost, doing)
        is_whole = all(shapes[1][place] == array.shape[place] for place in lost)
        dims = " and of ".join(array.dims[place] for place in lost)
        wanted = f"{'All' if is_whole else 'More'} of {dims} of {array.name} is wanted on every device"
        return f"{wanted} of {self.axes}{self._given()}: {doing}; {self.price}."

    def _was_moved(self, lost: Mapping[int, Axes]) -> bool:
        """An earlier move has brought an operand's axes to where this one takes them away."""
        start = self.choice.start(self.array)[0]
        return any(not set(axes) <= set(start[place]) for place, axes in lost.items())

    def _gather_dims(self, lost: Mapping[int, Axes], doing: str) -> str:
        """The reason why an operand loses the splits of several dimensions at once."""
        array, ways = self.array, self.choice.other_ways
        if needed := [array.dims[place] for place in lost if array.dims[place] in self.choice.part.whole]:
            dims = " and of ".join(needed)
            function = self.choice.part.function
            return f"{function} needs all of {dims} of {array.name} on a device: {doing}; {self.price}."
        split = [f"along {self._splits({place: axes})}" for place, axes in lost.items()]
        found = [ways and ways.keeping(array.dims[place], axes) for place, axes in lost.items()]
        more = [way.more() for way in found if way]
        why = f"No cheaper plan was found that leaves {array.name} split {' and '.join(split)}"
        if len(more) == len(split) and all(more):
            kept = [f"{one} {dearer}" for one, dearer in zip(split, more, strict=True)]
            why = f"Leaving {array.name} split {', and '.join(kept)}{self._unchanged}"
        return f"{why}: {doing}; {self.price}."

    def _given(self) -> str:
        """Where an intermediate result is given to be so; "" for the last, which is what is wanted."""
        array, given, mesh = self.array, self.next_input, self.choice.mesh
        if given is None or array is not self.choice.part.result:
            return ""
        placed = f"split by {' and '.join(_places(array, self.goal))}" if any(self.goal[0]) else "whole"
        if array.spec is not None and state_of(array.spec, mesh) == self.goal:
            return f", as {array.name} is given {placed}"
        if given.spec is not None and state_of(given.spec, mesh) == self.goal:
            return f", as the next einsum is given {array.name} {placed}"
        return ""

    def _gather_operand(self, doing: str) -> str:
        """The reason why an operand loses a split for good: another use of the axes, or the bytes saved."""
        choice, array, dim, axes, price = self.choice, self.array, self.dim, self.axes, self.price
        if array.dims.count(dim) > 1:
            return (
                f"{array.name} has {dim} twice, and no axis can split both at once: {doing}, so that every "
                f"device finds the diagonal in what it holds; {price}."
            )
        for other, _ in choice.others(array):
            if other.dims.count(dim) > 1:
                return (
                    f"{other.name} has {dim} twice, and no axis can split both at once, so every device "
                    f"needs all of {array.name}'s {dim}: {doing}; {price}."
                )
        if dim in choice.part.whole:
            needed = f"Each device needs all of {array.name}'s {dim} for {choice.part.function}"
            return f"{needed}: {doing}; {price}."
        if (conflict := self._conflict()) is not None:
            start, other = conflict
            return (
                f"{start}, and the product can keep only one, so gather {array.name} along {dim}; "
                f"{price}{self._instead(other)}."
            )
        for axis in self.move.axes:
            if (split := choice.dim_of(axis)) is not None:
                return (
                    f"Over {axis} the devices split {split}, which {array.name} does not have, and not "
                    f"{dim}: {doing}; {price}{self._instead()}."
                )
        mates = [(other, state) for other, state in choice.others(array) if dim in other.dims]
        used = {axis for other, (placed, _) in mates for axis in placed[other.dims.index(dim)]}
        if self.is_summed and mates and not used & set(self.move.axes):
            before, after = self.extents
            return (
                f"The product sums over {dim}, but only {array.name} is split along it over {axes} "
                f"({before:,} of {after:,} on a device): {doing}; {price}{self._instead()}."
            )
        more = self._more()
        alike = [each.name for each, (placed, _) in mates if self._is_alike(placed[each.dims.index(dim)])]
        if self.is_summed and alike:
            names = " and ".join((array.name, *alike))
            why = f"and adding partial sums {more}" if more else "but no cheaper plan adds partial sums"
            return (
                f"{names} are split alike along {dim} over {axes}, {why}: gather {array.name}'s {dim}; "
                f"{price}, and every device multiplies {self.n} times as much."
            )
        split = f"{array.name} split along {dim} over {axes}"
        why = f"Leaving {split} {more}" if more else f"No cheaper plan was found that leaves {split}"
        return f"{why}: {doing}; {price}."

    def _is_alike(self, held: Axes) -> bool:
        """Another operand's split of the dimension is this one's."""
        return held == self.choice.start(self.array)[0][self.place]

    def _instead(self, other: ShardedArray | None = None) -> str:
        """The words of how much more it would cost to leave the array split while the devices compute;
        `other` is the operand that would be gathered for it."""
        way = self._other_way
        if not way or not (more := self._more()):
            return ""
        is_gathered = other is not None and way.gathered == {other.name}
        doing = f"gathering {other.name} instead" if other and is_gathered else "leaving it split"
        return f"; {doing} {more}"

    @cached_property
    def _other_way(self) -> OtherWay | None:
        """The best way to leave the array split while the devices compute."""
        ways = self.choice.other_ways
        return None if ways is None else ways.keeping(self.dim, self.move.axes)

    def _more(self) -> str:
        """The words of how much more that would cost; "" where it is not known to."""
        more = self._other_way.more() if self._other_way else ""
        return more and f"{more}{self._unchanged}"

    @property
    def _unchanged(self) -> str:
        """The condition of what another way would cost, where other statements follow."""
        return "" if self.next_input is None else ", with the later steps unchanged"

    def _conflict(self) -> tuple[str, ShardedArray] | None:
        """Another operand that keeps the axes for a dimension of its own: in words, and that one."""
        choice, array, dim = self.choice, self.array, self.dim
        for other, state in choice.others(array):
            for other_dim, held in zip(other.dims, state[0], strict=True):
                shared = axes_words(
                    tuple(
                        axis for axis in self.move.axes if axis in held and choice.dim_of(axis) == other_dim
                    )
                )
                if not shared:
                    continue
                if self.is_summed:
                    start = (
                        f"Over {shared} {array.name} is split by {dim}, which is summed, "
                        f"but {other.name} by {other_dim}"
                    )
                else:
                    start = (
                        f"Both {array.name} (along {dim}) and {other.name} (along {other_dim}) want {shared}"
                    )
                return start, other
        return None

    def _slice(self) -> str:
        cut = self._changed(cut=True)
        shape = self.choice.local_shape(self.array, self.move.after)
        sizes = "×".join(f"{shape[place]:,}" for place in cut)
        dims = " and ".join(self.array.dims[place] for place in cut)
        return (
            f"{self._purpose(cut)}, each device keeps its own 1/{self.n} of {dims} ({sizes}); it already has "
            "it, so no byte moves."
        )

    def _exchange(self) -> str:
        array, lost, gained = self.array, self._changed(cut=False), self._changed(cut=True)
        names = " and ".join(array.dims[place] for place in gained)
        why = self._purpose(gained)
        if not self.is_operand and self._stay(gained):
            why = f"With a split along {names} wanted{self._given()}"
        return (
            f"{why}, {array.name} trades its split of {self._splits(lost)} for one of "
            f"{names if len(gained) == 1 else self._splits(gained)}: each device keeps 1/{self.n} of what it "
            f"holds and sends every other piece to its new owner; {self.price}."
        )

    def _purpose(self, gained: Mapping[int, Axes]) -> str:
        """The purpose of a move that splits dimensions of the array further."""
        if not self._stay(gained):
            return f"On the way to the wanted split of {self.array.name}"
        first, *rest = dict.fromkeys(self._purpose_of(place, axes) for place, axes in gained.items())
        return " and ".join([first, *(each[0].lower() + each[1:] for each in rest)])

    def _purpose_of(self, place: int, axes: Axes) -> str:
        dim, part = self.array.dims[place], self.choice.part
        for other, (placed, _) in self.choice.others(self.array) if self.is_operand else ():
            splits = zip(other.dims, placed, strict=True)
            if any(name == dim and set(axes) <= set(held) for name, held in splits):
                return f"To match {other.name}'s split of {dim} over {axes_words(axes)}"
        if dim in part.einsum.contracted:
            return f"To sum over {dim} in parts over {axes_words(axes)}"
        return f"To have {part.result.name} split along {dim} over {axes_words(axes)}"

    def _permute(self) -> str:
        array, move = self.array, self.move
        before, after = (", ".join(_places(array, state)) or "whole" for state in (move.before, move.after))
        end = "" if self.goal == move.after else ", where the next step can work on them"
        return (
            f"The blocks of {array.name} are right but on the wrong devices ({before}, not {after}): a "
            f"device whose block belongs elsewhere sends all {exact_bytes(move.wire_bytes)} of it to one "
            f"other{end}."
        )

    def _mask(self) -> str:
        return (
            f"{self.array.name} is wanted as a partial sum over {self.axes}: the first of the {self.n} "
            "devices along it keeps its copy, the others have zeros; no byte moves."
        )

    def _stay(self, gained: Mapping[int, Axes]) -> bool:
        """The axes that a move puts on dimensions are wanted there in the end."""
        return all(self._parts(axes) <= self._parts(self.goal[0][place]) for place, axes in gained.items())

    def _parts(self, axes: Axes) -> set[str]:
        """The finest parts of axes, among those of the move and of the states: the goal may name ``X`` where
        the move is over ``X:(2)4``."""
        mesh = self.choice.mesh
        states = (*self.goal[0], *self.move.after[0])
        named = [*self.move.axes, *(axis for held in states for axis in held), *axes]
        finest = [part for parts in finest_parts(mesh.shape, named).values() for part in parts]
        return {part for axis in axes for part in parts_within(axis, finest)}

    def _largest(self) -> str:
        move, n = self.move, self.n
        return (
            f"Each of the {n} devices along {self.axes} holds the largest of its own part: give every device "
            f"the largest of all; each sends 2×{n - 1}/{n} of {exact_bytes(move.bytes)} = "
            f"{move.wire_bytes:,}."
        )

    def _reduce(self) -> str:
        move, following, n = self.move, self.following, self.n
        held = f"Each of the {n} devices along {self.axes} holds a partial sum of {self.array.name}"
        if move.op == "psum":
            return (
                f"{held}: add them up and give every device the total; each sends "
                f"2×{n - 1}/{n} of {exact_bytes(move.bytes)} = {move.wire_bytes:,}."
            )
        gained = self._changed(cut=True)
        if self._stay(gained):
            why = f", and {self._splits(gained, ' is wanted split')}{self._given()}"
        elif following is not None and following.op == "all_gather" and set(move.axes) <= set(following.axes):
            why = ", and the next step gathers the pieces along with others"
        else:
            why = f", and with {self._splits(gained, ' split')} the next step is cheaper"
        return (
            f"{held}{why}: add them up and let each device keep its 1/{n} of the total; each sends "
            f"{n - 1}/{n} of {exact_bytes(move.bytes)} = {move.wire_bytes:,}, half of what a psum would."
        )


def _places(array: ShardedArray, state: State) -> list[str]:
    """Such as ``b over X`` and ``d over Y``."""
    return [f"{dim} over {axes_words(axes)}" for dim, axes in zip(array.dims, state[0], strict=True) if axes]
