"""Runs a plan on real numbers, device by device, to prove that it computes what the program says.

It shares no code with the planner. An array is held as one NumPy array: an axis for each part of a mesh axis,
which are the devices, then the dimensions of a device's piece. A step gives each device a new piece made from
those of its group by the meaning of its operation alone (concatenate, add, exchange, send, keep a part): what
was an axis of devices becomes a part of a dimension, a dimension's part an axis of devices. The global array
is never cut again. After each step replicas are checked to be alike, and shapes to be those that the plan
says; at the end the pieces are put together.

Dimensions that do not divide are padded, as the compiler pads them, to multiples of the mesh.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardviz.planner.plan import Plan, Step
from shardviz.planner.problem import Problem, Statement
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray
from tests.planner.function_values import value

Values = NDArray[Any]
Spec = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]
"""The parts of mesh axes, by number, that split each dimension, and over which sums are pending."""


HALOS = {"conv": (0,), "conv_weight_gradient": (1,), "window_attention": (1, 2)}
HALOS |= {"window_attention_query_gradient": (2, 3), "conv_gradient": (-1,)}
HALOS |= {f"window_attention_{word}_gradient": (-1,) for word in ("key", "value")}
"""The arrays of functions, the result last, of which devices exchange positions with their neighbours."""


NEED_SUMS = [f"{cause}attention{word}" for cause in ("", "causal_") for word in ("", "_query_gradient")]
"""Functions for which devices that share the rows of a softmax add these up; gradients do so for all."""


class PlanError(Exception):
    """A plan that does not compute what it should: always a bug of the planner."""


class DeviceGrid:
    """A mesh as an array of devices with an axis for each part of a mesh axis that a plan names.

    ``X:(2)4`` are the middle 4 of X seen as a row-major grid of (2, 4, X / 8).
    """

    def __init__(self, mesh: Mesh, names: Iterable[str]) -> None:
        cuts = {axis: {1, size} for axis, size in mesh.shape.items()}
        self._whole = mesh.shape
        for name in names:
            axis, start, stop = self._span(name)
            cuts[axis] |= {start, stop}
        self._numbers: dict[tuple[str, int], int] = {}
        self._stops: list[int] = []
        sizes = []
        for axis, edges in cuts.items():
            for start, stop in pairwise(sorted(edges)):
                if stop % start:
                    raise PlanError(f"parts of {axis} that do not nest")
                self._numbers[axis, start] = len(sizes)
                self._stops.append(stop)
                sizes.append(stop // start)
        self.sizes = tuple(sizes)

    def _span(self, name: str) -> tuple[str, int, int]:
        """An axis, the devices in front of the part, and those with it."""
        read = re.fullmatch(r"(\w+)(?::\((\d+)\)(\d+))?", name)
        if read is None or read[1] not in self._whole:
            raise PlanError(f"the mesh has no axis {name}")
        axis, whole = read[1], self._whole[read[1]]
        if read[2] is None:
            return axis, 1, whole
        before, size = int(read[2]), int(read[3])
        if whole % (before * size):
            raise PlanError(f"{name} does not divide {axis}={whole}")
        return axis, before, before * size

    def parts(self, names: Iterable[str]) -> tuple[int, ...]:
        """The numbers of the parts that names mean, in their order."""
        found = []
        for name in names:
            axis, start, stop = self._span(name)
            while start < stop:
                found.append(self._numbers[axis, start])
                start = self._stops[found[-1]]
        return tuple(found)

    def spec(self, spec: PartitionSpec) -> Spec:
        return tuple(map(self.parts, spec.dims)), tuple(sorted(self.parts(spec.unreduced)))

    def count(self, parts: Iterable[int]) -> int:
        """Devices along these parts."""
        return math.prod(self.sizes[part] for part in parts)


@dataclass(frozen=True)
class Held:
    """An array on all devices: `data` has the axes of devices first; `shape` is the global one."""

    data: Values
    spec: Spec
    shape: tuple[int, ...]


def run(plan: Plan, values: dict[str, Values]) -> Values:
    """The plan's result, assembled, for one global value per argument (`Problem.arguments`) by name."""
    return run_all(plan, values)[plan.problem.result.name]


def prove(plan: Plan, values: dict[str, Values] | None = None) -> None:
    """Raise `PlanError` unless the plan leaves every array as the program on one device has it."""
    values = values_for(plan.problem) if values is None else values
    expected = reference(plan.problem, values)
    for name, found in run_all(plan, values).items():
        whole = expected[name]
        if found.shape != whole.shape:
            # An operand may have been summed over dimensions that only it has.
            continue
        if not _same(found, whole):
            raise PlanError(f"{name} has other numbers than the program on one device")


def _same(one: Values, other: Values) -> bool:
    """Alike; of fractions as far as sums in another order are."""
    if one.dtype.kind in "iu" and other.dtype.kind in "iu":
        return bool(np.array_equal(one, other))
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-9, atol=1e-9))


def values_for(problem: Problem, seed: int = 0, most: int = 9) -> dict[str, Values]:
    """Whole numbers for each argument of einsums; fractions where a program has other functions."""
    numbers = np.random.default_rng(seed)
    exact = all(part.function in ("multiply", "add") for part in problem.parts)
    looked_up = {}
    for part in problem.parts:
        if part.function in ("take", "pick"):
            rows, places = part.operands
            along = next(number for number, dim in enumerate(rows.dims) if dim not in places.dims)
            looked_up[places.name] = rows.shape[along]
    squares = {part.operands[0].name for part in problem.parts if part.function == "adam_square"}
    found: dict[str, Values] = {}
    for array in problem.arguments:
        if array.name in looked_up:
            found[array.name] = numbers.integers(0, looked_up[array.name], array.shape)
        elif array.dtype == "pred":
            found[array.name] = numbers.random(array.shape) < 0.6
        elif exact:
            found[array.name] = numbers.integers(-most, most + 1, array.shape)
        else:
            found[array.name] = numbers.uniform(0 if array.name in squares else -1, 1, array.shape)
    return found


def run_all(plan: Plan, values: dict[str, Values]) -> dict[str, Values]:
    """Every array that a plan leaves, assembled, by name.

    Raises `PlanError` where replicas disagree, a piece has another shape than the plan says, or a step is not
    what its operation can do.
    """
    return Execution(plan).run(values)


class Execution:
    """One run of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.mesh = plan, plan.problem.mesh
        specs = [plan.result_spec]
        specs += [spec for step in plan.steps for spec in (step.from_spec, step.to_spec)]
        specs += [array.spec for array in plan.problem.arrays if array.spec is not None]
        names = [name for spec in specs for name in (*spec.axes, *spec.unreduced)]
        self.grid = DeviceGrid(self.mesh, (*names, *(axis for step in plan.steps for axis in step.axes)))
        self.padded = _is_uneven(plan.problem, plan.steps, self.grid)
        self.held: dict[str, Held] = {}
        self.copies: dict[tuple[str, Spec], Held] = {}

    def run(self, values: dict[str, Values]) -> dict[str, Values]:
        problem = self.plan.problem
        for argument in problem.arguments:
            whole = np.asarray(values[argument.name])
            assert whole.shape == argument.shape, argument.name
            self._hold(argument.name, self._given(whole, self.grid.spec(argument.decided_spec)))
        for step in self.plan.steps:
            made = self._computed(step) if step.op in ("einsum", "apply") else self._moved(step)
            self._hold(step.array, made)
            self._check_replicas(step)
        result = self.held.get(problem.result.name)
        if result is None or result.spec != self.grid.spec(self.plan.result_spec):
            raise PlanError(f"{problem.result.name} does not end as {self.plan.result_spec}")
        for name, wanted in self._wanted().items():
            found = self.held.get(name)
            if found is None:
                raise PlanError(f"no step makes {name}, which the program returns")
            if wanted is not None:
                # It may have been moved since, for what takes it.
                found = self.held[name] = self.copies.get((name, self.grid.spec(wanted)), found)
            if found.spec[1] if wanted is None else found.spec != self.grid.spec(wanted):
                raise PlanError(f"{name} does not end as {wanted or 'whole values'}")
        made = {name: self._assembled(held) for name, held in self.held.items()}
        if made[problem.result.name].shape != problem.result.shape:
            raise PlanError(f"{problem.result.name} has the shape {made[problem.result.name].shape}")
        return made

    def _wanted(self) -> dict[str, PartitionSpec | None]:
        """The spec of each other result of the program; None is any without pending sums."""
        problem = self.plan.problem
        made = {part.result.name: part.result for part in problem.parts}
        others = [name for name in problem.results if name in made and name != problem.result.name]
        return {name: made[name].spec for name in others}

    def _hold(self, name: str, held: Held) -> None:
        self.held[name] = self.copies[name, held.spec] = held

    def _copy(self, step: Step, name: str, spec: PartitionSpec) -> Held:
        """An array that a step takes as `spec`: it may have been moved to other specs since."""
        found = self.copies.get((name, self.grid.spec(spec)))
        if found is None:
            raise PlanError(f"{step.op} takes {name} as {spec}, which no device holds")
        return found

    def _given(self, whole: Values, spec: Spec) -> Held:
        """An argument; of a pending sum the first devices have everything, the others zeros."""
        shape = whole.shape
        if self.padded:
            whole = np.pad(whole, [(0, self._padded(size) - size) for size in shape])
        data = np.broadcast_to(whole, (*self.grid.sizes, *whole.shape))
        return Held(self._first_only(self._exchange(data, (), spec[0], ()), spec[1]), spec, shape)

    def _first_only(self, data: Values, parts: Iterable[int]) -> Values:
        """The data, with zeros on every device that is not the first along the parts."""
        for part in parts:
            along = [1] * data.ndim
            along[part] = self.grid.sizes[part]
            data = data * (np.arange(self.grid.sizes[part]) == 0).reshape(along)
        return data

    def _exchange(
        self,
        data: Values,
        group: Sequence[int],
        appended: Sequence[Sequence[int]],
        removed: Sequence[Sequence[int]],
    ) -> Values:
        """Give devices of groups along the parts `group` new pieces.

        A part in `removed` of a dimension is concatenated there, in front of what devices have; one in
        `appended` cuts the dimension and leaves every device its piece; a part of the group in neither is
        added up.
        """
        count = len(self.grid.sizes)
        rank = data.ndim - count
        removed = removed or ((),) * rank
        # Labels of np.einsum: a part p as an axis of devices after the step is p, before it count + p.
        labels = [count + part if part in group else part for part in range(count)]
        inner, shape, out, after = list(labels), list(self.grid.sizes), [], []
        for dim, size in enumerate(data.shape[count:]):
            cut = tuple(appended[dim])
            if size % self.grid.count(cut):
                raise PlanError(f"a dimension of {size} cannot be cut into {self.grid.count(cut)}")
            rest = size // self.grid.count(cut)
            inner += [*cut, 2 * count + dim]
            shape += [*(self.grid.sizes[part] for part in cut), rest]
            out += [*(count + part for part in removed[dim]), 2 * count + dim]
            after.append(rest * self.grid.count(removed[dim]))
        kept = [part for part in range(count) if part in inner]
        found = np.einsum(data.reshape(shape), inner, [*kept, *out])
        grid = [self.grid.sizes[part] if part in kept else 1 for part in range(count)]
        return np.broadcast_to(found.reshape(*grid, *after), (*self.grid.sizes, *after))

    def _moved(self, step: Step) -> Held:
        takes = self.plan.problem.parts[step.part].function in (*NEED_SUMS, *HALOS)
        if step.from_spec == step.to_spec and takes:  # what it brings, its statement takes
            return self.held[step.array]
        before = self._copy(step, step.array, step.from_spec)
        goal = self.grid.spec(step.to_spec)
        group = self.grid.parts(step.axes)
        if len(set(group)) < len(group) or not group:
            raise PlanError(f"{step.op} has the axes {step.axes}")
        if step.op == "ppermute":
            data = self._permuted(before, group, goal)
        else:
            data = self._regrouped(step, before, group, goal)
        if not self.padded:
            larger = max(before.data.shape, data.shape, key=math.prod)[len(self.grid.sizes) :]
            if tuple(step.shape) != larger:
                raise PlanError(
                    f"{step.op} of {step.array}: devices hold {larger}, the plan says {step.shape}"
                )
        return Held(data, goal, before.shape)

    def _regrouped(self, step: Step, before: Held, group: tuple[int, ...], goal: Spec) -> Values:
        removed, appended = _ends(step, before.spec[0], goal[0])
        gone = tuple(part for dim in removed for part in dim)
        come = tuple(part for dim in appended for part in dim)
        added = tuple(part for part in before.spec[1] if part not in goal[1])
        pending = tuple(part for part in goal[1] if part not in before.spec[1])
        split = [dim for dim, cut in enumerate(appended) if cut]
        joined = [dim for dim, cut in enumerate(removed) if cut]
        # JAX numbers the members of a group by the order of its axes: it is that of the one dimension.
        ordered = {"all_gather": gone, "psum_scatter": come, "slice": come, "all_to_all": gone, "pad": gone}
        match step.op:
            case "all_gather":
                fits = set(group) == set(gone) and not (come or added or pending)
            case "psum" | "pmax":
                fits = set(group) == set(added) and not (gone or come or pending)
            case "psum_scatter":
                fits = set(group) == set(added) == set(come) and not (gone or pending)
            case "all_to_all":
                fits = set(group) == set(gone) == set(come) and not (added or pending)
            case "slice":
                fits = set(group) == set(come) and not (gone or added or pending)
            case "pad":
                fits = set(group) == set(gone) == set(pending) and not (come or added)
            case _ if pending:
                fits = set(group) == set(pending) and not (gone or come or added)
            case _:
                raise PlanError(f"the plan has a step {step.op} that no device can perform")
        one = len(joined or split) == 1 and len(split or joined) == 1
        if not fits or (one and step.op in ordered and group != ordered[step.op]):
            raise PlanError(f"no {step.op} over {step.axes} leads from {step.from_spec} to {step.to_spec}")
        changed = joined or split
        if step.dim is not None and (not changed or step.dim != changed[0]):
            raise PlanError(f"{step.op} names dimension {step.dim}")
        if step.op == "pad":
            return self._within_zeros(before.data, removed)
        if step.op == "slice" or pending:
            return self._first_only(self._exchange(before.data, (), appended, ()), pending)
        if step.op == "pmax":
            return np.broadcast_to(before.data.max(axis=group, keepdims=True), before.data.shape)
        return self._exchange(before.data, group, appended, removed)

    def _within_zeros(self, data: Values, removed: Sequence[Sequence[int]]) -> Values:
        """Every device's piece where it belongs among those of the devices along some parts."""
        sizes, count = self.grid.sizes, len(self.grid.sizes)
        lengths = data.shape[count:]
        wide = [length * self.grid.count(own) for length, own in zip(lengths, removed, strict=True)]
        found = np.zeros((*sizes, *wide), data.dtype)
        for device in np.ndindex(sizes):
            place = []
            for length, own in zip(lengths, removed, strict=True):
                number = 0
                for part in own:
                    number = number * sizes[part] + device[part]
                place.append(slice(number * length, (number + 1) * length))
            found[device][tuple(place)] = data[device]
        return found

    def _permuted(self, before: Held, group: tuple[int, ...], goal: Spec) -> Values:
        """Every device gets the block it should hold, from a device of its group that holds that block.

        A ppermute sends from each device to at most one other, so each sender is used once.
        """
        if before.spec[1] != goal[1] or [self.grid.count(dim) for dim in before.spec[0]] != [
            self.grid.count(dim) for dim in goal[0]
        ]:
            raise PlanError("a ppermute does not cut an array into other blocks")

        def block(at: tuple[int, ...], spec: Spec) -> tuple[int, ...]:
            numbers = []
            for dim in (*spec[0], spec[1]):
                number = 0
                for part in dim:
                    number = number * self.grid.sizes[part] + at[part]
                numbers.append(number)
            return (*numbers, *(index for part, index in enumerate(at) if part not in group))

        devices = list(np.ndindex(self.grid.sizes))
        senders: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for device in devices:
            senders.setdefault(block(device, before.spec), []).append(device)
        data = np.empty_like(before.data)
        for device in devices:
            candidates = senders.get(block(device, goal))
            if not candidates:
                raise PlanError(f"no device of the group can send its block to the device at {device}")
            data[device] = before.data[candidates.pop(0)]
        return data

    def _computed(self, step: Step) -> Held:
        if not self.held.keys() >= set(step.operands):
            raise PlanError(f"{step.array} is made from what no step has made yet")
        operands = [self.held[name] for name in step.operands]
        if step.operand_specs:
            taken = zip(step.operands, step.operand_specs, strict=True)
            operands = [self._copy(step, name, spec) for name, spec in taken]
        part = self._statement_of(step, operands)
        goal = self.grid.spec(step.to_spec)
        count = len(self.grid.sizes)
        lengths: dict[str, int] = {}
        indices: dict[str, Values] = {}
        for dims, held in zip(part.einsum.operands, operands, strict=True):
            for dim, length, split in zip(dims, held.data.shape[count:], held.spec[0], strict=True):
                if lengths.setdefault(dim, length) != length:
                    raise PlanError(f"devices hold {dim} as {lengths[dim]} and as {length} elements")
                indices[dim] = self._indices(length, split)
        for dim, size, split in zip(part.einsum.result, part.result.shape, goal[0], strict=True):
            parts = self.grid.count(split)
            if size % parts and not self.padded:
                raise PlanError(f"{dim}={size} is cut into {parts}")
            lengths.setdefault(dim, self._padded(size) // parts)
            indices[dim] = self._indices(lengths[dim], split)
        own = [held.data for held in operands]
        named = [*zip(part.einsum.operands, operands, strict=True)]
        splits = {dim: split for dims, held in named for dim, split in zip(dims, held.spec[0], strict=True)}
        beside = {
            one.array for one in self.plan.steps if one.part == step.part and one.from_spec == one.to_spec
        }
        split = splits.get(part.whole[0], ()) if part.whole else ()
        if split and part.function in HALOS:
            data = self._beside_neighbours(part, own, indices, lengths, split, beside)
        else:
            if split and part.function in NEED_SUMS and part.result.name not in beside:
                raise PlanError(f"{part.result.name} is made without the sums of its rows")
            shared = split if "attention" in part.function else ()
            data = evaluated(part, own, count, indices, lengths, shared)
        if not self.padded and tuple(step.shape) != data.shape[count:]:
            raise PlanError(f"{part.result.name} is {data.shape[count:]}, the plan says {step.shape}")
        return Held(self._without_padding(part, data, indices), goal, part.result.shape)

    def _beside_neighbours(
        self,
        part: Statement,
        operands: Sequence[Values],
        indices: dict[str, Values],
        lengths: dict[str, int],
        split: tuple[int, ...],
        beside: set[str],
    ) -> Values:
        """A statement on shards with more positions in front: those of neighbours, or zeros."""
        count, along, halo = len(self.grid.sizes), part.whole[0], HALOS[part.function]
        rows = int(part.number or lengths[part.whole[-1]]) - 1
        if rows and any(part.arrays[number].name not in beside for number in halo):
            raise PlanError(f"{part.result.name} is made without a halo")
        if rows > lengths[along]:
            raise PlanError(f"a halo of {rows} positions of shards of {lengths[along]}")
        # A backward kernel has the keys and values that came for its first gradient.
        takes = range(len(operands)) if part.function.startswith("window") else halo
        longer = []
        for number, (x, dims) in enumerate(zip(operands, part.einsum.operands, strict=True)):
            if along in dims:
                axis = count + dims.index(along)
                front = x.take(range(x.shape[axis] - rows, x.shape[axis]), axis=axis)
                front = self._shifted(front, split, 1) if number in takes else np.zeros_like(front)
                x = np.concatenate([front, x], axis=axis)
            longer.append(x)
        indices, own = dict(indices), indices[along]
        front = own[..., :1] + np.arange(-rows, 0)
        indices[along] = np.concatenate([np.where(front < 0, -(10**9), front), own], axis=-1)
        made = evaluated(part, longer, count, indices, lengths | {along: lengths[along] + rows})
        if along not in part.einsum.result:
            return made
        axis = count + part.einsum.result.index(along)
        front, made = np.split(made, [rows], axis=axis)
        if -1 in halo:
            back = self._shifted(front, split, -1)
            zeros = np.zeros_like(made.take(range(made.shape[axis] - rows), axis=axis))
            made = made + np.concatenate([zeros, back], axis=axis)
        return made

    def _shifted(self, data: Values, split: tuple[int, ...], by: int) -> Values:
        """What the device before along some parts has, or the one behind; zeros at the end."""
        order = [*split, *(axis for axis in range(data.ndim) if axis not in split)]
        flat = data.transpose(order).reshape(self.grid.count(split), -1)
        moved = np.zeros_like(flat)
        moved[max(0, by) : len(flat) + min(0, by)] = flat[max(0, -by) : len(flat) - max(0, by)]
        return moved.reshape([data.shape[axis] for axis in order]).transpose(np.argsort(order))

    def _statement_of(self, step: Step, operands: list[Held]) -> Statement:
        """The statement that a step runs: one of the program, or the sum of one array."""
        part, einsum = self.plan.problem.parts[step.part], step.einsum
        assert einsum is not None, step
        if len(operands) != len(einsum.operands):
            raise PlanError(f"{step.array} is made from {len(operands)} arrays")
        ranks = [(len(dims), len(held.shape)) for dims, held in zip(einsum.operands, operands, strict=True)]
        if any(said != held for said, held in ranks):
            raise PlanError(f"{einsum} takes arrays of other ranks")
        if step.op == "apply":
            return replace(part, einsum=einsum)
        sizes: dict[str, int] = {}
        for dims, held in zip(einsum.operands, operands, strict=True):
            for dim, size in zip(dims, held.shape, strict=True):
                if sizes.setdefault(dim, size) != size:
                    raise PlanError(f"{einsum} takes {dim} as {sizes[dim]} and as {size}")
        sizes = dict(zip(part.einsum.result, part.result.shape, strict=True)) | sizes
        shape = tuple(sizes[dim] for dim in einsum.result)
        result = ShardedArray(step.array, einsum.result, shape, step.dtype, None)
        return replace(part, einsum=einsum, result=result, function="multiply")

    def _padded(self, size: int) -> int:
        return size + (-size % self.mesh.size if self.padded else 0)

    def _indices(self, length: int, split: tuple[int, ...]) -> Values:
        """The elements of a dimension on each device: the axes of devices, then theirs."""
        number = np.zeros((1,) * len(self.grid.sizes), int)
        for part in split:
            along = [1] * len(self.grid.sizes)
            along[part] = self.grid.sizes[part]
            number = number * self.grid.sizes[part] + np.arange(self.grid.sizes[part]).reshape(along)
        return np.asarray(number[..., None] * length + np.arange(length))

    def _without_padding(self, part: Statement, data: Values, indices: Mapping[str, Values]) -> Values:
        """Zeros where a function of zeros is none."""
        if not self.padded:
            return data
        count = len(self.grid.sizes)
        for number, (dim, size) in enumerate(zip(part.einsum.result, part.result.shape, strict=True)):
            behind = (1,) * (data.ndim - count - number - 1)
            within = indices[dim] < size
            shape = (*within.shape[:count], *(1,) * number, within.shape[count], *behind)
            data = data * within.reshape(shape)
        return data

    def _check_replicas(self, step: Step) -> None:
        """Raise `PlanError` where devices that the spec makes replicas differ."""
        held = self.held[step.array]
        dims, pending = held.spec
        for size, piece, cut in zip(held.shape, held.data.shape[len(self.grid.sizes) :], dims, strict=True):
            if not self.padded and piece * self.grid.count(cut) != size:
                raise PlanError(f"after {step.op} devices hold {piece} of {size} of {step.array}")
        for part, size in enumerate(self.grid.sizes):
            if size > 1 and part not in pending and not any(part in dim for dim in dims):
                first = held.data.take([0], axis=part)
                if not _same(np.broadcast_to(first, held.data.shape), held.data):
                    raise PlanError(f"after {step.op} replicas of {step.array} differ")

    def _assembled(self, held: Held) -> Values:
        dims, pending = held.spec
        count = len(self.grid.sizes)
        different = {*pending, *(part for dim in dims for part in dim)}
        data = held.data[tuple(slice(None if part in different else 1) for part in range(count))]
        out = []
        for number, dim in enumerate(dims):
            out += [*dim, count + number]
        found = np.einsum(data, list(range(data.ndim)), out)
        whole = found.reshape(
            [self.grid.count(dim) * size for dim, size in zip(dims, data.shape[count:], strict=True)]
        )
        return whole[tuple(map(slice, held.shape))]


def evaluated(
    part: Statement,
    operands: Sequence[Values],
    devices: int = 0,
    indices: Mapping[str, Values] | None = None,
    lengths: Mapping[str, int] | None = None,
    shared: tuple[int, ...] = (),
) -> Values:
    """The result of a statement; along a dimension that only the result has, values are repeated."""
    made, known = part.einsum.result, {dim for dims in part.einsum.operands for dim in dims}
    new = [dim for dim in made if dim not in known]
    is_own = ("slots", "dispatch", "combine_gradient", "reshape", "pick_gradient", "slice", "concatenate")
    if not new or part.function in is_own:
        return value(part, operands, devices, indices, shared)
    kept = tuple(dim for dim in made if dim in known)
    sizes = dict(zip(made, part.result.shape, strict=True)) | dict(lengths or {})
    own = dict(zip(made, part.result.shape, strict=True))
    result = replace(part.result, dims=kept, shape=tuple(own[dim] for dim in kept), spec=None)
    single = replace(part, einsum=replace(part.einsum, result=kept), result=result)
    found = value(single, operands, devices, indices, shared)
    found = np.expand_dims(found, [devices + made.index(dim) for dim in new])
    return np.broadcast_to(found, (*found.shape[:devices], *(sizes[dim] for dim in made)))


def reference(problem: Problem, values: dict[str, Values]) -> dict[str, Values]:
    """All arrays of a program on one device, by name."""
    made = dict(values)
    for part in problem.parts:
        made[part.result.name] = evaluated(part, [made[operand.name] for operand in part.operands])
    return made


def _ends(
    step: Step, before: tuple[tuple[int, ...], ...], after: tuple[tuple[int, ...], ...]
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """For each dimension the parts that leave its minor end, and those that are appended there."""
    removed, appended = [], []
    for old, new in zip(before, after, strict=True):
        shorter = min(len(old), len(new))
        if old[:shorter] != new[:shorter]:
            raise PlanError(
                f"{step.op} changes another than the minor end: {step.from_spec} to {step.to_spec}"
            )
        removed.append(old[shorter:])
        appended.append(new[shorter:])
    return removed, appended


def _is_uneven(problem: Problem, steps: Sequence[Step], grid: DeviceGrid) -> bool:
    shapes = {array.name: array.shape for array in problem.arrays}
    specs = [(array.name, array.spec) for array in problem.arrays if array.spec is not None]
    specs += [(step.array, spec) for step in steps for spec in (step.from_spec, step.to_spec)]
    return any(
        size % grid.count(grid.parts(axes))
        for name, spec in specs
        if spec.rank == len(shapes[name])
        for size, axes in zip(shapes[name], spec.dims, strict=True)
    )
