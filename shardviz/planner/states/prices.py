"""Costs of moves and of local work on a machine, as whole numbers that add up in any order: those of a plan's
steps (`priced_plan`), rounded up to nanoseconds, so that no operation costs more than two that do half of it
each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any

from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.collective_time import CollectiveTime
from shardviz.hardware.machine import LARGE, Machine, PlacedMesh
from shardviz.planner.plan import HLO_OPS, LOCAL_OPS
from shardviz.planner.problem import Objective
from shardviz.planner.states.moves import Axes, remembered, wire_bytes_of

Cost = int
"""A cost, as one number."""
UNREACHABLE: Cost = 1 << 1024
"""More than anything costs."""
_WIDTHS = {"time": 96, "wire_bytes": 80, "collectives": 24, "flops": 96, "local_steps": 24, "first": 80}
"""Bits of each field, in the order in which they decide."""
_BY_BYTES = ("wire_bytes", "collectives", "flops", "time", "local_steps", "first")
"""The order with the objective "bytes"."""


class SearchTooLongError(Exception):
    """A search has looked at more than it may."""


class Prices:
    """The costs of moves and of local work on a mesh as placed on a machine, each found once."""

    def __init__(self, placed: PlacedMesh, objective: Objective = "time") -> None:
        self.placed, self.objective = placed, objective
        self._lacks_links = placed.machine.family.lacks_links
        self._device = placed.machine.device
        order = _BY_BYTES if objective == "bytes" else tuple(_WIDTHS)
        self._shift = {name: sum(_WIDTHS[rest] for rest in order[i + 1 :]) for i, name in enumerate(order)}
        self.looks_left = math.inf
        """The moves and ways to divide work that a search may still look at."""
        self.bounds: dict[object, Any] = {}
        """`Relaxation`s, and the costs that they share, by all that they depend on."""

    def look(self, count: int) -> None:
        """Count what a search looks at. Raises `SearchTooLongError` where that is too much."""
        self.looks_left -= count
        if self.looks_left < 0:
            raise SearchTooLongError

    def move_in_any_order(self, op: str, axes: Axes, before: int, after: int) -> Cost:
        """The least cost of a move over these axes, in any order in which a spec has them."""
        return min(self.move(op, order, before, after) for order in self._orders(axes))

    @remembered
    def _orders(self, axes: Axes) -> tuple[Axes, ...]:
        """The orders that may take different times: several networks are passed in the order of the axes."""
        kinds = [] if self._lacks_links else [level.kind for level in self.placed.group_levels(axes)]
        is_staged = any(kinds.count(kind) > 1 for kind in ("chip", "switch", "network"))
        return tuple(permutations(axes)) if is_staged else (axes,)

    @remembered
    def move(self, op: str, axes: Axes, before: int, after: int) -> Cost:
        """The cost of a move of an array, of which a device holds so many bytes before and after it."""
        time = _nanoseconds(self.move_seconds(op, axes, before, after))
        if op in LOCAL_OPS:
            return self._packed(time=time, local_steps=1)
        size = after if op == "all_gather" else before
        wire = wire_bytes_of(op, size, self.placed.mesh.group_size(axes))
        return self._packed(time=time, wire_bytes=wire, collectives=1)

    def move_seconds(self, op: str, axes: Axes, before: int, after: int) -> float:
        """Seconds of a move, before they are rounded."""
        if op == "slice":
            return 0.0  # read in place by the step that uses it
        _, seconds = compute_price(0, before + after, "", self._device)
        if op in ("mask", "pad"):
            return seconds or 0.0
        size = after if op == "all_gather" else before
        return max(self.collective_seconds(op, axes, size), seconds or 0.0)

    def collective_seconds(self, op: str, axes: Axes, size: int) -> float:
        """Seconds on links, 0 where nobody publishes these; `size` is as in `Step.bytes`."""
        if self._lacks_links:
            return 0.0
        start, latency, per_byte = self.line(op, axes)
        if per_byte is None:
            return collective_price(op, size, axes, self.placed).seconds
        return start + max(latency, per_byte * size)

    @remembered
    def line(self, op: str, axes: Axes) -> tuple[float, float, float | None]:
        """The time of a collective over some axes by its bytes: its start, and the longer of latency and
        seconds per byte; None where it has several lines, as NCCL's ways and what was measured have."""
        time = collective_price(op, LARGE, axes, self.placed)
        levels = self.placed.levels_for(op, axes)
        has_several = self.placed.machine.measured or any(level.nccl for level in levels)
        per_byte = None if has_several else time.bandwidth_seconds / LARGE
        start, latency = time.start_seconds, time.latency_seconds
        if time.seconds > start + time.bandwidth_seconds:  # nothing is sent during the latency
            start, latency = start + latency, 0.0
        return start, latency, per_byte

    @remembered
    def work(self, flops: int, hbm_bytes: int, dtype: str) -> Cost:
        """The cost of local work of a device; `dtype` is that of its matrix products, "" without any."""
        arithmetic, traffic = compute_price(flops, hbm_bytes, self.priced_dtype(dtype), self._device)
        return self._packed(time=_nanoseconds(max(arithmetic or 0.0, traffic or 0.0)), flops=flops)

    @remembered
    def priced_dtype(self, dtype: str) -> str:
        """Its own dtype where its peak is known, else bf16 or the first."""
        known = dict(self._device.peak)
        others = [dtype, "bf16", *known] if dtype else []
        return next((candidate for candidate in others if candidate in known), dtype)

    def of_first(self, moves: Cost) -> Cost:
        """The cost of moving a first operand and not another, as of equal plans it stays in place."""
        return self._packed(first=self.figure(moves, "wire_bytes"))

    def ratio(self, cost: Cost, least: Cost) -> float | None:
        """One cost over another, by what is made small first; None where the other is nothing."""
        shift = max(self._shift.values())
        return None if not least >> shift else (cost >> shift) / (least >> shift)

    def figure(self, cost: Cost, name: str) -> int:
        """One figure of a cost, per device; time is in nanoseconds."""
        return (cost >> self._shift[name]) & ((1 << _WIDTHS[name]) - 1)

    def _packed(self, **fields: int) -> Cost:
        return sum(value << self._shift[name] for name, value in fields.items())


def _nanoseconds(seconds: float) -> int:
    """Rounded up, but for what is too little to be more than an error of the sum."""
    return -(-round(seconds * 10**15) // 10**6)


def compute_price(
    flops: Any, hbm_bytes: Any, dtype: str, device: DeviceFigures
) -> tuple[float | None, float | None]:
    """Seconds of the arithmetic and of the memory traffic of one device, each None where it is not known, or
    of many devices with arrays of FLOPs and bytes; `dtype` is that of matrix products, "" without any, whose
    arithmetic takes no time."""
    if not dtype or (isinstance(flops, int) and not flops):
        return 0.0, device.pass_seconds(hbm_bytes)
    traffic = None if device.hbm_bandwidth is None else hbm_bytes / device.hbm_bandwidth
    return device.matmul_seconds(flops, hbm_bytes, dtype), traffic


def lacking_words(figures: Sequence[str], machine: Machine) -> str:
    """``no peak in f32 and no HBM bandwidth are given for cpu``; "" without figures."""
    verb = "is" if len(figures) == 1 else "are"
    return f"{' and '.join(figures)} {verb} {machine.lacking} for {machine.chip}" if figures else ""


def collective_price(op: str, size: int, axes: tuple[str, ...], placed: PlacedMesh) -> CollectiveTime:
    """The time of a collective, by JAX's name, over groups along mesh axes; `size` as `Step.bytes` has it."""
    return placed.collective_time(HLO_OPS[op], size, axes)
