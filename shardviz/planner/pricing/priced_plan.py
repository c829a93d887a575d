"""The cost of a plan on a machine: the sums of its steps, what bounds it, and what a device holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.planner.plan import Plan
from shardviz.planner.pricing.overlap import Passes, by_pass, is_mostly_sent, overlapped
from shardviz.planner.pricing.priced_steps import UNKNOWN, PricedStep, priced_steps
from shardviz.planner.pricing.training_memory import TrainingMemory, training_memory
from shardviz.planner.problem import Phase
from shardviz.planner.problem.roles import roles_of
from shardviz.planner.states.prices import lacking_words, memory_limit


@dataclass(frozen=True)
class PricedPlan:
    """All steps of a plan, and their sums.

    `serial_seconds` is the sum of all steps and `overlapped_seconds` the longer of compute and communication,
    in a train step of each pass (`overlap`); the truth lies between. Of `step_seconds` only the communication
    of parameters and their gradients overlaps, as a search has it. All leave out steps without `seconds`,
    which `unknown` names.
    Where the program runs several times these are figures of one layer; those of all begin with `layers`.
    """

    plan: Plan
    placed: PlacedMesh
    steps: tuple[PricedStep, ...]

    @property
    def machine(self) -> Machine:
        return self.placed.machine

    @property
    def unknown(self) -> tuple[PricedStep, ...]:
        """The steps whose time is not known."""
        return tuple(each for each in self.steps if each.seconds is None)

    @property
    def missing_figure(self) -> str:
        """Why the time of a step is not known: ``no peak in f32 is published for v5e``; "" where all are."""
        unpriced = (each.step.dtype for each in self.unknown if each.compute_seconds is None)
        figures = [f"no peak in {dtype}" for dtype in dict.fromkeys(unpriced)][:1]
        if any(each.hbm_seconds is None for each in self.unknown):
            figures.append("no HBM bandwidth")
        return lacking_words(figures, self.machine)

    @property
    def assumes(self) -> str:
        """The assumptions of its seconds, in a sentence; "" where nothing is sent. A search prices other
        moves (`search.direct_prices`)."""
        if not self.plan.collectives:
            return ""
        return (
            "These times assume that the compiler inserts the collectives of this plan and reads slices in "
            "place; XLA may insert others."
        )

    @property
    def compute_seconds(self) -> float:
        """Seconds of the local steps."""
        return math.fsum(each.seconds or 0.0 for each in self.steps if not each.is_collective)

    @property
    def communication_seconds(self) -> float:
        """Seconds of the collectives."""
        return math.fsum(each.seconds or 0.0 for each in self.steps if each.is_collective)

    @property
    def communication_by_axes(self) -> dict[tuple[str, ...], float]:
        """Seconds of the collectives by the mesh axes of their groups, in the order of the steps."""
        found: dict[tuple[str, ...], float] = {}
        for each in self.steps:
            if each.is_collective:
                found[each.step.axes] = found.get(each.step.axes, 0.0) + (each.seconds or 0.0)
        return found

    @property
    def serial_seconds(self) -> float:
        return self.compute_seconds + self.communication_seconds

    @property
    def overlapped_seconds(self) -> float:
        return overlapped(*self._work_and_sent)

    @property
    def _work_and_sent(self) -> tuple[Passes, Passes]:
        return self._by_pass(is_sent=False), self._by_pass(is_sent=True)

    @cached_property
    def step_seconds(self) -> float:
        roles = roles_of(self.plan.problem)
        work, sent = self._work_and_sent
        hidden = by_pass(
            (self.phase_of(each), each.seconds or 0.0)
            for each in self.steps
            if each.is_collective and roles.is_hideable(each.step.array, self.phase_of(each))
        )
        return overlapped(work, hidden) + sum(sent) - sum(hidden)

    def _by_pass(self, is_sent: bool) -> Passes:
        own = (each for each in self.steps if each.is_collective is is_sent)
        return by_pass((self.phase_of(each), each.seconds or 0.0) for each in own)

    def phase_of(self, step: PricedStep) -> Phase:
        return self.plan.problem.parts[step.step.part].phase

    @property
    def bound(self) -> str:
        """The bound of the longest step of the longer side; "unknown" where that cannot be said."""
        if self.unknown:
            return UNKNOWN
        collective = is_mostly_sent(*self._work_and_sent)
        longer = [each for each in self.steps if each.is_collective == collective]
        return max(longer, key=lambda each: each.seconds or 0.0).bound if longer else ""

    @property
    def flops(self) -> int:
        return sum(each.flops for each in self.steps)

    @property
    def hbm_bytes(self) -> int:
        return sum(each.hbm_bytes for each in self.steps)

    @property
    def wire_bytes(self) -> int:
        return sum(each.wire_bytes for each in self.steps)

    @property
    def flops_per_hbm_byte(self) -> float | None:
        """Arithmetic intensity of the local steps; None where they read and write nothing."""
        moved = sum(each.hbm_bytes for each in self.steps if not each.is_collective)
        return self.flops / moved if moved else None

    @property
    def flops_per_wire_byte(self) -> float | None:
        """Arithmetic intensity towards the links; None where nothing is sent."""
        return self.flops / self.wire_bytes if self.wire_bytes else None

    @property
    def peak_flops(self) -> float | None:
        """FLOP/s of a device in the problem's dtype; None where that is not known."""
        return self.machine.device.flops_per_second(self.plan.problem.forward[-1].result.dtype)

    @property
    def serial_utilisation(self) -> float | None:
        """FLOPs over peak and `serial_seconds`; None where the time of a step is not known."""
        return self._utilisation(self.serial_seconds)

    @property
    def overlapped_utilisation(self) -> float | None:
        """FLOPs over peak and `overlapped_seconds`; None where the time of a step is not known."""
        return self._utilisation(self.overlapped_seconds)

    def _utilisation(self, seconds: float) -> float | None:
        if self.unknown or self.peak_flops is None or not seconds:
            return None
        return self.flops / (self.peak_flops * seconds)

    @property
    def peak_step(self) -> PricedStep:
        """The first step at which a device holds the most."""
        return max(self.steps, key=lambda each: each.live_bytes)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that a device holds at once."""
        return self.peak_step.live_bytes

    @property
    def limit_bytes(self) -> int | None:
        """The bytes of HBM that a program may use; None where they are not known."""
        return memory_limit(self.machine)

    @property
    def layers(self) -> int:
        """The number of runs of the steps, one after the other."""
        return self.plan.problem.layers

    @property
    def layers_seconds(self) -> float:
        """The serial seconds of all layers."""
        return self.serial_seconds * self.layers

    @property
    def layers_peak_bytes(self) -> int:
        """The most bytes that a device holds at once while all layers run, the arguments of each included."""
        if self.training_memory is not None:
            return self.training_memory.peak
        own = self.plan.problem.own_arguments
        held = {array.name: array.bytes for array in self.steps[0].resident if array.is_argument}
        return self.peak_bytes + (self.layers - 1) * sum(size for name, size in held.items() if name in own)

    @property
    def over_bytes(self) -> int:
        """By how much the plan does not fit; 0 where it does, or where the limit is not known."""
        return 0 if self.limit_bytes is None else max(0, self.layers_peak_bytes - self.limit_bytes)

    @cached_property
    def training_memory(self) -> TrainingMemory | None:
        """The memory of a train step by what it is for; None for a forward pass."""
        if self.plan.problem.training is None:
            return None
        return training_memory(self.plan.problem, self.steps)

    @property
    def seconds_by_phase(self) -> dict[Phase, float]:
        """Seconds of all steps by the part of a train step that they belong to, in order."""
        found: dict[Phase, float] = {}
        for each in self.steps:
            phase = self.phase_of(each)
            found[phase] = found.get(phase, 0.0) + (each.seconds or 0.0)
        return found


def priced_plan(plan: Plan, placed: PlacedMesh) -> PricedPlan:
    """The cost of a plan, whose mesh lies on a machine as `placed`."""
    return PricedPlan(plan, placed, priced_steps(plan, placed))
