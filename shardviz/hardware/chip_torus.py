"""Slices of TPUs: chips on a torus, of one device or several, and the network that joins slices."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar, Self

from shardviz.errors import plural, quote
from shardviz.hardware.chips import DCN_LATENCY, ICI_HOP, MAX_DEVICES, TPUS
from shardviz.hardware.family import FileFamily, Parts
from shardviz.hardware.levels import Dimension, LevelKind, LinkLevel
from shardviz.hardware.links import LINK_KEYS, LinkSpec
from shardviz.hardware.placement import AXES
from shardviz.hardware.quantities import BANDWIDTH, LATENCY, count, figure, rate_text, time_text
from shardviz.hardware.torus_order import order_on_torus, parts_by_slice, parts_on_torus
from shardviz.strict_table import StrictTable


@dataclass(frozen=True)
class ChipTorus(FileFamily):
    """Equal slices, each a torus of the sizes `shape` in chips.

    Its axes close to rings where `wrap` says so, over links of `axis_links`, one for each axis; `core_link`
    joins two devices of one chip, and `network` is what one device has of the network between slices.
    """

    shape: tuple[int, ...]
    wrap: tuple[bool, ...]
    axis_links: tuple[LinkSpec, ...]
    devices_per_chip: int = 1
    slices: int = 1
    core_link: LinkSpec | None = None
    network: LinkSpec | None = None

    table: ClassVar[str] = "torus"
    words: ClassVar[str] = "a torus"
    network_hop: ClassVar[float] = DCN_LATENCY
    keys: ClassVar[tuple[str, ...]] = ("shape", "wrap", "slices", "devices_per_chip", *LINK_KEYS)

    @property
    def devices(self) -> int:
        return math.prod(self.shape) * self.devices_per_chip * self.slices

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        cores = self.devices_per_chip
        strides = [cores * math.prod(self.shape[:number]) for number in range(len(self.shape) + 1)]
        kinds: list[LevelKind] = ["ring" if wrap else "line" for wrap in self.wrap]
        along = zip(AXES, self.shape, strides, kinds, self.axis_links, AXES, strict=False)
        return (
            *(Dimension(*axis) for axis in along),
            Dimension("core", cores, 1, "chip", self.core_link, "core"),
            Dimension("slice", self.slices, strides[-1], "network", self.network, "DCN"),
        )

    @property
    def links(self) -> Mapping[str, LinkSpec]:
        others = {"chip": self.core_link, "network": self.network}
        known = {name: link for name, link in others.items() if link is not None}
        return dict(zip(AXES, self.axis_links, strict=False)) | known

    def with_links(self, links: Mapping[str, LinkSpec]) -> Self:
        return replace(
            self,
            axis_links=tuple(links[axis] for axis, _ in zip(AXES, self.axis_links, strict=False)),
            core_link=links.get("chip"),
            network=links.get("network"),
        )

    def size_words(self) -> str:
        shape = "×".join(map(str, self.shape))
        slices = f"{self.slices} slices of {shape}" if self.slices > 1 else shape
        cores = self.devices_per_chip
        devices = f", {self.devices:,} devices, {cores} a chip" if cores > 1 else ""
        return f"{plural(self.devices // cores, f'{self.chip} chip')}, {slices}{devices}"

    # In a machine's file.

    @classmethod
    def read(cls, table: StrictTable, before: Self | None, chip: str) -> Self:
        table.only(cls.keys)
        shape = _shape(table) if "shape" in table or before is None else before.shape
        rank = len(shape)
        known = TPUS.get(chip)
        wrap = known.wrap(shape) if known is not None and known.rank == rank else (False,) * rank
        links = () if before is None else before.axis_links[:1] * rank
        if before is not None and before.shape == shape:
            wrap, links = before.wrap, before.axis_links
        usual = before or cls(chip, shape, wrap, links)
        return replace(
            usual,
            chip=chip,
            shape=shape,
            devices_per_chip=count(table, "devices_per_chip", usual.devices_per_chip, MAX_DEVICES),
            slices=count(table, "slices", usual.slices, MAX_DEVICES),
            wrap=_wrap(table, rank) if "wrap" in table else wrap,
            axis_links=_axis_links(table, rank, links),
        )

    def toml(self) -> list[str]:
        return [
            f'shape = "{"x".join(map(str, self.shape))}"',
            f"wrap = [{', '.join(str(one).lower() for one in self.wrap)}]",
            f"slices = {self.slices}",
            f"devices_per_chip = {self.devices_per_chip}",
            f"bandwidth = [{', '.join(rate_text(link.bandwidth) for link in self.axis_links)}]",
            f"latency = [{', '.join(time_text(link.latency) for link in self.axis_links)}]",
        ]

    # The places of a mesh's devices.

    def jax_order(self, sizes: Sequence[int]) -> Parts | tuple[int, ...] | None:
        within, across = parts_by_slice(sizes, self.slices)
        if math.prod(across) != self.slices:
            return None
        order = order_on_torus(self.chip, self.shape, within)
        if order is None:
            parts = parts_on_torus(self.chip, self.shape, self.devices_per_chip, within)
            if parts is None:
                return None
        else:
            # Ids rise on larger slices of v2 and v3.
            is_rising = order == tuple(range(len(order)))
            parts = self.parts_by_id(self.by_id[:-1], within) if is_rising else None
            if parts is None:
                return _over_slices(order, within, across)
        step = 1
        for axis in reversed(range(len(sizes))):
            if across[axis] > 1:
                parts[axis].insert(0, (len(self.dimensions) - 1, across[axis], step))
                step *= across[axis]
        return parts

    # The links of a group.

    def shared_by_cores(self, levels: tuple[LinkLevel, ...]) -> tuple[LinkLevel, ...]:
        cores = self.devices_per_chip
        if cores == 1 or any(level.kind == "chip" for level in levels):
            return levels
        return tuple(
            replace(level, spec=replace(level.spec, bandwidth=level.spec.bandwidth / cores))
            if level.is_torus
            else level
            for level in levels
        )


def _over_slices(order: Sequence[int], within: Sequence[int], across: Sequence[int]) -> tuple[int, ...]:
    """The ids by mesh position where each slice has the `order`."""
    ids = []
    for position in product(*(range(inner * outer) for inner, outer in zip(within, across, strict=True))):
        in_slice = slice_ = 0
        for place, inner, outer in zip(position, within, across, strict=True):
            in_slice, slice_ = in_slice * inner + place % inner, slice_ * outer + place // inner
        ids.append(slice_ * len(order) + order[in_slice])
    return tuple(ids)


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


def _wrap(table: StrictTable, rank: int) -> tuple[bool, ...]:
    value = table.values["wrap"]
    values = [value] * rank if isinstance(value, bool) else value
    if not isinstance(values, list) or len(values) != rank or not all(type(one) is bool for one in values):
        table.fail("wrap", f"{quote(str(value), 30)} is not one truth value for each axis",
                   f"write true, false, or [{', '.join(['true'] * rank)}]")  # fmt: skip
    return tuple(values)


def _axis_links(table: StrictTable, rank: int, before: tuple[LinkSpec, ...]) -> tuple[LinkSpec, ...]:
    """The link of each axis: one bandwidth and latency for all, or a list of them."""
    usual = {"bandwidth": [link.bandwidth for link in before], "latency": [link.latency for link in before]}
    columns = []
    for key, quantity in (("bandwidth", BANDWIDTH), ("latency", LATENCY)):
        if isinstance(table.values.get(key), list):
            own = table.listed(key, rank)
            if len(own.values) != rank:
                many = plural(len(own.values), "value")
                table.fail(key, f"it has {many}", f"give one, or {rank}, one for each axis")
            columns.append([figure(own, number, quantity) for number in own.values])
        elif key in table or (key == "bandwidth" and not before):
            columns.append([figure(table, key, quantity)] * rank)
        else:
            columns.append(usual[key] or [ICI_HOP] * rank)
    return tuple(LinkSpec(latency, bandwidth) for bandwidth, latency in zip(*columns, strict=True))
