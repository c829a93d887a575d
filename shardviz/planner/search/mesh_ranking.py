"""The search over meshes: for each the best sharding of every array, the fastest step first. It looks at
every way to give a machine's devices to the axes; its answer so far can be shown or left at any time.

Where one thing hides another the time of a step cannot be added up, and memory is a limit: multipliers bring
both into sums (Lagrangian relaxation: Everett 1963). A step of work w and of communication c that it can hide
takes max(w, c), at least (1 - s)·w + s·c for any share s from 0 to 1. So for any multipliers the least sum is
a bound for all shardings on a mesh; the best sharding met on the way is the answer."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, permutations
from math import ceil, gcd, inf, prod
from operator import itemgetter
from typing import Any, TypeVar

from shardviz.errors import QuestionError
from shardviz.hardware.chip_torus import parts_by_slice
from shardviz.hardware.clusters import cluster_named
from shardviz.hardware.machine import Machine, PlacedMesh, place_mesh
from shardviz.planner.plan import axes_words
from shardviz.planner.pricing.priced_plan import (
    UNKNOWN,
    Passes,
    is_mostly_sent,
    local_bound,
    overlapped,
    published_step,
    sums_of,
)
from shardviz.planner.problem import Phase, Problem
from shardviz.planner.problem.training import Optimizer, Training
from shardviz.planner.search.least_sum import TooWideError
from shardviz.planner.search.program_space import ProgramSpaces
from shardviz.planner.search.program_tables import (
    Multipliers,
    PipelineStage,
    PlacedProgram,
    ProgramSharding,
    ProgramTables,
    least_shardings,
    priced,
)
from shardviz.planner.search.question import Overlap, SearchQuestion
from shardviz.planner.search.rules import SearchAxis, ShardingRules
from shardviz.planner.states.moves import Axes, spec_of
from shardviz.planner.states.prices import Prices
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.units import human_bytes
from shardviz.units import seconds as human_seconds

LITTLE = 1e-3
"""The least weight of a side of the longer of two: of equal sums the one with less of it is chosen."""
HALVINGS = 8
"""How often the range of the price of memory is halved."""
FEW = 2
"""The same on a mesh that is slow."""
MAX_SHARES = 8
"""Shares of hidden communication that are tried."""
ROUNDING = 1e-9
"""The part of a sum by which it may be wrong."""
CLOSE = 1e-3
"""A sharding within this part of its bound is not improved."""
HOST = "host"
"""What bounds a step that waits longest for the memory of its host."""
MAX_MESHES = 20_000
MAX_INTERLEAVE = 8
"""Runs of layers of a stage."""
COPYING = ("data", "fsdp", "expert")
"""Kinds of axes that split the examples."""
SLOW = 2.0
"""A mesh that takes as many times the best one's seconds is slow: no batch is taken in parts there."""
AT_ONCE = 64
"""Meshes that are looked at side by side, fewer of those with axes of any kind."""
DOUBLINGS = 12
"""Machines that are tried, each of twice as many devices as the one before."""


@dataclass(frozen=True)
class StepTime:
    """The seconds of a step of one device: local `work`; all `communication` by the axes of its groups, none
    for that with the host; `exposed`, the part of it that is not hidden; `bubble`, what a pipeline waits."""

    work: float
    communication: tuple[tuple[Axes, float], ...]
    exposed: float
    bubble: float
    seconds: float

    @property
    def communication_seconds(self) -> float:
        return sum(seconds for _, seconds in self.communication)


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
        return _across(self.placed)

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


@dataclass(frozen=True)
class MeshRanking:
    """The answer of a search, or what it has so far.

    `found` are ranked by the seconds of a step, then by communication and memory. Of `meshes`, `looked_at`
    were looked at, which have `shardings` of all arrays together. No step takes less than `least_seconds`.
    `smallest_machine` would do where this one is too small, if it was looked for; where none would,
    `largest_machine_tried` is too small as well. With `fitting_options` this one would do."""

    question: SearchQuestion
    found: tuple[MeshSharding, ...] = ()
    infeasible: tuple[InfeasibleMesh, ...] = ()
    meshes: int = 0
    looked_at: int = 0
    shardings: int = 0
    least_seconds: float = 0.0
    smallest_machine: str = ""
    largest_machine_tried: str = ""
    fitting_options: str = ""

    @property
    def is_complete(self) -> bool:
        return self.looked_at == self.meshes

    @property
    def memory_limit(self) -> int | None:
        return self.question.machine.device.limit_bytes


def search_meshes(question: SearchQuestion) -> Iterator[MeshRanking]:
    """The answer so far, again and again, the last one complete. Raises `QuestionError` where no mesh has the
    sizes that are fixed."""
    machine = question.machine
    meshes = mesh_shapes(question.axes, machine.devices)
    device = machine.device
    peak = device.flops_per_second(question.problem.result.dtype)
    peak = peak or max(dict(device.peak).values(), default=0.0)
    # Those of a step's FLOPs on all devices, nothing sent.
    least_seconds = question.flops / (peak * machine.devices) if peak else 0.0
    answer = MeshRanking(question, meshes=len(meshes), least_seconds=least_seconds)
    shared = SharedState()
    # Those that split the examples least, most of which are slow, come last: less needs to be known of them.
    in_order = sorted(meshes, key=lambda mesh: -_example_parts(question, mesh))
    at_once = max(1, AT_ONCE >> 2 * sum(axis.kind == "any" for axis in question.axes))
    for start in range(0, len(in_order), at_once):
        searches = [_on_mesh(question, mesh, shared) for mesh in in_order[start : start + at_once]]
        for result in side_by_side(searches):
            if result is None:
                yield answer
                continue
            outcome, shardings = result
            if isinstance(outcome, InfeasibleMesh):
                answer = replace(answer, infeasible=(*answer.infeasible, outcome))
            else:
                answer = replace(answer, found=tuple(sorted((*answer.found, outcome), key=_figures)))
            number = answer.looked_at + 1
            answer = replace(answer, looked_at=number, shardings=answer.shardings + shardings)
            yield answer


Request = PlacedProgram | tuple[ProgramTables, Multipliers]
"""What a search asks for: the tables of a program, or their least sum and a sharding that has it."""
Result = TypeVar("Result")
Search = Generator[Request, Any, Result]


def side_by_side(searches: Sequence[Search[Result]]) -> Iterator[Result | None]:
    """The result of each search as it ends, and None each time before what all others ask for next is found
    at once."""
    answers: list[tuple[Search[Result], Any]] = [(search, None) for search in searches]
    while answers:
        asked = []
        for search, answer in answers:
            is_error = isinstance(answer, TooWideError)
            try:
                asked.append((search, search.throw(answer) if is_error else search.send(answer)))
            except StopIteration as end:
                yield end.value
        if asked:
            yield None
        tables = iter(priced([one for _, one in asked if isinstance(one, PlacedProgram)]))
        sums = iter(least_shardings([one for _, one in asked if not isinstance(one, PlacedProgram)]))
        answers = [
            (search, next(tables if isinstance(one, PlacedProgram) else sums)) for search, one in asked
        ]


@dataclass
class SharedState:
    """The spaces of programs, which meshes share, and the `seconds` of the fastest step so far on any."""

    seconds: float = inf
    spaces: ProgramSpaces = field(default_factory=ProgramSpaces)

    @property
    def slow(self) -> float:
        """The seconds from which a mesh is looked at less closely."""
        return SLOW * self.seconds


def best_meshes(question: SearchQuestion) -> MeshRanking:
    *_, answer = search_meshes(question)
    return answer


def with_smallest_machine(answer: MeshRanking) -> MeshRanking:
    """The answer with what would do where memory is what lacks: other options on this machine, and the
    smallest machine of as many devices times a power of two, or the largest that was tried."""
    if answer.found or not any(mesh.memory_bytes for mesh in answer.infeasible):
        return answer
    question = answer.question
    answer = replace(answer, fitting_options=_fitting_options(question))
    axes = tuple(replace(axis, size=None) for axis in question.axes)
    tried = ""
    for doubling in range(1, DOUBLINGS + 1):
        names = question.machine.names_of_size(question.machine.devices << doubling)
        if names and (machine := cluster_named(names[0])) is not None:
            if _fitting(replace(question, machine=machine, axes=axes)):
                return replace(answer, smallest_machine=machine.name)
            tried = machine.name
    return replace(answer, largest_machine_tried=tried)


def _fitting(question: SearchQuestion) -> MeshSharding | None:
    """A mesh that fits with all that a compiler may allocate, if one does."""
    limit = question.machine.device.limit_bytes or 0
    found = (sharding for answer in search_meshes(question) for sharding in answer.found)
    return next((sharding for sharding in found if sharding.allocated_bytes <= limit), None)


def _fitting_options(question: SearchQuestion) -> str:
    """The options of a train step that holds less and fits; "" where none does."""
    if (training := question.training) is None:
        return ""
    layer, optimizer = training._replace(remat="layer"), training.optimizer
    own = replace(question, training=layer, remats=())
    tries = {"--remat layer": own} if layer != training else {}
    if optimizer is not None and optimizer.rule == "adam":
        small = optimizer._replace(moments="bf16")
        tries[f"--remat layer --optimizer {small}"] = replace(own, training=layer._replace(optimizer=small))
    if optimizer is not None and question.machine.device.host:
        tries["--remat layer --offload optimizer"] = replace(own, offload="optimizer")
    return next((options for options, asked in tries.items() if _fitting(asked)), "")


def problem_of(question: SearchQuestion, sharding: MeshSharding) -> Problem:
    """The step of a row as a problem to plan and compile, all named forward arrays split as there."""
    return question.on(with_order(question.machine, sharding.mesh), dict(sharding.specs), sharding.training)


def shown_mesh(question: SearchQuestion, sharding: MeshSharding) -> Mesh:
    """The mesh of a row without axes of size 1, in the order in which it lies on the machine."""
    return without_ones(with_order(question.machine, sharding.mesh))


def _figures(sharding: MeshSharding) -> tuple[float, ...]:
    time = sharding.time
    return time.seconds, time.communication_seconds, sharding.memory_bytes, *sharding.mesh.axis_sizes


def _example_parts(question: SearchQuestion, mesh: Mesh) -> int:
    """The parts into which the axes of a mesh split the examples."""
    return prod(mesh.axis_size(axis.name) for axis in question.axes if axis.kind in COPYING)


Outcome = tuple[MeshSharding | InfeasibleMesh, int]
"""The best on a mesh, and how many shardings it has."""


def _on_mesh(question: SearchQuestion, mesh: Mesh, shared: SharedState) -> Search[Outcome]:
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


def orders_across(machine: Machine, mesh: Mesh) -> list[Mesh]:
    """The mesh, and those with others of its axes first, as the leading ones cross the slices or nodes of a
    machine (`jax.experimental.mesh_utils.create_hybrid_device_mesh`): one for each way to divide these."""
    if machine.family.parts == 1:
        return [mesh]
    found: dict[frozenset[tuple[str, int]], Mesh] = {}
    for names in permutations(mesh.axis_names):
        sizes = tuple(map(mesh.axis_size, names))
        _, parts = parts_by_slice(sizes, machine.family.parts)
        across = {name: part for name, part in zip(names, parts, strict=True) if part > 1}
        order = (*across, *(name for name in mesh.axis_names if name not in across))
        own = replace(mesh, axis_names=order, axis_sizes=tuple(map(mesh.axis_size, order)))
        found.setdefault(frozenset(across.items()), mesh if names == mesh.axis_names else own)
    return [*found.values()]


def _across(placed: PlacedMesh) -> Axes:
    levels = ((axis, placed.published_levels((axis,))) for axis in placed.mesh.axis_names)
    return tuple(axis for axis, own in levels if any(level.kind == "network" for level in own))


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
        return 0.0, *_figures(result)
    return 1.0, result.memory_bytes or inf


def _may_help(question: SearchQuestion, other: SearchQuestion, best: MeshSharding | InfeasibleMesh) -> bool:
    """Return whether less state may do better than the `best` so far: moments lose bits only where nothing
    fits with all of them, and all that is held shrinks by no more than parameters with their state do."""
    if isinstance(best, MeshSharding):
        return not any(words.startswith("moments") for words in other.chosen)
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
    examples = max(1, question.problem.arguments[0].shape[0] // _example_parts(question, mesh))
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
            looked_at[count, runs] = yield from _of_stage(question, mesh, prices, stage, shared, ends)

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
            yield from look_at(count, runs)
            return isinstance(looked_at[count, runs][0], MeshSharding)

        more = [count for count in range(here[0] + 1, examples + 1) if examples % count == 0]
        more = [count for count in more if runs == 1 or count % one.stages == 0]
        if not more or not (yield from fits(more[-1])):
            return min(looked_at.values(), key=_order)
        low, high = 0, len(more) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if (yield from fits(more[middle])) else (middle + 1, high)
        here = more[low], runs
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
) -> Search[Outcome]:
    """The best in such stages; a model's ends are `known`, or become so, by the number of microbatches."""
    layers, bubble, machine = stage.layers, stage.bubble, question.machine
    limit, ends, leader = machine.device.limit_bytes, None, question.roles.leader
    # The other parts of a model, with their runs for each layer.
    others: list[tuple[ProgramTables, ProgramSharding, float]] = []
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
        search = MeshSearch(tables, question.overlap, layers, bubble, limit, shared, ends)
        best = yield from search.best()
        if isinstance(best, float):
            smallest = yield from search.smallest()
            least = round(smallest.memory)
            reason = f"each device would hold {human_bytes(least)} of {human_bytes(limit or 0)}"
            return InfeasibleMesh(mesh, reason, least, least_seconds=best), tables.shardings
        states, memory = tables.states(best.sharding), best.sharding
        given = (array.name for array in question.problem.arguments)
        common = tuple((name, spec_of(states[leader(name)])) for name in given)
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
        reason = f"each device would hold {human_bytes(round(memory.memory))} of {human_bytes(limit)}"
        return InfeasibleMesh(mesh, reason, round(memory.memory)), tables.shardings
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
            for name in apart.program.rules.roles.parameters
            if name not in specs
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
    crossing = {*_across(prices.placed)}
    apart_parts = [part for part in parts if crossing.isdisjoint(part[1])]
    within = tables.summed(best.sharding, apart_parts, work_beside)
    row = MeshSharding(
        mesh,
        prices.placed,
        specs=tuple(specs.items()),
        time=time,
        flops=flops * layers,
        memory_bytes=round(memory.memory),
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
    return row, tables.shardings


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


def mesh_shapes(axes: Sequence[SearchAxis], devices: int) -> tuple[Mesh, ...]:
    """Every mesh of so many devices with these axes. Raises `QuestionError` where none has the sizes that are
    fixed, and where there are more than `MAX_MESHES`."""
    sizes = list(islice(_sizes([axis.size for axis in axes], devices), MAX_MESHES + 1))
    if len(sizes) > MAX_MESHES:
        problem = f"there are more than {MAX_MESHES:,} meshes of {devices:,} devices with {len(axes)} axes"
        raise QuestionError(problem, "name fewer axes, or fix the size of some: --axes data,tensor=8")
    if not sizes:
        said = ", ".join(f"{axis.name}={axis.size}" for axis in axes if axis.size is not None) or "no axes"
        problem = f"no mesh of {devices:,} devices has {said}"
        raise QuestionError(problem, f"choose sizes that divide {devices:,}, and leave one axis free")
    return tuple(Mesh(tuple(axis.name for axis in axes), own) for own in sizes)


def _sizes(fixed: Sequence[int | None], devices: int) -> Iterator[tuple[int, ...]]:
    if not fixed:
        if devices == 1:
            yield ()
        return
    first, *rest = fixed
    for size in [first] if first is not None else range(1, devices + 1):
        if devices % size == 0:
            yield from ((size, *others) for others in _sizes(rest, devices // size))


def with_order(machine: Machine, mesh: Mesh) -> Mesh:
    """The mesh, in the order of the devices' ids where `jax.make_mesh` does not place it."""
    if machine.assumed or machine.family.jax_order(mesh.axis_sizes) is not None:
        return mesh
    return replace(mesh, device_order=tuple(range(mesh.size)))


def without_ones(mesh: Mesh) -> Mesh:
    """The mesh without axes of size 1; its first axis where all are."""
    kept = [(name, size) for name, size in mesh.shape.items() if size > 1]
    names, sizes = zip(*kept or [*mesh.shape.items()][:1], strict=True)
    return replace(mesh, axis_names=names, axis_sizes=sizes)


# The best sharding of a program's arrays on one mesh, within the memory of a device.


def step_time(sharding: ProgramSharding, overlap: Overlap, layers: float, bubble: float = 0.0) -> StepTime:
    """The time of so many layers on each device, all communication together; `bubble` is what a pipeline
    waits, as a part of the rest."""
    work, hidden, waited = overlapping(sharding, overlap)
    busy = (overlapped(work, hidden) + sum(waited)) * layers
    sent = (sum(sharding.exposed) + sum(sharding.hidden)) * layers
    local = sum(work) * layers
    return StepTime(local, (((), sent),), busy - local, busy * bubble, busy * (1 + bubble))


def overlapping(sharding: ProgramSharding, overlap: Overlap) -> tuple[Passes, Passes, Passes]:
    """By pass the seconds of one layer's work, of the communication that it can hide, and of all other."""
    exposed, hidden = sharding.exposed, sharding.hidden
    if overlap == "parameters":
        return sharding.work, hidden, exposed
    every, none = (exposed[0] + hidden[0], exposed[1] + hidden[1]), (0.0, 0.0)
    return (sharding.work, none, every) if overlap == "none" else (sharding.work, every, none)


@dataclass(frozen=True)
class StepSharding:
    """A sharding with the time of its step, and the least that any on this mesh could have in seconds. One
    that `is_limited` was chosen for its memory."""

    sharding: ProgramSharding
    time: StepTime
    least: float
    is_limited: bool = False


@dataclass(frozen=True)
class MeshSearch:
    """The search on one mesh: `layers` are those of a device, `limit` the bytes that it may hold, if known;
    `bubble` is what a pipeline waits, as a part of the rest. A mesh where a step takes much longer than on
    others is looked at less closely."""

    tables: ProgramTables
    overlap: Overlap
    layers: float
    bubble: float
    limit: int | None
    shared: SharedState = field(default_factory=SharedState)
    ends: ProgramSharding | None = None

    def best(self) -> Search[StepSharding | float]:
        """The fastest that fits; where none does, the least seconds that any takes."""
        free = yield from self._fastest(0.0)
        if self._fits(free):
            return free
        smallest = yield from self.smallest()
        if self.limit is None or smallest.memory > self.limit:
            return free.least
        fastest = StepSharding(
            smallest, step_time(smallest, self.overlap, self.layers, self.bubble), free.least
        )
        low, high = 0.0, free.time.seconds / self.limit
        halvings = HALVINGS if free.least < self.shared.slow else FEW
        for _ in range(halvings):
            candidate = yield from self._fastest(high)
            if self._fits(candidate):
                fastest = min(fastest, candidate, key=lambda one: one.time.seconds)
                break
            low, high = high, high * 16
        for _ in range(halvings):
            middle = (low * high) ** 0.5 if low else high / 16
            candidate = yield from self._fastest(middle)
            if self._fits(candidate):
                high = middle
                fastest = min(fastest, candidate, key=lambda one: one.time.seconds)
            else:
                low = middle
        return replace(fastest, least=free.least, is_limited=True)

    def smallest(self) -> Search[ProgramSharding]:
        little = LITTLE, LITTLE
        _, smallest = yield from self._with_ends(Multipliers(little, little, little, memory=1.0))
        return smallest

    def _with_ends(self, by: Multipliers) -> Search[tuple[float, ProgramSharding]]:
        """The least sum of a layer and its part of the ends, and a sharding that has it."""
        bound, sharding = yield self.tables, by
        if self.ends is None:
            return bound, sharding
        once = 1 / (self.layers * self.tables.program.stage.stages)
        return bound + once * self.ends.seconds(by), sharding.beside(self.ends, once, is_last=True)

    def _fits(self, sharding: StepSharding) -> bool:
        fits = self.limit is None or sharding.sharding.memory <= self.limit
        if fits:
            self.shared.seconds = min(self.shared.seconds, sharding.time.seconds)
        return fits

    def _fastest(self, price: float) -> Search[StepSharding]:
        """The fastest where each byte of memory adds `price` seconds."""
        sharding = low = yield from self._least((0.0, 0.0), price)
        work, hidden, _ = overlapping(sharding.sharding, self.overlap)
        # The passes in which communication stands out; of the other the sum is that of its work.
        full: Passes = float(hidden[0] > work[0]), float(hidden[1] > work[1])
        if not any(full):
            return sharding
        share, high = 1.0, None
        for _ in range(MAX_SHARES):
            shares = full[0] * share, full[1] * share
            trial = yield from self._least(shares, price)
            is_faster = self._cost(trial, price) < self._cost(sharding, price)
            sharding = replace(trial if is_faster else sharding, least=max(sharding.least, trial.least))
            # Each sharding's sum is a line over the share; the bound is highest where the lines cross.
            low_sum, own_sum = (self._sum(one, shares, price) for one in (low, trial))
            is_top = high is not None and own_sum >= low_sum * (1 - ROUNDING)
            rises = self._sum(trial, full, price) > self._sum(trial, (0.0, 0.0), price)
            is_close = sharding.time.seconds <= sharding.least * (1 + CLOSE)
            if is_close or is_top or (high is None and rises):
                break
            low, high = (trial, high) if high and rises else (low, trial)
            share = self._crossing(low, high, full, price)
        return sharding

    def _sum(self, sharding: StepSharding, shares: Passes, price: float) -> float:
        """The sum by multipliers of a sharding, in seconds."""
        sides = zip(shares, *overlapping(sharding.sharding, self.overlap), strict=True)
        layer = sum((1 - share) * work + share * hidden + waited for share, work, hidden, waited in sides)
        return layer * self.layers + price * sharding.sharding.memory

    def _crossing(self, low: StepSharding, high: StepSharding, full: Passes, price: float) -> float:
        """The part of the shares `full` at which the sums of two shardings are equal."""
        (at_none, at_all), (other_none, other_all) = (
            (self._sum(sharding, (0.0, 0.0), price), self._sum(sharding, full, price))
            for sharding in (low, high)
        )
        rise = (at_all - at_none) - (other_all - other_none)
        return min(1.0, max(0.0, (other_none - at_none) / rise)) if rise > 0 else 0.5

    def _least(self, shares: Passes, price: float) -> Search[StepSharding]:
        """The sharding whose sum by multipliers is least: of the longer of work and hidden communication they
        take the part `shares` of the second, and of the first the rest. It bounds the time of a step."""
        work = hidden = exposed = (1.0, 1.0)
        if self.overlap != "none":
            work = max(1 - shares[0], LITTLE), max(1 - shares[1], LITTLE)
            hidden = max(shares[0], LITTLE), max(shares[1], LITTLE)
            exposed = hidden if self.overlap == "all" else exposed
        by = Multipliers(work, exposed, hidden, price / self.layers)
        bound, sharding = yield from self._with_ends(by)
        time = step_time(sharding, self.overlap, self.layers, self.bubble)
        least = 0.0 if price else bound * self.layers * (1 + self.bubble) / (1 + LITTLE)
        return StepSharding(sharding, time, least)

    def _cost(self, sharding: StepSharding, price: float) -> tuple[float, float]:
        time = sharding.time
        return time.seconds + price * sharding.sharding.memory, time.communication_seconds
