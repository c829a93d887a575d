"""The cost of each step of a plan on a machine: work, bytes and seconds, what bounds them, and what is held.

A local step takes as long as the longer of its FLOPs over the peak of its dtype and its HBM bytes over HBM's
bandwidth (the roofline model: Williams, Waterman and Patterson 2009), a collective as long as its links need,
or HBM where that is slower.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.plan import LOCAL_OPS, Plan, Step, axes_words, einsum_parts
from shardviz.planner.problem.functions import local_work
from shardviz.planner.states.prices import collective_price, compute_price
from shardviz.sharding import PartitionSpec

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


def priced_steps(plan: Plan, placed: PlacedMesh) -> tuple[PricedStep, ...]:
    """The cost of every step of a plan, whose mesh lies on a machine as `placed`."""
    mesh = plan.problem.mesh
    taken = iter(zip(plan.problem.parts, einsum_parts(plan), strict=True))
    arrays = {array.name: array for array in plan.problem.arrays}
    bytes_of = cache(lambda name, spec: arrays[name].with_spec(spec).bytes_per_device(mesh))
    steps = []
    for step, held in zip(plan.steps, _resident(plan, bytes_of), strict=True):
        flops, hbm_bytes, dtype = 0, 0, ""
        if step.op in ("einsum", "apply"):
            part, (operands, result) = next(taken)
            shapes = [operand.shard_shape(mesh) for operand in operands]
            flops, hbm_bytes, dtype = local_work(part, shapes, result.shard_shape(mesh))
        elif step.op != "slice":
            hbm_bytes = bytes_of(step.array, step.from_spec) + bytes_of(step.array, step.to_spec)
        work = compute_price(flops, hbm_bytes, dtype, placed.machine.device)
        steps.append(_priced(step, flops, hbm_bytes, work, placed, held))
    return tuple(steps)


ShardBytes = Callable[[str, PartitionSpec], int]


def _priced(
    step: Step,
    flops: int,
    hbm_bytes: int,
    work: tuple[float | None, float | None],
    placed: PlacedMesh,
    resident: tuple[ResidentArray, ...],
) -> PricedStep:
    arithmetic, traffic = work
    sizes = (step, flops, hbm_bytes, step.wire_bytes)
    if step.op in LOCAL_OPS:
        seconds, bound = None, UNKNOWN
        if arithmetic is not None and traffic is not None:
            seconds = max(arithmetic, traffic)
            bound = COMPUTE if flops and arithmetic >= traffic else HBM
        how = ROOFLINE if flops else IN_PLACE if step.op == "slice" else COPY
        return PricedStep(*sizes, arithmetic, traffic, None, None, seconds, bound, how, resident)
    time = collective_price(step.op, step.bytes, step.axes, placed)
    seconds = max(time.seconds, traffic or 0.0)
    bound = LATENCY if time.bound == LATENCY else _links(step.axes, time.bound)
    if seconds > time.seconds:
        bound = HBM
    own = (traffic, time.seconds, time.textbook_seconds)
    return PricedStep(*sizes, None, *own, seconds, bound, time.convention, resident)


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
