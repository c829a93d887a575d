"""The answers of compilers: targets with their collectives, passes, and programs read from text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    SIGNED_INT,
    Beside,
    Document,
    DocumentKind,
    of,
    one_of,
    optional,
    record,
    records,
)
from shardviz.documents.meshes import JOB, MESH, SPEC, job_beside
from shardviz.documents.plans import AXIS_TYPES, COST, PHASE, PLAN, PROBLEM, TOTALS
from shardviz.documents.timelines import LIVE_MEMORY, SOURCE, TIMELINE, TOLD_TIMES, told_times

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.devices.job import Job
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.planner.problem import Problem
    from shardviz.reports.entries import Selection
    from shardviz.reports.program_report import DumpedModule, ProgramReport, TimesAnswer
    from shardviz.reports.rematerialization import Rematerialization
    from shardviz.reports.suggestions import Suggestion
    from shardviz.reports.target_program import TargetProgram
    from shardviz.reports.target_result import PassTrace, TargetResult
    from shardviz.reports.why import Reason
    from shardviz.sharding import Mesh

_OVERLAPPED = record(
    "An instruction that runs while the collective is under way.",
    name=of(str, "The instruction's name."),
    op=of(str, "Its opcode, or matmul where it multiplies matrices."),
    cycles=of(int, "Clock cycles by the compiler's estimate; null: it gives none."),
)
_WHY = record(
    "Why it is there, where the program before its compilation is at hand.",
    kind=of(
        one_of("contraction", "gradient", "parameter", "constraint", "result", "reshard", "unknown"),
        "The kind of the meeting of two shardings, unknown where only shapes and groups tell.",
    ),
    words=of(str, "The reason, a sentence."),
    is_expected=of(
        bool, "Proved to be by design: a parameter's gather under FSDP, or a gradient's sum once a step."
    ),
    before=of(SPEC, "The value's own sharding; null: not known.", "meeting.before"),
    after=of(SPEC, "The sharding that is wanted; null: not known.", "meeting.after"),
    shape=of([int], "The value's global shape; null: not known.", "meeting.shape"),
    suggestion=optional(
        record(
            "What to write so that it is not there, tried on the target.",
            code=of(str, "The change.", "candidate.code"),
            argument=of(
                str, "The argument that is split in another way; null: none is.", "candidate.argument.name"
            ),
            made_by=of(str, "The operation whose result is constrained; null: none is.", "candidate.made_by"),
            spec=of(SPEC, "The other sharding.", "candidate.spec"),
            saved_bytes=of(int, "Bytes that a device sends less in a run."),
            memory_bytes=of(SIGNED_INT, "Bytes of memory that a device needs more at the peak; or less."),
        )
    ),
)
COLLECTIVE = record(
    "A collective of a compiled program.",
    op=of(str, "HLO's name of the operation, such as all-gather."),
    name=of(str, "The instruction's name."),
    axes=of([str], 'Mesh axes of its groups, a sub-axis as "Y:(2)2"; empty where the groups follow none.'),
    groups=of([[int]], "Device ids of each group, or (source, target) of a permute; null: too many to list."),
    group_count=of(
        int, "Groups; null: the text does not tell.", lambda collective: collective.group_count or None
    ),
    group_size=of(int, "Devices in each group."),
    operand_shape=of([int], "Elements along each dimension of a device's operand."),
    result_shape=of([int], "Elements along each dimension of a device's result."),
    dtype=of(str, "The element type."),
    arrays=of(int, "Arrays that it combines; the shapes are those of the first."),
    bytes=of(int, "Bytes of the larger of a device's operand and result, all arrays together."),
    wire_bytes=of(int, "Bytes that one device must send at least."),
    count=of(int, "The number of times that it runs; null: in a loop of unknown length."),
    in_branch=of(bool, "It runs only where a branch of a conditional is taken."),
    source=SOURCE,
    is_async=of(bool, "It starts and ends in different places of the program."),
    overlapped=of([_OVERLAPPED], "Instructions that run while it is under way, in program order."),
    algorithm=of(str, "The algorithm of the compiler; null: it does not say."),
    standing=record(
        "Its place among the program's matmuls; null: not known.",
        "matmul_order",
        matmuls_before=of(int, "Matmuls before it.", "before"),
        matmuls=of(int, "Matmuls in all."),
    ),
    between_slices=of(bool, "It crosses the data-center network between TPU slices."),
    is_host_transfer=of(bool, "It goes between a device and its host, not between devices."),
    # Of one in a report:
    phase=optional(PHASE, "The part of a train step; left out: not certain."),
    scopes=optional([str], "The user's names around it, outermost first."),
    argument=optional(
        str, "The path of the argument that it moves; empty where that is computed, or several."
    ),
    gradient_of=optional(
        [str], "The paths of the arguments whose gradients it sums; empty where that is not certain."
    ),
    link=optional(str, "The slowest links that it uses, such as ICI; empty: not known."),
    seconds=optional(float, "Seconds of one run on the machine."),
    exposed_seconds=optional(
        float, "Seconds of one run for which the device waits with nothing else to do.", "exposed"
    ),
    why=optional(_WHY),
).shared("collective")
COLLECTIVE_MATMUL = record(
    "A gather before a matmul, or a scatter after it, taken apart into permutes around a ring.",
    op=of(one_of("all-gather", "reduce-scatter"), "The collective that was taken apart."),
    axes=of([str], "Mesh axes of the ring."),
    directions=of(int, "1 where all permutes go the same way around the ring, 2 where they go both ways."),
    group_size=of(int, "Devices of the ring."),
    permutes=of([str], "Names of the permutes, in program order."),
    matmuls=of([str], "Names of the partial matmuls, in program order."),
    bytes=of(int, "Bytes of the larger of a device's operand and result of the whole collective."),
    wire_bytes=of(int, "Bytes that one device sends in all permutes; null: in a loop of unknown length."),
    source=SOURCE,
).shared("collective_matmul")
PLACEMENT = record(
    "The placement of the mesh on the chips.",
    torus=of([int], "Chips along each axis of a slice's torus; empty for GPUs, whose nodes are switches."),
    wrap=of([bool], "For each axis of the torus, true where it is a ring."),
    axes=records(
        "Every mesh axis, in the mesh's order.",
        "A mesh axis on the machine.",
        axis=of(str, "The mesh axis."),
        along=of([str], "Its directions, the fastest last: x, y, z, core and slice, or gpu and node."),
        hops=of(int, "Links between neighbours at most; null: they are on several slices or nodes."),
        is_ring=of(bool, "Three devices or more, of which the last is as near to the first as neighbours."),
    ),
    devices=records(
        "Every device, by its position in the mesh.",
        "A device on the machine.",
        lambda placed: [Beside(place, id=id) for id, place in zip(placed.ids, placed.places, strict=True)],
        id=of(int, "The device's id."),
        coords=of([int], "Its chip's place in the torus; empty for a GPU."),
        core=of(int, "Its core on the chip, or the GPU's number in its node."),
        slice=of(int, "Its slice, or node."),
    ),
).shared("placement")
_COLLECTIVES = of(
    [of(COLLECTIVE, "A collective.")],
    "Collectives in program order.",
    lambda program: [each for each in program.collectives if each.op != "slice"],
)
_SLICES = of(
    [of(COLLECTIVE, "A slice.")],
    "Slices that each device takes of its own data; nothing is sent.",
    lambda program: [each for each in program.collectives if each.op == "slice"],
)
_MATMULS = of(
    [of(COLLECTIVE_MATMUL, "A collective matmul.")], "Collectives that the compiler took apart into permutes."
)
_ANSWER = {
    "target": of(str, "The target's name."),
    "status": of(one_of("ok", "error", "unavailable"), "The outcome."),
    "error": of(str, "The error; null where the target answered."),
    "hint": of(str, "A hint on the error; null: there is none."),
}
_ELAPSED = {
    "elapsed_s": of(
        float, "Seconds from the request to the answer.", lambda answer: round(answer.elapsed_s, 6)
    ),
    "versions": of({str: str}, "Versions of what answered, by package."),
}
TARGET = record(
    "A target's answer.",
    **_ANSWER,
    result_spec=of(SPEC, "The sharding of the result; null: not known."),
    result_unreduced=of(
        [str],
        "Mesh axes of the result's pending sum.",
        lambda answer: answer.result_spec.unreduced if answer.result_spec else (),
    ),
    collectives=_COLLECTIVES,
    slices=_SLICES,
    collective_matmuls=_MATMULS,
    partitioned=of(
        [of(COLLECTIVE, "A collective.")],
        "Collectives right after partitioning, before the backend rewrote them; null: not known.",
    ),
    placement=of(
        PLACEMENT, "The placement of the mesh on a TPU or GPU target; null: the target has no hardware."
    ),
    **_ELAPSED,
    typeof=optional(
        {str: str},
        "The type that jax.typeof gives each array under Explicit axes.",
        lambda answer: answer.typeof or None,
    ),
    text=optional(str, "The program that was read, with --hlo."),
).shared("target")
DIFFERENCE = record(
    "A difference between the plan and a target.",
    target=of(str, "The target's name."),
    code=of(str, "A stable name of the kind of difference, such as promoted_dtype."),
    message=of(str, "The cause, in a sentence with the numbers."),
)


def target_answer(compiled: TargetResult, mesh: Mesh, with_text: bool = False) -> Beside:
    """A target's answer as `TARGET` writes it, on the problem's mesh; its text only if it is wanted."""
    return Beside(compiled, placement=_placed(compiled, mesh), text=compiled.text if with_text else None)


def _placed(compiled: TargetResult, mesh: Mesh | None) -> Beside | None:
    from shardviz.hardware.placement import axis_runs

    placement = compiled.placement
    if placement is None or mesh is None:
        return None
    return Beside(placement, axes=axis_runs(placement, mesh))


EXPLAIN = DocumentKind(
    "explain",
    "explain",
    "The plan of an einsum, and the answers of the compilers.",
    problem=of(PROBLEM, "The problem.", "plan"),
    plan=of(PLAN, "The operations that should happen, and their reasons."),
    cost=of(COST, "The seconds and the memory of the plan."),
    alternatives=records(
        "The plans that others would choose, where they are other plans.",
        "Another plan for the same problem on the same machine.",
        "cost.alternatives",
        name=of(one_of("fewest bytes", "fastest", "textbook"), "The rule by which it is chosen."),
        plan=of(PLAN, "Its operations."),
        cost=of(TOTALS, "Its seconds and its memory."),
    ),
    targets=of([of(TARGET, "A target's answer.")], "The answers of the compilers."),
    differences=of([DIFFERENCE], "The differences between targets and the plan."),
    timelines=optional(TOLD_TIMES),
    job=JOB,
)


def explain_document(
    cost: PlanCost,
    compiled: Iterable[TargetResult] = (),
    differences: Iterable[Difference] = (),
    with_text: bool = False,
    times: Iterable[TimesAnswer] | None = None,
    job: Job | None = None,
) -> Document:
    """`problem`, `plan`, `cost`, `targets` and `differences` of one explanation.

    `with_text`: with each target the program that it answered with. `times` are those of the targets, where
    they are asked for, and `job` has the real devices.
    """
    mesh = cost.plan.problem.mesh
    return EXPLAIN.document(
        plan=cost.plan,
        cost=cost,
        targets=[target_answer(each, mesh, with_text) for each in compiled],
        differences=differences,
        timelines=None if times is None else told_times(cost, times),
        job=job_beside(job, mesh, [(axis,) for axis in mesh.axis_names]),
    )


PASSES = DocumentKind(
    "passes",
    "passes",
    "The changes that a compiler makes to a program, pass by pass.",
    einsum=of(str, "The einsum, or a chain of them with semicolons.", "text"),
    mesh=of(MESH, "The mesh."),
    axis_types=AXIS_TYPES,
    answer=of(TARGET, "The target's answer."),
    stages=records(
        "The stages, in order.",
        "A stage of the compiler that changed shardings or collectives.",
        stage=of(int, "Its number, from 1."),
        kind=of(one_of("input", "propagation", "partitioner", "rewrite", "schedule"), "The kind of stage."),
        title=of(str, "Its change in a few words."),
        **{"pass": of(str, "The compiler's name of the pass.", "pass_name")},
        changes=of([str], "Its changes, a sentence each."),
        splits=records(
            "The shardings that it decided; at the input those that were given.",
            "A tensor that it split.",
            name=of(str, "The tensor's name."),
            op=of(str, "The operation that makes it."),
            shape=of([int], "Elements along each dimension."),
            dtype=of(str, "The element type."),
            before=of(SPEC, "Its sharding before; null: it was left open."),
            spec=of(SPEC, "Its sharding; null: it is left open.", "dims"),
            unreduced=of([str], "Mesh axes of its pending sum."),
        ),
        before=of([of(COLLECTIVE, "A collective.")], "Collectives before it."),
        after=of([of(COLLECTIVE, "A collective.")], "Collectives after it."),
        diff=optional([str], "Lines of a unified diff of the program, where --diff asks for this stage."),
    ),
)


def passes_document(traced: PassTrace, problem: Problem, diffs: frozenset[int] = frozenset()) -> Document:
    """`stages`, numbered from 1, and the target's `answer`; those in `diffs` have a `diff`."""
    stages = [
        Beside(stage, stage=number, diff=stage.diff() if number in diffs else None)
        for number, stage in enumerate(traced.stages, 1)
    ]
    return PASSES.document(problem, answer=target_answer(traced.compiled, problem.mesh), stages=stages)


_TOTALS = record(
    "Sums over all runs of one operation on one device.",
    count=of(int, "Runs, loops included."),
    bytes=of(int, "Bytes of the larger of operand and result, over all runs."),
    wire_bytes=of(int, "Bytes that one device must send at least, over all runs."),
    unknown=of(int, "Collectives in loops of unknown length, which the sums leave out."),
)
REMATERIALIZATION = record(
    "An array that is made whole on every device on its way from one sharding to another.",
    written=of([str], "The two shardings as XLA prints them in its warning; null: it did not warn."),
    before=of(SPEC, "Its sharding before, along the mesh's axes; null: not known."),
    after=of(SPEC, "Its sharding after; null: not known."),
    shape=of([int], "Its global shape, rounded up where axes do not divide it; null: not known."),
    dtype=of(str, "HLO's name of its element type; empty where the shape is not known."),
    op_name=of(str, "JAX's name of the operation; empty where XLA does not say."),
    source=SOURCE,
    times=of(int, "Warnings that say the same."),
    kept=of([int], "The shape of a device's part, where the text tells no sharding after; else empty."),
    whole_bytes=of(int, "Bytes of the whole array, on every device; null: not known."),
    wire_bytes=of(int, "Bytes that a device sends at least to have it whole; null: not known."),
    route_bytes=of(int, "Bytes that a device sends along the route; null: none is known."),
    route=records(
        "The steps of a cheapest route; empty where none is known.",
        "A step of a route that never makes it whole.",
        op=of(str, "JAX's name of the operation."),
        axes=of([str], "The mesh axes over which it moves."),
        spec=of(SPEC, "The sharding that it ends in."),
        wire_bytes=of(int, "Bytes that a device sends at least."),
    ),
).shared("rematerialization")
REMATERIALIZATIONS = DocumentKind(
    "rematerializations",
    "hlo LOG",
    "The arrays that XLA's log says are made whole on every device.",
    mesh=of(MESH, "The mesh whose axes the shardings name; null: none is known."),
    is_mesh_inferred=of(bool, "The mesh was found in the shardings."),
    rematerializations=of([of(REMATERIALIZATION, "An array.")], "The arrays, in the order of the log."),
)


def rematerializations_document(
    found: Iterable[Rematerialization], mesh: Mesh | None, given: Mesh | None
) -> Document:
    """The arrays of a log alone; `given` is the mesh that the user named."""
    return REMATERIALIZATIONS.document(
        mesh=mesh, is_mesh_inferred=mesh is not None and given is None, rematerializations=[*found]
    )


HLO = DocumentKind(
    "hlo",
    "hlo",
    "The collectives in any compiled program.",
    module=of(str, "The module's name.", "name"),
    dialect=of(one_of("hlo", "mlir"), "The text's language."),
    num_partitions=of(int, "Partitions of the program; null: only HLO says."),
    replica_count=of(int, "Replicas of the program; null: only HLO says."),
    num_slices=of(int, "TPU slices that it runs on; null: only HLO says."),
    is_scheduled=of(bool, "The instructions stand in the order in which they run."),
    collective_matmuls=_MATMULS,
    unknown_loops=of([str], "Loops with collectives whose number of runs the text does not tell."),
    mesh=of(MESH, "The mesh whose axes the collectives name; null: none is known."),
    is_mesh_inferred=of(bool, "The mesh was found in the groups."),
    totals=of({str: _TOTALS}, "Totals by HLO's name of the operation, within a slice."),
    totals_between_slices=of({str: _TOTALS}, "Totals by HLO's name, between TPU slices."),
    totals_of_host_transfers=of({str: _TOTALS}, "Totals by HLO's name, between devices and their hosts."),
    collectives=_COLLECTIVES,
    slices=_SLICES,
    unread=of([str], "The parts that could not be read, a sentence each."),
    unread_collectives=of(int, "Collectives that could not be read."),
    awaits_partitioner=of(bool, "The program is not partitioned yet: the compiler will insert collectives."),
    rematerializations=of(
        [of(REMATERIALIZATION, "An array.")],
        "Arrays that are made whole on every device on their way, as XLA warns.",
    ),
    timeline=optional(TIMELINE, "What runs when on a machine, with --machine or --time."),
)
_ONLY_HLO = dict.fromkeys(("num_partitions", "replica_count", "num_slices"))
_ONLY_HLO |= {"is_scheduled": False, "collective_matmuls": (), "unknown_loops": ()}
"""In place of what only HLO says of a program."""


def hlo_document(
    report: ProgramReport,
    given: Mesh | None = None,
    selection: Selection | None = None,
    rematerializations: Sequence[Rematerialization] = (),
    compiled: TargetProgram | None = None,
) -> Document:
    """A report; `given` is the mesh that the user named.

    Collectives and totals are those that the selection shows, without the collectives that could not be
    read; those of a target's `compiled` program have the reasons why they are there.
    """
    return HLO.document(_hlo(report, given, selection, rematerializations, compiled))


def _hlo(
    report: ProgramReport,
    given: Mesh | None,
    selection: Selection | None = None,
    rematerializations: Sequence[Rematerialization] = (),
    compiled: TargetProgram | None = None,
    suggestions: Mapping[Reason, Suggestion] | None = None,
) -> Beside:
    """A report as `HLO` writes it; a `compiled` one has the reasons of its collectives, with the suggestions
    that were found."""
    from shardviz.hlo import HloModule
    from shardviz.hlo.totals import totals

    module, tried = report.module, suggestions or {}
    chosen = report.entries if selection is None else selection.shown(report.entries)
    sums = totals(entry.collective for entry in chosen)
    is_hlo = isinstance(module, HloModule)
    reason_of: dict[str, Reason] = {}
    if compiled is not None and compiled.reshards:
        names = (entry.collective.name for entry in report.entries)
        reason_of = dict(zip(names, compiled.reasons, strict=True))
    entries = []
    for entry in chosen:
        reason = reason_of.get(entry.collective.name)
        why = reason and Beside(reason, suggestion=tried.get(reason))
        entries.append(Beside(entry.collective, entry, why=why))
    slices = [each for each in module.collectives if each.op == "slice"]
    within = [each for each in sums if not each.is_host_transfer]
    return Beside(
        module if is_hlo else Beside(module, **_ONLY_HLO),
        collectives=[*entries, *slices],
        dialect="hlo" if is_hlo else "mlir",
        is_mesh_inferred=is_hlo and given is None and module.mesh is not None,
        totals={each.op: each for each in within if not each.between_slices},
        totals_between_slices={each.op: each for each in within if each.between_slices},
        totals_of_host_transfers={each.op: each for each in sums if each.is_host_transfer},
        rematerializations=rematerializations,
        timeline=report.timeline,
    )


PROGRAM = DocumentKind(
    "program",
    "program",
    "A function of one's own, as targets compile it.",
    name=of(str, "The program's name."),
    targets=records(
        "The targets' programs.",
        "A target's program.",
        **_ANSWER,
        **_ELAPSED,
        placement=of(PLACEMENT, "The placement of the mesh; null: the target has no hardware."),
        live_memory=of(
            LIVE_MEMORY, "The compiler's account of a device's memory; null: none is known.", "memory"
        ),
        seconds=of(float, "Seconds of a run on the machine; null: nobody can tell."),
        notes=of([str], "Notes on how the program was read, a sentence each."),
        warnings=of([str], "What the program loses silently, a sentence each, such as a donation."),
        program=of(HLO.record, "The collectives in the compiled program; null: there is none."),
    ),
)


def program_document(
    name: str,
    programs: Sequence[tuple[TargetProgram, ProgramReport | None]],
    with_timelines: bool = False,
    selection: Selection | None = None,
    suggestions: Sequence[Mapping[Reason, Suggestion]] = (),
) -> Document:
    """The programs of all targets, each with the report on it, where there is one; `program` is then the
    document of `shardviz hlo`."""
    targets = []
    tried = suggestions or [{}] * len(programs)
    for (program, report), found in zip(programs, tried, strict=True):
        answer = program.answer
        read = seconds = None
        if report is not None:
            read = _hlo(report, program.mesh, selection, program.rematerializations, program, found)
            if not with_timelines:
                read = Beside(read, timeline=None)
            seconds = None if report.timeline is None else report.timeline.seconds
        placed = _placed(answer, program.mesh)
        targets.append(Beside(answer, program, placement=placed, seconds=seconds, program=read))
    return PROGRAM.document(name=name, targets=targets)


MODULES = DocumentKind(
    "modules",
    "hlo DIR",
    "The collectives in the final program of each module of a folder of dumps.",
    modules=records(
        "The modules, in the order in which they were compiled.",
        "A module.",
        file=of(str, "The name of its file in the folder."),
        error=of(str, "The reason why not all of it is read, or timed; null where it is."),
        program=of(HLO.record, "The collectives in the compiled program; null: there is none."),
    ),
)


def modules_document(
    modules: Iterable[DumpedModule], given: Mesh | None = None, selection: Selection | None = None
) -> Document:
    """The modules of a folder: the file of each, what the selection shows of it, and why it cannot be
    read."""
    told = [
        Beside(
            file=Path(each.file.path).name,
            error=each.error,
            program=None if each.report is None else _hlo(each.report, given, selection),
        )
        for each in modules
    ]
    return MODULES.document(modules=told)
