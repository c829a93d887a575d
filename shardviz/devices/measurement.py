"""A row of what was measured, with the columns of nccl-tests."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Literal

from shardviz.devices.question import Case

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
