"""The answers of compilers, passes, and programs from text; whole models; what runs when, and what ran."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shardviz.collectives.values import plain_values
from shardviz.documents.fields import KINDS, Beside, Document, late
from shardviz.documents.machines import job_beside

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.devices.job import Job
    from shardviz.models.answer import ModelAnswer, ModelChange
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.planner.problem import Problem
    from shardviz.reports.entries import Selection
    from shardviz.reports.failures import OutOfMemory
    from shardviz.reports.program_report import DumpedModule, ProgramReport, TargetProgram, TimesAnswer
    from shardviz.reports.rematerialization import Rematerialization
    from shardviz.reports.target_result import PassTrace, TargetResult
    from shardviz.reports.verdicts import WasteVerdict
    from shardviz.reports.why import Reason
    from shardviz.sharding import Mesh

_ONLY_HLO = dict.fromkeys(("num_partitions", "replica_count", "num_slices"))
_ONLY_HLO |= {"is_scheduled": False, "collective_matmuls": (), "unknown_loops": ()}
"""In place of what only HLO says of a program."""


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
    they are asked for, and `job` has the real devices."""
    mesh = cost.plan.problem.mesh
    return KINDS["explain"].document(
        plan=cost.plan,
        cost=cost,
        targets=[target_answer(result, mesh, with_text) for result in compiled],
        differences=differences,
        timelines=None if times is None else _told_times(cost, times),
        job=job_beside(job, mesh, [(axis,) for axis in mesh.axis_names]),
    )


def target_answer(compiled: TargetResult, mesh: Mesh, with_text: bool = False) -> Beside:
    """A target's answer on the problem's mesh; its text only if it is wanted."""
    return Beside(compiled, placement=_placed(compiled, mesh), text=compiled.text if with_text else None)


def _placed(compiled: TargetResult, mesh: Mesh | None) -> Beside | None:
    from shardviz.hardware.placement import axis_runs

    placement = compiled.placement
    if placement is None or mesh is None:
        return None
    return Beside(placement, axes=axis_runs(placement, mesh))


def passes_document(traced: PassTrace, problem: Problem, diffs: frozenset[int] = frozenset()) -> Document:
    """`stages`, numbered from 1, and the target's `answer`; those in `diffs` have a `diff`."""
    stages = [
        Beside(stage, stage=number, diff=stage.diff() if number in diffs else None)
        for number, stage in enumerate(traced.stages, 1)
    ]
    return KINDS["passes"].document(
        problem, answer=target_answer(traced.compiled, problem.mesh), stages=stages
    )


def hlo_document(
    report: ProgramReport,
    given: Mesh | None = None,
    selection: Selection | None = None,
    rematerializations: Sequence[Rematerialization] = (),
    compiled: TargetProgram | None = None,
    stuck: Sequence[str] = (),
    out_of_memory: Sequence[OutOfMemory] = (),
) -> Document:
    """A report; `given` is the mesh that the user named.

    Collectives and totals are those that the selection shows, without the collectives that could not be
    read; those of a target's `compiled` program have the reasons why they are there."""
    hlo = _hlo(report, given, selection, rematerializations, compiled)
    return KINDS["hlo"].document(hlo, stuck=stuck, out_of_memory=out_of_memory)


def _hlo(
    report: ProgramReport,
    given: Mesh | None,
    selection: Selection | None = None,
    rematerializations: Sequence[Rematerialization] = (),
    compiled: TargetProgram | None = None,
    with_arrays: bool = False,
) -> Beside:
    """A report; a `compiled` one has its collectives' reasons, and its arrays where they are asked for."""
    from shardviz.hlo import HloModule
    from shardviz.hlo.collective import totals

    module = report.module
    chosen = report.entries if selection is None else selection.shown(report.entries)
    sums = totals(entry.collective for entry in chosen)
    is_hlo = isinstance(module, HloModule)
    reason_of: dict[str, Reason] = {}
    if compiled is not None and compiled.reshards:
        names = (entry.collective.name for entry in report.entries)
        reason_of = dict(zip(names, compiled.reasons, strict=True))
    entries = [Beside(each.collective, each, why=reason_of.get(each.collective.name)) for each in chosen]
    slices = [collective for collective in module.collectives if collective.op == "slice"]
    within = [sum_ for sum_ in sums if not sum_.is_host_transfer]
    return Beside(
        module if is_hlo else Beside(module, **_ONLY_HLO),
        collectives=[*entries, *slices],
        dialect="hlo" if is_hlo else "mlir",
        is_mesh_inferred=is_hlo and given is None and module.mesh is not None,
        totals={total.op: total for total in within if not total.between_slices},
        totals_between_slices={total.op: total for total in within if total.between_slices},
        totals_of_host_transfers={sum_.op: sum_ for sum_ in sums if sum_.is_host_transfer},
        rematerializations=rematerializations,
        stuck=(),
        out_of_memory=(),
        timeline=report.timeline,
        arrays=compiled.arrays if compiled is not None and with_arrays else None,
    )


def program_document(
    name: str,
    programs: Sequence[tuple[TargetProgram, ProgramReport | None]],
    with_timelines: bool = False,
    selection: Selection | None = None,
    verdicts: Sequence[Sequence[WasteVerdict]] | None = None,
    with_arrays: bool = False,
) -> Document:
    """The programs of all targets, each with the report on it, where there is one; `program` is then the
    document of `shardviz hlo`. Each has its `verdicts`, where there are such."""
    targets = []
    for number, (program, report) in enumerate(programs):
        read = seconds = None
        if report is not None:
            read = _hlo(report, program.mesh, selection, program.rematerializations, program, with_arrays)
            if not with_timelines:
                read = Beside(read, timeline=None)
            seconds = None if report.timeline is None else report.timeline.seconds
        told = {"seconds": seconds, "program": read, "verdicts": verdicts and verdicts[number]}
        placed = _placed(program.answer, program.mesh)
        targets.append(Beside(program.answer, program, placement=placed, **told))
    return KINDS["program"].document(name=name, targets=targets)


def modules_document(
    modules: Iterable[DumpedModule], given: Mesh | None = None, selection: Selection | None = None
) -> Document:
    """The modules of a folder: each file, what the selection shows of it, and why it cannot be read."""
    told = [
        Beside(
            file=Path(module.file.path).name,
            error=module.error,
            program=None if module.report is None else _hlo(module.report, given, selection),
        )
        for module in modules
    ]
    return KINDS["modules"].document(modules=told)


def model_document(
    answer: ModelAnswer,
    answers: Iterable[tuple[TargetResult, tuple[Difference, ...]]] = (),
    moved: ModelChange | None = None,
) -> Document:
    """The model with its memory, its step and what compilers make of a layer."""
    told = [*answers]
    return KINDS["model"].document(
        answer.question,
        device_memory=answer.memory,
        step=answer.step,
        change=moved,
        targets=[target_answer(compiled, answer.question.mesh) for compiled, _ in told],
        differences=[difference for _, differences in told for difference in differences],
    )


def _told_times(cost: PlanCost, answers: Iterable[TimesAnswer]) -> list[Beside]:
    """The plan's times, and those of each answer by each of its tellers."""
    from shardviz.timeline.of_plan import plan_timeline

    tellers = [Beside(target="plan", teller="plan", timeline=plan_timeline(cost), error="")]
    for answer in answers:
        times, error = answer.times, answer.error.message if answer.error else None
        model = times and times.model
        tellers.append(Beside(target=answer.target, teller="model", timeline=model, error=error))
        if times is not None and times.scheduler is not None:
            scheduled = times.scheduler
            tellers.append(Beside(target=answer.target, teller="scheduler", timeline=scheduled, error=""))
    return tellers


_folded = late("shardviz.models.rule_set", "folded")
SOURCES = {
    "device_numbers": lambda device: plain_values(device[1]),
    "group_count": lambda collective: collective.group_count or None,
    "devices": lambda placed: [
        Beside(place, id=device) for device, place in zip(placed.ids, placed.places, strict=True)
    ],
    "collectives": lambda program: [
        collective for collective in program.collectives if collective.op != "slice"
    ],
    "slices": lambda program: [collective for collective in program.collectives if collective.op == "slice"],
    "elapsed_s": lambda answer: round(answer.elapsed_s, 6),
    "result_unreduced": lambda answer: answer.result_spec.unreduced if answer.result_spec else (),
    "typeof": lambda answer: answer.typeof or None,
    "optimizer": lambda question: str(question.training.optimizer or "") if question.training else "",
    "parameters": lambda question: _folded(question.split.parameters),
    "serving_parameters": lambda answer: _folded(answer.question.split.parameters),
    "training_allocated_bytes": lambda memory: memory.allocated_bytes(memory.training),
    "serving_allocated_bytes": lambda memory: memory.allocated_bytes(memory.serving),
    "training_over_bytes": lambda memory: memory.over(memory.training),
    "serving_over_bytes": lambda memory: memory.over(memory.serving),
    "specs": lambda part: {argument.name: argument.decided_spec for argument in part.part.problem.arguments},
    "part_collectives": lambda part: (
        Beside(priced.step, priced, phase=phase) for phase, priced in part.collectives()
    ),
    "communication": lambda timeline: [
        (lane, seconds, dict(timeline.exposed_seconds).get(lane, 0.0))
        for lane, seconds in timeline.communication_seconds
    ],
}
