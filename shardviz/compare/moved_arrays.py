"""Which array a compiler's collective moves: what its operand comes from, where the text leads there.

Else shapes and program order must tell. Each argument begins with the shape and the axes that its spec gives
it. A collective that starts from just that shape, and gathers only axes that the array has, moves that array
and leaves it with a new shape; so the next one can be judged too. Where several arrays would fit, all are
named.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from shardviz.compare.origin_names import names_of
from shardviz.compare.summed_operands import summed_operands
from shardviz.hlo import Collective, Origin
from shardviz.planner import Problem
from shardviz.sharding import ShardedArray

Shape = tuple[int, ...]


@dataclass(frozen=True)
class _Held:
    """What a device holds of an array: a shape, and the axes that split it (None: no longer known)."""

    shape: Shape
    axes: frozenset[str] | None


@dataclass
class MovedArrays:
    """Follows a target's collectives in program order."""

    problem: Problem
    _held: dict[str, _Held] = field(init=False)
    _arrays: list[ShardedArray] = field(init=False)

    def __post_init__(self) -> None:
        mesh = self.problem.mesh
        self._held = {
            array.name: _Held(array.shard_shape(mesh), frozenset(array.decided_spec.axes))
            for array in self.problem.arguments
        }
        self._arrays = [*self.problem.arguments, *(part.result for part in self.problem.parts)]

    def of(self, one: Collective) -> tuple[str, ...]:
        """The names of the arrays that the next collective may move; only results hold partial sums."""
        origin = self._as_moved(one)
        if origin is not None and (known := names_of(origin, self.problem)):
            return self._told(known, one)
        devices = self.problem.mesh.size
        results = {part.result.name for part in self.problem.parts}
        fitting = [
            array
            for array in self._arrays
            if all(_could_be(shape, array, devices) for shape in (one.operand_shape, one.result_shape))
            and (array.name in results or one.op not in ("all-reduce", "reduce-scatter"))
        ]
        exact = [array for array in fitting if self._starts_from(array, one)]
        if exact and one.op != "collective-permute":
            shapes = {array.shape for array in exact}
            found = [array for array in fitting if array in exact or array.shape in shapes]
        else:
            found = [array for array in fitting if self._may_start_from(array, one)] or fitting
        names = tuple(array.name for array in found)
        if len(names) == 1:
            self._moved(names[0], one)
        elif one.op == "collective-permute":
            self._held.update({array.name: _Held(one.result_shape, None) for array in exact})
        return names

    def _as_moved(self, one: Collective) -> Origin | None:
        """The origin. What was made of one argument and has a shape that its pieces have is that argument:
        compilers put pieces together by arithmetic too, as a TPU's does by the maximum of padded ones."""
        origin = one.origin
        if origin is None or not origin.computed or one.op in ("all-reduce", "reduce-scatter"):
            return origin
        number, *others = origin.arguments
        if others or number >= len(self.problem.arguments):
            return origin
        array, devices = self.problem.arguments[number], self.problem.mesh.size
        shapes = (one.operand_shape, one.result_shape)
        fits = all(_could_be(shape, array, devices) for shape in shapes)
        return replace(origin, computed=False) if fits and len(one.operand_shape) >= array.rank else origin

    def _told(self, names: tuple[str, ...], one: Collective) -> tuple[str, ...]:
        """Of the arrays that the origin allows, those that the shapes allow too."""
        devices = self.problem.mesh.size
        shapes = (one.operand_shape, one.result_shape)
        sums = [array for part in self.problem.parts for array in summed_operands(part).values()]
        arrays = [*self._arrays, *sums]
        fitting = [array for array in arrays if all(_could_be(each, array, devices) for each in shapes)]
        likely = {array.name for array in fitting if array.rank == len(one.operand_shape)}
        possible = {array.name for array in fitting}
        for some in (likely, possible):
            if told := tuple(name for name in names if name in some):
                if len(told) == 1:
                    self._moved(told[0], one)
                return told
        return names

    def _starts_from(self, array: ShardedArray, one: Collective) -> bool:
        held = self._held.get(array.name)
        if held is None or held.shape != one.operand_shape:
            return False
        if held.axes == frozenset() and one.op == "collective-permute":
            return False
        gathers = one.op in ("all-gather", "all-to-all")
        return not gathers or held.axes is None or _mesh_axes(one) <= held.axes

    def _may_start_from(self, array: ShardedArray, one: Collective) -> bool:
        """Whether the array, cut further by slices that the text does not show, could be the operand.

        An array that every device has whole has nothing to send.
        """
        held = self._held.get(array.name)
        if held is None or len(held.shape) != len(one.operand_shape):
            return True
        if held.axes == frozenset() and one.op != "slice":
            return False
        pairs = zip(sorted(held.shape), sorted(one.operand_shape), strict=True)
        return all(size and whole % size == 0 for whole, size in pairs)

    def _moved(self, name: str, one: Collective) -> None:
        before, axes = self._held.get(name), _mesh_axes(one)
        after: frozenset[str] | None = None
        if before is not None and before.axes is not None and one.op != "collective-permute":
            after = before.axes - axes if one.op == "all-gather" else before.axes | axes
        self._held[name] = _Held(one.result_shape, after)
        for index, part in enumerate(self.problem.parts):
            if part.result.name == name:
                # What the result was made of has been multiplied, so nothing moves it any more.
                used = {operand.name for made in self.problem.parts[: index + 1] for operand in made.operands}
                self._arrays = [array for array in self._arrays if array.name not in used]


def _mesh_axes(one: Collective) -> frozenset[str]:
    """The mesh axes, sub-axes counted as the axis that they are part of."""
    return frozenset(axis.partition(":")[0] for axis in one.axes)


def _could_be(shape: Shape, array: ShardedArray, devices: int) -> bool:
    """Whether a device's piece of `array` may have that shape: each dimension cut by a divisor of the mesh.

    Compilers may fold dimensions together; then only the number of elements is judged.
    """
    whole = array.shape
    if len(shape) != len(whole):
        shape, whole = (prod(shape),), (array.elements,)
    return all(
        size == full or (size and full % size == 0 and devices % (full // size) == 0)
        for size, full in zip(shape, whole, strict=True)
    )
