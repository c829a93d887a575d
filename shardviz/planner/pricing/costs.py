"""The cost of a plan on a machine: work, bytes, seconds and memory of every step, and its bound.

A local step takes as long as the longer of its FLOPs over the peak of its dtype and its HBM bytes over HBM's
bandwidth (the roofline model: Williams, Waterman and Patterson 2009), a collective as long as its links need,
or HBM where that is slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.collective_time import CollectiveTime, collective_time
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.planner.plan import (
    HLO_OPS,
    LOCAL_OPS,
    Plan,
    Step,
    axes_words,
    einsum_parts,
)
from shardviz.planner.pricing.local_work import matmul_dtype, statement_flops, statement_traffic
from shardviz.planner.pricing.overlap import Passes, by_pass, is_mostly_sent, overlapped
from shardviz.planner.problem.roles import roles_of
from shardviz.sharding import PartitionSpec, array_bytes, shard_shape

if TYPE_CHECKING:
    from shardviz.planner.alternatives import Alternative
    from shardviz.planner.pricing.thresholds import Threshold
    from shardviz.planner.problem import Phase
    from shardviz.planner.training.memory import TrainingMemory

COMPUTE, HBM, LATENCY, UNKNOWN = "compute", "HBM", "latency", "unknown"
"""Bounds of a step beside the mesh axes of a collective."""
ROOFLINE = "the longer of FLOPs over the peak and HBM bytes over HBM's bandwidth"
IN_PLACE = "read in place by the step that uses it, as XLA fuses it"
COPY = "bytes read and written over HBM's bandwidth"


@dataclass(frozen=True)
class ResidentArray:
    """A device's shard of an array under `spec`, in HBM; `is_argument` where the program is given it so."""

    name: str
    spec: PartitionSpec
    bytes: int
    is_argument: bool


@dataclass(frozen=True)
class PricedStep:
    """One step on one device.

    `flops` counts a multiply-add as two, `hbm_bytes` what is read and written, `wire_bytes` what is sent.
    `seconds` is the longest of `compute_seconds`, `hbm_seconds` and `wire_seconds`; None where a figure that
    it needs is not known. `bound` says which: "compute", "HBM", "latency", the mesh axes and their links
    ("Y on x"), or "unknown". `convention` is a clause on how it is counted. `resident` are all arrays that a
    device holds while the step runs.
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
    resident: tuple[ResidentArray, ...] = ()

    @property
    def live_bytes(self) -> int:
        """Bytes of all arrays that a device holds while the step runs."""
        return sum(each.bytes for each in self.resident)

    @property
    def is_collective(self) -> bool:
        return self.step.op not in LOCAL_OPS


@dataclass(frozen=True)
class PlanCost:
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
        moves (`search.usual_moves`)."""
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
        device = self.machine.device
        return device.hbm_bytes if device.usable_bytes is None else device.usable_bytes

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
        from shardviz.planner.training.memory import training_memory

        return training_memory(self)

    @property
    def seconds_by_phase(self) -> dict[Phase, float]:
        """Seconds of all steps by the part of a train step that they belong to, in order."""
        found: dict[Phase, float] = {}
        for each in self.steps:
            phase = self.phase_of(each)
            found[phase] = found.get(phase, 0.0) + (each.seconds or 0.0)
        return found

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The plans that others would choose, where they are other plans."""
        from shardviz.planner.alternatives import alternatives

        return alternatives(self)

    @cached_property
    def thresholds(self) -> tuple[Threshold, ...]:
        """For each dimension the sizes at which the plan's steps are compute bound."""
        from shardviz.planner.pricing.thresholds import thresholds

        return thresholds(self)


def price(plan: Plan, placed: PlacedMesh) -> PlanCost:
    """The cost of every step of a plan, whose mesh lies on a machine as `placed`."""
    mesh = plan.problem.mesh
    taken = iter(zip(plan.problem.parts, einsum_parts(plan), strict=True))
    bytes_of = _shard_bytes(plan)
    steps = []
    for step, held in zip(plan.steps, _resident(plan, bytes_of), strict=True):
        flops, dtype = 0, ""
        if step.op in ("einsum", "apply"):
            part, (operands, result) = next(taken)
            shapes = [operand.shard_shape(mesh) for operand in operands]
            flops = statement_flops(part, shapes, result.shard_shape(mesh))
            hbm_bytes = statement_traffic(part, shapes, result.shard_shape(mesh))
            dtype = matmul_dtype(part)
        elif step.op == "slice":
            hbm_bytes = 0
        else:
            hbm_bytes = bytes_of(step.array, step.from_spec) + bytes_of(step.array, step.to_spec)
        times = compute_price(flops, hbm_bytes, dtype, placed.machine.device)
        steps.append(_priced(step, flops, hbm_bytes, times, placed, held))
    return PlanCost(plan, placed, tuple(steps))


ShardBytes = Callable[[str, PartitionSpec], int]


def _shard_bytes(plan: Plan) -> ShardBytes:
    """The bytes of a device's shard of an array, by its name, under a spec."""
    arrays = {array.name: array for array in plan.problem.arrays}
    mesh = plan.problem.mesh

    @cache
    def shard_bytes(name: str, spec: PartitionSpec) -> int:
        array = arrays[name]
        return array_bytes(shard_shape(array.shape, spec, mesh), array.dtype)

    return shard_bytes


def compute_price(
    flops: int, hbm_bytes: int, dtype: str, device: DeviceFigures
) -> tuple[float | None, float | None]:
    """Seconds of the arithmetic and of the memory traffic of one device, each None where it is not known.

    `dtype` is that of matrix products; without any ("") no time is counted for arithmetic.
    """
    if not flops or not dtype:
        arithmetic: float | None = 0.0
    else:
        peak = device.flops_per_second(dtype)
        arithmetic = None if peak is None else flops / peak
    traffic = None if device.hbm_bandwidth is None else hbm_bytes / device.hbm_bandwidth
    return arithmetic, traffic


def lacking_words(figures: Sequence[str], machine: Machine) -> str:
    """``no peak in f32 and no HBM bandwidth are given for cpu``; "" without figures."""
    verb = "is" if len(figures) == 1 else "are"
    return f"{' and '.join(figures)} {verb} {machine.lacking} for {machine.chip}" if figures else ""


def collective_price(op: str, size: int, axes: tuple[str, ...], placed: PlacedMesh) -> CollectiveTime:
    """The time of a collective, by JAX's name, over groups along mesh axes; `size` as `Step.bytes` has it."""
    return collective_time(HLO_OPS[op], size, placed.levels_for(op, axes), measured=placed.machine.measured)


def _priced(
    step: Step,
    flops: int,
    hbm_bytes: int,
    times: tuple[float | None, float | None],
    placed: PlacedMesh,
    resident: tuple[ResidentArray, ...],
) -> PricedStep:
    arithmetic, traffic = times
    if step.op in LOCAL_OPS:
        seconds = None if arithmetic is None or traffic is None else max(arithmetic, traffic)
        bound = UNKNOWN
        if arithmetic is not None and traffic is not None:
            bound = COMPUTE if flops and arithmetic >= traffic else HBM
        return PricedStep(
            step,
            flops,
            hbm_bytes,
            0,
            arithmetic,
            traffic,
            None,
            None,
            seconds,
            bound,
            ROOFLINE if flops else IN_PLACE if step.op == "slice" else COPY,
            resident,
        )
    time = collective_price(step.op, step.bytes, step.axes, placed)
    if (traffic or 0.0) > time.seconds:
        bound = HBM
    elif time.bound == LATENCY:
        bound = LATENCY
    else:
        bound = _links(step.axes, time.bound)
    return PricedStep(
        step,
        flops,
        hbm_bytes,
        step.wire_bytes,
        None,
        traffic,
        time.seconds,
        time.textbook_seconds,
        max(time.seconds, traffic or 0.0),
        bound,
        time.convention,
        resident,
    )


def _links(axes: tuple[str, ...], level: str) -> str:
    """``Y on x``; ``Y`` where the links are called after the axis, and "" where nothing is sent."""
    words = axes_words(axes)
    return words if level in ("", " and ".join(axes)) else f"{words} on {level}"


def _resident(plan: Plan, bytes_of: ShardBytes) -> list[tuple[ResidentArray, ...]]:
    """The shards that a device holds at every step.

    Arguments stay from the first step to the last, as under `jax.jit` without donation; what a step makes
    stays until the last step that uses it, what is returned to the end. What an optimizer makes takes the
    place of what it updates, which is donated. A psum puts its totals in the place of the partial sums,
    unless they are an argument or used again, as XLA's all-reduce does.
    """
    last = len(plan.steps) - 1
    spans: list[tuple[ResidentArray, int, int]] = []
    newest: dict[str, int] = {}
    copies: dict[tuple[str, PartitionSpec], int] = {}
    replaced = {new: old for old, new in plan.problem.updates}

    def make(name: str, spec: PartitionSpec, start: int, is_argument: bool = False) -> None:
        newest[name] = copies[name, spec] = len(spans)
        made = ResidentArray(name, spec, bytes_of(name, spec), is_argument)
        spans.append((made, start, last if is_argument else start))

    def use(name: str, spec: PartitionSpec | None, place: int, in_place: bool = False) -> None:
        number = newest[name] if spec is None else copies.get((name, spec), newest[name])
        array, start, stop = spans[number]
        spans[number] = (array, start, max(stop, place - (in_place and not array.is_argument)))

    for array in plan.problem.arguments:
        make(array.name, array.decided_spec, 0, is_argument=True)
    for place, step in enumerate(plan.steps):
        if step.op in ("einsum", "apply"):
            specs = step.operand_specs or (None,) * len(step.operands)
            for name, spec in zip(step.operands, specs, strict=True):
                use(name, spec, place)
        else:
            use(step.array, step.from_spec, place, in_place=step.op in ("psum", "pmax"))
        if step.array in replaced and step.array not in newest:
            number = newest[replaced[step.array]]
            spans[number] = (*spans[number][:2], place - 1)
        make(step.array, step.to_spec, place)
    wanted = {part.result.name: part.result.spec for part in plan.problem.parts}
    for name in plan.problem.results:
        use(name, wanted[name], last)
    return [
        tuple(array for array, start, stop in spans if start <= place <= stop)
        for place in range(len(plan.steps))
    ]
