"""A row of what was measured, with the columns of nccl-tests, and the time that a machine predicts for it."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shardviz.devices.question import Case
from shardviz.hardware.measured import COLLECTIVES

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh

Clock = Literal["wall", "device"]


@dataclass(frozen=True)
class Measurement:
    """The seconds of each run of a case, by the `clock` of the device, from its profile, or by the wall's.
    `wrong` are the elements of all devices that are not the exact result, None where rounding leaves nothing
    exact to compare. `note` says what the compiler made of it that was not asked for, and `device` what JAX
    calls the devices."""

    case: Case
    seconds: tuple[float, ...]
    clock: Clock = "wall"
    wrong: int | None = None
    note: str = ""
    device: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def most(self) -> float:
        return max(self.seconds)

    @property
    def noise(self) -> float | None:
        """The middle half of the runs, from its fastest to its slowest, over the median; None of one run."""
        if len(self.seconds) < 2:
            return None
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / self.median

    @property
    def algorithm_bandwidth(self) -> float:
        """nccl-tests' algbw: size over time, in bytes a second."""
        return self.case.size / self.median

    @property
    def bus_bandwidth(self) -> float:
        """nccl-tests' busbw, in bytes a second; see `Case.bus_factor`."""
        return self.algorithm_bandwidth * self.case.bus_factor

    @property
    def flops_per_second(self) -> float | None:
        """Of a matmul, on each device."""
        return self.case.flops / self.median if self.case.flops else None


@dataclass(frozen=True)
class NoMeasurement:
    """A case that does not fit into the memory of the devices; the reason is a sentence."""

    case: Case
    reason: str


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
