"""The cost of a plan on a machine: work, bytes, seconds and memory of every step, and its bound."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.hardware.machine import Machine
from shardviz.planner.plan import Plan, Step


@dataclass(frozen=True)
class PricedStep:
    """One step on one device.

    `flops` counts a multiply-add as two, `hbm_bytes` what is read and written, `wire_bytes` what is sent.
    `seconds` is the longest of `compute_seconds`, `hbm_seconds` and `wire_seconds`; None where a figure that
    it needs is not known. `bound` says which: "compute", "HBM", "latency", or the mesh axes and their links
    ("Y on x"). `convention` is a clause on how it is counted. `live_bytes` are all arrays that a device holds
    while the step runs.
    """

    step: Step
    flops: int
    hbm_bytes: int
    wire_bytes: int
    compute_seconds: float | None
    hbm_seconds: float | None
    wire_seconds: float | None
    textbook_seconds: float | None
    seconds: float | None
    bound: str
    convention: str
    live_bytes: int


@dataclass(frozen=True)
class Threshold:
    """The size of a dimension from which on a plan is compute bound: "compute bound above b = 12,240"."""

    dim: str
    size: int


@dataclass(frozen=True)
class PlanCost:
    """All steps of a plan, and their sums.

    `serial_seconds` is the sum of all steps and `overlapped_seconds` the longer of all compute and all
    communication; the truth lies between. Both leave out steps without `seconds`, which `unknown` names.
    """

    plan: Plan
    machine: Machine
    steps: tuple[PricedStep, ...]
    thresholds: tuple[Threshold, ...] = ()

    @property
    def unknown(self) -> tuple[PricedStep, ...]:
        return tuple(each for each in self.steps if each.seconds is None)
