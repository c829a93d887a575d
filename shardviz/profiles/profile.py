"""A profile in numbers: each device, each step, each collective, and a step as a timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import sub
from statistics import median
from typing import Any

from shardviz.errors import QuestionError, ShardvizError, plural, quote
from shardviz.hardware.machine import Machine
from shardviz.profiles.collective_timing import CollectiveTiming, Straggler, collective_timings
from shardviz.profiles.device_operations import (
    PICO,
    Covered,
    DeviceActivity,
    DeviceOperations,
    DeviceStretch,
    total,
    union,
)
from shardviz.profiles.device_trace import NO_RUN, DeviceTrace, Program, ProgramRecord, TracedInstruction
from shardviz.profiles.joined_program import (
    InstructionFacts,
    JoinedProgram,
    facts_of,
    join_program,
    with_groups,
)
from shardviz.profiles.trace_files import ProfileFiles
from shardviz.profiles.xplane import with_devices
from shardviz.sharding import Mesh
from shardviz.timeline.program_timeline import COMPUTE, LANE_KINDS, Lane, ProgramTimeline, TimedOp, TimeSpan

MAX_OPS = 100_000
"""Operations of one timeline, the longest; a page with more of them is slow."""


@dataclass(frozen=True)
class MeasuredStep:
    """A step: its `seconds` from the first device's beginning to the last one's end, and what each did."""

    number: int
    seconds: float
    devices: tuple[DeviceActivity, ...]


@dataclass(frozen=True)
class Profile:
    """The numbers of a trace. `program` is the name of the program that runs longest. Steps are those that
    the program marked, else its runs (`steps_are_marked`). `timeline` is one step of one device; `predicted`
    is the same program on the machine that was named. `notes` are warnings, a sentence each."""

    program: str
    hosts: tuple[str, ...]
    devices: tuple[DeviceActivity, ...]
    steps: tuple[MeasuredStep, ...]
    steps_are_marked: bool
    collectives: tuple[CollectiveTiming, ...]
    stragglers: tuple[Straggler, ...]
    timeline: ProgramTimeline
    drawn_step: int
    predicted: ProgramTimeline | None
    mesh: Mesh | None
    notes: tuple[str, ...]

    @property
    def timelines(self) -> tuple[ProgramTimeline, ...]:
        """The timeline that was measured, and under it the one that was predicted."""
        return (self.timeline,) if self.predicted is None else (self.timeline, self.predicted)


def programs_that_ran(files: ProfileFiles) -> list[ProgramRecord]:
    """The programs of which operations are traced, as far as the profile brings them, the main one first."""
    ran = {instruction.program for device in files.devices for instruction in device.instruction_table}
    records = [program for program in files.programs if program.program in ran]
    return sorted(records, key=lambda record: record.program != files.main)


def profile_with_texts(
    files: ProfileFiles, find_texts: Callable[[Sequence[bytes]], Sequence[str]], hlo: str = "", **asked: Any
) -> Profile:
    """The numbers of a profile, as `profile_of` has them, with what is `asked` of that. `hlo` is the main
    program's text; without one `find_texts` is asked for the texts of the serialized programs in the files,
    "" for one that has none."""
    records = () if hlo else programs_that_ran(files)
    texts = find_texts([record.proto for record in records]) if records else ()
    known = {record.program: text for record, text in zip(records, texts, strict=True) if text}
    return profile_of(files, known, hlo=hlo, **asked)


def profile_of(
    files: ProfileFiles,
    texts: Mapping[Program, str],
    *,
    hlo: str = "",
    mesh: Mesh | None = None,
    machine: Machine | None = None,
    device: str = "",
    step: int | None = None,
) -> Profile:
    """The numbers of a profile. `texts` are programs' HLO by name and number, `hlo` that of the main one, or
    of the one that its header names. `device` and `step` choose what the timeline shows; by default the step
    of median length on the device that was busy longest in it. Raises `QuestionError` for a device or a step
    that is not there, and what `join_program` raises for `hlo` and for a machine."""
    main = files.main
    programs, notes = _joined(files, texts, hlo, mesh, machine)

    @cache
    def facts(instruction: TracedInstruction) -> InstructionFacts:
        return facts_of(instruction, programs.get(instruction.program))

    # By the program, with `jax.profiler.StepTraceAnnotation`.
    marked = any(device.step_spans or device.steps_of_runs for device in files.devices)
    devices = [DeviceOperations(device, facts) for device in files.devices if len(device.starts)]
    wholes = [device.whole for device in devices]
    # Without marks each run of the main program is a step; where no program is told, all of it is one.
    runs = None if main is None else runs_in_order(files.devices, main)

    def steps_of(trace: DeviceTrace) -> Mapping[int, int] | None:
        return trace.steps_of_runs if marked else None if runs is None else runs.get(trace.host, {})

    by_step = {device.trace.name: device.by_step(steps_of(device.trace)) for device in devices}
    steps = _steps(by_step, len(files.hosts) > 1)
    if not steps:
        problem = "no operation of the profile is in a step"
        raise QuestionError(problem, "mark steps around what runs on devices")
    collectives, stragglers = collective_timings(wholes, programs)
    notes += _gaps(files, marked, len(wholes), bool(collectives))
    shown, chosen = _chosen(by_step, steps, device, step)
    joined = None if main is None else programs.get(main)
    title = main[0] if main is not None and main[0] else "unnamed program"
    predicted = joined.predicted if joined is not None and machine is not None else None
    if joined is None:
        lacks = f"the profile lacks the text of {title}, so axes, bytes and source lines are not known"
        waits = "waits are counted as if all devices were one group"
        notes.append(f"{lacks}, and {waits}: add --hlo FILE, with compiled.as_text()")
    return Profile(
        title,
        files.hosts,
        tuple(whole.activity() for whole in wholes),
        steps,
        marked,
        collectives,
        stragglers,
        measured_timeline(shown, f"step {chosen} of {title}"),
        chosen,
        None if predicted is None else replace(predicted, title=f"prediction of {title}"),
        None if joined is None else joined.module.mesh,
        (*files.notes, *notes),
    )


def _gaps(files: ProfileFiles, marked: bool, devices: int, communicates: bool) -> list[str]:
    """Sentences on what the profile does not tell apart, and on the devices that it lacks."""
    main, sentences = files.main, []
    tables = (run for device in files.devices for run in device.run_table)
    if main and not marked and all(run.run_id is None for run in tables if run.program == main):
        sentences.append(
            f"the profile does not separate the runs of {main[0]}: all of them count as one step; mark "
            "steps with jax.profiler.StepTraceAnnotation, and wait for the results in each"
        )
    ran = max((sum(map(len, record.device_ids)) for record in programs_that_ran(files)), default=0)
    if ran > devices:
        consequence = ": the time of a collective with others includes the wait for them" * communicates
        sentences.append(f"the profile has {devices} of the {ran} devices that ran{consequence}")
    return sentences


def _joined(
    files: ProfileFiles, texts: Mapping[Program, str], hlo: str, mesh: Mesh | None, machine: Machine | None
) -> tuple[dict[Program, JoinedProgram], list[str]]:
    """The programs with their texts, and a note for each text that cannot be read."""
    by_key: dict[Program, JoinedProgram] = {}
    notes, main = [], files.main
    records = {record.program: record for record in files.programs}
    traced = {instruction for device in files.devices for instruction in device.instruction_table}
    for key, text in texts.items():
        ids = records[key].device_ids if key in records else ()
        flat = tuple(device for row in ids for device in row)
        priced = machine if key == main else None
        said = {one.name: one.replica_groups for one in traced if one.program == key and one.replica_groups}
        text, lost = with_groups(with_devices(text, ids), said)
        if lost:
            notes.append(
                f"the profile's text of {key[0]} is from an older XLA and lacks the groups of "
                f"{plural(len(lost), 'collective')}, such as {min(lost)}: axes, bytes and waits are not known"
            )
        try:
            by_key[key] = join_program(text, mesh, priced, flat, lost)
        except ShardvizError as error:
            if key == main and (mesh is not None or machine is not None):
                raise
            notes.append(f"the text of {key[0]} cannot be used: {error.message}")
    if hlo:
        joined = join_program(hlo, mesh, machine)
        ran = {instruction.program for instruction in traced}
        named = [candidate for candidate in ran if candidate[0] == joined.module.name]
        meant = named or [main or ("", 0)]
        names = {instruction.name for instruction in traced if instruction.program in meant}
        alike = len(names & joined.lines.keys())
        # Any two programs have a copy.1.
        if not alike or (not named and alike < len(names) / 2):
            raise QuestionError(
                f"{quote(joined.module.name)} is not the program that ran: it has {alike or 'none'} of the "
                f"{len(names)} instruction names",
                f"the profile is of {quote((main or ('', 0))[0])}: give the text of that compiled program",
            )
        by_key |= dict.fromkeys(meant, joined)
    if mesh is not None and by_key and not any(program.module.mesh == mesh for program in by_key.values()):
        sizes = {program.module.num_partitions * program.module.replica_count for program in by_key.values()}
        problem = f"the mesh {mesh} has {mesh.size} devices, and what ran had {max(sizes)}"
        raise QuestionError(problem, f"give a mesh of {max(sizes)} devices")
    return by_key, notes


def _steps(
    by_step: Mapping[str, Mapping[int, DeviceStretch]], several_hosts: bool
) -> tuple[MeasuredStep, ...]:
    """Each step of all devices; with several hosts, whose clocks differ, as long as its longest device."""
    parts: defaultdict[int, list[DeviceStretch]] = defaultdict(list)
    for stretches in by_step.values():
        for number, part in stretches.items():
            if not part.is_empty:
                parts[number].append(part)
    steps = []
    for number, of_devices in sorted(parts.items()):
        starts, ends = zip(*(part.span for part in of_devices), strict=True)
        length = max(map(sub, ends, starts)) if several_hosts else max(ends) - min(starts)
        steps.append(MeasuredStep(number, length * PICO, tuple(part.activity() for part in of_devices)))
    return tuple(steps)


def _chosen(
    by_step: Mapping[str, Mapping[int, DeviceStretch]],
    steps: tuple[MeasuredStep, ...],
    device: str,
    step: int | None,
) -> tuple[DeviceStretch, int]:
    """The part of the trace that the timeline shows."""
    numbered = {step.number: step for step in steps}
    if step is None:
        middle = median(step.seconds for step in steps)
        chosen = min(steps, key=lambda step: abs(step.seconds - middle))
    elif step in numbered:
        chosen = numbered[step]
    else:
        told = " to ".join(map(str, dict.fromkeys((steps[0].number, steps[-1].number))))
        raise QuestionError(f"the profile has no step {step}", f"its {plural(len(steps), 'step')}: {told}")
    busiest = max(chosen.devices, key=lambda activity: activity.busy).device
    names = [device.device for device in chosen.devices]
    asked = [name for name in names if device and (name == device or name.rpartition(" ")[2] == device)]
    if device and len(asked) != 1:
        problem = f"{quote(device)} is {'more than one' if asked else 'not a'} device of step {chosen.number}"
        raise QuestionError(problem, f"its devices: {', '.join((asked or names)[:16])}")
    return by_step[asked[0] if asked else busiest][chosen.number], chosen.number


def runs_in_order(devices: Sequence[DeviceTrace], main: Program | None) -> dict[str, dict[int, int]]:
    """The runs of a program by host, numbered in the order in which a host's devices begin them: a profile
    may begin when some devices are in a run that others have ended."""
    begins: defaultdict[str, dict[int, int]] = defaultdict(dict)
    for device in devices:
        begun = begins[device.host]
        for run, start in zip(device.runs, device.starts, strict=True):
            if run != NO_RUN and device.run_table[run].program == main:
                begun[run] = min(begun.get(run, start), start)
    return {
        host: {run: number for number, run in enumerate(sorted(begun, key=begun.__getitem__))}
        for host, begun in begins.items()
    }


def measured_timeline(stretch: DeviceStretch, title: str) -> ProgramTimeline:
    """The operations of a device in a step, on a clock that begins with the step. Every iteration of a loop
    stands where it ran, and `exposed` of an operation is the part beside which nothing is computed."""
    trace, facts = stretch.device.trace, stretch.device.facts
    start, end = stretch.span
    activity, computed = stretch.activity(), Covered(stretch.compute)
    lanes_found = {facts[transfer.instruction].lane: None for transfer in stretch.transfers}
    lanes = sorted({COMPUTE, *lanes_found}, key=lambda lane: (LANE_KINDS.index(lane.kind), lane.name))
    numbers = {lane: number for number, lane in enumerate(lanes)}
    rows = [(trace.starts[p], trace.ends[p], trace.instructions[p]) for p in stretch.computed]
    rows += [(transfer.start, transfer.end, transfer.instruction) for transfer in stretch.transfers]
    left_out = max(len(rows) - MAX_OPS, 0)
    if left_out:
        rows = sorted(rows, key=lambda row: row[0] - row[1])[:MAX_OPS]

    def measured(begin: int, finish: int, number: int) -> TimedOp:
        fact, name = facts[number], trace.instruction_table[number].name
        exposed = 0 if fact.lane == COMPUTE else finish - begin - computed.within(begin, finish)
        timed = fact.timed
        return TimedOp(
            name,
            fact.op or name,
            numbers[fact.lane],
            (begin - start) * PICO,
            (finish - start) * PICO,
            (finish - begin) * PICO,
            "measured",
            exposed=exposed * PICO,
            source="" if timed is None else timed.source,
            bytes=0 if timed is None else timed.bytes,
            flops=0 if timed is None else timed.flops,
            is_async=fact.role != "work",
            collective="" if timed is None else timed.collective,
        )

    ops = [measured(*row) for row in sorted(rows)]
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


def _by_lane(stretch: DeviceStretch) -> tuple[dict[Lane, int], dict[Lane, int]]:
    """Picoseconds by lane: in use, and exposed; what is exposed on two lanes at once counts on the first."""
    facts = stretch.device.facts
    pieces: defaultdict[Lane, list[tuple[int, int]]] = defaultdict(list)
    for transfer in stretch.transfers:
        pieces[facts[transfer.instruction].lane].append((transfer.start, transfer.end))
    unions = {lane: union(stretches) for lane, stretches in pieces.items()}
    counted, exposed = list(stretch.compute), {}
    # Communication before copies, as `exposed` counts it: |communication ∪ compute| − |compute|.
    for lane in sorted(unions, key=lambda lane: (lane.kind in ("copy", "host"), lane.name)):
        more = union([*counted, *unions[lane]])
        exposed[lane] = total(more) - total(counted)
        counted = more
    return {lane: total(stretches) for lane, stretches in unions.items()}, exposed


def _spans(stretch: DeviceStretch) -> tuple[TimeSpan, ...]:
    """The loops that ran, around what ran in them."""
    trace, (start, end) = stretch.device.trace, stretch.span
    frames = [p for p in stretch.device.frames if start <= trace.starts[p] and trace.ends[p] <= end]
    spans: list[TimeSpan] = []
    around: list[int] = []
    for frame in sorted(frames, key=lambda p: (trace.starts[p], -trace.ends[p])):
        number = trace.instructions[frame]
        if stretch.device.facts[number].op != "while":
            continue
        while around and around[-1] <= trace.starts[frame]:
            around.pop()
        name = trace.instruction_table[number].name
        first, last = ((time - start) * PICO for time in (trace.starts[frame], trace.ends[frame]))
        # Drawn as it ran, not once for all iterations as a "loop" is.
        spans.append(TimeSpan("call", name, first, last, 1, len(around)))
        around.append(trace.ends[frame])
    return tuple(spans)
