"""The best on one mesh of all that is chosen beside shardings: the axes that cross slices or nodes, the
optimizer's state, what is kept for the backward pass, microbatches, and the runs of layers of a stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, gcd, inf, prod
from operator import itemgetter

from shardviz.hardware.machine import PlacedMesh, place_mesh
from shardviz.planner.plan import axes_words
from shardviz.planner.pricing.priced_plan import (
    UNKNOWN,
    is_mostly_sent,
    local_bound,
    overlapped,
    published_step,
    sums_of,
)
from shardviz.planner.problem import Phase
from shardviz.planner.problem.training import Optimizer, Training
from shardviz.planner.search.fastest_sharding import (
    CLOSE,
    SLOW,
    MeshSearch,
    Search,
    SharedState,
    StepSharding,
    StepTime,
    TooLarge,
    overlapping,
    step_time,
)
from shardviz.planner.search.least_sum import TooWideError
from shardviz.planner.search.meshes import axes_across, orders_across, with_order
from shardviz.planner.search.program_tables import (
    Multipliers,
    PipelineStage,
    PlacedProgram,
    ProgramSharding,
    ProgramTables,
)
from shardviz.planner.search.question import SearchQuestion
from shardviz.planner.search.rules import ShardingRules
from shardviz.planner.states.moves import Axes, spec_of
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.units import bytes_of, seconds as human_seconds

HOST = "host"
"""What bounds a step that waits longest for the memory of its host."""
MAX_INTERLEAVE = 8
"""Runs of layers of a stage."""


@dataclass(frozen=True)
class MeshSharding:
    """A mesh with the best sharding found of every array, and the figures of a step on one device.

    `specs` are those of the forward arrays that have a name. `memory_bytes` are held at once, estimated.
    `bound` is what the step takes longest for: "compute", "HBM", the mesh axes of a communication, or
    "unknown". `utilisation` are the program's FLOPs, nothing counted twice, over the peak of all devices
    (MFU). No sharding of the rules on this mesh is faster than `least_seconds`. With all communication beside
    the work of its pass it takes `overlapped_seconds`. `published_seconds` are those of a train step as
    published runs of the chip go (`published_step`), for any `overlap`, if known. `training` is the
    row's, with what was `chosen`, in words; `stage` is what a device computes of a pipeline, or of
    a batch in parts. One that `is_limited` was chosen for its memory. Keys and values pass round along the
    axes of a `ring`. With nothing to send between slices or nodes it would take `within_seconds`."""

    mesh: Mesh
    placed: PlacedMesh
    specs: tuple[tuple[str, PartitionSpec], ...]
    time: StepTime
    flops: float
    memory_bytes: int
    bound: str
    utilisation: float | None
    least_seconds: float
    overlapped_seconds: float
    published_seconds: float | None
    training: Training | None = None
    chosen: tuple[str, ...] = ()
    stage: PipelineStage | None = None
    is_limited: bool = False
    ring: Axes = ()
    within_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        return self.time.seconds

    @property
    def optimizer(self) -> Optimizer | None:
        return self.training and self.training.optimizer

    @property
    def is_offloaded(self) -> bool:
        """The optimizer's state lies in the host's memory."""
        return any(not axes for axes, _ in self.time.communication)

    @property
    def across(self) -> Axes:
        """The mesh axes that cross the slices or nodes of the machine, be it in part."""
        return axes_across(self.placed)

    @property
    def lacks_links(self) -> bool:
        """Nobody publishes the links of its communication, of which only HBM's time is counted."""
        return self.placed.machine.family.lacks_links and bool(self.time.communication)

    @property
    def allocated_bytes(self) -> int:
        """The most bytes that a compiler may allocate for it."""
        return round(self.memory_bytes * (1 + self.placed.machine.allocated))


@dataclass(frozen=True)
class InfeasibleMesh:
    """A mesh on which no sharding is possible, with the limit it breaks. `memory_bytes` are the fewest that a
    device would hold, 0 where that is not the limit. One that `is_skipped` has too many shardings. With more
    memory a step would take `least_seconds` or more."""

    mesh: Mesh
    reason: str
    memory_bytes: int = 0
    is_skipped: bool = False
    least_seconds: float = 0.0


Outcome = tuple[MeshSharding | InfeasibleMesh, int]
"""The best on a mesh, and how many shardings it has."""
Beside = tuple[ProgramTables, ProgramSharding, float]
"""A part of a model beside its layers of one kind, its sharding, and its runs for each such layer."""


def best_on_mesh(question: SearchQuestion, mesh: Mesh, shared: SharedState) -> Search[Outcome]:
    """The best of all that may be chosen, the axes that cross the machine's slices among it."""
    first, *others = orders_across(question.machine, mesh)
    outcome = yield from _in_order(question, first, shared)
    for other in others:
        best = outcome[0]
        # Memory is the same in any order, and less to send across slices saves at most what that exposes.
        if isinstance(best, InfeasibleMesh) or best.within_seconds > best.seconds * (1 - CLOSE):
            break
        limit = replace(shared, seconds=min(shared.seconds, best.seconds / SLOW))
        outcome = min(outcome, (yield from _in_order(question, other, limit)), key=_order)
    return outcome


def _in_order(question: SearchQuestion, mesh: Mesh, shared: SharedState) -> Search[Outcome]:
    """The best on a mesh whose axes stay in their order."""
    pipeline = next((axis.name for axis in question.axes if axis.kind == "pipeline"), "")
    stages = mesh.axis_size(pipeline) if pipeline else 1
    layers, runs = question.problem.layers, question.interleave or 1
    if stages > 1 and stages * runs > layers:
        return InfeasibleMesh(mesh, f"{layers} layers are fewer than {stages * runs} parts of a pipeline"), 0
    # Where the layers do not divide evenly, a step waits for the stages that have one more.
    one = PipelineStage(pipeline, stages, runs * ceil(layers / (stages * runs)) if stages > 1 else layers, 1)
    names = (axis.name for axis in question.axes if axis.kind == "data")
    copies = tuple(name for name in names if mesh.axis_size(name) > 1)
    outcome: Outcome = InfeasibleMesh(mesh, ""), 0
    prices = Prices(place_mesh(question.machine, with_order(question.machine, mesh)))
    for number, by_state in enumerate(question.by_state(copies)):
        if number and not _may_help(question, by_state, outcome[0]):
            continue
        for at, own in enumerate(by_state.by_remat):
            other = yield from _best_stages(own, mesh, prices, one, shared)
            outcome = min(outcome, other, key=_order) if number + at else other
        # The state of the optimizer takes less of a device where memory asks for it.
        if _is_settled(outcome[0], shared.slow):
            break
    best, shardings = outcome
    if isinstance(best, InfeasibleMesh) and best.least_seconds > shared.slow:
        least = human_seconds(best.least_seconds)
        best = replace(best, reason=f"{best.reason}, and a step takes {least} or more")
    return best, shardings


def _order(outcome: Outcome) -> tuple[float, ...]:
    """The fastest first, then what lacks the least memory."""
    result = outcome[0]
    if isinstance(result, MeshSharding):
        return 0.0, *figures(result)
    return 1.0, result.memory_bytes or inf


def figures(sharding: MeshSharding) -> tuple[float, ...]:
    time, sizes = sharding.time, sharding.mesh.axis_sizes
    axes = sum(size > 1 for size in sizes)
    return time.seconds, time.communication_seconds, sharding.memory_bytes, axes, *sizes


def _may_help(question: SearchQuestion, other: SearchQuestion, best: MeshSharding | InfeasibleMesh) -> bool:
    """Return whether less state may do better than the `best` so far: moments lose bits only where nothing
    fits with all of them, and all that is held shrinks by no more than parameters with their state do."""
    if isinstance(best, MeshSharding):
        own, more = question.optimizer, other.optimizer
        return own is not None and more is not None and own.moments == more.moments
    least = best.memory_bytes * other.parameter_bits(best.mesh) / question.parameter_bits(best.mesh)
    return least <= (question.machine.device.limit_bytes or inf)


def _is_settled(result: MeshSharding | InfeasibleMesh, slow: float) -> bool:
    """Return whether less memory would change nothing, or nothing that is not `slow`."""
    if result.least_seconds > slow:
        return True
    if isinstance(result, InfeasibleMesh):
        return not result.memory_bytes
    return not result.is_limited or result.seconds <= result.least_seconds * (1 + CLOSE)


def _best_stages(
    question: SearchQuestion, mesh: Mesh, prices: Prices, one: PipelineStage, shared: SharedState
) -> Search[Outcome]:
    """The best numbers of microbatches and of runs of layers: from one pair to a better one beside it. One
    stage takes several microbatches only where memory is what limits it."""
    # A number has no dimension of examples.
    examples = max(1, prod(question.problem.arguments[0].shape[:1]) // question.example_parts(mesh))
    microbatches, interleave = question.microbatches, question.interleave
    if microbatches and examples % microbatches:
        reason = f"{microbatches} microbatches do not divide {examples} examples per device"
        return InfeasibleMesh(mesh, reason), 0
    if one.stages == 1:
        microbatches, interleave = microbatches if question.training else 1, 1
    looked_at: dict[tuple[int, int], Outcome] = {}
    ends: dict[int, tuple[ProgramTables, ProgramSharding]] = {}

    def look_at(count: int, runs: int) -> Search[None]:
        is_usual = count > 0 and examples % count == 0 and one.layers % runs == 0 and runs <= MAX_INTERLEAVE
        is_usual = is_usual and (runs == 1 or count % one.stages == 0)
        is_asked = microbatches in (None, count) and interleave in (None, runs)
        if (count, runs) not in looked_at and is_asked and (is_usual or not looked_at):
            stage = one._replace(microbatches=count, interleave=runs)
            rows = (row for row, _ in looked_at.values() if isinstance(row, MeshSharding))
            fastest = min((row.seconds for row in rows), default=inf)
            looked_at[count, runs] = yield from _of_stage(
                question, mesh, prices, stage, shared, ends, fastest=fastest
            )

    usual = gcd(4 * one.stages, examples)
    here = microbatches or (usual if one.stages > 1 else 1), interleave or 1
    yield from look_at(*here)
    result, runs = looked_at[here][0], here[1]
    if isinstance(result, MeshSharding) and result.seconds > shared.slow:
        return looked_at[here]
    if one.stages == 1 and (_is_settled(result, shared.slow) or microbatches is not None):
        return looked_at[here]
    if isinstance(result, InfeasibleMesh) and microbatches is None:
        # More parts hold less, but for gradients that then lie beside activations. Fewer are faster.
        def fits(count: int) -> Search[bool]:
            if one.stages > 1:
                # Of a pipeline those may be the best that are looked at on the way.
                yield from look_at(count, runs)
                return isinstance(looked_at[count, runs][0], MeshSharding)
            stage = one._replace(microbatches=count, interleave=runs)
            smallest, own = yield from _of_stage(question, mesh, prices, stage, shared, ends, is_probe=True)
            if isinstance(smallest, InfeasibleMesh):
                looked_at[count, runs] = replace(smallest, least_seconds=result.least_seconds), own
            return isinstance(smallest, MeshSharding)

        more = [count for count in range(here[0] + 1, examples + 1) if examples % count == 0]
        more = [count for count in more if runs == 1 or count % one.stages == 0]
        if not more or not (yield from fits(more[-1])):
            return min(looked_at.values(), key=_order)
        low, high = 0, len(more) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if (yield from fits(more[middle])) else (middle + 1, high)
        here = more[low], runs
        yield from look_at(*here)
    # Two runs of layers hold the most: of more each waits less and holds less.
    most = max(each for each in range(1, MAX_INTERLEAVE + 1) if one.layers % each == 0)
    while True:
        count, runs = here
        near = (count, 2 * runs), (count // 2, 2 * runs), (count, most), (count // 2, most)
        for parts, each in (2 * count, runs), (count // 2, runs), *near:
            yield from look_at(parts, each)
        best = min(looked_at, key=lambda pair: _order(looked_at[pair]))
        if best == here:
            break
        here = best
    row, shardings = looked_at[here]
    if isinstance(row, MeshSharding) and isinstance(result, InfeasibleMesh) and one.stages == 1:
        # Parts of a batch save memory alone: at once, it would take less.
        row = replace(row, is_limited=True, least_seconds=result.least_seconds)
    return row, shardings


def _of_stage(
    question: SearchQuestion,
    mesh: Mesh,
    prices: Prices,
    stage: PipelineStage,
    shared: SharedState,
    known: dict[int, tuple[ProgramTables, ProgramSharding]],
    *,
    fastest: float = inf,
    is_probe: bool = False,
) -> Search[Outcome]:
    """The best in such stages, or as a probe that of the least memory; a model's ends are `known`, or become
    so, by the number of microbatches. One that cannot be as fast as the `fastest` is not looked for."""
    layers, limit, ends = stage.layers, question.machine.device.limit_bytes, None
    others: list[Beside] = []
    try:
        if (asked := question.own_ends) is not None:
            if (count := stage.microbatches) not in known:
                once = PipelineStage("", 1, 1.0, count)
                apart = yield from _tables(asked, mesh, prices, shared, once, keeps=False)
                if isinstance(apart, str):
                    return InfeasibleMesh(mesh, apart), 0
                known[count] = apart, (yield apart, Multipliers())[1]
            _, ends = known[count]
            # Stages are balanced with them.
            others.append((*known[count], 1 / (layers * stage.stages)))
        tables = yield from _tables(question, mesh, prices, shared, stage)
        if isinstance(tables, str):
            return InfeasibleMesh(mesh, tables), 0
        search = MeshSearch(tables, question.overlap, layers, stage.bubble, limit, shared, ends, fastest)
        best = yield from (search.smallest() if is_probe else search.best())
        if isinstance(best, TooLarge):
            return _too_large(mesh, best.smallest, limit or 0, best.least), tables.shardings
        states, memory = tables.states(best.sharding), best.sharding
        given = (array.name for array in question.problem.arguments)
        common = tuple((name, spec_of(states[question.roles.leader(name)])) for name in given)
        for number, kind in enumerate(question.other_kinds):
            runs = kind.problem.layers / question.problem.layers
            own, asked = stage._replace(layers=layers * runs), question.of_kind(number, common)
            apart = yield from _tables(asked, mesh, prices, shared, own, question)
            if isinstance(apart, str):
                return InfeasibleMesh(mesh, apart), 0
            _, sharding = yield apart, Multipliers()
            others.append((apart, sharding, runs))
            memory = memory.beside(sharding, runs, is_last=False)
    except TooWideError:
        return InfeasibleMesh(mesh, "too many shardings to search", is_skipped=True), 0
    if limit is not None and memory.memory > limit:
        return _too_large(mesh, memory, limit), tables.shardings
    return _row(question, prices, stage, tables, best, others, round(memory.memory)), tables.shardings


def _too_large(mesh: Mesh, sharding: ProgramSharding, limit: int, least: float = 0.0) -> InfeasibleMesh:
    held = round(sharding.memory)
    reason = f"each device would hold {bytes_of(held, limit)}"
    return InfeasibleMesh(mesh, reason, held, least_seconds=least)


def _row(
    question: SearchQuestion,
    prices: Prices,
    stage: PipelineStage,
    tables: ProgramTables,
    best: StepSharding,
    others: Sequence[Beside],
    memory_bytes: int,
) -> MeshSharding:
    """The figures of the `best` sharding of a stage's layers, with the parts of the model beside them."""
    layers, bubble, machine = stage.layers, stage.bubble, question.machine
    mesh = tables.program.rules.mesh
    states, leader = tables.states(best.sharding), question.roles.leader
    parts, work_beside = tables.communication(best.sharding), list[tuple[Phase, float]]()
    flops = tables.flops_of(best.sharding)
    for apart, sharding, runs in others:
        parts += [(*part[:2], runs * part[2], part[3]) for part in apart.communication(sharding)]
        work_beside += [(phase, runs * seconds) for phase, seconds in apart.work_of(sharding)]
        flops += runs * apart.flops_of(sharding)
    parts.sort(key=itemgetter(3))
    sharding = tables.summed(best.sharding, parts, work_beside)
    by_axes = sums_of(
        (tuple(sorted(axes, key=mesh.axis_names.index)), seconds * layers) for _, axes, seconds, _ in parts
    )
    time = step_time(sharding, question.overlap, layers, bubble)
    time = replace(time, communication=tuple(by_axes.items()))
    arrays = (array.name for array in question.problem.arrays if array.name not in question.unnamed)
    specs = {name: spec_of(states[leader(name)]) for name in arrays}
    for apart, sharding_apart, _ in others:
        own_states = apart.states(sharding_apart)
        specs |= {
            name: spec_of(own_states[name])
            for name in (argument.name for argument in apart.program.space.problem.arguments)
            if name in apart.program.rules.roles.parameters and name not in specs
        }
    dtype = question.problem.result.dtype
    peak = machine.device.flops_per_second(dtype)
    # The longer of the work and of the communication, be it waited for or hidden, by what takes longest.
    bound = local_bound(*tables.longest(sharding), dtype, machine.device)
    if is_mostly_sent(*overlapping(sharding, question.overlap)):
        bound = axes_words(max(time.communication, key=itemgetter(1))[0]) or HOST
    if machine.family.lacks_links and time.communication:
        bound = UNKNOWN
    work, sent, _ = overlapping(sharding, "all")
    possible = (peak or 0.0) * machine.devices * time.seconds
    share, runs = machine.reached if question.training else None, layers * (1 + bubble)
    # Published runs keep their state on the devices, and hide nothing else behind work.
    host = sum(seconds for _, axes, seconds, _ in parts if not axes)
    crossing = {*axes_across(prices.placed)}
    apart_parts = [part for part in parts if crossing.isdisjoint(part[1])]
    within = tables.summed(best.sharding, apart_parts, work_beside)
    return MeshSharding(
        mesh,
        prices.placed,
        specs=tuple(specs.items()),
        time=time,
        flops=flops * layers,
        memory_bytes=memory_bytes,
        bound=bound,
        utilisation=question.flops / possible if possible else None,
        least_seconds=best.least,
        overlapped_seconds=overlapped(work, sent) * runs,
        published_seconds=share and (published_step(work, (sent[0], sent[1] - host), share) + host) * runs,
        training=question.training,
        chosen=question.chosen,
        stage=stage if stage.stages > 1 or stage.microbatches > 1 else None,
        is_limited=best.is_limited,
        ring=tables.ring(sharding),
        within_seconds=step_time(within, question.overlap, layers, bubble).seconds,
    )


def _tables(
    question: SearchQuestion,
    mesh: Mesh,
    prices: Prices,
    shared: SharedState,
    stage: PipelineStage,
    others: SearchQuestion | None = None,
    *,
    keeps: bool = True,
) -> Search[ProgramTables | str]:
    """The tables of the layers of a stage, without the arrays that `others` count as theirs, or why work
    cannot be split. A part that `keeps` no activations for its layers holds each up to its last use."""
    counted = {} if others is None else {name: others.shapes[name] for name in others.held}
    kept = question.activations if question.training else ()
    held = {
        name: max(1.0, copies * stage.layers / question.problem.layers)
        * (stage.in_flight if name in kept else 1)
        for name, copies in question.held.items()
        if counted.get(name) != question.shapes[name] and (keeps or name not in kept)
    }
    # What is offloaded is there for a layer at a time.
    held |= dict.fromkeys(question.offloaded, float(keeps and others is None))
    offloaded = dict.fromkeys(question.offloaded, 2 / (question.machine.device.host or inf))
    rules = ShardingRules(question.axes, mesh, question.roles)
    space = shared.spaces.of(question.step, rules, held)
    if isinstance(space, str):
        return space
    tables: ProgramTables = yield PlacedProgram(space, rules, prices, held, stage, offloaded)
    return tables.uneven or tables
