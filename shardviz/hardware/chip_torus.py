"""Slices of TPUs, each a torus of chips, and where `jax.make_mesh` puts a mesh on them
(`jax.experimental.mesh_utils`).

JAX gives every mesh axis whole axes of the torus, the last mesh axis first, and tries several together before
one alone: on 4x4x8 chips the axis Y of a mesh X=4,Y=32 gets x and z (4 · 8), the first pair that fits, and X
gets y. On v5e an axis of the torus may be split between axes of the mesh, and a few small slices have an
order of their own."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import ClassVar, Self

from shardviz.errors import plural, quote
from shardviz.hardware.chips import DCN_LATENCY, ICI_HOP, MAX_DEVICES, TPUS, TpuChip, slices_name
from shardviz.hardware.family import Family, Parts
from shardviz.hardware.links import LINK_FIGURES, Dimension, LevelKind, LinkSpec
from shardviz.hardware.placement import AXES
from shardviz.hardware.quantities import count, figure
from shardviz.sharding.digits import numbers, row_major
from shardviz.strict_table import StrictTable

SPLIT = ("v5e",)
"""Chips of which `jax.make_mesh` splits an axis of the torus between two of the mesh."""


@dataclass(frozen=True)
class ChipTorus(Family):
    """Equal slices, each a torus of chips, of one device or several."""

    table: ClassVar[str] = "torus"
    words: ClassVar[str] = "a torus"
    network_hop: ClassVar[float] = DCN_LATENCY
    keys: ClassVar[tuple[str, ...]] = ("shape", "wrap", "slices", "devices_per_chip", *LINK_FIGURES)

    @classmethod
    def of(
        cls,
        chip: str,
        shape: tuple[int, ...],
        wrap: tuple[bool, ...],
        axis_links: Sequence[LinkSpec],
        devices_per_chip: int = 1,
        slices: int = 1,
        core_link: LinkSpec | None = None,
        network: LinkSpec | None = None,
    ) -> Self:
        """Slices of the sizes `shape` in chips, an axis with `wrap` a ring; `core_link` joins two devices of
        a chip."""
        strides = [devices_per_chip * math.prod(shape[:number]) for number in range(len(shape) + 1)]
        kinds: list[LevelKind] = ["ring" if closes else "line" for closes in wrap]
        along = zip(AXES, shape, strides, kinds, axis_links, AXES, strict=False)
        core = Dimension("core", devices_per_chip, 1, "chip", core_link, "core")
        across = Dimension("slice", slices, strides[-1], "network", network, "DCN")
        return cls(chip, (*(Dimension(*axis) for axis in along), core, across))

    @classmethod
    def published(cls, chip: TpuChip, torus: tuple[int, ...], slices: int = 1) -> Self:
        return cls.of(
            chip.name,
            torus,
            chip.wrap(torus),
            (LinkSpec(ICI_HOP, chip.link, chip.start),) * len(torus),
            chip.devices_per_chip,
            slices,
            LinkSpec(ICI_HOP, chip.between_cores, chip.start) if chip.between_cores else None,
            LinkSpec(DCN_LATENCY, chip.network / chip.devices_per_chip, chip.start),
        )

    @property
    def hardware(self) -> str:
        return slices_name(self.chip, self.torus_sizes, self.slices)

    def size_words(self) -> str:
        shape = "×".join(map(str, self.torus_sizes))
        slices = f"{self.slices} slices of {shape}" if self.slices > 1 else shape
        cores = self.devices_per_chip
        devices = f", {self.devices:,} devices, {cores} a chip" * (cores > 1)
        return f"{plural(self.devices // cores, f'{self.chip} chip')}, {slices}{devices}"

    @classmethod
    def read(cls, table: StrictTable, before: Self | None, chip: str) -> Self:
        table.only(cls.keys)
        shape = _shape(table) if "shape" in table or before is None else before.torus_sizes
        rank = len(shape)
        known = TPUS.get(chip)
        wrap = known.wrap(shape) if known is not None and known.rank == rank else (False,) * rank
        cores, slices = 1, 1
        links: Mapping[str, LinkSpec] = {}
        axis_links: list[LinkSpec] = []
        if before is not None:
            cores, slices, links = before.devices_per_chip, before.slices, before.links
            axis_links = [links[axis.name] for axis in before.torus]
            if before.torus_sizes == shape:
                wrap = tuple(axis.kind == "ring" for axis in before.torus)
            else:
                axis_links = axis_links[:1] * rank
        cores = count(table, "devices_per_chip", cores, MAX_DEVICES)
        slices = count(table, "slices", slices, MAX_DEVICES)
        if "wrap" in table:
            value = table.values["wrap"]
            values = [value] * rank if isinstance(value, bool) else value
            if not isinstance(values, list) or [*map(type, values)] != [bool] * rank:
                hint = f"write true, false, or [{', '.join(['true'] * rank)}]"
                table.fail("wrap", f"{quote(str(value), 30)} is not one truth value for each axis", hint)
            wrap = tuple(values)
        axis_links = _axis_links(table, rank, axis_links)
        return cls.of(chip, shape, wrap, axis_links, cores, slices, links.get("chip"), links.get("network"))

    def toml(self) -> list[str]:
        axis_links = [axis.link for axis in self.torus if axis.link is not None]
        return [
            f'shape = "{"x".join(map(str, self.torus_sizes))}"',
            f"wrap = [{', '.join(str(axis.kind == 'ring').lower() for axis in self.torus)}]",
            f"slices = {self.slices}",
            f"devices_per_chip = {self.devices_per_chip}",
            *(
                f"{key} = [{', '.join(quantity.toml(getattr(link, key)) for link in axis_links)}]"
                for key, quantity in LINK_FIGURES.items()
            ),
        ]

    def jax_order(self, sizes: Sequence[int]) -> Parts | tuple[int, ...] | None:
        within, across = parts_by_slice(sizes, self.slices)
        if math.prod(across) != self.slices:
            return None
        shape = self.torus_sizes
        order = order_on_torus(self.chip, shape, within)
        if order is not None:
            # Each slice has this order.
            axes = zip(row_major(across), row_major(within), strict=True)
            size = len(order)
            nest = (digit for outer, inner in axes for digit in ((outer.size, outer.stride * size), inner))
            return tuple(number - number % size + order[number % size] for number in numbers(nest))
        parts = parts_on_torus(self.chip, shape, self.devices_per_chip, within)
        if parts is None:
            return None
        step = 1
        for axis in reversed(range(len(sizes))):
            if across[axis] > 1:
                parts[axis].insert(0, (len(self.dimensions) - 1, across[axis], step))
                step *= across[axis]
        return parts


def _shape(table: StrictTable) -> tuple[int, ...]:
    hint = f'write the chips along {", ".join(AXES)}: "4x4x8" or [4, 4, 8]'
    value = table.values.get("shape")
    if isinstance(value, list):
        sizes = value
    else:
        text = table.typed("shape", str, hint)
        sizes = [int(size) if re.fullmatch("[0-9]{1,9}", size) else 0 for size in re.split("[x×]", text)]
    if not 1 <= len(sizes) <= len(AXES) or not all(type(size) is int and 1 <= size < 10**9 for size in sizes):
        table.fail("shape", f"{quote(str(value), 30)} is not the shape of a torus", hint)
    return tuple(sizes)


def _axis_links(table: StrictTable, rank: int, before: Sequence[LinkSpec]) -> list[LinkSpec]:
    """The link of each axis: each figure one for all, or a list."""
    columns = []
    for key in ("latency", "bandwidth", "start"):
        quantity = LINK_FIGURES[key]
        if isinstance(table.values.get(key), list):
            own = table.listed(key, rank)
            if len(own.values) != rank:
                many = plural(len(own.values), "value")
                table.fail(key, f"it has {many}", f"give one, or {rank}, one for each axis")
            columns.append([figure(own, number, quantity) for number in own.values])
        elif key in table or (key == "bandwidth" and not before):
            columns.append([figure(table, key, quantity)] * rank)
        else:
            columns.append([getattr(link, key) for link in before or [LinkSpec(ICI_HOP)] * rank])
    return [*map(LinkSpec, *columns)]


def parts_by_slice(sizes: Sequence[int], slices: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of each axis, its size within a slice and across the slices: the leading axes lie across them.

    >>> parts_by_slice((4, 8), 2)
    ((2, 8), (2, 1))"""
    across: list[int] = []
    for size in sizes:
        across.append(math.gcd(size, slices // math.prod(across)))
    return tuple(size // part for size, part in zip(sizes, across, strict=True)), tuple(across)


def order_on_torus(chip: str, shape: tuple[int, ...], sizes: Sequence[int]) -> tuple[int, ...] | None:
    """The order that JAX gives the devices of some small slices, by their ids: rings; None of all others."""
    torus = (*shape, *(1,) * (3 - len(shape)))
    devices = math.prod(sizes)
    trays = tuple(first + index for first in range(0, devices, 8) for index in (0, 1, 2, 3, 6, 7, 4, 5))
    if chip in ("v2", "v3"):
        return trays if devices == 8 or sizes[-1] == 8 else tuple(range(devices))
    if chip in ("v5e", "v6e"):
        if torus == (2, 2, 1):
            return 0, 1, 3, 2
        if devices == 8:
            return 0, 1, 2, 3, 7, 6, 5, 4
        around = (0, 1, 2, 3, 7, 6, 5, 9, 10, 11, 15, 14, 13, 12, 8, 4)
        return around if torus == (4, 4, 1) and max(sizes) == devices else None
    if chip == "v5p" and torus == (2, 2, 2) and _has_changed():
        return 0, 1, 3, 2, 6, 7, 5, 4
    is_small = chip == "tpu7x" and devices % 8 == 0 and devices <= 32 and max(torus[:2]) <= 2
    return trays if is_small else None


def parts_on_torus(chip: str, shape: tuple[int, ...], cores: int, sizes: Sequence[int]) -> Parts | None:
    """The parts of the torus and of cores that each mesh axis gets; None where `mesh_utils` finds none."""
    dims = [*shape, cores] if cores > 1 else [*shape, *(1,) * (3 - len(shape))]
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
                return _split_parts(dims, sizes) if chip in SPLIT else None
    return [[(number, dims[number], 1) for number in subset if dims[number] > 1] for subset in taken]


def _subsets(rank: int) -> Iterator[tuple[int, ...]]:
    """The physical dimensions that a mesh axis may take together, in the order in which JAX tries them."""
    # With four there are cores, which are nearest to one another; then x comes before y before z.
    ranks = (1, 2, 3, 0) if rank == 4 and _has_changed() else (0,) * rank

    def nearest(subset: tuple[int, ...]) -> tuple[int, int]:
        own = [ranks[number] for number in subset]
        return min(own), sum(own)

    for many in range(rank, 0, -1):
        yield from sorted(combinations(range(rank), many), key=nearest)


@cache
def _has_changed() -> bool:
    """Return whether the installed jax is 0.11.1 or newer. Since then v5p:2x2x2 has an order of its own,
    tpu7x fills its cores first, and all prime factors are found."""
    # Late, for it loads all that reads mail headers.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return tuple(map(int, version("jax").split(".")[:3])) >= (0, 11, 1)
    except (PackageNotFoundError, ValueError):
        return True


def _split_parts(dims: Sequence[int], sizes: Sequence[int]) -> Parts | None:
    """The parts where an axis of the torus may be split between several of the mesh; None where none fit."""
    # Each mesh axis, the last one first, gets the best of all shares of what is left. For X=2,Y=2,Z=4 on 4x4
    # chips Z gets all of x, the only whole axis that fits; Y gets two places of y, next to one another, and X
    # the other factor of y, in steps of the two that Y has.
    used = [1] * len(dims)
    parts: Parts = []

    def preference(share: tuple[int, ...]) -> tuple[int, int, int, tuple[int, ...]]:
        """Most places on whole dimensions, most whole ones, most places on dimensions in use."""
        whole = [part for part, dim in zip(share, dims, strict=True) if part == dim]
        in_use = [part for part, taken in zip(share, used, strict=True) if taken > 1]
        return math.prod(whole), sum(part > 1 for part in whole), math.prod(in_use), share

    for size in reversed(sizes):
        best = max(_shares(dims, used, size), key=preference, default=())
        if math.prod(best) != size or not best:
            return None
        parts.insert(0, [(number, own, used[number]) for number, own in enumerate(best) if own > 1])
        used = [taken * own for taken, own in zip(used, best, strict=True)]
    return parts


def _shares(dims: Sequence[int], used: Sequence[int], size: int) -> Iterator[tuple[int, ...]]:
    """All ways to make a mesh axis of what is left of the dimensions: which give each of its prime
    factors."""
    factors = Counter(_prime_factors(size))
    holders: dict[int, list[int]] = {factor: [] for factor in factors}
    for number, (dim, taken) in enumerate(zip(dims, used, strict=True)):
        for factor in _prime_factors(dim // taken):
            if factor in holders:
                holders[factor].append(number)
    choices = [sorted(set(combinations(holders[factor], many))) for factor, many in factors.items()]
    for choice in product(*choices):
        share = [1] * len(dims)
        for factor, subset in zip(factors, choice, strict=True):
            for number in subset:
                share[number] *= factor
        yield tuple(share)


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
