"""The answers of compilers: targets with their collectives, passes, and programs read from text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardviz.documents.fields import (
    COUNT,
    STRING,
    Beside,
    Document,
    DocumentKind,
    JsonField,
    array_of,
    by_name,
    closed,
    count,
    counts,
    flag,
    null_if_empty,
    nullable,
    number,
    one_of,
    optional,
    shared,
    text,
    texts,
)
from shardviz.documents.jobs import JOB, job_beside
from shardviz.documents.plans import AXIS_TYPES, COST, MESH, PHASES, PLAN, PROBLEM, SPEC, TOTALS
from shardviz.documents.timelines import LIVE_MEMORY, TIMELINE, TOLD_TIMES, told_times

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.devices.job import Job
    from shardviz.hlo.mlir.tensor_shardings import Axes
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.planner.problem import Problem
    from shardviz.reports.dumped_modules import DumpedModule
    from shardviz.reports.pass_trace import PassTrace
    from shardviz.reports.program_report import ProgramReport
    from shardviz.reports.rematerialization import Rematerialization
    from shardviz.reports.selection import Selection
    from shardviz.reports.suggestions import Suggestion
    from shardviz.reports.target_program import TargetProgram
    from shardviz.reports.target_result import TargetResult
    from shardviz.reports.target_times import TimesAnswer
    from shardviz.reports.why import Reason
    from shardviz.sharding import Mesh

_OVERLAPPED = closed(
    "An instruction that runs while the collective is under way.",
    name=text("The instruction's name."),
    op=text("Its opcode, or matmul where it multiplies matrices."),
    cycles=nullable(count("Clock cycles by the compiler's estimate; null: it gives none.")),
)
_MATMUL_ORDER = closed(
    "Its place among the program's matmuls; null: not known.",
    matmuls_before=count("Matmuls before it.").of("before"),
    matmuls=count("Matmuls in all."),
)


def _reported(name: str) -> Callable[[Any], Any]:
    """A figure of a report on a collective; None of one that is in no report."""
    return lambda collective: getattr(collective, name, None)


_REPORTED = {
    "phase": optional(one_of("The part of a train step; left out: not certain.", *PHASES)).of(
        _reported("phase")
    ),
    "scopes": optional(texts("The user's names around it, outermost first.")).of(_reported("scopes")),
    "argument": optional(
        text("The path of the argument that it moves; empty where that is computed, or several.")
    ).of(_reported("argument")),
    "gradient_of": optional(
        texts("The paths of the arguments whose gradients it sums; empty where that is not certain.")
    ).of(_reported("gradient_of")),
    "link": optional(text("The slowest links that it uses, such as ICI; empty: not known.")).of(
        _reported("link")
    ),
    "seconds": optional(number("Seconds of one run on the machine.")).of(_reported("seconds")),
    "exposed_seconds": optional(
        number("Seconds of one run for which the device waits with nothing else to do.")
    ).of(_reported("exposed")),
    "why": optional(
        closed(
            "Why it is there, where the program before its compilation is at hand.",
            kind=one_of(
                "The kind of the meeting of two shardings, unknown where only shapes and groups tell.",
                *("contraction", "gradient", "parameter", "constraint", "result", "reshard", "unknown"),
            ),
            words=text("The reason, a sentence."),
            is_expected=flag(
                "Proved to be by design: a parameter's gather under FSDP, or a gradient's sum once a step."
            ),
            before=nullable(SPEC("The value's own sharding; null: not known.")),
            after=nullable(SPEC("The sharding that is wanted; null: not known.")),
            shape=nullable(counts("The value's global shape; null: not known.")),
            suggestion=optional(
                closed(
                    "What to write so that it is not there, tried on the target.",
                    code=text("The change."),
                    argument=null_if_empty(text("The argument that is split in another way; null: none is.")),
                    made_by=null_if_empty(text("The operation whose result is constrained; null: none is.")),
                    spec=SPEC("The other sharding."),
                    saved_bytes=count("Bytes that a device sends less in a run."),
                    memory_bytes=JsonField(
                        {
                            "description": "Bytes of memory that a device needs more at the peak; or less.",
                            "type": "integer",
                        }
                    ),
                )
            ),
        )
    ).of(_reported("why")),
}
_SOURCE = text("The line of the user's program that it comes from; empty where the text does not say.")
COLLECTIVE = shared(
    "collective",
    closed(
        "A collective of a compiled program.",
        op=text("HLO's name of the operation, such as all-gather."),
        name=text("The instruction's name."),
        axes=texts('Mesh axes of its groups, a sub-axis as "Y:(2)2"; empty where the groups follow none.'),
        groups=nullable(
            array_of(
                JsonField({"type": "array", "items": COUNT.schema}, list),
                "Device ids of each group, or (source, target) of a permute; null: too many to list.",
            )
        ),
        group_count=null_if_empty(count("Groups; null: the text does not tell.")),
        group_size=count("Devices in each group."),
        operand_shape=counts("Elements along each dimension of a device's operand."),
        result_shape=counts("Elements along each dimension of a device's result."),
        dtype=text("The element type."),
        arrays=count("Arrays that it combines; the shapes are those of the first."),
        bytes=count("Bytes of the larger of a device's operand and result, all arrays together."),
        wire_bytes=count("Bytes that one device must send at least."),
        count=nullable(count("The number of times that it runs; null: in a loop of unknown length.")),
        in_branch=flag("It runs only where a branch of a conditional is taken."),
        source=_SOURCE,
        is_async=flag("It starts and ends in different places of the program."),
        overlapped=array_of(_OVERLAPPED, "Instructions that run while it is under way, in program order."),
        algorithm=null_if_empty(text("The algorithm of the compiler; null: it does not say.")),
        standing=nullable(_MATMUL_ORDER).of("matmul_order"),
        between_slices=flag("It crosses the data-center network between TPU slices."),
        is_host_transfer=flag("It goes between a device and its host, not between devices."),
        **_REPORTED,
    ),
)
COLLECTIVE_MATMUL = shared(
    "collective_matmul",
    closed(
        "A gather before a matmul, or a scatter after it, taken apart into permutes around a ring.",
        op=one_of("The collective that was taken apart.", "all-gather", "reduce-scatter"),
        axes=texts("Mesh axes of the ring."),
        directions=count("1 where all permutes go the same way around the ring, 2 where they go both ways."),
        group_size=count("Devices of the ring."),
        permutes=texts("Names of the permutes, in program order."),
        matmuls=texts("Names of the partial matmuls, in program order."),
        bytes=count("Bytes of the larger of a device's operand and result of the whole collective."),
        wire_bytes=nullable(
            count("Bytes that one device sends in all permutes; null: in a loop of unknown length.")
        ),
        source=_SOURCE,
    ),
)
PLACEMENT = shared(
    "placement",
    closed(
        "The placement of the mesh on the chips.",
        torus=counts("Chips along each axis of a slice's torus; empty for GPUs, whose nodes are switches."),
        wrap=array_of(JsonField({"type": "boolean"}), "For each axis of the torus, true where it is a ring."),
        axes=array_of(
            closed(
                "A mesh axis on the machine.",
                axis=text("The mesh axis."),
                along=texts("Its directions, the fastest last: x, y, z, core and slice, or gpu and node."),
                hops=nullable(
                    count("Links between neighbours at most; null: they are on several slices or nodes.")
                ),
                is_ring=flag(
                    "Three devices or more, of which the last is as near to the first as neighbours."
                ),
            ),
            "Every mesh axis, in the mesh's order.",
        ),
        devices=array_of(
            closed(
                "A device on the machine.",
                id=count("The device's id."),
                coords=counts("Its chip's place in the torus; empty for a GPU."),
                core=count("Its core on the chip, or the GPU's number in its node."),
                slice=count("Its slice, or node."),
            ),
            "Every device, by its position in the mesh.",
        ).of(
            lambda placed: [Beside(place, id=id) for id, place in zip(placed.ids, placed.places, strict=True)]
        ),
    ),
)

_COLLECTIVES = array_of(COLLECTIVE("A collective."), "Collectives in program order.").of(
    lambda program: [each for each in program.collectives if each.op != "slice"]
)
_SLICES = array_of(
    COLLECTIVE("A slice."), "Slices that each device takes of its own data; nothing is sent."
).of(lambda program: [each for each in program.collectives if each.op == "slice"])
_MATMULS = array_of(
    COLLECTIVE_MATMUL("A collective matmul."), "Collectives that the compiler took apart into permutes."
)

TARGET = shared(
    "target",
    closed(
        "A target's answer.",
        target=text("The target's name."),
        status=one_of("The outcome.", "ok", "error", "unavailable"),
        error=null_if_empty(text("The error; null where the target answered.")),
        hint=null_if_empty(text("A hint on the error; null: there is none.")),
        result_spec=nullable(SPEC("The sharding of the result; null: not known.")),
        result_unreduced=texts("Mesh axes of the result's pending sum.").of(
            lambda answer: () if answer.result_spec is None else answer.result_spec.unreduced
        ),
        collectives=_COLLECTIVES,
        slices=_SLICES,
        collective_matmuls=_MATMULS,
        partitioned=nullable(
            array_of(
                COLLECTIVE("A collective."),
                "Collectives right after partitioning, before the backend rewrote them; null: not known.",
            )
        ),
        placement=nullable(PLACEMENT("The placement of the mesh on a TPU or GPU target; null elsewhere.")),
        elapsed_s=number("Seconds from the request to the answer.").by(lambda taken: round(taken, 6)),
        versions=by_name(STRING, "Versions of what answered, by package."),
        typeof=optional(by_name(STRING, "The type that jax.typeof gives each array under Explicit axes.")).of(
            lambda answer: answer.typeof or None
        ),
        text=optional(text("The program that was read, with --hlo.")),
    ),
)


DIFFERENCE = closed(
    "A difference between the plan and a target.",
    target=text("The target's name."),
    code=text("A stable name of the kind of difference, such as promoted_dtype."),
    message=text("The cause, in a sentence with the numbers."),
)


def target_answer(compiled: TargetResult, mesh: Mesh, with_text: bool = False) -> Beside:
    """A target's answer as `TARGET` writes it, on the problem's mesh; its text only if it is wanted."""
    from shardviz.hardware import axis_runs

    placement = compiled.placement
    placed = None if placement is None else Beside(placement, axes=axis_runs(placement, mesh))
    return Beside(compiled, placement=placed, text=compiled.text if with_text else None)


EXPLAIN = DocumentKind(
    "explain",
    "explain",
    "The plan of an einsum, and the answers of the compilers.",
    problem=PROBLEM("The problem.").of("plan"),
    plan=PLAN("The operations that should happen, and their reasons."),
    cost=COST("The seconds and the memory of the plan."),
    alternatives=array_of(
        closed(
            "Another plan for the same problem on the same machine.",
            name=one_of("The rule by which it is chosen.", "fewest bytes", "fastest", "textbook"),
            plan=PLAN("Its operations."),
            cost=TOTALS("Its seconds and its memory."),
        ),
        "The plans that others would choose, where they are other plans.",
    ).of("cost.alternatives"),
    targets=array_of(TARGET("A target's answer."), "The answers of the compilers."),
    differences=array_of(DIFFERENCE, "The differences between targets and the plan."),
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
    plan = cost.plan
    mesh = plan.problem.mesh
    targets = [target_answer(each, mesh, with_text) for each in compiled]
    timelines = None if times is None else told_times(cost, times)
    return EXPLAIN.document(
        plan=plan,
        cost=cost,
        targets=targets,
        differences=differences,
        timelines=timelines,
        job=job_beside(job, mesh, [(axis,) for axis in mesh.axis_names]),
    )


def _axes(dims: Axes) -> list[list[str]]:
    return [list(axes) for axes in dims]


PASSES = DocumentKind(
    "passes",
    "passes",
    "The changes that a compiler makes to a program, pass by pass.",
    einsum=text("The einsum, or a chain of them with semicolons.").of("text"),
    mesh=MESH("The mesh."),
    axis_types=AXIS_TYPES,
    answer=TARGET("The target's answer."),
    stages=array_of(
        closed(
            "A stage of the compiler that changed shardings or collectives.",
            stage=count("Its number, from 1."),
            kind=one_of("The kind of stage.", "input", "propagation", "partitioner", "rewrite", "schedule"),
            title=text("Its change in a few words."),
            **{"pass": text("The compiler's name of the pass.").of("pass_name")},
            changes=texts("Its changes, a sentence each."),
            splits=array_of(
                closed(
                    "A tensor that it split.",
                    name=text("The tensor's name."),
                    op=text("The operation that makes it."),
                    shape=counts("Elements along each dimension."),
                    dtype=text("The element type."),
                    before=nullable(SPEC("Its sharding before; null: it was left open.").by(_axes)),
                    spec=nullable(SPEC("Its sharding; null: it is left open.").by(_axes)).of("dims"),
                    unreduced=texts("Mesh axes of its pending sum."),
                ),
                "The shardings that it decided; at the input those that were given.",
            ),
            before=array_of(COLLECTIVE("A collective."), "Collectives before it."),
            after=array_of(COLLECTIVE("A collective."), "Collectives after it."),
            diff=optional(texts("Lines of a unified diff of the program, where --diff asks for this stage.")),
        ),
        "The stages, in order.",
    ),
)


def passes_document(traced: PassTrace, problem: Problem, diffs: frozenset[int] = frozenset()) -> Document:
    """`stages`, numbered from 1, and the target's `answer`; those in `diffs` have a `diff`."""
    stages = [
        Beside(stage, stage=number, diff=stage.diff() if number in diffs else None)
        for number, stage in enumerate(traced.stages, 1)
    ]
    return PASSES.document(problem, answer=target_answer(traced.compiled, problem.mesh), stages=stages)


_TOTALS = closed(
    "Sums over all runs of one operation on one device.",
    count=count("Runs, loops included."),
    bytes=count("Bytes of the larger of operand and result, over all runs."),
    wire_bytes=count("Bytes that one device must send at least, over all runs."),
    unknown=count("Collectives in loops of unknown length, which the sums leave out."),
)
REMATERIALIZATION = shared(
    "rematerialization",
    closed(
        "An array that is made whole on every device on its way from one sharding to another.",
        written=nullable(
            texts("The two shardings as XLA prints them in its warning; null: it did not warn.")
        ),
        before=nullable(SPEC("Its sharding before, along the mesh's axes; null: not known.")),
        after=nullable(SPEC("Its sharding after; null: not known.")),
        shape=nullable(counts("Its global shape, rounded up where axes do not divide it; null: not known.")),
        dtype=text("HLO's name of its element type; empty where the shape is not known."),
        op_name=text("JAX's name of the operation; empty where XLA does not say."),
        source=_SOURCE,
        times=count("Warnings that say the same."),
        kept=counts("The shape of a device's part, where the text tells no sharding after; else empty."),
        whole_bytes=nullable(count("Bytes of the whole array, on every device; null: not known.")),
        wire_bytes=nullable(count("Bytes that a device sends at least to have it whole; null: not known.")),
        route_bytes=nullable(count("Bytes that a device sends along the route; null: none is known.")),
        route=array_of(
            closed(
                "A step of a route that never makes it whole.",
                op=text("JAX's name of the operation."),
                axes=texts("The mesh axes over which it moves."),
                spec=SPEC("The sharding that it ends in."),
                wire_bytes=count("Bytes that a device sends at least."),
            ),
            "The steps of a cheapest route; empty where none is known.",
        ),
    ),
)
REMATERIALIZATIONS = DocumentKind(
    "rematerializations",
    "hlo LOG",
    "The arrays that XLA's log says are made whole on every device.",
    mesh=nullable(MESH("The mesh whose axes the shardings name; null: none is known.")),
    is_mesh_inferred=flag("The mesh was found in the shardings."),
    rematerializations=array_of(REMATERIALIZATION("An array."), "The arrays, in the order of the log."),
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
    module=text("The module's name.").of("name"),
    dialect=one_of("The text's language.", "hlo", "mlir"),
    num_partitions=nullable(count("Partitions of the program; null: only HLO says.")),
    replica_count=nullable(count("Replicas of the program; null: only HLO says.")),
    num_slices=nullable(count("TPU slices that it runs on; null: only HLO says.")),
    is_scheduled=flag("The instructions stand in the order in which they run."),
    collective_matmuls=_MATMULS,
    unknown_loops=texts("Loops with collectives whose number of runs the text does not tell.").of(
        lambda module: getattr(module, "unknown_loops", ())
    ),
    mesh=nullable(MESH("The mesh whose axes the collectives name; null: none is known.")),
    is_mesh_inferred=flag("The mesh was found in the groups."),
    totals=by_name(_TOTALS, "Totals by HLO's name of the operation, within a slice."),
    totals_between_slices=by_name(_TOTALS, "Totals by HLO's name, between TPU slices."),
    totals_of_host_transfers=by_name(_TOTALS, "Totals by HLO's name, between devices and their hosts."),
    collectives=_COLLECTIVES,
    slices=_SLICES,
    unread=texts("The parts that could not be read, a sentence each."),
    unread_collectives=count("Collectives that could not be read."),
    awaits_partitioner=flag("The program is not partitioned yet: the compiler will insert collectives."),
    rematerializations=array_of(
        REMATERIALIZATION("An array."),
        "Arrays that are made whole on every device on their way, as XLA warns.",
    ),
    timeline=optional(TIMELINE("What runs when on a machine, with --machine or --time.")),
)
_MLIR = {"num_partitions": None, "replica_count": None, "num_slices": None}
"""In place of what only HLO says of a program."""


def hlo_document(
    report: ProgramReport,
    given: Mesh | None = None,
    selection: Selection | None = None,
    rematerializations: Sequence[Rematerialization] = (),
    compiled: TargetProgram | None = None,
) -> Document:
    """The module's facts, its `mesh`, `totals` and `collectives`; `given` is the mesh that the user named.

    `timeline` is there where the report has one. Collectives, in program order, and totals are those that the
    selection shows; those of a target's `compiled` program have the reasons why they are there.

    `mesh` is null where it is not known; `is_mesh_inferred` where only the groups tell that there is one.

    `totals` are by op, those between TPU slices under `totals_between_slices`, and `send` and `recv` of hosts
    under `totals_of_host_transfers`. In each, `count`, `bytes` and
    `wire_bytes` are sums over all runs on one device, without the collectives in loops of unknown length,
    which `unknown` counts, and without the `unread_collectives`. What only HLO says is null for StableHLO and
    Shardy text.
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

    module, found = report.module, report.entries
    chosen = found if selection is None else selection.shown(found)
    sums = totals(each.collective for each in chosen)
    is_hlo = isinstance(module, HloModule)
    reason_of: dict[str, Reason] = {}
    if compiled is not None and compiled.reshards:
        names = (each.collective.name for each in found)
        reason_of = dict(zip(names, compiled.reasons, strict=True))
    entries = [
        Beside(
            each.collective,
            phase=each.phase,
            scopes=each.scopes,
            argument=each.argument,
            gradient_of=each.gradient_of,
            link=each.link,
            seconds=each.seconds,
            exposed=each.exposed,
            why=reason
            and Beside(reason, **_met(reason), suggestion=_suggested((suggestions or {}).get(reason))),
        )
        for each, reason in ((each, reason_of.get(each.collective.name)) for each in chosen)
    ]
    slices = [each for each in module.collectives if each.op == "slice"]
    return Beside(
        module if is_hlo else Beside(module, **_MLIR, is_scheduled=False, collective_matmuls=()),
        collectives=[*entries, *slices],
        dialect="hlo" if is_hlo else "mlir",
        is_mesh_inferred=is_hlo and given is None and module.mesh is not None,
        totals=[(each.op, each) for each in sums if not each.between_slices and not each.is_host_transfer],
        totals_between_slices=[(each.op, each) for each in sums if each.between_slices],
        totals_of_host_transfers=[(each.op, each) for each in sums if each.is_host_transfer],
        rematerializations=rematerializations,
        timeline=report.timeline,
    )


def _met(reason: Reason) -> dict[str, object]:
    """The two shardings that met, and the value's shape."""
    meeting = reason.meeting
    if meeting is None:
        return {"before": None, "after": None, "shape": None}
    return {"before": meeting.before, "after": meeting.after, "shape": meeting.shape}


def _suggested(one: Suggestion | None) -> Beside | None:
    if one is None:
        return None
    candidate = one.candidate
    name = "" if candidate.argument is None else candidate.argument.name
    return Beside(candidate, argument=name, saved_bytes=one.saved_bytes, memory_bytes=one.memory_bytes)


PROGRAM = DocumentKind(
    "program",
    "program",
    "A function of one's own, as targets compile it.",
    name=text("The program's name."),
    targets=array_of(
        closed(
            "A target's program.",
            target=text("The target's name."),
            status=one_of("The outcome.", "ok", "error", "unavailable"),
            error=null_if_empty(text("The error; null where the target answered.")),
            hint=null_if_empty(text("A hint on the error; null: there is none.")),
            elapsed_s=number("Seconds from the request to the answer.").by(lambda taken: round(taken, 6)),
            versions=by_name(STRING, "Versions of what answered, by package."),
            placement=nullable(PLACEMENT("The placement of the mesh; null: the target has no hardware.")),
            live_memory=nullable(
                LIVE_MEMORY("The compiler's account of a device's memory; null: none is known.")
            ).of("memory"),
            seconds=nullable(number("Seconds of a run on the machine; null: nobody can tell.")),
            notes=texts("Notes on how the program was read, a sentence each."),
            warnings=texts("What the program loses silently, a sentence each, such as a donation."),
            program=nullable(HLO.record),
        ),
        "The targets' programs.",
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
    from shardviz.hardware import axis_runs

    targets = []
    tried = suggestions or [{}] * len(programs)
    for (each, report), found in zip(programs, tried, strict=True):
        placement, answer = each.answer.placement, each.answer
        placed = None
        if placement is not None and each.mesh is not None:
            placed = Beside(placement, axes=axis_runs(placement, each.mesh))
        read = seconds = None
        if report is not None:
            read = _hlo(report, each.mesh, selection, each.rematerializations, each, found)
            if not with_timelines:
                read = Beside(read, timeline=None)
            seconds = None if report.timeline is None else report.timeline.seconds
        targets.append(
            Beside(
                answer,
                notes=each.notes,
                warnings=each.warnings,
                placement=placed,
                seconds=seconds,
                program=read,
            )
        )
    return PROGRAM.document(name=name, targets=targets)


MODULES = DocumentKind(
    "modules",
    "hlo DIR",
    "The collectives in the final program of each module of a folder of dumps.",
    modules=array_of(
        closed(
            "A module.",
            file=text("The name of its file in the folder."),
            error=null_if_empty(text("The reason why not all of it is read, or timed; null where it is.")),
            program=nullable(HLO.record),
        ),
        "The modules, in the order in which they were compiled.",
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
