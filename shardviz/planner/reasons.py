"""The reason of each step of a plan: at most ten words, and one sentence with the numbers of the case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from shardviz.errors import joined
from shardviz.planner.plan import Step, axes_words
from shardviz.planner.problem import WRITTEN, Statement
from shardviz.planner.problem.functions import shared_positions
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
        short = f"each device computes its own shard of {part.result.name}"
        return short, f"{doing} and holds its shard of {part.result.name}: nothing is sent."
    over = axes_words(pending)
    summed = [dim for dim in part.summed if split.assignment.get(dim)]
    if not (split.largest or summed):
        short = f"local; the result stays a partial sum over {over}"
        return short, f"{doing} locally; the result stays a partial sum over {over}."
    cutting = split.largest or tuple(axis for dim in summed for axis in split.assignment[dim])
    share = f"1/{choice.mesh.group_size(cutting)} of"
    short, what = f"partial sums over {over}", f"the result is a partial sum over {over}"
    if split.largest:
        short, what = f"partial maxima over {over}", f"the result is a partial maximum over {over}"
    parts = f"{share} {' and '.join(summed)}"
    why = f"{doing} locally; each covers {parts}, so {what}."
    return f"each covers {share} {'·'.join(summed)}: {short}", why


def explain_beside(choice: PlannedStatement, step: Step) -> Reason:
    """A halo that each device takes from the one before or gives back to it, or the sums of a softmax."""
    part, along = choice.part, choice.part.whole[0]
    over, name = axes_words(step.axes), step.array
    sends = f"each device sends {step.wire_bytes:,} bytes"
    if step.op != "ppermute":
        every = f"the sums of all of {along}"
        why = (
            f"Each row of the softmax needs {every}, of which a device along {over} has its shard's: {sends}."
        )
        return f"{part.function} needs {every}, split over {over}", why
    _, rows = shared_positions(part) or ("", 0)
    halo = f"{rows:,} position{'s' * (rows > 1)} of {along}"
    if name == part.result.name:
        why = f"A device along {over} has gradients of the {halo} before its shard of {name}"
        return f"gradients of {halo} go back to their device", f"{why}: they are added there; {sends}."
    why = f"Each shard of {name} needs a halo for {part.function}, the {halo} before it"
    short = f"{part.function} needs {halo} before each shard"
    return short, f"{why}, from the device before along {over}: {sends}."


_DOING = {
    ("multiply", 1): "works on its {0}",
    ("multiply", 2): "multiplies its {0} by its {1}",
    ("add", 2): "adds its {0} and its {1}",
    ("subtract", 2): "takes its {1} from its {0}",
    ("divide", 2): "divides its {0} by its {1}",
}


def _doing(part: Statement, pieces: Sequence[str]) -> str:
    """The work of a statement on pieces of its operands: ``multiplies its A[4×8] by its W[8×2]``."""
    if words := _DOING.get((part.function, len(pieces))):
        return words.format(*pieces)
    taken = joined([f"its {piece}" for piece in pieces])
    return f"takes {WRITTEN.get(part.function, part.function)} of {taken}"


@dataclass
class MoveReason:
    """One move of an operand or of a result, the move after it, and the state in which they all end, in
    words. `next_input` is the result as the next statement is given it, None after the last. `n` devices are
    a group, along `axes`; `lost` and `gained` are the dimensions, by number, that are cut less or further,
    with the axes of each; `shapes` are those of a device's piece before and after it."""

    choice: PlannedStatement
    next_input: ShardedArray | None
    array: ShardedArray
    move: Step
    following: Step | None
    goal: PartitionSpec

    def __post_init__(self) -> None:
        choice, array, move = self.choice, self.array, self.move
        self.part = choice.part
        self.is_operand = any(operand is array for operand in choice.part.operands)
        self.n, self.axes = choice.mesh.group_size(move.axes), axes_words(move.axes)
        ends = move.from_spec, move.to_spec
        self.gained, self.lost = self._cut_further(*ends), self._cut_further(*ends[::-1])
        self.shapes = [shard_shape(array.shape, spec, choice.mesh) for spec in ends]
        self.sent = f"{self.n - 1}/{self.n} of {exact_bytes(move.bytes)} = {move.wire_bytes:,}"
        self.price = f"each device sends {self.sent}"
        way = f"on the way to {array.name}'s final sharding"
        self.passing = way, f"O{way[1:]}"

    def _cut_further(self, fewer: PartitionSpec, more: PartitionSpec) -> dict[int, Axes]:
        """The dimensions that are cut further in the second of two specs, with the axes of each."""
        size = self.choice.mesh.group_size
        places = [index for index, axes in enumerate(more.dims) if size(axes) > size(fewer.dims[index])]
        if len(places) == 1:
            return {places[0]: self.move.axes}
        rows = ((index, more.dims[index], fewer.dims[index]) for index in places)
        return {index: tuple(axis for axis in axes if axis not in held) for index, axes, held in rows}

    def _named(self, places: Iterable[int]) -> str:
        """Dimensions as one word: ``b·d``."""
        return "·".join(dict.fromkeys(self.array.dims[index] for index in places))

    def gather(self) -> Reason:
        assert self.move.dim is not None
        before, after = (shape[self.move.dim] for shape in self.shapes)
        doing = f"gather its {self.n} shards of {before:,} into {after:,}"
        if len(self.lost) > 1:
            doing = f"gather its {self.n} shards of {times(self.shapes[0])} into {times(self.shapes[1])}"
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
            needs = f"needs {'all' if is_whole else 'more'} of {name}'s {' and '.join(dims)}"
            why = f"Every device along {self.axes} {needs}{self._given()}"
            return f"{name} must be replicated over {self.axes}", why
        if needed := [dim for dim in dims if dim in self.part.whole]:
            short = f"{self.part.function} needs all of {name}'s {'·'.join(needed)}"
            every = f"all of {name}'s {' and '.join(needed)} for {self.part.function}"
            return short, f"Each device needs {every}"
        short = f"no cheaper plan found with {name} sharded along {self._named(lost)}"
        why = f"No cheaper plan was found that keeps {name} sharded along {self._splits(lost)}"
        return (self._why_dim_gathered(*lost) if len(lost) == 1 else None) or (short, why)

    def _why_dim_gathered(self, index: int) -> Reason | None:
        """The reason why an operand loses its split of a dimension for good, where one is known."""
        choice, array, dim, name = self.choice, self.array, self.array.dims[index], self.array.name
        others = choice.others(array)
        if one := next((one for one in (array, *dict(others)) if one.dims.count(dim) > 1), None):
            needs = f"needs all of {name}'s {dim}"
            why = f"{one.name} has {dim} twice, and no axis can shard both, so every device {needs}"
            return f"the diagonal of {one.name} {needs}", why
        for other, state in others:
            for own, held in zip(other.dims, state[0], strict=True):
                if axes := tuple(x for x in self.move.axes if x in held and choice.dim_of(x) == own):
                    shared = axes_words(axes)
                    why = f"Both {name} (along {dim}) and {other.name} (along {own}) use {shared}"
                    short = f"{shared} can shard only one: {other.name}'s {own}, not {name}'s {dim}"
                    return short, f"{why}, but the product can keep only one"
        for axis in self.move.axes:
            if (split := choice.dim_of(axis)) is not None:
                why = f"the work is divided along {split}, which {name} does not have, not along {dim}"
                return f"devices divide {split} over {axis}, not {name}'s {dim}", f"Over {axis}, {why}"
        if dim not in self.part.einsum.contracted:
            return None
        mates = [(other, held[other.dims.index(dim)]) for other, (held, _) in others if dim in other.dims]
        if mates and not {axis for _, held in mates for axis in held} & set(self.move.axes):
            before, after = (shape[index] for shape in self.shapes)
            along = f"along it over {self.axes} ({before:,} of {after:,} per device)"
            why = f"The product contracts {dim}, but only {name} is sharded {along}"
            return f"only {name} shards the contracted dimension {dim}", why
        if alike := [other.name for other, held in mates if held == choice.start(array)[0][index]]:
            why = f"{' and '.join((name, *alike))} are both sharded along {dim} over {self.axes}"
            dearer = f"so every device multiplies {self.n} times as much"
            why = f"{why}, but no cheaper plan adds partial sums, {dearer}"
            return f"no cheaper plan found that adds partial sums over {self.axes}", why
        return None

    def _given(self) -> str:
        """Where an intermediate result is given to be so; "" for the last."""
        array, given, mesh = self.array, self.next_input, self.choice.mesh
        if given is None or array is not self.part.result:
            return ""
        splits = " and ".join(_places(array, self.goal.dims))
        placed = f"sharded along {splits}" if splits else "replicated"
        goal = state_of(self.goal, mesh)
        if array.spec is not None and state_of(array.spec, mesh) == goal:
            return f", as {array.name} is given {placed}"
        if given.spec is not None and state_of(given.spec, mesh) == goal:
            return f", as the next einsum is given {array.name} {placed}"
        return ""

    def _splits(self, changed: Mapping[int, Axes], verb: str = "") -> str:
        """Such as ``b over X and d over Y``, or with a verb ``b is sharded over X and d over Y``."""
        first, *rest = [(self.array.dims[index], axes_words(axes)) for index, axes in changed.items()]
        return " and ".join(
            [f"{first[0]}{verb} over {first[1]}", *(f"{dim} over {axes}" for dim, axes in rest)]
        )

    def slice(self) -> Reason:
        sizes = "×".join(f"{self.shapes[1][dim]:,}" for dim in self.gained)
        dims = " and ".join(self.array.dims[index] for index in self.gained)
        short, why = self._purpose()
        keeps = f"each device keeps its own 1/{self.n} of {dims} ({sizes})"
        return short, f"{why}, {keeps}; it already holds it, so nothing is sent."

    def exchange(self) -> Reason:
        names = " and ".join(self.array.dims[index] for index in self.gained)
        short, why = self._purpose()
        if not self.is_operand and self._stays():
            along = f"along {self._named(self.gained)}, not {self._named(self.lost)}"
            short = f"{self.array.name} must be sharded {along}"
            why = f"Because a sharding along {names} is needed{self._given()}"
        to = names if len(self.gained) == 1 else self._splits(self.gained)
        moves = f"{self.array.name} moves its sharding from {self._splits(self.lost)} to {to}"
        keeps = f"keeps 1/{self.n} of what it holds and sends the other pieces to their new owners"
        return short, f"{why}, {moves}: each device {keeps}; {self.price}."

    def _purpose(self) -> Reason:
        name = self.array.name
        if not self._stays():
            return self.passing
        reasons = dict(self._purpose_of(index, axes) for index, axes in self.gained.items())
        (short, first), *rest = reasons.items()
        if rest:
            short = f"{name} must be sharded over {self.axes} along {self._named(self.gained)}"
        return short, " and ".join([first, *(why[0].lower() + why[1:] for _, why in rest)])

    def _purpose_of(self, index: int, axes: Axes) -> Reason:
        dim, over = self.array.dims[index], axes_words(axes)
        for other, (placed, _) in self.choice.others(self.array) if self.is_operand else ():
            splits = zip(other.dims, placed, strict=True)
            if any(name == dim and set(axes) <= set(held) for name, held in splits):
                match = f"{other.name}'s sharding of {dim} over {over}"
                return f"matches {match}", f"To match {match}"
        if dim in self.part.einsum.contracted:
            what = f"the contracted dimension {dim} over {over}"
            return f"shards {what}", f"To shard {what}"
        result = self.part.result.name
        return f"{result} needs {dim} sharded over {over}", f"To shard {result} along {dim} over {over}"

    def _stays(self) -> bool:
        goal = self.goal.dims
        return all(self._finest(axes) <= self._finest(goal[index]) for index, axes in self.gained.items())

    def _finest(self, axes: Axes) -> set[str]:
        """The finest parts of axes, among those of the move and of the states."""
        states = (*self.goal.dims, *self.move.to_spec.dims)
        named = [*self.move.axes, *(axis for held in states for axis in held), *axes]
        return {*in_parts(axes, finest_parts(self.choice.mesh.shape, named))}

    def permute(self) -> Reason:
        array, move = self.array, self.move
        ends = move.from_spec, move.to_spec
        before, after = (", ".join(_places(array, spec.dims)) or "replicated" for spec in ends)
        end = "" if self.goal == move.to_spec else ", where the next step needs them"
        short = f"the blocks of {array.name} are on the wrong devices"
        sends = f"sends all {exact_bytes(move.wire_bytes)} of it to one other device{end}."
        why = f"T{short[1:]} ({before}, not {after})"
        return short, f"{why}: each device whose block belongs elsewhere {sends}"

    def with_zeros(self) -> Reason:
        short = f"{self.array.name} must be a partial sum over {self.axes}"
        how = f"the first of the {self.n} devices along it keeps its copy, the others hold zeros"
        if self.move.op == "pad":
            how = "every device pads its shard with zeros where others have theirs"
        return short, f"{short}: {how}; nothing is sent."

    def largest(self) -> Reason:
        held = f"Each of the {self.n} devices along {self.axes} holds the maximum of its shard"
        why = f"{held}: every device gets the maximum of all; each sends 2×{self.sent}."
        return f"takes the maximum of {self.array.name} over {self.axes}", why

    def reduce(self) -> Reason:
        move, following, gained = self.move, self.following, self.gained
        held = f"Each of the {self.n} devices along {self.axes} holds a partial sum of {self.array.name}"
        short = f"adds partial sums of {self.array.name}"
        if move.op == "psum":
            total = "they are added, and every device gets the total"
            return f"{short} over {self.axes}", f"{held}: {total}; each sends 2×{self.sent}."
        if self._stays():
            short += f", shards {self._named(gained)} over {self.axes}"
            why = f", and {self._splits(gained, ' must be sharded')}{self._given()}"
        elif following is not None and following.op == "all_gather" and set(move.axes) <= set(following.axes):
            short += "; the shards are gathered next"
            why = ", and the next step gathers the shards with others"
        else:
            short += "; the next step is cheaper"
            why = f", and with {self._splits(gained, ' sharded')} the next step is cheaper"
        keeps = f"each device keeps its 1/{self.n} of the total"
        return short, f"{held}{why}: they are added, and {keeps}; each sends {self.sent}, half of a psum."


MOVE_REASONS = {
    "all_gather": MoveReason.gather,
    "slice": MoveReason.slice,
    "all_to_all": MoveReason.exchange,
    "ppermute": MoveReason.permute,
    "mask": MoveReason.with_zeros,
    "pad": MoveReason.with_zeros,
    "pmax": MoveReason.largest,
    "psum": MoveReason.reduce,
    "psum_scatter": MoveReason.reduce,
}
"""The reason of a move, by its operation."""


def _places(array: ShardedArray, dims: Dims) -> list[str]:
    """Such as ``b over X`` and ``d over Y``."""
    return [f"{dim} over {axes_words(axes)}" for dim, axes in zip(array.dims, dims, strict=True) if axes]
