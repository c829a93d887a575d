"""The time that a machine predicts for a case, and the least that its links and units allow."""

from __future__ import annotations

from shardviz.devices.question import Case
from shardviz.hardware.machine import PlacedMesh
from shardviz.hardware.measured import COLLECTIVES


def predicted_seconds(case: Case, placed: PlacedMesh) -> float | None:
    """Seconds by the machine's formulas, or by what was measured on it; None where it lacks a figure."""
    if not case.is_collective:
        return bound_seconds(case, placed)
    return placed.collective_time(COLLECTIVES[case.op], case.size, case.axes, in_rounds=True).seconds


def bound_seconds(case: Case, placed: PlacedMesh) -> float | None:
    """The seconds that the bytes need, without latency: on the links, or at the bandwidth that was measured
    over them; of a matmul and a copy those of the peak and of the memory, the longer. None where the machine
    lacks a figure."""
    device = placed.machine.device
    if case.is_collective:
        return placed.collective_time(COLLECTIVES[case.op], case.size, case.axes).bandwidth_seconds
    traffic = None
    if device.hbm_bandwidth is not None:
        traffic = case.size * case.bus_factor / device.hbm_bandwidth
    if case.op == "copy":
        return traffic
    peak = device.flops_per_second(case.dtype)
    return None if peak is None else max(case.flops / peak, traffic or 0.0)
