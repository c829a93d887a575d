"""The place of each mesh axis on a machine: where `jax.make_mesh` puts it, in pure Python.

On a TPU slice JAX gives every mesh axis whole axes of the torus, several where that fits, the last mesh axis
first; on v5e it may split an axis of the torus between two. A few small slices have an order of their own.
Across slices the leading axes lie as `create_hybrid_device_mesh` has them. GPUs keep the order of their ids.
Some rules changed with jax 0.11.1: those of the installed release count (`jax.experimental.mesh_utils`, with
which the tests compare each placement).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, plural
from shardviz.hardware.clusters import Fault, mesh_of_size, parse_cluster, parts_by_slice, times
from shardviz.hardware.machine import Machine, PlacedMesh, on_assumed_machine
from shardviz.hardware.physical_levels import Parts, levels_of_parts, levels_of_places
from shardviz.hardware.placement import DeviceCoords, Placement

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

SUGGESTED = 4
"""Meshes that a hint names."""
MAX_TRIED = 200
"""Meshes that are tried for it."""

_TWO_BY_TWO = (0, 1, 3, 2)
_TRAY = (0, 1, 2, 3, 6, 7, 4, 5)
_FOUR_BY_FOUR = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)
_TWO_BY_FOUR = (0, 1, 2, 3, 7, 6, 5, 4)
_TWO_BY_TWO_BY_TWO = (0, 1, 3, 2, 6, 7, 5, 4)
_CHANGED = (0, 11, 1)
"""The release of jax that changed rules: v5p:2x2x2 has an order of its own since then, tpu7x fills its cores
first, and all prime factors are found."""


def place_mesh(
    machine: Machine, mesh: Mesh, placement: Placement | None = None, *, of_program: bool = False
) -> PlacedMesh:
    """The mesh on the machine: as `placement` has it, else in the mesh's own device order, else as JAX places
    it. One `of_program` is compiled for so many devices, and the hint does not tell to resize it.

    Raises `QuestionError` for a mesh of another size than the machine, and for one that JAX does not place.
    """
    if machine.assumed:
        return on_assumed_machine(machine, mesh)
    if placement is not None:
        return PlacedMesh(machine, levels_of_places(machine, mesh, placement), placement)
    if mesh.size != machine.devices:
        raise _another_size(machine, mesh, of_program)
    if mesh.device_order is None:
        parts = _parts(machine, mesh.axis_sizes)
        if parts is not None:
            found = _placement(machine, _ids(machine, parts))
            return PlacedMesh(machine, levels_of_parts(machine, mesh, parts), found)
        ids = _reordered(machine, mesh.axis_sizes)
        if ids is None:
            raise QuestionError(*not_placed(machine, mesh))
    else:
        ids = mesh.device_order
    found = _placement(machine, ids)
    return PlacedMesh(machine, levels_of_places(machine, mesh, found), found)


def is_placed(machine: Machine, sizes: Sequence[int]) -> bool:
    """Return whether JAX places a mesh of these sizes, which multiply to the machine's devices."""
    return _parts(machine, sizes) is not None or _reordered(machine, sizes) is not None


def not_placed(machine: Machine, mesh: Mesh) -> tuple[str, str]:
    """The error and the hint for a mesh that `jax.make_mesh` does not place."""
    fitting = _fitting(machine, mesh.axis_sizes)
    meshes = (",".join(map("{}={}".format, mesh.axis_names, each)) for each in fitting)
    where = "use --device-order row-major to place it by the ids"
    return (
        f"jax.make_mesh does not place a mesh of {times(mesh.axis_sizes)} on {machine.name}: "
        "no axis of the torus may be split between two axes of the mesh",
        f"{where}; these it places: {'; '.join(meshes)}" if fitting else where,
    )


def _fitting(machine: Machine, sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Meshes of as many axes that JAX places on the machine, the most similar first."""
    count = machine.devices
    divisors = [size for size in range(1, count + 1) if count % size == 0]
    others = (each for each in product(divisors, repeat=len(sizes) - 1) if count % math.prod(each) == 0)
    candidates = [(*each, count // math.prod(each)) for each in others]

    def distance(each: tuple[int, ...]) -> float:
        return sum(abs(math.log(a / b)) for a, b in zip(each, sizes, strict=True))

    found: list[tuple[int, ...]] = []
    for each in sorted(candidates, key=distance)[:MAX_TRIED]:
        if is_placed(machine, each):
            found.append(each)
        if len(found) == SUGGESTED:
            break
    return found


def _another_size(machine: Machine, mesh: Mesh, of_program: bool) -> QuestionError:
    hints = []
    try:
        cluster = parse_cluster(machine.name)
    except Fault:
        cluster = None
    if cluster is not None and (fitting := cluster.of_size(mesh.size)):
        hints.append(f"--machine {' or '.join(fitting)}")
    if not of_program:
        hints.append(f"--mesh {mesh_of_size(mesh, machine.devices)}")
    made_of = "" if cluster is None else cluster.made_of
    return QuestionError(
        f"{machine.name} has {plural(machine.devices, 'device')}{made_of}, but the mesh {mesh} has "
        f"{mesh.size:,}",
        f"use {', or '.join(hints) or f'a machine of {mesh.size:,}'}",
    )


# The machine as a grid of devices.


def _sizes(machine: Machine) -> list[int]:
    """The sizes of the physical dimensions: x, y, z and core, then slice; of GPUs node and gpu."""
    if not machine.torus:
        return [machine.devices // machine.node, machine.node]
    return [*machine.torus, machine.devices_per_chip, machine.slices]


def _strides(machine: Machine) -> list[int]:
    """The difference between the ids of neighbours along each physical dimension."""
    sizes = _sizes(machine)
    if not machine.torus:
        return [machine.node, 1]
    *axes, cores, _ = sizes
    strides = [cores * math.prod(axes[:number]) for number in range(len(axes))]
    return [*strides, 1, cores * math.prod(axes)]


@lru_cache(maxsize=8)
def _places(torus: tuple[int, ...], cores: int, slices: int, node: int) -> tuple[DeviceCoords, ...]:
    """The place of every device, by id: TPUs count cores first, then x, y, z and slices."""
    if not torus:
        return tuple(DeviceCoords((), id_ % node, id_ // node) for id_ in range(slices))
    chips = [tuple(reversed(coords)) for coords in product(*(range(size) for size in reversed(torus)))]
    return tuple(
        DeviceCoords(coords, core, number)
        for number in range(slices)
        for coords in chips
        for core in range(cores)
    )


def _placement(machine: Machine, ids: tuple[int, ...]) -> Placement:
    slices = machine.slices if machine.torus else machine.devices
    places = _places(machine.torus, machine.devices_per_chip, slices, machine.node)
    return Placement(ids, tuple(places[id_] for id_ in ids), machine.torus, machine.wrap)


def _ids(machine: Machine, parts: Parts) -> tuple[int, ...]:
    strides = _strides(machine)
    found = [0]
    for number, size, step in (part for axis in parts for part in axis):
        stride = step * strides[number]
        found = [before + stride * place for before in found for place in range(size)]
    return tuple(found)


# Where JAX puts a mesh.


def _parts(machine: Machine, sizes: Sequence[int]) -> Parts | None:
    """The parts of physical dimensions that JAX gives each mesh axis; None where it has another order, or
    places no such mesh."""
    if not machine.torus:
        return _parts_by_id(_sizes(machine), sizes)
    within, across = parts_by_slice(sizes, machine.slices)
    if math.prod(across) != machine.slices:
        return None
    order = _own_order(machine, within)
    parts = _parts_on_torus(machine, within) if order is None else _parts_in_order(machine, within, order)
    if parts is None:
        return None
    number, step = len(machine.torus) + 1, 1
    for axis in reversed(range(len(sizes))):
        if across[axis] > 1:
            parts[axis].insert(0, (number, across[axis], step))
            step *= across[axis]
    return parts


def _reordered(machine: Machine, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The ids by mesh position where JAX has an order of its own; None where it has none."""
    if not machine.torus:
        return tuple(range(machine.devices))
    within, across = parts_by_slice(sizes, machine.slices)
    order = _own_order(machine, within) if math.prod(across) == machine.slices else None
    if order is None:
        return None
    count = len(order)
    found = []
    for position in product(*map(range, sizes)):
        one = slice_ = 0
        for place, inner, outer in zip(position, within, across, strict=True):
            one, slice_ = one * inner + place % inner, slice_ * outer + place // inner
        found.append(slice_ * count + order[one])
    return tuple(found)


def _own_order(machine: Machine, sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The order that JAX gives the devices of some small slices: rings; None for all others."""
    chip, torus = machine.chip, (*machine.torus, *(1,) * (3 - len(machine.torus)))
    count = math.prod(sizes)
    if chip in ("v2", "v3"):
        if count == 8:
            return _TRAY
        if sizes[-1] == 8:
            return tuple(first + place for first in range(0, count, 8) for place in _TRAY)
        return tuple(range(count))
    if chip in ("v5e", "v6e"):
        if torus == (2, 2, 1):
            return _TWO_BY_TWO
        if count == 8:
            return _TWO_BY_FOUR
        return _FOUR_BY_FOUR if torus == (4, 4, 1) and max(sizes) == count else None
    if chip == "v5p" and torus == (2, 2, 2) and _has_changed():
        return _TWO_BY_TWO_BY_TWO
    if chip == "tpu7x" and count % 8 == 0 and count <= 32 and max(torus[:2]) <= 2:
        return tuple(first + place for first in range(0, count, 8) for place in _TRAY)
    return None


def _parts_in_order(machine: Machine, sizes: Sequence[int], order: tuple[int, ...]) -> Parts | None:
    """The parts in the order of the ids, as on larger slices of v2 and v3; None for another order."""
    if order != tuple(range(len(order))):
        return None
    numbers = [*reversed(range(len(machine.torus))), len(machine.torus)]
    dims = [*reversed(machine.torus), machine.devices_per_chip]
    parts = _parts_by_id(dims, sizes)
    return parts and [[(numbers[number], size, step) for number, size, step in own] for own in parts]


def _parts_by_id(dims: Sequence[int], sizes: Sequence[int]) -> Parts | None:
    """The parts where the ids rise along the mesh; None where a mesh axis does not take whole parts."""
    found: Parts = [[] for _ in sizes]
    number, taken = len(dims) - 1, 1
    for axis in reversed(range(len(sizes))):
        rest = sizes[axis]
        while rest > 1:
            part = math.gcd(rest, dims[number] // taken)
            if part == 1 or (part < rest and taken * part < dims[number]):
                return None
            found[axis].insert(0, (number, part, taken))
            rest, taken = rest // part, taken * part
            if taken == dims[number]:
                number, taken = number - 1, 1
    return found


def _parts_on_torus(machine: Machine, sizes: Sequence[int]) -> Parts | None:
    """The algorithm of `mesh_utils` for a torus of any rank; None where it fails."""
    dims = [*machine.torus, *(1,) * (3 - len(machine.torus))]
    numbers = list(range(len(machine.torus)))
    if machine.devices_per_chip > 1:
        dims = [*machine.torus, machine.devices_per_chip]
        numbers.append(len(machine.torus))
    numbers += [0] * (len(dims) - len(numbers))
    left = list(dims)
    taken: list[tuple[int, ...]] = [() for _ in sizes]
    for axis in reversed(range(len(sizes))):
        for subset in _subsets(len(dims)):
            if math.prod(left[number] for number in subset) == sizes[axis]:
                taken[axis] = subset
                left = [0 if number in subset else size for number, size in enumerate(left)]
                break
        else:
            if sizes[axis] > 1:
                # The condition of jax.make_mesh.
                split = _split_parts(dims, sizes) if machine.chip == "v5e" else None
                if split is None:
                    return None
                return [[(numbers[n], size, step) for n, size, step in axis_parts] for axis_parts in split]
    return [[(numbers[n], dims[n], 1) for n in subset if dims[n] > 1] for subset in taken]


def _subsets(rank: int) -> Iterator[tuple[int, ...]]:
    """The physical dimensions that a mesh axis may take together, in the order in which JAX tries them."""
    for count in range(rank, 0, -1):
        found = combinations(range(rank), count)
        # With four there are cores, which are nearest to one another; then x comes before y before z.
        if rank == 4 and _has_changed():
            yield from sorted(found, key=_nearest)
        else:
            yield from found


def _nearest(subset: tuple[int, ...]) -> tuple[int, int]:
    ranks = [(1, 2, 3, 0)[number] for number in subset]
    return min(ranks), sum(ranks)


@cache
def _has_changed() -> bool:
    """Return whether the installed jax has the newer rules."""
    # Late, for it loads all that reads mail headers.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return tuple(map(int, version("jax").split(".")[:3])) >= _CHANGED
    except (PackageNotFoundError, ValueError):
        return True


def _split_parts(dims: Sequence[int], sizes: Sequence[int]) -> Parts | None:
    """The parts where an axis of the torus may be split between several axes of the mesh."""
    assigned = [[1] * len(sizes) for _ in dims]
    for axis in reversed(range(len(sizes))):
        used = [math.prod(row) for row in assigned]
        best: tuple[int, ...] | None = None
        for each in _shares(dims, used, sizes[axis]):
            if best is None or _preference(each, dims, used) > _preference(best, dims, used):
                best = each
        if best is None or math.prod(best) != sizes[axis]:
            return None
        for row, size in zip(assigned, best, strict=True):
            row[axis] = size
    return [
        [
            (number, row[axis], math.prod(row[axis + 1 :]))
            for number, row in enumerate(assigned)
            if row[axis] > 1
        ]
        for axis in range(len(sizes))
    ]


def _shares(dims: Sequence[int], used: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """All ways to make a mesh axis of parts of the dimensions that are left."""
    factors: dict[int, int] = {}
    for factor in _prime_factors(size):
        factors[factor] = factors.get(factor, 0) + 1
    holders: dict[int, list[int]] = {factor: [] for factor in factors}
    for number, (dim, taken) in enumerate(zip(dims, used, strict=True)):
        for factor in _prime_factors(dim // taken):
            if factor in holders:
                holders[factor].append(number)
    choices = [sorted(set(combinations(holders[factor], many))) for factor, many in factors.items()]
    for choice in product(*choices):
        found = [1] * len(dims)
        for factor, subset in zip(factors, choice, strict=True):
            for number in subset:
                found[number] *= factor
        yield tuple(found)


def _prime_factors(number: int) -> list[int]:
    """As `mesh_utils` finds them: of some numbers, such as 10, jax 0.10 returns the last factor alone."""
    factors = []
    for factor in range(2, math.isqrt(number) + 2):
        while number % factor == 0:
            factors.append(factor)
            number //= factor
        if number == 1:
            return factors
    return [*factors, number] if _has_changed() else [number]


def _preference(
    share: tuple[int, ...], dims: Sequence[int], used: Sequence[int]
) -> tuple[int, int, int, tuple[int, ...]]:
    """The rank of a share: most places on whole dimensions, most whole ones, most on dimensions in use."""
    whole = [part for part, dim in zip(share, dims, strict=True) if part == dim]
    in_use = [part for part, taken in zip(share, used, strict=True) if taken > 1]
    return math.prod(whole), sum(part > 1 for part in whole), math.prod(in_use), share
