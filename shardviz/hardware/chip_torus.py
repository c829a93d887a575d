"""Slices of TPUs: chips on a torus, of one device or several, and the network that joins slices."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Self

from shardviz.errors import plural, quote
from shardviz.hardware.chips import DCN_LATENCY, ICI_HOP, MAX_DEVICES, TPUS
from shardviz.hardware.family import FileFamily, Parts
from shardviz.hardware.links import LINK_KEYS, Dimension, LevelKind, LinkSpec
from shardviz.hardware.placement import AXES
from shardviz.hardware.quantities import BANDWIDTH, LATENCY, count, figure
from shardviz.hardware.torus_order import order_on_torus, parts_by_slice, parts_on_torus
from shardviz.strict_table import StrictTable


@dataclass(frozen=True)
class ChipTorus(FileFamily):
    """Equal slices, each a torus of chips, of one device or several."""

    table: ClassVar[str] = "torus"
    words: ClassVar[str] = "a torus"
    network_hop: ClassVar[float] = DCN_LATENCY
    keys: ClassVar[tuple[str, ...]] = ("shape", "wrap", "slices", "devices_per_chip", *LINK_KEYS)

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
        """Slices of the sizes `shape` in chips, whose axes close to rings where `wrap` says so, over links of
        `axis_links`, one for each; `core_link` joins two devices of one chip, and `network` is what one
        device has of the network between slices.
        """
        strides = [devices_per_chip * math.prod(shape[:number]) for number in range(len(shape) + 1)]
        kinds: list[LevelKind] = ["ring" if closes else "line" for closes in wrap]
        along = zip(AXES, shape, strides, kinds, axis_links, AXES, strict=False)
        core = Dimension("core", devices_per_chip, 1, "chip", core_link, "core")
        across = Dimension("slice", slices, strides[-1], "network", network, "DCN")
        return cls(chip, (*(Dimension(*axis) for axis in along), core, across))

    def size_words(self) -> str:
        shape = "×".join(map(str, self.torus_sizes))
        slices = f"{self.slices} slices of {shape}" if self.slices > 1 else shape
        cores = self.devices_per_chip
        devices = f", {self.devices:,} devices, {cores} a chip" if cores > 1 else ""
        return f"{plural(self.devices // cores, f'{self.chip} chip')}, {slices}{devices}"

    @classmethod
    def read(cls, table: StrictTable, before: Self | None, chip: str) -> Self:
        table.only(cls.keys)
        shape = _shape(table) if "shape" in table or before is None else before.torus_sizes
        rank = len(shape)
        known = TPUS.get(chip)
        wrap = known.wrap(shape) if known is not None and known.rank == rank else (False,) * rank
        cores = slices = 1
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
        wrap = _wrap(table, rank) if "wrap" in table else wrap
        axis_links = _axis_links(table, rank, axis_links)
        return cls.of(chip, shape, wrap, axis_links, cores, slices, links.get("chip"), links.get("network"))

    def toml(self) -> list[str]:
        axis_links = [axis.link for axis in self.torus if axis.link is not None]
        return [
            f'shape = "{"x".join(map(str, self.torus_sizes))}"',
            f"wrap = [{', '.join(str(axis.kind == 'ring').lower() for axis in self.torus)}]",
            f"slices = {self.slices}",
            f"devices_per_chip = {self.devices_per_chip}",
            f"bandwidth = [{', '.join(BANDWIDTH.toml(link.bandwidth) for link in axis_links)}]",
            f"latency = [{', '.join(LATENCY.toml(link.latency) for link in axis_links)}]",
        ]

    def jax_order(self, sizes: Sequence[int]) -> Parts | tuple[int, ...] | None:
        within, across = parts_by_slice(sizes, self.slices)
        if math.prod(across) != self.slices:
            return None
        shape = self.torus_sizes
        order = order_on_torus(self.chip, shape, within)
        if order is None:
            parts = parts_on_torus(self.chip, shape, self.devices_per_chip, within)
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


def _axis_links(table: StrictTable, rank: int, before: Sequence[LinkSpec]) -> list[LinkSpec]:
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
    return [LinkSpec(latency, bandwidth) for bandwidth, latency in zip(*columns, strict=True)]
