"""The cost of a plan on a machine: its steps and their sums, what bounds them, and what a device holds.

A local step takes as long as the longer of its arithmetic and its HBM bytes over HBM's bandwidth, a
collective as its links need, or HBM where that is slower. Arithmetic takes FLOPs over the peak of its dtype
(the roofline: Williams, Waterman and Patterson 2009), or what was measured (`hardware.gpu_times`). Work hides
the communication of its own pass alone: none of the forward pass hides the sum of a gradient, which the
backward pass makes ("How to Scale Your Model", part 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, pairwise
from typing import TypeVar

from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.links import UnpublishedLinkError
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.planner.plan import LOCAL_OPS, Copy, Plan, PlanCopies, Step, axes_words, einsum_parts
from shardviz.planner.problem import Phase
from shardviz.planner.problem.functions import local_work
from shardviz.planner.problem.roles import roles_of
from shardviz.planner.states.prices import collective_price, compute_price, lacking_words
from shardviz.sharding import PartitionSpec
from shardviz.units import seconds as human_seconds

COMPUTE, HBM, LATENCY, UNKNOWN = "compute", "HBM", "latency", "unknown"
"""Bounds of a step beside the mesh axes of a collective."""
IN_PLACE = "read in place by the step that uses it, as XLA fuses it"
ALL_OF_HBM = "nothing reaches all of HBM's bandwidth"
ALIKE = 0.005
"""Times that differ by a smaller part are the same to a reader."""
ROUNDING = 1e-9
"""The part by which two times that are equal may differ."""
K = TypeVar("K")
Passes = tuple[float, float]
"""Seconds in the forward pass, and in what follows it: recomputation, the backward pass, the optimizer."""


def by_pass(times: Iterable[tuple[Phase, float]]) -> Passes:
    """The sums of seconds by the pass that their phase belongs to."""
    every = tuple(times)
    return (
        math.fsum(seconds for phase, seconds in every if phase == "forward"),
        math.fsum(seconds for phase, seconds in every if phase != "forward"),
    )


def sums_of(pairs: Iterable[tuple[K, float]]) -> dict[K, float]:
    """The sums of the seconds of each key, in the order in which the keys come first."""
    sums: dict[K, float] = {}
    for key, seconds in pairs:
        sums[key] = sums.get(key, 0.0) + seconds
    return sums


def overlapped(work: Passes, hidden: Passes) -> float:
    """Seconds of both passes, each as long as the longer of its work and of the communication beside it."""
    return sum(map(max, work, hidden))


def published_step(work: Passes, sent: Passes, share: float) -> float:
    """Seconds of a train step as published runs go: the work of each pass reaches this `share` of the speed
    at peak, and hides communication, which takes no longer for it."""
    return overlapped((work[0] / share, work[1] / share), sent)


def overtaking(times: Sequence[tuple[float, float]]) -> list[int]:
    """The rows, from 1, slower than the row above by the first of two estimates and faster by the second."""
    return [
        row
        for row, ((above, other), (own, second)) in enumerate(pairwise(times), 2)
        if own > above * (1 + ALIKE) and second < other * (1 - ALIKE)
    ]


def is_mostly_sent(work: Passes, hidden: Passes, waited: Passes = (0.0, 0.0)) -> bool:
    """Return whether communication is what takes longer: what nothing hides, and that of the passes in which
    it outlasts the work beside it, against the work of the others."""
    sent, local = sum(waited), 0.0
    for own, beside in zip(work, hidden, strict=True):
        if beside and beside >= own * (1 - ROUNDING):
            sent += beside
        else:
            local += own
    return sent > 0 and sent >= local * (1 - ROUNDING)


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

    `flops` counts a multiply-add as two. `seconds` is the longest of `compute_seconds`, `hbm_seconds` and
    `wire_seconds`; `textbook_seconds` takes peak and links as published. `bound` says what is longest:
    "compute" or "HBM" at the peak, "latency" where a start is longer, mesh axes and their links ("Y on x"),
    or "unknown" where a figure is missing: then `seconds` is a lower bound, None where nothing is known.
    `convention` is a clause on how it is counted, `optimistic` one on why it may take longer, "" of what was
    measured. `resident` are all arrays that a device holds while the step runs."""

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
    optimistic: str
    resident: tuple[ResidentArray, ...] = ()

    @property
    def live_bytes(self) -> int:
        """Bytes of all arrays that a device holds while the step runs."""
        return sum(array.bytes for array in self.resident)

    @property
    def is_collective(self) -> bool:
        return self.step.op not in LOCAL_OPS


def _priced(
    step: Step, work: tuple[int, int, str], placed: PlacedMesh, resident: tuple[ResidentArray, ...]
) -> PricedStep:
    """A step with its cost, by its `local_work`."""
    (flops, hbm_bytes, dtype), device = work, placed.machine.device
    arithmetic, traffic = compute_price(flops, hbm_bytes, dtype, device)
    sizes = (step, flops, hbm_bytes, step.wire_bytes)
    if step.op in LOCAL_OPS:
        seconds, textbook, bound = arithmetic or traffic or None, None, UNKNOWN
        how = IN_PLACE if step.op == "slice" else "bytes read and written / HBM bandwidth"
        if flops:
            how = "the longer of FLOPs over the peak and HBM bytes over HBM's bandwidth"
        if arithmetic is not None and traffic is not None:
            least = hbm_bytes / (device.hbm_bandwidth or math.inf)
            textbook = max(flops / (device.flops_per_second(dtype) or math.inf), least)
            seconds, bound = max(arithmetic, traffic), local_bound(flops, hbm_bytes, dtype, device)
            if least < traffic:
                how = f"{how}, after {human_seconds(traffic - least)} to launch its kernel"
            if flops and (measured := device.matmul_time(dtype)):
                how = f"{measured.words}; {human_seconds(textbook)} by the roofline"
        told = bound, how, optimistic(bound, dtype, device) if seconds else ""
        return PricedStep(*sizes, arithmetic, traffic, None, textbook, seconds, *told, resident)
    try:
        time = collective_price(step.op, step.bytes, step.axes, placed)
    except UnpublishedLinkError as error:
        return PricedStep(*sizes, None, traffic, *(None,) * 3, UNKNOWN, error.message, "", resident)
    seconds = max(time.seconds, traffic or 0.0)
    bound, why = time.bound, time.optimistic
    if seconds > time.seconds:
        bound, why = HBM, ALL_OF_HBM
    elif step.op == "ppermute" and any(level.is_torus for level in placed.group_levels(step.axes)):
        why = ", ".join(filter(None, (why, "blocks may go farther than to the neighbours")))
    if bound not in (HBM, LATENCY):
        # Links that are called after the axes need no other name; nothing is sent where they have none.
        words = axes_words(step.axes)
        bound = words if bound in ("", " and ".join(step.axes)) else f"{words} on {bound}"
    own = (traffic, time.seconds, time.textbook_seconds, seconds)
    return PricedStep(*sizes, None, *own, bound, time.convention, why, resident)


def local_bound(flops: float, hbm_bytes: float, dtype: str, device: DeviceFigures) -> str:
    """The bound of local work by the roofline; latency where a matmul's measured start or a kernel's launch
    takes longer, and HBM where no peak or no bandwidth is known."""
    peak, bandwidth = device.flops_per_second(dtype) if flops else None, device.hbm_bandwidth
    if not dtype and bandwidth and 0 < hbm_bytes / bandwidth < (device.launch or 0.0):
        return LATENCY
    if not peak or not bandwidth:
        return HBM
    at_peak, traffic = flops / peak, hbm_bytes / bandwidth
    bound, measured = COMPUTE if at_peak >= traffic else HBM, device.matmul_time(dtype)
    return measured.bound(max(at_peak, traffic), bound) if measured else bound


def optimistic(bound: str, dtype: str, device: DeviceFigures) -> str:
    """Why local work so bound may take longer; "" of what was measured."""
    if bound != HBM and device.matmul_time(dtype) is not None:
        return ""
    matmul, launch = "no matmul reaches the peak", "kernels may take longer to launch"
    return {HBM: ALL_OF_HBM, COMPUTE: matmul, LATENCY: launch}.get(bound, "")


def _resident(plan: Plan, bytes_of: Callable[[str, PartitionSpec], int]) -> list[tuple[ResidentArray, ...]]:
    """The shards that a device holds at every step: arguments and what is returned to the end, as under
    `jax.jit` without donation, what a step makes until its last use. An optimizer's results take the place of
    what they update, totals that of partial sums not used again, as in XLA's all-reduce."""
    copies, last = PlanCopies(plan), len(plan.steps) - 1
    spans: list[tuple[ResidentArray, int, int]] = []
    newest: dict[str, int] = {}
    numbers: dict[Copy, int] = {}
    replaced = {new: old for old, new in plan.problem.updates}

    def make(copy: Copy, spec: PartitionSpec, start: int, is_argument: bool = False) -> None:
        name = copy[0]
        newest[name] = numbers[copy] = len(spans)
        made = ResidentArray(name, spec, bytes_of(name, spec), is_argument)
        spans.append((made, start, last if is_argument else start))

    def use(taken: Iterable[Copy], index: int, in_place: bool = False) -> None:
        for copy in taken:
            number = numbers.get(copy, newest[copy[0]])
            array, start, stop = spans[number]
            spans[number] = (array, start, max(stop, index - (in_place and not array.is_argument)))

    for array, copy in zip(plan.problem.arguments, copies.given, strict=True):
        make(copy, array.decided_spec, 0, is_argument=True)
    for index, step in enumerate(plan.steps):
        use(copies.taken[index], index, in_place=step.op in ("psum", "pmax"))
        if step.array in replaced and step.array not in newest:
            number = newest[replaced[step.array]]
            spans[number] = (*spans[number][:2], index - 1)
        if not step.is_beside:
            make(copies.made[index], step.to_spec, index)
    use(copies.taken[-1], last)
    return [tuple(one for one, start, stop in spans if start <= index <= stop) for index in range(last + 1)]


@dataclass(frozen=True)
class TrainingMemory:
    """Bytes of a device in a train step of all layers. `gradients` are those of the parameters: of one layer
    the most that is held at once, of the others as they stay. `activations` are what the backward pass takes
    from the forward pass, with each layer's input. `peak` is the most at once, where all layers run forward,
    then backward, then are updated in place."""

    parameters: int
    gradients: int
    optimizer: int
    activations: int
    peak: int


@dataclass(frozen=True)
class PricedPlan:
    """All steps of a plan, whose mesh lies on a machine as `placed`, and their sums, of one layer; those of
    all layers begin with `layers`.

    `serial_seconds` is the sum of all steps and `overlapped_seconds` the longer of compute and communication,
    in a train step of each pass; the truth lies between. Of `step_seconds` only the communication of
    parameters and their gradients overlaps, as in a search. With steps in `unknown` all are lower bounds."""

    plan: Plan
    placed: PlacedMesh

    @cached_property
    def steps(self) -> tuple[PricedStep, ...]:
        plan, placed, mesh = self.plan, self.placed, self.plan.problem.mesh
        taken = iter(zip(plan.problem.parts, einsum_parts(plan), strict=True))
        arrays = {array.name: array for array in plan.problem.arrays}
        bytes_of = cache(lambda name, spec: arrays[name].with_spec(spec).bytes_per_device(mesh))
        steps = []
        for step, held in zip(plan.steps, _resident(plan, bytes_of), strict=True):
            work = (0, 0, "")
            if step.op in ("einsum", "apply"):
                part, (operands, result) = next(taken)
                shapes = [operand.shard_shape(mesh) for operand in operands]
                work = local_work(part, shapes, result.shard_shape(mesh))
            elif step.is_beside:
                work = (0, 2 * step.bytes, "")
            elif step.op != "slice":
                ends = (bytes_of(step.array, spec) for spec in (step.from_spec, step.to_spec))
                work = (0, sum(ends), "")
            steps.append(_priced(step, work, placed, held))
        return tuple(steps)

    @property
    def machine(self) -> Machine:
        return self.placed.machine

    @property
    def unknown(self) -> tuple[PricedStep, ...]:
        """The steps of which a figure is missing, so that their time is known in part or not at all."""
        return tuple(step for step in self.steps if step.bound == UNKNOWN)

    @property
    def missing_figure(self) -> str:
        """Why the time of a step is not known: ``no peak in f32 is published for v5e``; "" where all are."""
        local = [step for step in self.unknown if not step.is_collective]
        unpriced = (step.step.dtype for step in local if step.compute_seconds is None)
        figures = [f"no peak in {dtype}" for dtype in dict.fromkeys(unpriced)][:1]
        if len(local) < len(self.unknown):
            figures.append(f"no bandwidth of {self.machine.family.link_name}")
        if any(step.hbm_seconds is None for step in self.unknown):
            figures.append("no HBM bandwidth")
        return lacking_words(figures, self.machine)

    @property
    def assumes(self) -> str:
        """The assumptions of its seconds, in a sentence; "" where nothing is sent."""
        if not self.plan.collectives:
            return ""
        return (
            "These times assume that the compiler inserts the collectives of this plan and reads slices in "
            "place; XLA may insert others."
        )

    @property
    def compute_seconds(self) -> float:
        return math.fsum(step.seconds or 0.0 for step in self.steps if not step.is_collective)

    @property
    def communication_seconds(self) -> float:
        return math.fsum(step.seconds or 0.0 for step in self.steps if step.is_collective)

    @property
    def communication_by_axes(self) -> dict[tuple[str, ...], float]:
        """Seconds of the collectives by the mesh axes of their groups, in the order of the steps."""
        return sums_of((step.step.axes, step.seconds or 0.0) for step in self.steps if step.is_collective)

    @property
    def serial_seconds(self) -> float:
        return self.compute_seconds + self.communication_seconds

    @property
    def overlapped_seconds(self) -> float:
        return overlapped(*self._work_and_sent)

    @property
    def _work_and_sent(self) -> tuple[Passes, Passes]:
        work = self._by_pass(lambda step: not step.is_collective)
        return work, self._by_pass(lambda step: step.is_collective)

    def _by_pass(self, counts: Callable[[PricedStep], bool]) -> Passes:
        return by_pass((self.phase_of(step), step.seconds or 0.0) for step in self.steps if counts(step))

    @cached_property
    def step_seconds(self) -> float:
        roles, (work, sent) = roles_of(self.plan.problem), self._work_and_sent
        hidden = self._by_pass(
            lambda step: step.is_collective and roles.is_hideable(step.step.array, self.phase_of(step))
        )
        return overlapped(work, hidden) + sum(sent) - sum(hidden)

    @property
    def published_seconds(self) -> float | None:
        """Seconds of a train step as published runs of the chip go; None if there is none."""
        share = self.machine.reached
        if share is None or self.plan.problem.training is None:
            return None
        return published_step(*self._work_and_sent, share)

    def phase_of(self, step: PricedStep) -> Phase:
        return self.plan.problem.parts[step.step.part].phase

    @property
    def bound(self) -> str:
        """The bound of the longest step of the longer side; "unknown" where that cannot be said."""
        if self.unknown:
            return UNKNOWN
        collective = is_mostly_sent(*self._work_and_sent)
        longer = [step for step in self.steps if step.is_collective == collective]
        return max(longer, key=lambda step: step.seconds or 0.0).bound if longer else ""

    @property
    def flops(self) -> int:
        return sum(step.flops for step in self.steps)

    @property
    def hbm_bytes(self) -> int:
        return sum(step.hbm_bytes for step in self.steps)

    @property
    def wire_bytes(self) -> int:
        return sum(step.wire_bytes for step in self.steps)

    @property
    def flops_per_hbm_byte(self) -> float | None:
        """Arithmetic intensity of the local steps; None where they read and write nothing."""
        moved = sum(step.hbm_bytes for step in self.steps if not step.is_collective)
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
        return self._utilisation(self.serial_seconds)

    @property
    def overlapped_utilisation(self) -> float | None:
        return self._utilisation(self.overlapped_seconds)

    def _utilisation(self, seconds: float) -> float | None:
        """FLOPs over peak and seconds; None where the time of a step is not known."""
        if self.unknown or self.peak_flops is None or not seconds:
            return None
        return self.flops / (self.peak_flops * seconds)

    @property
    def peak_step(self) -> PricedStep:
        """The first step at which a device holds the most."""
        return max(self.steps, key=lambda step: step.live_bytes)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that a device holds at once."""
        return self.peak_step.live_bytes

    @property
    def limit_bytes(self) -> int | None:
        """The bytes of HBM that a program may use; None where they are not known."""
        return self.machine.device.limit_bytes

    @property
    def layers(self) -> int:
        """The number of runs of the steps, one after the other."""
        return self.plan.problem.layers

    @property
    def layers_seconds(self) -> float:
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

    @property
    def allocated_bytes(self) -> int:
        """The most that a compiler may allocate for the plan in all layers."""
        return round(self.layers_peak_bytes * (1 + self.machine.allocated))

    @cached_property
    def training_memory(self) -> TrainingMemory | None:
        """The memory of a train step by what it is for; None for a forward pass."""
        problem, steps = self.plan.problem, self.steps
        if problem.training is None:
            return None
        layers, others = problem.layers, problem.layers - 1
        held: dict[str, list[int]] = {}
        for array in chain.from_iterable(priced.resident for priced in steps):
            held.setdefault(array.name, []).append(array.bytes)
        trained = set(problem.parameters)
        given = sum(held[name][0] for name in trained)
        state = sum(held[old][0] for old, _ in problem.updates if old not in trained)
        gradients = {gradient for name, gradient in problem.gradients if name in trained}
        left = sum(held[gradient][-1] for gradient in gradients)
        # What the forward pass leaves for the backward pass, but the parameters and what layers share.
        forward = {array.name for part in problem.forward for array in part.arrays}
        later = (part.operands for part in problem.parts if part.phase != "forward")
        taken = forward.intersection(operand.name for operands in later for operand in operands)
        taken -= {*trained, *problem.shared}
        first = next(priced for priced in steps if self.phase_of(priced) != "forward")
        kept = sum(array.bytes for array in first.resident if array.name in taken)

        def gradient_bytes(priced: PricedStep) -> int:
            """Those of all gradients at one step; of one that a collective moves those of the larger copy."""
            largest: dict[str, int] = {}
            for array in priced.resident:
                if array.name in gradients:
                    largest[array.name] = max(largest.get(array.name, 0), array.bytes)
            return sum(largest.values())

        def live_bytes(priced: PricedStep) -> int:
            of_others = {"forward": kept, "optimizer": left}.get(self.phase_of(priced), max(kept, left))
            return priced.live_bytes + others * of_others

        return TrainingMemory(
            parameters=layers * given,
            gradients=max(map(gradient_bytes, steps)) + others * left,
            optimizer=layers * state,
            activations=layers * kept,
            peak=others * (given + state) + max(map(live_bytes, steps)),
        )

    @property
    def seconds_by_phase(self) -> dict[Phase, float]:
        """Seconds of all steps by the part of a train step that they belong to, in order."""
        return sums_of((self.phase_of(step), step.seconds or 0.0) for step in self.steps)
