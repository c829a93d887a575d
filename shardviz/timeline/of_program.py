"""A scheduled module on a machine: every instruction in its order, with its time and what waits for it."""

from __future__ import annotations

from dataclasses import replace

from shardviz.errors import QuestionError, plural, quote
from shardviz.hardware.machine import Machine
from shardviz.hardware.mesh_placement import place_mesh
from shardviz.hardware.placement import Placement
from shardviz.hlo.module import HloModule, Reader
from shardviz.sharding import Mesh
from shardviz.timeline.compiler_memory import on_clock
from shardviz.timeline.critical_path import critical_path, savings
from shardviz.timeline.drawing import draw
from shardviz.timeline.durations import Durations
from shardviz.timeline.link_times import COMPUTE, LinkTimes
from shardviz.timeline.live_memory import live_memory
from shardviz.timeline.program_timeline import Estimate, ProgramTimeline
from shardviz.timeline.simulation import TICKS, Simulation, lane_ticks
from shardviz.timeline.walk import Walker

MAX_NAMED = 5
"""Names in a note."""


def program_timeline(
    text: str,
    machine: Machine,
    *,
    mesh: Mesh | None = None,
    placement: Placement | None = None,
    infer: bool = False,
    module: HloModule | None = None,
) -> ProgramTimeline:
    """The timeline of HLO text on a machine; `timed_program` has the module as well.

    `module` is the text as it was read before on the same mesh, if it was.
    """
    return timed_program(text, machine, mesh=mesh, placement=placement, infer=infer, module=module)[1]


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
    """HLO text as a module, and its timeline on a machine.

    `mesh` names the axes that the groups of collectives follow, as in `read_hlo`; `infer` asks for one that
    explains them. `placement` says where the mesh lies, else it lies where JAX would place it. A text that is
    not scheduled is timed in the order of its lines, which `notes` says.

    Raises what `read_hlo` raises, and `QuestionError` for a text without an entry computation, and for a mesh
    that the machine cannot hold. `origins` as in `read_hlo`; with a `module` the text was read before.
    """
    placed = place_mesh(machine, mesh, placement) if mesh is not None else None
    slices = placed.placement.slices if placed is not None and placed.placement is not None else None
    reader = Reader(text, mesh, slices)
    if module is None:
        module = reader.read(infer=infer, origins=origins)
    if mesh is None and module.mesh is not None:
        placed = place_mesh(machine, module.mesh, placement, of_program=True)
    mesh = module.mesh or mesh
    notes: list[str] = []
    durations = Durations(reader.lines, machine.device)
    links = LinkTimes(machine, placed, mesh)
    walker = Walker(reader, module, durations, links)
    entry = walker.entry()
    if entry is None:
        raise QuestionError(
            "the text has no ENTRY computation, which says what runs",
            "give all of a module: compiled.as_text()",
        )
    run = Simulation().program(entry)
    drawing = draw(run)
    totals = run.totals
    total = run.duration / TICKS
    unknown = tuple(dict.fromkeys(op.name for op in drawing.ops if op.seconds is None))
    doubtful = [op.name for op in drawing.ops if op.name in walker.doubtful]
    estimates = {op.estimate for op in drawing.ops if drawing.lanes[op.lane].kind == "compute"}
    small = [op.name for op in drawing.ops if op.estimate == "links" and op.bound == "latency"]
    busy = {lane: ticks for lane, ticks in totals.busy.items() if lane != COMPUTE.name}
    if not module.is_scheduled:
        notes.insert(
            0,
            "this module is not scheduled: the order of its lines is not the order in which it runs; "
            "give the text of a compiled program, compiled.as_text(), whose header has is_scheduled=true",
        )
    notes += _notes(walker, links, machine, estimates, unknown, doubtful, small, len(module.unread))
    peak = _peak(machine, durations)
    timeline = ProgramTimeline(
        title=module.name or "a program without a name",
        machine=machine.name,
        lanes=drawing.lanes,
        ops=drawing.ops,
        spans=drawing.spans,
        seconds=total,
        drawn_seconds=drawing.seconds,
        compute_seconds=totals.busy.get(COMPUTE.name, 0) / TICKS,
        communication_seconds=lane_ticks(busy),
        exposed_seconds=lane_ticks(totals.exposed),
        flops=totals.flops,
        utilisation=totals.flops / (peak * total) if peak and total and totals.flops else None,
        critical_path=critical_path(drawing.causes, drawing.last),
        savings=savings(drawing.ops, drawing.lanes, drawing.least, total),
        unknown=unknown,
        notes=tuple(notes),
        links=machine.family.link_name,
    )
    memory = live_memory(reader, machine.device.usable_bytes)
    return module, replace(timeline, memory=on_clock(memory, timeline))


def _peak(machine: Machine, durations: Durations) -> float | None:
    """The FLOP/s that utilisation is of: in bf16, or in the type of most FLOPs where that is faster."""
    most = max(durations.flops_by_dtype.items(), key=lambda each: each[1], default=("", 0))[0]
    peaks = (machine.device.flops_per_second(dtype) for dtype in ("bf16", most))
    return max((peak for peak in peaks if peak), default=None)


def _notes(
    walker: Walker,
    links: LinkTimes,
    machine: Machine,
    estimates: set[Estimate],
    unknown: tuple[str, ...],
    doubtful: list[str],
    small: list[str],
    unread: int,
) -> list[str]:
    notes = []
    if machine.assumed:
        notes.append(
            f"no machine was named: {machine.name} chips are assumed, and each mesh axis a ring of its own"
        )
    if links.assumed:
        stand = (
            "stands for groups of that size" if len(links.assumed) == 1 else "stand for groups of those sizes"
        )
        notes.append(f"the mesh is not known: {', '.join(sorted(links.assumed))} {stand}")
    if walker.unknown_loops:
        notes.append(
            f"the text does not tell how often {_named([*walker.unknown_loops])} "
            f"{'runs' if len(walker.unknown_loops) == 1 else 'run'}: counted once"
        )
    if "compiler" not in estimates and "roofline" in estimates:
        notes.append(
            "the text has no estimates of its compiler: compute counts as its FLOPs and bytes over the "
            "device's figures, which is a lower bound"
        )
    if unknown:
        notes.append(f"the total leaves out what nobody can estimate: {_named(unknown)}")
    if doubtful:
        notes.append(f"doubtful: the compiler's estimate of {_named(doubtful)} is faster than the roofline")
    if small and not machine.measured:
        notes.append(
            f"latency bounds {_named(small)}: real transfers as small take some µs more than estimated"
        )
    if unread:
        notes.append(f"{plural(unread, 'piece')} of the text could not be read")
    return notes


def _named(names: list[str] | tuple[str, ...]) -> str:
    shown = ", ".join(quote(name) for name in names[:MAX_NAMED])
    more = len(names) - MAX_NAMED
    return f"{shown} and {plural(more, 'other')}" if more > 0 else shown
