"""The reason of each step of a plan: at most ten words, and one sentence with the numbers of the case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shardviz.planner.plan import Step, axes_words
from shardviz.planner.problem import Statement
from shardviz.planner.statements.work_split import PlannedStatement
from shardviz.planner.states.moves import Axes, Dims, spec_of, state_of
from shardviz.sharding import PartitionSpec, ShardedArray, shard_shape
from shardviz.sharding.axis_parts import finest_parts, in_parts
from shardviz.units import exact_bytes, times

Reason = tuple[str, str]
"""The short one, and the sentence."""


def explain_einsum(choice: PlannedStatement) -> Reason:
    """The computation of every device, and its result."""
    part, split = choice.part, choice.work_split
    pieces = [
        f"{operand.name}[{'×'.join(map(str, shard_shape(operand.shape, spec_of(state), choice.mesh)))}]"
        for operand, state in zip(part.operands, split.operands, strict=True)
    ]
    doing = f"Every device {_doing(part, pieces)}"
    pending = split.largest or split.result[1]
    if not pending:
        short = f"each device computes its own piece of {part.result.name}"
        return short, f"{doing} and has its piece of {part.result.name}: no byte moves."
    over = axes_words(pending)
    summed = [dim for dim in part.summed if split.assignment.get(dim)]
    if not (split.largest or summed):
        short = f"each device works locally; the sum over {over} stays pending"
        return short, f"{doing} locally; the sum over {over} is still pending."
    cutting = split.largest or tuple(axis for dim in summed for axis in split.assignment[dim])
    share = f"1/{choice.mesh.group_size(cutting)} of"
    short, what = f"partial sums over {over}", f"the result is a partial sum over {over}"
    if split.largest:
        short, what = f"partial maxima over {over}", f"the maximum over {over} is still pending"
    parts = f"{share} {' and '.join(summed)}"
    return (
        f"each covers {share} {'·'.join(summed)}: {short}",
        f"{doing} locally; each covers {parts}, so {what}.",
    )


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


class MoveReason:
    """One move of an operand or of a result, the move after it, and the state in which they all end, in
    words. `next_input` is the result as the next statement is given it, None after the last. `n` devices are
    a group, along `axes`; `lost` and `gained` are the dimensions, by number, that are cut less or further,
    with the axes of each; `shapes` are those of a device's piece before and after it."""

    def __init__(
        self,
        choice: PlannedStatement,
        next_input: ShardedArray | None,
        array: ShardedArray,
        move: Step,
        following: Step | None,
        goal: PartitionSpec,
    ) -> None:
        self.choice, self.next_input, self.array = choice, next_input, array
        self.move, self.following, self.goal = move, following, goal
        self.part = choice.part
        self.is_operand = any(operand is array for operand in choice.part.operands)
        self.n, self.axes = choice.mesh.group_size(move.axes), axes_words(move.axes)
        ends = move.from_spec, move.to_spec
        self.gained, self.lost = self._cut_further(*ends), self._cut_further(*ends[::-1])
        self.shapes = [shard_shape(array.shape, spec, choice.mesh) for spec in ends]
        self.sent = f"{self.n - 1}/{self.n} of {exact_bytes(move.bytes)} = {move.wire_bytes:,}"
        self.price = f"each device sends {self.sent}"
        self.passing = (
            f"on the way to {array.name}'s final sharding",
            f"On the way to the wanted split of {array.name}",
        )

    def _cut_further(self, fewer: PartitionSpec, more: PartitionSpec) -> dict[int, Axes]:
        """The dimensions that are cut further in the second of two specs, with the axes of each."""
        size = self.choice.mesh.group_size
        places = [index for index, axes in enumerate(more.dims) if size(axes) > size(fewer.dims[index])]
        if len(places) == 1:
            return {places[0]: self.move.axes}
        return {
            index: tuple(axis for axis in more.dims[index] if axis not in fewer.dims[index])
            for index in places
        }

    def _named(self, places: Iterable[int]) -> str:
        """Dimensions as one word: ``b·d``."""
        return "·".join(dict.fromkeys(self.array.dims[index] for index in places))

    def gather(self) -> Reason:
        assert self.move.dim is not None
        before, after = (shape[self.move.dim] for shape in self.shapes)
        doing = f"gather its {self.n} pieces of {before:,} into {after:,}"
        if len(self.lost) > 1:
            doing = f"gather its {self.n} pieces of {times(self.shapes[0])} into {times(self.shapes[1])}"
        short, why = self._why_gathered()
        return short, f"{why}: {doing}; {self.price}."

    def _why_gathered(self) -> Reason:
        array, lost, name = self.array, self.lost, self.array.name
        stays_split = self._finest(self.move.axes) & self._finest(sum(self.goal.dims, ()))
        # Axes that this move leaves out, and that split the same dimension in the end.
        is_cut = any(
            self._finest(self.goal.dims[index]) - self._finest(self.move.to_spec.dims[index])
            for index in lost
        )
        # An earlier move has brought an operand's axes to where this one takes them away.
        start = self.choice.start(array)[0] if self.is_operand else ()
        was_moved = any(not set(axes) <= set(start[index]) for index, axes in lost.items() if start)
        if stays_split or (was_moved if self.is_operand else is_cut):
            return self.passing
        dims = [array.dims[index] for index in lost]
        if not self.is_operand:
            is_whole = all(self.shapes[1][index] == array.shape[index] for index in lost)
            wanted = f"{'All' if is_whole else 'More'} of {' and of '.join(dims)} of {name} is wanted"
            given = f" on every device of {self.axes}{self._given()}"
            return f"{name} is wanted replicated over {self.axes}", wanted + given
        if needed := [dim for dim in dims if dim in self.part.whole]:
            short = f"{self.part.function} needs all of {name}'s {'·'.join(needed)}"
            every = f"all of {name}'s {' and '.join(needed)} for {self.part.function}"
            return short, f"Each device needs {every}"
        return (self._why_dim_gathered(*lost) if len(lost) == 1 else None) or (
            f"no cheaper plan found with {name} sharded along {self._named(lost)}",
            f"No cheaper plan was found that leaves {name} split along {self._splits(lost)}",
        )

    def _why_dim_gathered(self, index: int) -> Reason | None:
        """The reason why an operand loses its split of a dimension for good, where one is known."""
        choice, array, dim, name = self.choice, self.array, self.array.dims[index], self.array.name
        others = choice.others(array)
        if one := next((one for one in (array, *dict(others)) if one.dims.count(dim) > 1), None):
            why = f"{one.name} has {dim} twice, and no axis can split both at once"
            short = f"the diagonal of {one.name} needs all of {name}'s {dim}"
            return short, f"{why}, so every device needs all of {name}'s {dim}"
        for other, state in others:
            for own, held in zip(other.dims, state[0], strict=True):
                shared = axes_words(
                    tuple(axis for axis in self.move.axes if axis in held and choice.dim_of(axis) == own)
                )
                if shared:
                    why = f"Both {name} (along {dim}) and {other.name} (along {own}) want {shared}"
                    short = f"{shared} can shard only one: {other.name}'s {own}, not {name}'s {dim}"
                    return short, f"{why}, and the product can keep only one"
        for axis in self.move.axes:
            if (split := choice.dim_of(axis)) is not None:
                why = f"Over {axis} the devices split {split}, which {name} does not have, and not {dim}"
                return f"the devices split {split} over {axis}, not {name}'s {dim}", why
        if dim not in self.part.einsum.contracted:
            return None
        mates = [(other, held[other.dims.index(dim)]) for other, (held, _) in others if dim in other.dims]
        if mates and not {axis for _, held in mates for axis in held} & set(self.move.axes):
            before, after = (shape[index] for shape in self.shapes)
            along = f"along it over {self.axes} ({before:,} of {after:,} on a device)"
            why = f"The product sums over {dim}, but only {name} is split {along}"
            return f"only {name} shards the contracted dimension {dim}", why
        if alike := [other.name for other, held in mates if held == choice.start(array)[0][index]]:
            why = f"{' and '.join((name, *alike))} are split alike along {dim} over {self.axes}"
            dearer = (
                f"but no cheaper plan adds partial sums, so every device multiplies {self.n} times as much"
            )
            return f"no cheaper plan found that adds partial sums over {self.axes}", f"{why}, {dearer}"
        return None

    def _given(self) -> str:
        """Where an intermediate result is given to be so; "" for the last, which is what is wanted."""
        array, given, mesh = self.array, self.next_input, self.choice.mesh
        if given is None or array is not self.part.result:
            return ""
        splits = " and ".join(_places(array, self.goal.dims))
        placed = f"split by {splits}" if splits else "whole"
        goal = state_of(self.goal, mesh)
        if array.spec is not None and state_of(array.spec, mesh) == goal:
            return f", as {array.name} is given {placed}"
        if given.spec is not None and state_of(given.spec, mesh) == goal:
            return f", as the next einsum is given {array.name} {placed}"
        return ""

    def _splits(self, changed: Mapping[int, Axes], verb: str = "") -> str:
        """Such as ``b over X and d over Y``, or with a verb ``b is split over X and d over Y``."""
        first, *rest = [(self.array.dims[index], axes_words(axes)) for index, axes in changed.items()]
        return " and ".join(
            [f"{first[0]}{verb} over {first[1]}", *(f"{dim} over {axes}" for dim, axes in rest)]
        )

    def slice(self) -> Reason:
        sizes = "×".join(f"{self.shapes[1][place]:,}" for place in self.gained)
        dims = " and ".join(self.array.dims[index] for index in self.gained)
        short, why = self._purpose()
        keeps = f"each device keeps its own 1/{self.n} of {dims} ({sizes})"
        return short, f"{why}, {keeps}; it already has it, so no byte moves."

    def exchange(self) -> Reason:
        names = " and ".join(self.array.dims[index] for index in self.gained)
        short, why = self._purpose()
        if not self.is_operand and self._stays():
            along = f"along {self._named(self.gained)}, not {self._named(self.lost)}"
            short = f"{self.array.name} is wanted sharded {along}"
            why = f"With a split along {names} wanted{self._given()}"
        return (
            short,
            f"{why}, {self.array.name} trades its split of {self._splits(self.lost)} for one of "
            f"{names if len(self.gained) == 1 else self._splits(self.gained)}: each device keeps 1/{self.n} "
            f"of what it holds and sends every other piece to its new owner; {self.price}.",
        )

    def _purpose(self) -> Reason:
        name = self.array.name
        if not self._stays():
            return self.passing
        reasons = dict(self._purpose_of(index, axes) for index, axes in self.gained.items())
        (short, first), *rest = reasons.items()
        if rest:
            short = f"{name} is needed sharded over {self.axes} along {self._named(self.gained)}"
        return short, " and ".join([first, *(why[0].lower() + why[1:] for _, why in rest)])

    def _purpose_of(self, index: int, axes: Axes) -> Reason:
        dim, over = self.array.dims[index], axes_words(axes)
        for other, (placed, _) in self.choice.others(self.array) if self.is_operand else ():
            splits = zip(other.dims, placed, strict=True)
            if any(name == dim and set(axes) <= set(held) for name, held in splits):
                match = f"{other.name}'s split of {dim} over {over}"
                return f"matches {match}", f"To match {match}"
        if dim in self.part.einsum.contracted:
            return (
                f"shards the contracted dimension {dim} over {over}",
                f"To sum over {dim} in parts over {over}",
            )
        result = self.part.result.name
        return f"{result} needs {dim} sharded over {over}", f"To have {result} split along {dim} over {over}"

    def _stays(self) -> bool:
        return all(
            self._finest(axes) <= self._finest(self.goal.dims[index]) for index, axes in self.gained.items()
        )

    def _finest(self, axes: Axes) -> set[str]:
        """The finest parts of axes, among those of the move and of the states: the goal may name ``X`` where
        the move is over ``X:(2)4``."""
        states = (*self.goal.dims, *self.move.to_spec.dims)
        named = [*self.move.axes, *(axis for held in states for axis in held), *axes]
        return {*in_parts(axes, finest_parts(self.choice.mesh.shape, named))}

    def permute(self) -> Reason:
        array, move = self.array, self.move
        ends = move.from_spec, move.to_spec
        before, after = (", ".join(_places(array, spec.dims)) or "whole" for spec in ends)
        end = "" if self.goal == move.to_spec else ", where the next step can work on them"
        return (
            f"the blocks of {array.name} are on the wrong devices",
            f"The blocks of {array.name} are right but on the wrong devices ({before}, not {after}): a "
            f"device whose block belongs elsewhere sends all {exact_bytes(move.wire_bytes)} of it to one "
            f"other{end}.",
        )

    def mask(self) -> Reason:
        return (
            f"{self.array.name} is wanted as a partial sum over {self.axes}",
            f"{self.array.name} is wanted as a partial sum over {self.axes}: the first of the {self.n} "
            "devices along it keeps its copy, the others have zeros; no byte moves.",
        )

    def largest(self) -> Reason:
        return (
            f"takes the maximum of {self.array.name} over {self.axes}",
            f"Each of the {self.n} devices along {self.axes} holds the largest of its own part: give every "
            f"device the largest of all; each sends 2×{self.sent}.",
        )

    def reduce(self) -> Reason:
        move, following, gained = self.move, self.following, self.gained
        held = f"Each of the {self.n} devices along {self.axes} holds a partial sum of {self.array.name}"
        short = f"adds partial sums of {self.array.name}"
        if move.op == "psum":
            total = "add them up and give every device the total"
            return f"{short} over {self.axes}", f"{held}: {total}; each sends 2×{self.sent}."
        if self._stays():
            short += f", shards {self._named(gained)} over {self.axes}"
            why = f", and {self._splits(gained, ' is wanted split')}{self._given()}"
        elif following is not None and following.op == "all_gather" and set(move.axes) <= set(following.axes):
            short += "; the pieces are gathered next"
            why = ", and the next step gathers the pieces along with others"
        else:
            short += "; the next step is cheaper"
            why = f", and with {self._splits(gained, ' split')} the next step is cheaper"
        return (
            short,
            f"{held}{why}: add them up and let each device keep its 1/{self.n} of the total; each sends "
            f"{self.sent}, half of what a psum would.",
        )


MOVE_REASONS = {
    "all_gather": MoveReason.gather,
    "slice": MoveReason.slice,
    "all_to_all": MoveReason.exchange,
    "ppermute": MoveReason.permute,
    "mask": MoveReason.mask,
    "pmax": MoveReason.largest,
    "psum": MoveReason.reduce,
    "psum_scatter": MoveReason.reduce,
}
"""The reason of a move, by its operation."""


def _places(array: ShardedArray, dims: Dims) -> list[str]:
    """Such as ``b over X`` and ``d over Y``."""
    return [f"{dim} over {axes_words(axes)}" for dim, axes in zip(array.dims, dims, strict=True) if axes]
