"""A device's step as a timeline of the kind that predictions have, so that the same pictures show both."""

from __future__ import annotations

from collections import defaultdict

from shardviz.errors import plural
from shardviz.profiles.device_operations import PICO, Covered, DeviceStretch, total, union
from shardviz.profiles.joined_program import InstructionFacts
from shardviz.timeline.program_timeline import COMPUTE, LANE_KINDS, Lane, ProgramTimeline, TimedOp, TimeSpan

MAX_OPS = 100_000
"""Operations of one timeline, the longest; a page with more of them is slow."""


def measured_timeline(stretch: DeviceStretch, title: str) -> ProgramTimeline:
    """The operations of a device in a step, on a clock that begins with the step.

    Every iteration of a loop stands where it ran, and what the device did on several threads at once on
    several rows. `exposed` of an operation is the part beside which nothing is computed.
    """
    trace, facts = stretch.device.trace, stretch.device.facts
    start, end = stretch.span
    activity, computed = stretch.activity(), Covered(stretch.compute)
    lanes_found = {facts[each.instruction].lane: None for each in stretch.transfers}
    lanes = sorted({COMPUTE, *lanes_found}, key=lambda lane: (LANE_KINDS.index(lane.kind), lane.name))
    numbers = {lane: number for number, lane in enumerate(lanes)}
    rows = [(trace.starts[p], trace.ends[p], trace.instructions[p]) for p in stretch.computed]
    rows += [(each.start, each.end, each.instruction) for each in stretch.transfers]
    left_out = max(len(rows) - MAX_OPS, 0)
    if left_out:
        rows = sorted(rows, key=lambda row: row[0] - row[1])[:MAX_OPS]
    ops = []
    for begin, finish, number in sorted(rows):
        fact = facts[number]
        hidden = computed.within(begin, finish)
        exposed = 0 if fact.lane == COMPUTE else finish - begin - hidden
        name = trace.instruction_table[number].name
        ops.append(_op(name, fact, numbers[fact.lane], begin - start, finish - start, exposed))
    moving, exposed_by_lane = _by_lane(stretch)
    whole = (end - start) * PICO
    notes = [f"the {plural(left_out, 'shortest operation')} are not drawn"] * bool(left_out)
    return ProgramTimeline(
        title=title,
        machine=trace.name,
        lanes=tuple(lanes),
        ops=tuple(ops),
        spans=_spans(stretch),
        seconds=whole,
        drawn_seconds=whole,
        compute_seconds=activity.compute,
        communication_seconds=tuple((lane.name, moving[lane] * PICO) for lane in lanes if lane in moving),
        exposed_seconds=tuple((lane.name, seconds * PICO) for lane, seconds in exposed_by_lane.items()),
        flops=sum(op.flops for op in ops),
        utilisation=None,
        notes=tuple(notes),
        idle_seconds=activity.idle,
    )


def _op(name: str, fact: InstructionFacts, lane: int, start: int, end: int, exposed: int) -> TimedOp:
    timed, seconds = fact.timed, (end - start) * PICO
    return TimedOp(
        name,
        fact.op or name,
        lane,
        start * PICO,
        end * PICO,
        seconds,
        "measured",
        exposed=exposed * PICO,
        source="" if timed is None else timed.source,
        bytes=0 if timed is None else timed.bytes,
        flops=0 if timed is None else timed.flops,
        is_async=fact.role != "work",
        collective="" if timed is None else timed.collective,
    )


def _by_lane(stretch: DeviceStretch) -> tuple[dict[Lane, int], dict[Lane, int]]:
    """Picoseconds by lane: in use, and exposed; what is exposed on two lanes at once counts on the first."""
    facts = stretch.device.facts
    pieces: defaultdict[Lane, list[tuple[int, int]]] = defaultdict(list)
    for each in stretch.transfers:
        pieces[facts[each.instruction].lane].append((each.start, each.end))
    unions = {lane: union(found) for lane, found in pieces.items()}
    counted, exposed = list(stretch.compute), {}
    # Communication before copies, as `exposed` counts it: |communication ∪ compute| − |compute|.
    for lane in sorted(unions, key=lambda lane: (lane.kind in ("copy", "host"), lane.name)):
        more = union([*counted, *unions[lane]])
        exposed[lane] = total(more) - total(counted)
        counted = more
    return {lane: total(found) for lane, found in unions.items()}, exposed


def _spans(stretch: DeviceStretch) -> tuple[TimeSpan, ...]:
    """The loops that ran, around what ran in them."""
    trace, (start, end) = stretch.device.trace, stretch.span
    frames = [p for p in stretch.device.frames if start <= trace.starts[p] and trace.ends[p] <= end]
    found: list[TimeSpan] = []
    around: list[int] = []
    for place in sorted(frames, key=lambda p: (trace.starts[p], -trace.ends[p])):
        number = trace.instructions[place]
        if stretch.device.facts[number].op != "while":
            continue
        while around and around[-1] <= trace.starts[place]:
            around.pop()
        name = trace.instruction_table[number].name
        first, last = ((time - start) * PICO for time in (trace.starts[place], trace.ends[place]))
        # Drawn as it ran, not once for all iterations as a "loop" is.
        found.append(TimeSpan("call", name, first, last, 1, len(around)))
        around.append(trace.ends[place])
    return tuple(found)
