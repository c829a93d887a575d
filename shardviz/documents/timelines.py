"""Timelines: operations on lanes, loops, totals and live memory; and profiles: devices, steps, collectives as
they ran, stragglers, and a step as a timeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    BANDWIDTH,
    SIGNED_FLOAT,
    Beside,
    DocumentKind,
    of,
    one_of,
    record,
    records,
)
from shardviz.documents.meshes import MESH

if TYPE_CHECKING:
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.reports.program_report import TimesAnswer
    from shardviz.timeline.program_timeline import ProgramTimeline

SOURCE = of(str, "The line of the user's program that it comes from; empty where the text does not say.")
_LANE = record(
    "A lane.",
    kind=of(one_of("compute", "copy", "axis", "network", "host"), "The kind of lane."),
    name=of(str, "Its name; of a mesh axis the axis's."),
)
_OPERATION = record(
    "An operation.",
    name=of(str, "The instruction's name, or the plan's step."),
    op=of(str, "HLO's opcode, or matmul where it multiplies matrices; of a plan the step's operation."),
    lane=of(int, "The number of its lane, from 0."),
    start_seconds=of(
        float, "Seconds on the drawn clock at which it starts; each loop's body stands there once.", "start"
    ),
    end_seconds=of(float, "Seconds on the drawn clock at which it ends.", "end"),
    seconds=of(float, "Seconds that one run takes; null: nobody can tell."),
    runs=of(int, "The number of times that it runs; null: in a loop of unknown length."),
    exposed_seconds=of(float, "Seconds of one run for which the device waits for it.", "exposed"),
    estimate=of(
        one_of("compiler", "roofline", "links", "scheduler", "measured", "unknown"), "Whose estimate it is."
    ),
    bound=of(str, "Its bound: compute, HBM, latency or a mesh axis; null: not known."),
    detail=of(str, "The convention by which it is counted; null: none is told."),
    source=SOURCE,
    after=of([int], "Numbers of the operations whose ends it had to wait for, from 0."),
    bytes=of(int, "Bytes of a collective, or of memory traffic."),
    flops=of(int, "Floating-point operations of one run."),
    is_async=of(bool, "It starts and ends in different places of the program."),
)
_SPAN = record(
    "A stretch of the drawn clock.",
    kind=of(one_of("loop", "branch", "call"), "The kind of stretch."),
    name=of(str, "Its name."),
    start_seconds=of(float, "Seconds on the drawn clock at which it begins.", "start"),
    end_seconds=of(float, "Seconds on the drawn clock at which it ends.", "end"),
    count=of(int, "The number of times that a loop runs; null: not known, or not a loop."),
    depth=of(int, "The number of stretches around it."),
)
_BUFFER = record(
    "An array in memory.",
    name=of(str, "Its name."),
    kind=of(one_of("argument", "output", "temporary", "constant"), "The reason why it is there."),
    shape=of(str, "Its type as XLA writes it."),
    bytes=of(int, "Bytes that it takes."),
    source=SOURCE,
    start_seconds=of(
        float, "Seconds on the drawn clock from which on it is live; null: from the start.", "start"
    ),
    end_seconds=of(float, "Seconds on the drawn clock until which it is live; null: to the end.", "end"),
)
LIVE_MEMORY = record(
    "The memory of one device.",
    by=of(one_of("compiler", "estimate"), "Who counted."),
    argument_bytes=of(int, "Bytes of all arguments."),
    output_bytes=of(int, "Bytes of all outputs."),
    alias_bytes=of(int, "Bytes of outputs that reuse donated buffers."),
    temporary_bytes=of(int, "Bytes of temporaries."),
    peak_bytes=of(int, "Bytes at the peak."),
    limit_bytes=of(int, "Bytes that the compiler allows; null: not known."),
    over_bytes=of(int, "Bytes by which it does not fit; 0 where it does."),
    peak_at_seconds=of(float, "Seconds on the drawn clock of the peak.", "peak_at"),
    buffers=of([_BUFFER], "The largest arrays at the peak, the largest first."),
    curve=records(
        "Live memory over the drawn clock.",
        "A step of the curve.",
        start_seconds=of(float, "Seconds on the drawn clock from which on so much is live.", 0),
        live_bytes=of(int, "Bytes that are live from then on.", 1),
    ),
).shared("live_memory")


def _communication(timeline: ProgramTimeline) -> Iterable[tuple[str, float, float]]:
    exposed = dict(timeline.exposed_seconds)
    return ((lane, seconds, exposed.get(lane, 0.0)) for lane, seconds in timeline.communication_seconds)


_FIELDS = {
    "title": of(str, "The program's name, or the plan's einsum."),
    "machine": of(str, "The machine that priced it."),
    "seconds": of(float, "Seconds of all of it, with every loop counted in full."),
    "drawn_seconds": of(float, "Seconds of the drawn clock, on which each loop's body stands once."),
    "compute_seconds": of(float, "Seconds of compute in all runs."),
    "communication": records(
        "Communication by lane.",
        "The use of a lane that moves data.",
        _communication,
        lane=of(str, "The lane's name.", 0),
        seconds=of(float, "Seconds in which it moves data, hidden or not.", 1),
        exposed_seconds=of(float, "Seconds of these for which the device waits.", 2),
    ),
    "idle_seconds": of(float, "Seconds of what was measured in which nothing runs; 0 of an estimate."),
    "flops": of(int, "Floating-point operations of all runs."),
    "utilisation": of(float, "Share of the peak FLOP/s that is used; null: no peak is known."),
    "lanes": of([_LANE], "The lanes."),
    "ops": of([_OPERATION], "The operations, in the order of their starts."),
    "spans": of([_SPAN], "Loops, branches and calls."),
    "critical_path": of([int], "Numbers of the operations that the end had to wait for, first to last."),
    "savings": records(
        "The changes that would save most.",
        "A change that would save time.",
        seconds=of(float, "Seconds of the total that it would save."),
        op=of(int, "The number of the operation, from 0."),
        message=of(str, "A sentence about it."),
    ),
    "unknown": of([str], "Names of the operations without an estimate, which the total leaves out."),
    "notes": of([str], "Warnings, a sentence each."),
    "live_memory": of(LIVE_MEMORY, "Memory over time; null: not known.", "memory"),
}
TIMELINE = record("A plan or a program on a machine.", **_FIELDS).shared("timeline")
TOLD_TIMES = records(
    "What runs when, with --time.",
    "The times of a plan or of a target's program, by one teller.",
    target=of(str, "The target's name; plan for the plan."),
    teller=of(one_of("plan", "model", "scheduler"), "Whose times they are."),
    error=of(str, "The reason why there are no times; null where there are."),
    timeline=of(TIMELINE, "The times; null: there are none."),
    causes=records(
        "Causes by which the scheduler's total differs from the model's, the largest first.",
        "A cause by which this total differs from the model's.",
        cause=of(str, "The cause, in a sentence.", 0),
        longer_seconds=of(SIGNED_FLOAT, "Seconds by which it is longer, below 0: shorter.", 1),
    ),
)
TIMELINE_KIND = DocumentKind(
    "timeline", "hlo --time", "What runs when on a machine, and the memory that is live.", **_FIELDS
)


def told_times(cost: PlanCost, answers: Iterable[TimesAnswer]) -> list[Beside]:
    """The plan's times, and those of each answer by each of its tellers, as `TOLD_TIMES` writes them."""
    from shardviz.timeline.of_plan import plan_timeline

    def told(target: str, teller: str, timeline: ProgramTimeline | None, **more: object) -> Beside:
        return Beside(target=target, teller=teller, timeline=timeline, **{"error": "", "causes": (), **more})

    tellers = [told("plan", "plan", plan_timeline(cost))]
    for answer in answers:
        times = answer.times
        if times is None:
            tellers.append(told(answer.target, "model", None, error=answer.error and answer.error.message))
            continue
        tellers.append(told(answer.target, "model", times.model))
        if times.scheduler is not None:
            causes = () if times.comparison is None else times.comparison.causes
            tellers.append(told(answer.target, "scheduler", times.scheduler, causes=causes))
    return tellers


_DEVICES = records(
    "What each device did.",
    "A device.",
    device=of(str, "The device's name, with its host where there are several."),
    start_seconds=of(float, "Seconds on the profile's clock at which it begins.", "activity.start"),
    seconds=of(float, "Seconds from the first operation to the end of the last.", "activity.seconds"),
    busy_seconds=of(float, "Seconds in which an operation or a transfer runs.", "activity.busy"),
    idle_seconds=of(float, "Seconds in which nothing runs.", "activity.idle"),
    compute_seconds=of(float, "Seconds of compute.", "activity.compute"),
    communication_seconds=of(float, "Seconds in which data move between devices.", "activity.communication"),
    exposed_seconds=of(
        float, "Seconds of communication beside which nothing is computed.", "activity.exposed"
    ),
    copy_seconds=of(
        float, "Seconds of copies within the device's memory, and to and from the host.", "activity.copies"
    ),
    exposed_copy_seconds=of(
        float, "Those beside which nothing is computed or communicated.", "activity.exposed_copies"
    ),
)
PROFILE = DocumentKind(
    "profile",
    "profile",
    "What ran on real devices, from their profile.",
    program=of(str, "The program that ran longest."),
    hosts=of([str], "The machines on which it was taken."),
    mesh=of(MESH, "The mesh whose axes are named; null: not known."),
    devices=_DEVICES,
    steps_are_marked=of(bool, "The program marked its steps; else each run of it counts as one."),
    steps=records(
        "The steps in order.",
        "A step.",
        number=of(int, "Its number."),
        seconds=of(float, "Seconds from the first device's beginning to the last one's end."),
        devices=_DEVICES,
    ),
    collectives=records(
        "The collectives, those first that leave most time exposed.",
        "A collective's instruction, over all its runs.",
        name=of(str, "The instruction's name."),
        op=of(str, "HLO's opcode."),
        module=of(str, "The program's name."),
        axes=of([str], "The mesh axes along which it goes; empty where they are not known."),
        source=of(str, "The line of the user's program; null: not known.", "collective.source"),
        bytes=of(int, "The larger of a device's operand and result; null: not known.", "collective.bytes"),
        runs=of(int, "Its runs, of all groups of devices."),
        groups=of(int, "The groups of devices that run it at a time."),
        seconds=of(float, "The median, from the last device's arrival to the last one's end."),
        least_seconds=of(float, "The shortest.", "least"),
        most_seconds=of(float, "The longest.", "most"),
        algbw_bytes_per_s=of(BANDWIDTH, "Its bytes over its time; null: not known.", "algbw"),
        busbw_bytes_per_s=of(
            BANDWIDTH, "The bytes that a device must send over its time; null: not known.", "busbw"
        ),
        predicted_seconds=of(
            float, "Seconds that the machine which was named should take; null: not known.", "predicted"
        ),
        waited_seconds=of(
            float,
            "Mean seconds for which a device waits for the last to arrive; null: devices of its "
            "groups are not in the profile.",
            "waited",
        ),
        exposed_seconds=of(float, "Mean seconds in which a device computes nothing meanwhile.", "exposed"),
        last_device=of(str, "The device that was the last one most often; null: none.", "last"),
        last_share=of(float, "Its share of the runs."),
    ),
    stragglers=records(
        "Who was waited for, the worst first.",
        "A device for which others waited at a collective.",
        device=of(str, "The device."),
        collective=of(str, "The collective's name."),
        times=of(int, "Runs in which it was the last."),
        runs=of(int, "All runs of its group and the others."),
        seconds=of(float, "Seconds for which others waited, all of them together."),
    ),
    drawn_step=of(int, "The step of the timeline."),
    timeline=of(TIMELINE, "A step of one device as it was measured."),
    predicted=of(TIMELINE, "What is predicted of the program; null: no machine was named."),
    notes=of([str], "Warnings, a sentence each."),
)
