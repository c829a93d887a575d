"""A scheduled module on a machine: every instruction in its order, with its time and what waits for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from shardviz.errors import QuestionError, plural, quote
from shardviz.garbage import uncollected
from shardviz.hardware.machine import Machine, place_mesh
from shardviz.hardware.placement import Placement
from shardviz.hlo.module import HloModule, Reader
from shardviz.sharding import Mesh
from shardviz.timeline.durations import DOUBTED, TICKS, Durations, LinkTimes
from shardviz.timeline.live_memory import live_memory
from shardviz.timeline.program_timeline import COMPUTE, MemoryReport, ProgramTimeline, Saving, TimedOp
from shardviz.timeline.rows import ProgramRows
from shardviz.timeline.simulation import Drawing, draw, lane_seconds, simulate
from shardviz.timeline.walk import Walker
from shardviz.units import seconds as human_seconds

MAX_NAMED = 5
"""Names in a note, and the savings that are told."""


@uncollected()
def timed_program(
    text: str,
    machine: Machine,
    *,
    mesh: Mesh | None = None,
    placement: Placement | None = None,
    infer: bool = False,
    origins: bool = False,
    module: HloModule | None = None,
) -> tuple[HloModule, ProgramTimeline]:
    """HLO text as a module, and its timeline on a machine. `module` is the text as it was read before on the
    same mesh, if it was; `mesh`, `infer` and `origins` are those of `read_hlo`. `placement` says where the
    mesh lies, else it lies where JAX would place it. Raises what `read_hlo` raises, and `QuestionError` for a
    text without an entry computation, and for a mesh that the machine cannot hold."""
    placed = place_mesh(machine, mesh, placement) if mesh is not None else None
    slices = placed.placement.slices if placed is not None and placed.placement is not None else None
    reader = Reader(text, mesh, slices)
    if module is None:
        module = reader.read(infer=infer, origins=origins)
    if mesh is None and module.mesh is not None:
        placed = place_mesh(machine, module.mesh, placement, of_program=True)
    rows = ProgramRows(reader)
    durations = Durations(rows.work, machine.device)
    links = LinkTimes(machine, placed, module.mesh or mesh)
    walker = Walker(rows, module, durations, links)
    entry = walker.entry()
    if entry is None:
        problem = "the text has no ENTRY computation, which says what runs"
        raise QuestionError(problem, "give all of a module: compiled.as_text()")
    run = simulate(entry)
    drawing = draw(run)
    total = run.duration / TICKS
    busy = {lane: ticks for lane, ticks in run.busy.items() if lane != COMPUTE.name}
    # The FLOP/s that utilisation is of: in bf16, or in the type of most FLOPs where that is faster.
    flops_by_dtype: Counter[str] = Counter()
    for duration, times in Counter(drawing.durations).items():
        flops_by_dtype[duration.dtype] += times * duration.flops
    most = max(flops_by_dtype, key=flops_by_dtype.__getitem__, default="")
    peak = max(machine.device.flops_per_second(dtype) or 0.0 for dtype in ("bf16", most))
    # The operations from the last one back through the one whose end let each begin.
    path: dict[int, None] = {}
    number = drawing.last
    while number >= 0 and number not in path:
        path[number] = None
        number = drawing.causes[number]
    timeline = ProgramTimeline(
        title=module.name or "unnamed program",
        machine=machine.name,
        lanes=drawing.lanes,
        ops=drawing.ops,
        spans=drawing.spans,
        seconds=total,
        drawn_seconds=drawing.seconds,
        compute_seconds=run.busy[COMPUTE.name] / TICKS,
        communication_seconds=lane_seconds(busy),
        exposed_seconds=lane_seconds(run.waited_for),
        flops=run.flops,
        utilisation=run.flops / (peak * total) if peak and total and run.flops else None,
        critical_path=tuple(reversed(path)),
        savings=_savings(drawing, total),
        unknown=tuple(dict.fromkeys(drawing.named(lambda duration: duration.seconds is None))),
        links=machine.family.link_name,
    )
    memory = replace(live_memory(rows, machine.device.usable_bytes), allocated=machine.allocated)
    notes = tuple(_notes(module, machine, timeline, drawing, sorted(links.assumed), walker.unknown_loops))
    return module, replace(timeline, memory=on_clock(memory, timeline), notes=notes)


def on_clock(report: MemoryReport, timeline: ProgramTimeline) -> MemoryReport:
    """The report with the seconds of a timeline of the same program. An instruction that the timeline does
    not draw, as it takes no time, stands where the one before it ends."""
    # By name the first that is drawn; of those that are drawn several times, the last end.
    drawn = {op.name: op for op in reversed(timeline.ops)}
    ends: dict[str, float] = {}
    for op in timeline.ops if len(drawn) < len(timeline.ops) else ():
        ends[op.name] = max(ends.get(op.name, op.end), op.end)
    asynchronous = {op.name for op in timeline.ops if op.is_async}
    told = {name for buffer in report.buffers for name in (buffer.first, buffer.last)}
    begins: dict[str, float] = {}
    finishes: dict[str, float] = {}
    curve: list[tuple[float, int]] = []
    now = done = 0.0
    since, level = -1.0, -1
    for name, live in report.order:
        start, end = done, now
        if (like := drawn.get(name)) is not None:
            start, end = like.start, ends.get(name, like.end)
        now = start if start > now else now
        end = now if now > end else end
        if name in told:
            begins[name], finishes[name] = now, end
        if name not in asynchronous:
            done = end
        if now == since:
            level = live if live > level else level
            curve[-1] = now, level
        elif live != level:
            since, level = now, live
            curve.append((now, live))
    buffers = (
        replace(buffer, start=begins.get(buffer.first), end=finishes.get(buffer.last))
        for buffer in report.buffers
    )
    peak_at = max(curve, key=lambda point: point[1], default=(0.0, 0))[0]
    return replace(report, buffers=tuple(buffers), curve=tuple(curve), peak_at=peak_at)


def _notes(
    module: HloModule,
    machine: Machine,
    timeline: ProgramTimeline,
    drawing: Drawing,
    assumed: Sequence[str],
    unknown_loops: Iterable[str],
) -> Iterable[str]:
    if not module.is_scheduled:
        yield (
            "this module is not scheduled: the order of its lines is not the order in which it runs; "
            "give the text of a compiled program, compiled.as_text(), whose header has is_scheduled=true"
        )
    if machine.assumed:
        yield f"no machine was named: {machine.name} chips are assumed, and each mesh axis is a ring"
    if assumed:
        stand = "stands for groups of that size" if len(assumed) == 1 else "stand for groups of those sizes"
        yield f"the mesh is unknown: {', '.join(assumed)} {stand}"
    if loops := [*unknown_loops]:
        runs = "runs" if len(loops) == 1 else "run"
        yield f"the text does not tell how often {_named(loops)} {runs}: counted once"
    estimates = {timed.estimate for timed in {*drawing.durations} if timed.lane.kind == "compute"}
    if "compiler" not in estimates and "roofline" in estimates:
        counted = "FLOPs and bytes over the device's figures, which is a lower bound"
        if machine.device.matmuls:
            counted = "matmuls as they were measured, and bytes over the device's bandwidth, a lower bound"
        yield f"the text has no estimates of its compiler: compute counts as {counted}"
    if timeline.unknown:
        yield f"the total leaves out operations without an estimate: {_named(timeline.unknown)}"
    if doubtful := drawing.named(
        lambda timed: timed.estimate == "compiler" and (timed.seconds or 0.0) < DOUBTED * (timed.least or 0.0)
    ):
        yield f"doubtful: the compiler's estimate of {_named(doubtful)} is faster than the roofline"
    if unread := len(module.unread):
        yield f"{plural(unread, 'piece')} of the text could not be read"


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(quote(name) for name in names[:MAX_NAMED])
    more = len(names) - MAX_NAMED
    return f"{shown} and {plural(more, 'other')}" if more > 0 else shown


def _savings(drawing: Drawing, total: float) -> tuple[Saving, ...]:
    """The most that could be saved, in all runs, alike operations of one source line together: what the
    device waits for, or what compute takes beyond its roofline."""
    groups: dict[tuple[object, ...], list[tuple[float, int]]] = {}
    slow = {}
    for duration in {*drawing.durations}:
        seconds, least = duration.seconds or 0.0, duration.least
        if least and duration.lane.kind == "compute" and seconds >= 1.5 * least:
            slow[duration] = seconds - least
    for number, (op, duration) in enumerate(zip(drawing.ops, drawing.durations, strict=True)):
        # Where it waits for others on its links, no more than its own time: those would still be there.
        saved = min(op.exposed, op.seconds or 0.0) if op.exposed else slow.get(duration, 0.0)
        if saved and (saved := saved * _runs(op)) > 0:
            groups.setdefault((op.op, op.lane, op.source or op.name), []).append((saved, number))
    sums = [(sum(saved for saved, _ in those), those) for those in groups.values()]
    sums.sort(key=lambda pair: -pair[0])
    told = [(seconds, those) for seconds, those in sums if seconds >= 0.001 * total]
    if not told and sum(seconds for seconds, _ in sums) >= 0.01 * total:
        told = sums  # of very many lines none may be worth it alone
    return tuple(_saving(drawing, seconds, those) for seconds, those in told[:MAX_NAMED])


def _runs(op: TimedOp) -> int:
    return 1 if op.runs is None else op.runs


def _saving(drawing: Drawing, seconds: float, those: Sequence[tuple[float, int]]) -> Saving:
    """A sentence about operations that are alike, by the one that saves most."""
    first = max(those, key=lambda pair: pair[0])[1]
    op = drawing.ops[first]
    lane = drawing.lanes[op.lane]
    runs = sum(_runs(drawing.ops[number]) for _, number in those)
    who = op.name if op.op in op.name else f"{op.op} {op.name}"
    if len(those) > 1:
        who += f" and {len(those) - 1:,} alike"
    if lane.kind in ("axis", "network"):
        who += f" along {lane.name}"
    if op.source:
        who += f" ({op.source})"
    amount = human_seconds(seconds) + (f" in {runs:,} runs" if runs > 1 else "")
    one_many = 1 if len(those) > 1 else 0
    if lane.kind == "compute" and not op.exposed:
        message = f"{who} {('takes', 'take')[one_many]} {amount} more than {op.bound or 'HBM'} allows"
    elif op.is_async:
        message = f"{who} {('is', 'are')[one_many]} exposed for {amount}"
    else:
        message = f"{who} {('blocks', 'block')[one_many]} the device for {amount}"
    return Saving(seconds, message, first)
