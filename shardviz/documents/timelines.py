"""Timelines: operations on lanes, loops, totals and live memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    Beside,
    Document,
    DocumentKind,
    JsonField,
    array_of,
    closed,
    count,
    counts,
    flag,
    null_if_empty,
    nullable,
    number,
    one_of,
    shared,
    text,
    texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.reports.target_times import TimesAnswer
    from shardviz.timeline.program_timeline import ProgramTimeline

_SOURCE = text("The line of the user's program that it comes from; empty where the text does not say.")
_LANE = closed(
    "A lane.",
    kind=one_of("The kind of lane.", "compute", "copy", "axis", "network", "host"),
    name=text("Its name; of a mesh axis the axis's."),
)
_OPERATION = closed(
    "An operation.",
    name=text("The instruction's name, or the plan's step."),
    op=text("HLO's opcode, or matmul where it multiplies matrices; of a plan the step's operation."),
    lane=count("The number of its lane, from 0."),
    start_seconds=number(
        "Seconds on the drawn clock at which it starts; each loop's body stands there once."
    ).of("start"),
    end_seconds=number("Seconds on the drawn clock at which it ends.").of("end"),
    seconds=nullable(number("Seconds that one run takes; null: nobody can tell.")),
    runs=nullable(count("The number of times that it runs; null: in a loop of unknown length.")),
    exposed_seconds=number("Seconds of one run for which the device waits for it.").of("exposed"),
    estimate=one_of(
        "Whose estimate it is.", "compiler", "roofline", "links", "scheduler", "measured", "unknown"
    ),
    bound=null_if_empty(text("Its bound: compute, HBM, latency or a mesh axis; null: not known.")),
    detail=null_if_empty(text("The convention by which it is counted; null: none is told.")),
    source=_SOURCE,
    after=counts("Numbers of the operations whose ends it had to wait for, from 0."),
    bytes=count("Bytes of a collective, or of memory traffic."),
    flops=count("Floating-point operations of one run."),
    is_async=flag("It starts and ends in different places of the program."),
)
_SPAN = closed(
    "A stretch of the drawn clock.",
    kind=one_of("The kind of stretch.", "loop", "branch", "call"),
    name=text("Its name."),
    start_seconds=number("Seconds on the drawn clock at which it begins.").of("start"),
    end_seconds=number("Seconds on the drawn clock at which it ends.").of("end"),
    count=nullable(count("The number of times that a loop runs; null: not known, or not a loop.")),
    depth=count("The number of stretches around it."),
)
_BUFFER = closed(
    "An array in memory.",
    name=text("Its name."),
    kind=one_of("The reason why it is there.", "argument", "output", "temporary", "constant"),
    shape=text("Its type as XLA writes it."),
    bytes=count("Bytes that it takes."),
    source=_SOURCE,
    start_seconds=nullable(
        number("Seconds on the drawn clock from which on it is live; null: from the start.")
    ).of("start"),
    end_seconds=nullable(number("Seconds on the drawn clock until which it is live; null: to the end.")).of(
        "end"
    ),
)
LIVE_MEMORY = shared(
    "live_memory",
    closed(
        "The memory of one device.",
        by=one_of("Who counted.", "compiler", "estimate"),
        argument_bytes=count("Bytes of all arguments."),
        output_bytes=count("Bytes of all outputs."),
        alias_bytes=count("Bytes of outputs that reuse donated buffers."),
        temporary_bytes=count("Bytes of temporaries."),
        peak_bytes=count("Bytes at the peak."),
        limit_bytes=nullable(count("Bytes that the compiler allows; null: not known.")),
        over_bytes=count("Bytes by which it does not fit; 0 where it does."),
        peak_at_seconds=number("Seconds on the drawn clock of the peak.").of("peak_at"),
        buffers=array_of(_BUFFER, "The largest arrays at the peak, the largest first."),
        curve=array_of(
            closed(
                "A step of the curve.",
                start_seconds=number("Seconds on the drawn clock from which on so much is live.").of(
                    lambda at: at[0]
                ),
                live_bytes=count("Bytes that are live from then on.").of(lambda at: at[1]),
            ),
            "Live memory over the drawn clock.",
        ),
    ),
)
_FIELDS: dict[str, JsonField] = {
    "title": text("The program's name, or the plan's einsum."),
    "machine": text("The machine that priced it."),
    "seconds": number("Seconds of all of it, with every loop counted in full."),
    "drawn_seconds": number("Seconds of the drawn clock, on which each loop's body stands once."),
    "compute_seconds": number("Seconds of compute in all runs."),
    "communication": array_of(
        closed(
            "The use of a lane that moves data.",
            lane=text("The lane's name."),
            seconds=number("Seconds in which it moves data, hidden or not."),
            exposed_seconds=number("Seconds of these for which the device waits."),
        ),
        "Communication by lane.",
    ).of(lambda timeline: _communication(timeline)),
    "idle_seconds": number("Seconds of what was measured in which nothing runs; 0 of an estimate."),
    "flops": count("Floating-point operations of all runs."),
    "utilisation": nullable(number("Share of the peak FLOP/s that is used; null: no peak is known.")),
    "lanes": array_of(_LANE, "The lanes."),
    "ops": array_of(_OPERATION, "The operations, in the order of their starts."),
    "spans": array_of(_SPAN, "Loops, branches and calls."),
    "critical_path": counts("Numbers of the operations that the end had to wait for, first to last."),
    "savings": array_of(
        closed(
            "A change that would save time.",
            seconds=number("Seconds of the total that it would save."),
            op=count("The number of the operation, from 0."),
            message=text("A sentence about it."),
        ),
        "The changes that would save most.",
    ),
    "unknown": texts("Names of the operations without an estimate, which the total leaves out."),
    "notes": texts("Warnings, a sentence each."),
    "live_memory": nullable(LIVE_MEMORY("Memory over time; null: not known.")).of("memory"),
}
TIMELINE = shared("timeline", closed("A plan or a program on a machine.", **_FIELDS))
TOLD_TIMES = array_of(
    closed(
        "The times of a plan or of a target's program, by one teller.",
        target=text("The target's name; plan for the plan."),
        teller=one_of("Whose times they are.", "plan", "model", "scheduler"),
        error=null_if_empty(text("The reason why there are no times; null where there are.")),
        timeline=nullable(TIMELINE("The times; null: there are none.")),
        causes=array_of(
            closed(
                "A cause by which this total differs from the model's.",
                cause=text("The cause, in a sentence."),
                longer_seconds=JsonField(
                    {"description": "Seconds by which it is longer, below 0: shorter.", "type": "number"}
                ),
            ),
            "Causes by which the scheduler's total differs from the model's, the largest first.",
        ),
    ),
    "What runs when, with --time.",
)
TIMELINE_KIND = DocumentKind(
    "timeline", "hlo --time", "What runs when on a machine, and the memory that is live.", **_FIELDS
)


def told_times(cost: PlanCost, answers: Iterable[TimesAnswer]) -> list[Beside]:
    """The plan's times, and those of each answer by each of its tellers, as `TOLD_TIMES` writes them."""
    from shardviz.timeline.of_plan import plan_timeline

    found = [_told("plan", "plan", plan_timeline(cost))]
    for each in answers:
        times = each.times
        if times is None:
            found.append(_told(each.target, "model", None, "" if each.error is None else each.error.message))
            continue
        found.append(_told(each.target, "model", times.model))
        if times.scheduler is not None:
            causes = () if times.comparison is None else times.comparison.causes
            found.append(_told(each.target, "scheduler", times.scheduler, causes=causes))
    return found


def _told(
    target: str,
    teller: str,
    timeline: ProgramTimeline | None,
    error: str = "",
    causes: Iterable[tuple[str, float]] = (),
) -> Beside:
    named = [Beside(cause=cause, longer_seconds=seconds) for cause, seconds in causes]
    return Beside(target=target, teller=teller, error=error, timeline=timeline, causes=named)


def _communication(timeline: ProgramTimeline) -> list[Beside]:
    exposed = dict(timeline.exposed_seconds)
    return [
        Beside(lane=name, seconds=seconds, exposed_seconds=exposed.get(name, 0.0))
        for name, seconds in timeline.communication_seconds
    ]


def timeline_document(timeline: ProgramTimeline) -> Document:
    """All of a timeline; times are seconds, sizes bytes."""
    return TIMELINE_KIND.document(timeline)
