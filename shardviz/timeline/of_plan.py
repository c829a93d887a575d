"""A priced plan as a timeline: its steps one after the other, as a program without overlap would run them."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from shardviz.errors import plural
from shardviz.planner.plan import axes_words
from shardviz.planner.pricing.costs import PlanCost
from shardviz.planner.pricing.priced_plan import PricedStep, ResidentArray
from shardviz.planner.problem import Problem, statement_text
from shardviz.timeline.program_timeline import (
    COMPUTE,
    BufferKind,
    Lane,
    LiveBuffer,
    MemoryReport,
    ProgramTimeline,
    TimedOp,
)
from shardviz.units import seconds as human_seconds, shaped


def plan_timeline(cost: PlanCost) -> ProgramTimeline:
    """The steps of a plan in their order, local ones on the lane of compute, collectives on that of their
    mesh axes. Each waits for the step before, so every collective is exposed."""
    edges = (*accumulate((priced.seconds or 0.0 for priced in cost.steps), initial=0.0),)
    lanes = [*dict.fromkeys((COMPUTE, *map(_lane, cost.steps)))]
    ops = tuple(
        _timed(priced, cost.plan.problem, number, lanes.index(_lane(priced)), *edges[number : number + 2])
        for number, priced in enumerate(cost.steps)
    )
    communication = {lane.name: 0.0 for lane in lanes[1:]}
    for op in ops:
        if op.lane:
            communication[lanes[op.lane].name] += op.seconds or 0.0
    problem = cost.plan.problem
    title = problem.text
    if problem.layers > 1:  # of layers that are alike one is drawn
        title = f"{replace(problem, layers=1).text}, one layer of {problem.layers}"
    return ProgramTimeline(
        title=title,
        machine=cost.machine.name,
        lanes=tuple(lanes),
        ops=ops,
        spans=(),
        seconds=cost.serial_seconds,
        drawn_seconds=edges[-1],
        compute_seconds=cost.compute_seconds,
        communication_seconds=tuple(communication.items()),
        exposed_seconds=tuple(communication.items()),
        flops=cost.flops,
        utilisation=cost.serial_utilisation,
        critical_path=tuple(range(len(ops))),
        unknown=tuple(op.name for op in ops if op.seconds is None),
        notes=_notes(cost),
        memory=_memory(cost, edges),
    )


def _lane(priced: PricedStep) -> Lane:
    return Lane("axis", ", ".join(priced.step.axes)) if priced.is_collective else COMPUTE


def _timed(priced: PricedStep, problem: Problem, number: int, lane: int, start: float, end: float) -> TimedOp:
    step = priced.step
    name = f"{step.function or step.op} {step.einsum or step.array}"
    if step.op in ("einsum", "apply") and not problem.is_chain:
        name = statement_text(problem.parts[step.part], lambda array: array.name)
    over = f"over {axes_words(step.axes)}: " if len(step.axes) > 1 else ""
    return TimedOp(
        name=name,
        op=step.op,
        lane=lane,
        start=start,
        end=end,
        seconds=priced.seconds,
        estimate="unknown" if priced.seconds is None else "links" if priced.is_collective else "roofline",
        exposed=(priced.seconds or 0.0) if priced.is_collective else 0.0,
        bound=priced.bound,
        detail=over + priced.convention,
        after=(number - 1,) if number else (),
        bytes=step.bytes if priced.is_collective else priced.hbm_bytes,
        flops=priced.flops,
        optimistic=priced.optimistic,
    )


def _notes(cost: PlanCost) -> tuple[str, ...]:
    """The steps of which a figure is missing, and what all layers take."""
    notes = []
    if cost.unknown:
        count = plural(len(cost.unknown), "step")
        notes.append(f"the total is a lower bound, by {count}: {cost.missing_figure}")
    if cost.layers > 1:
        words = f"all {cost.layers} layers take {human_seconds(cost.layers_seconds)}"
        step = human_seconds(cost.step_seconds * cost.layers)
        if cost.plan.problem.training is not None and step != human_seconds(cost.layers_seconds):
            words += f", {step} where gathers of parameters and sums of gradients overlap"
        notes.append(words)
    return tuple(notes)


def _memory(cost: PlanCost, edges: tuple[float, ...]) -> MemoryReport:
    """The bytes of all arrays that a device holds; `edges` are the starts of the steps, and the end."""
    problem = cost.plan.problem
    spans: dict[ResidentArray, tuple[int, int]] = {}
    for number, priced in enumerate(cost.steps):
        for array in priced.resident:
            spans[array] = (spans.get(array, (number, number))[0], number)
    made = {step.step.array: step.step.to_spec for step in cost.steps}
    returned = {(name, made[name]) for name in problem.results}
    kept = {array for array in cost.steps[-1].resident if (array.name, array.spec) in returned}
    peak = cost.steps.index(cost.peak_step)
    arrays = {array.name: array for array in problem.arrays}
    buffers = []
    for array, (first, last) in spans.items():
        if first <= peak <= last:
            whole = arrays[array.name].with_spec(array.spec)
            shape = shaped(whole.dtype, whole.shard_shape(problem.mesh))
            kind: BufferKind = "argument" if array.is_argument else "output" if array in kept else "temporary"
            start, end = (None, None) if array.is_argument else (edges[first], edges[last + 1])
            buffers.append(LiveBuffer(array.name, kind, shape, array.bytes, start=start, end=end))
    argument_bytes = sum(array.bytes for array in spans if array.is_argument)
    output_bytes = sum(array.bytes for array in kept)
    return MemoryReport(
        by="estimate",
        argument_bytes=argument_bytes,
        output_bytes=output_bytes,
        alias_bytes=0,
        # The output's place serves as a temporary's before, as in the compilers' own account.
        temporary_bytes=max(0, cost.peak_bytes - argument_bytes - output_bytes),
        peak_bytes=cost.peak_bytes,
        limit_bytes=cost.limit_bytes,
        buffers=tuple(sorted(buffers, key=lambda buffer: -buffer.bytes)),
        curve=tuple((edges[number], priced.live_bytes) for number, priced in enumerate(cost.steps)),
        peak_at=edges[peak],
        allocated=cost.machine.allocated,
    )
