"""`shardviz explain`: the plan of a matmul, and what the compilers make of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json, print_note, working
from shardviz.cli.process import ExitCode
from shardviz.cli.target_session import TargetSession
from shardviz.errors import QuestionError
from shardviz.forms.form import SPECS
from shardviz.targets import parse_targets

if TYPE_CHECKING:
    from shardviz.cli.step import StepOptions
    from shardviz.devices.job import JobAddress
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner import Plan, Problem
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.reports.target_result import TargetResult
    from shardviz.reports.target_times import TimesAnswer
    from shardviz.sharding import Mesh

RANKED = "\0"
"""The value of `--specs` without one: no argument of a process can be this."""
_OPEN_DIM = re.compile(r"[\w)]\s*\?|\?\s*[\w(?]|UNCONSTRAINED")
_OPEN = re.compile(r"([A-Za-z][\w']*)\s*=\s*\?")
_USUAL = re.compile(r"Out|H\d+")
"""Results of letters that have no names."""
EXAMPLES = (
    (
        "A matmul split on both operands, by the planner, Shardy and XLA",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_' --sizes b=8,d=2048,f=8192",
    ),
    ("Every sharding worth considering, ranked", "shardviz explain 'bd,df->bf' --mesh X=2,Y=4 --specs"),
    ("Only those in which the batch is split", "shardviz explain 'bd,df->bf' --specs 'X_,?->X_'"),
    (
        "The plan's second step, round by round",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_' --sizes b=4,d=8,f=4 --step 2",
    ),
    (
        "What two TPUs would run, beside simulated devices, with neither here",
        "shardviz explain 'bd,df->bf' --specs 'XY,_Y' --target cpu,v2:2x2,v5e:2x4",
    ),
    (
        "The program that a compiler makes of it",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_' --target cpu --hlo",
    ),
    (
        "Compute and communication over a range of batch sizes, and where they cross",
        "shardviz explain 'bd,df->bf' --specs 'X_,X_->X_' --vary b=1Ki:1Mi",
    ),
    (
        "Two shardings side by side",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_' --versus 'X_,_Y->XY'",
    ),
    (
        "When each instruction runs on a TPU, and what waits",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_' --target v5e:2x4 --time",
    ),
    (
        "A program: an MLP with its weights split by columns, then rows",
        "shardviz explain 'h=bd,df->bf; y=silu(h),fd->bd' --specs 'W1=_Y,W2=Y_'",
    ),
    (
        "Both directions of an MLP, its weights split over the batch's axis",
        "shardviz explain 'bd,df->bf;bf,fd->bd' --specs 'X_,X_;,_X->X_' --backward",
    ),
    (
        "In the scaling book's notation, without a compiler",
        "shardviz explain 'A[B_X, D] * W[D, F_Y]' --target none",
    ),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@options.program("einsum")
@options.problem(
    click.option(
        "--specs",
        is_flag=False,
        flag_value=RANKED,
        type=click.UNPROCESSED,
        metavar="[SPECS]",
        help=f"{SPECS.help} Without a value, or without --specs, all shardings are ranked; "
        "? ranks only the shardings of that operand or dimension.",
    )
)
@click.option(
    "--limit", type=options.Count(1), metavar="N", default=20, show_default=True, help="Lines of a ranking."
)
@click.option(
    "--step", type=options.Count(), metavar="N", help="Step through the plan's step N, a collective."
)
@click.option(
    "--vary",
    metavar="NAME=FIRST:LAST",
    help="Chart compute and communication over sizes of a dimension or a mesh axis, in powers of two; "
    "b=1Ki:1Mi:4 in powers of four.",
)
@click.option(
    "--versus",
    metavar="SPECS",
    help="Compare with the same arrays split so: time, bytes, memory and collectives side by side.",
)
@options.links
@click.option(
    "--time",
    "with_times",
    is_flag=True,
    help="Show when each operation runs on the targets' hardware, and live memory.",
)
@click.option("--no-layout", is_flag=True, help="Leave out the pictures of the arrays.")
@click.option("--hlo", "with_hlo", is_flag=True, help="Show each target's final program as well.")
@options.algorithm
@options.rounds
@click.option(
    "--matmul",
    "with_matmul",
    is_flag=True,
    help="With --step: which block is multiplied when, if the matmul beside the collective overlaps it.",
)
@options.job
@options.timeout
@options.output
@click.pass_context
def command(
    ctx: click.Context,
    /,
    einsum: str,
    specs: str | None,
    target: str,
    machine: str | None,
    limit: int,
    step: int | None,
    vary: str | None,
    versus: str | None,
    latency: str | None,
    bandwidth: str | None,
    with_times: bool,
    no_layout: bool,
    with_hlo: bool,
    algorithm: str | None,
    number: int | None,
    play: bool,
    speed: float | None,
    transfers: bool,
    compare: bool,
    with_matmul: bool,
    job: JobAddress,
    timeout: float,
    output: CommandOutput,
    **problem: Any,
) -> int:
    """Explain which collectives EINSUM needs on a mesh, and which ones the compilers insert.

    EINSUM is an einsum, a chain of them with semicolons, a product as the scaling book writes it, or a
    program of named statements: H = X[b,d] * W[d,f]; Y = silu(H) + H.
    """
    ranked = is_ranking(einsum, specs)
    chosen = options.is_given(ctx, "target")
    if (
        (ranked or vary is not None or versus is not None)
        and chosen
        and any(each.cluster is None for each in parse_targets(target))
    ):
        asking = "a ranking" if ranked else "--vary" if vary is not None else "--versus"
        print_note(f"{asking} asks the planner only, not --target")

    def stated() -> Problem:
        given = None if specs == RANKED else specs
        return options.problem_from_options(einsum, given, ranked=ranked, **problem)

    try:
        refuse_beside(ctx.params, ranked)
    except QuestionError:
        stated()  # what is wrong with the program comes first
        raise

    def placed(mesh: Mesh) -> PlacedMesh:
        from shardviz.targets.hardware import placed_for

        return placed_for(machine, parse_targets(target), mesh)

    if versus is not None:
        from shardviz.cli.versus import print_comparison

        refuse_stepping(ctx.params)
        other = options.problem_from_options(einsum, versus, **problem)
        print_comparison(stated(), other, placed(other.mesh), output)
        return ExitCode.FINE
    if vary is not None:
        from shardviz.cli.vary import print_sweep

        print_sweep(stated(), vary, placed, output)
        return ExitCode.FINE
    if step is not None:
        # With the collectives and their rounds, which nothing else here needs.
        from shardviz.cli.step import StepOptions

        shown = StepOptions(output, number, play, speed, transfers, compare)
        targets = target if chosen else None
        if with_matmul:
            return _print_matmul(stated, step, algorithm, machine, latency, bandwidth, targets, shown)
        return _print_step(stated, step, algorithm, machine, latency, bandwidth, targets, timeout, job, shown)
    refuse_stepping(ctx.params)
    # The compilers' process loads JAX while this one reads the question and draws.
    with TargetSession("none" if ranked else target, timeout, not chosen, job) as session:
        found = stated()
        if ranked:
            _rank(found, placed(found.mesh), output, limit)
            return ExitCode.FINE
        parts = PlanOptions(output, machine, with_times, with_hlo, not no_layout)
        return _print_plan(found, placed(found.mesh), session, parts)


def is_ranking(einsum: str, specs: str | None) -> bool:
    """Return whether all ways to split some array are asked for. Raises `QuestionError` for empty specs."""
    if specs == "":
        raise QuestionError("--specs is empty", "write 'XY,Y_->X_', or --specs alone to rank all ways")
    if specs is None or specs == RANKED:
        return specs == RANKED or "[" not in einsum
    return leaves_open(einsum, specs)


def leaves_open(einsum: str, specs: str) -> bool:
    """Return whether the specs leave an operand open, as in ``X_,?->?`` or ``X=X_,W=?``, or a dimension of an
    array, as in ``X?,Y_``.

    An open intermediate or result is the compiler's choice.
    """
    from shardviz.notation.spec_string import is_named

    if is_named(specs):
        return _OPEN_DIM.search(specs) is not None or any(
            not _is_made(name, einsum) for name in _OPEN.findall(specs)
        )
    if _OPEN_DIM.search(specs):
        return True
    for number, part in enumerate(specs.split(";")):
        operands = part.partition("->")[0].split(",")
        if any(operand.strip(" ()[]") == "?" for operand in operands[min(number, 1) :]):
            return True
    return False


def _is_made(name: str, einsum: str) -> bool:
    """Return whether an array is a result of the text, and not an operand."""
    made = rf"(?:\A|[;\n])\s*{name}\s*(?:\[[^\]]*\]\s*)?=|->\s*{name}\s*\["
    return re.search(made, einsum) is not None or ("[" not in einsum and _USUAL.fullmatch(name) is not None)


def refuse_beside(given: Mapping[str, Any], ranked: bool) -> None:
    """Raise `QuestionError` for options about one plan where there are many, and for
    --versus and --vary beside others."""
    one = "give --specs 'XY,Y_->X_'"
    about = {
        "a ranking": ranked,
        "--vary": given["vary"] is not None,
        "--step": given["step"] is not None,
        "--hlo": given["with_hlo"],
        "--time": given["with_times"],
    }
    for option in ("--versus", "--vary"):
        if given[option.strip("-")] is not None:
            for other, is_given in about.items():
                if is_given and other != option:
                    hint = one if other == "a ranking" else f"leave out {other}"
                    raise QuestionError(f"{option} and {other} cannot be combined", hint)
    if ranked and about["--step"]:
        raise QuestionError("--step is a step of one plan, and a ranking has many", one)
    if about["--hlo"]:
        lacking = {
            one: ranked,
            "leave out --step": about["--step"],
            "ask a compiler, as with --target cpu": given["target"] == "none",
        }
        if any(lacking.values()):
            hint = " and ".join(what for what, is_lacking in lacking.items() if is_lacking)
            raise QuestionError("--hlo shows what compilers make of one plan", hint)
    if about["--time"] and (ranked or about["--step"]):
        raise QuestionError(
            "--time shows when each operation of one plan runs", one if ranked else "leave out --step"
        )


def refuse_stepping(given: Mapping[str, object]) -> None:
    """Raise `QuestionError` for options about the rounds of a collective, where none is chosen."""
    stepping = {
        "--algorithm": given["algorithm"] is not None,
        "--latency": given["latency"] is not None,
        "--bandwidth": given["bandwidth"] is not None,
        "--round": given["number"] is not None,
        "--play": given["play"],
        "--speed": given["speed"] is not None,
        "--transfers": given["transfers"],
        "--matmul": given["with_matmul"],
        "--compare": given["compare"],
    }
    for option, is_given in stepping.items():
        if is_given:
            raise QuestionError(
                f"{option} is about the rounds of one collective", "choose one of the plan with --step N"
            )


def _rank(problem: Problem, placed: PlacedMesh, output: CommandOutput, limit: int) -> None:
    from shardviz.planner import rank

    with working("ranking all shardings"):
        candidates = rank(problem, placed)
    if output.as_json:
        from shardviz.documents.plans import ranking_document

        print_json(ranking_document(candidates))
        return
    from shardviz.render.plan_view import ranking_view

    output.show(ranking_view(problem, candidates, output.width, output.palette, limit))


@dataclass(frozen=True)
class PlanOptions:
    """The parts of a plan's page: the times on `machine` or the targets' own hardware, the programs, the
    pictures of the arrays."""

    output: CommandOutput
    machine: str | None
    with_times: bool
    with_hlo: bool
    with_pictures: bool


def _print_plan(problem: Problem, placed: PlacedMesh, session: TargetSession, shown: PlanOptions) -> int:
    """Ask the targets and show the plan and their answers; the exit code."""
    from shardviz.planner import plan
    from shardviz.planner.pricing.costs import price

    output = shown.output
    session.ask(problem, with_costs=shown.with_times)
    with working("planning"):
        planned, answers = plan(problem, placed), session.answers()
    if not planned.optimal and "shardy" in session.requested:
        planned, answers = _cheaper(planned, answers, placed)
    cost = price(planned, placed)
    if output.as_json:
        from shardviz.compare import differences
        from shardviz.documents.programs import explain_document

        compiled = tuple(answers)
        found = [difference for each in compiled for difference in differences(planned, each)]
        times = [_times(each, problem, shown) for each in compiled] if shown.with_times else None
        print_json(explain_document(cost, compiled, found, shown.with_hlo, times, session.job))
        return session.exit_code
    from shardviz.render.plan_view import explain_view

    if session.job is not None:
        from shardviz.render.job_picture import job_lines

        axes = [(axis,) for axis in problem.mesh.axis_names]
        output.show(job_lines(session.job, problem.mesh, axes, output.width, output.palette))
    output.show(explain_view(cost, output.width, output.palette, shown.with_pictures))
    if shown.with_times and not session.has_hardware:
        _print_plan_times(cost, output)
    if not session.requested:
        return session.exit_code
    # Loaded while the compilers work, and not at all when none is asked.
    from shardviz.compare import differences
    from shardviz.render.programs.hlo_picture import program_view
    from shardviz.render.programs.target_answers import answers_view, side_by_side

    together = side_by_side(session.requested)
    for group in [[*answers]] if together else ([each] for each in answers):
        told = [(each, differences(planned, each)) for each in group]
        output.show(answers_view(told, problem, output.width, output.palette))
        for each in group:
            if shown.with_hlo and each.status == "ok":
                output.show(program_view(each, problem.mesh, output.width, output.palette))
            if shown.with_times:
                from shardviz.render.times.tellers import target_times_view

                output.show(target_times_view(_times(each, problem, shown), output.width, output.palette))
    return session.exit_code


def _cheaper(
    planned: Plan, answers: Iterator[TargetResult], placed: PlacedMesh
) -> tuple[Plan, Iterator[TargetResult]]:
    """The plan, or one that splits arrays as Shardy does where that costs less; the answers, all of them."""
    from shardviz.compare.adoption import cheaper_plan

    found = []
    for each in answers:
        found.append(each)
        if each.target == "shardy":
            break
    with working("planning as Shardy splits"):
        return cheaper_plan(planned, found, placed), chain(found, answers)


def _print_plan_times(cost: PlanCost, output: CommandOutput) -> None:
    from rich.text import Text

    from shardviz.render.times.report import timeline_view
    from shardviz.timeline.of_plan import plan_timeline

    output.show([Text(), *timeline_view(plan_timeline(cost), output.width, output.palette)])


def _times(compiled: TargetResult, problem: Problem, shown: PlanOptions) -> TimesAnswer:
    from shardviz.hardware.machine_file import named_machine
    from shardviz.reports.target_times import answer_times

    machine = named_machine(shown.machine) if shown.machine else None
    return answer_times(compiled, problem.mesh, machine)


def _print_matmul(
    stated: Callable[[], Problem],
    number: int,
    algorithm: str | None,
    machine: str | None,
    latency: str | None,
    bandwidth: str | None,
    target: str | None,
    shown: StepOptions,
) -> int:
    """Show which block of a matmul is multiplied when, while the collective of a step moves its blocks."""
    others = {"--transfers": shown.transfers, "--compare": shown.compare, "--play": shown.play}
    for flag, is_given in others.items():
        if is_given:
            raise QuestionError(f"--matmul and {flag} cannot be combined", "leave out one")
    shown.check(None)
    from shardviz.cli.step import check_round
    from shardviz.planner import plan
    from shardviz.stepping.collective_matmul import matmul_of_step
    from shardviz.stepping.collective_run import run_on
    from shardviz.stepping.plan_step import question_of_step
    from shardviz.targets.hardware import placed_for

    problem = stated()
    placed = placed_for(machine, () if target is None else parse_targets(target), problem.mesh)
    with working("planning"):
        planned = plan(problem, placed)
    question = question_of_step(planned, number, algorithm)
    run = run_on(question, placed, None, latency, bandwidth)
    found = matmul_of_step(planned, placed, number, run)
    if found is None:
        raise QuestionError(
            f"no matmul can run beside step {number}",
            "a gather of an operand just before an einsum has one, and a sum of its result just after it",
        )
    if shown.number is not None:
        check_round(question.schedule, shown.number)
    if shown.output.as_json:
        from shardviz.documents.rounds import matmul_document

        print_json(matmul_document(found, number))
        return ExitCode.FINE
    from shardviz.render.rounds.matmul_picture import matmul_lines

    shown.output.show(matmul_lines(found, shown.output.width, shown.output.palette, shown.number))
    return ExitCode.FINE


def _print_step(
    stated: Callable[[], Problem],
    number: int,
    algorithm: str | None,
    machine: str | None,
    latency: str | None,
    bandwidth: str | None,
    target: str | None,
    timeout: float,
    job: JobAddress,
    shown: StepOptions,
) -> int:
    """Step through one collective of the plan; JAX verifies it on the devices among the targets, if any."""
    from shardviz.cli.step import Verifier, print_step
    from shardviz.planner import plan

    asked, targets = None, () if target is None else parse_targets(target)
    if target is not None:
        names = [each.name for each in targets]
        asked = next((name for name in ("real", "cpu") if name in names), "none")
    shown.check(asked, "--target")
    with Verifier("none" if shown.compare else asked, timeout, job, "--target") as verifier:
        from rich.text import Text

        from shardviz.render.plan_view import step_lines
        from shardviz.stepping.collective_run import pipelined, run_on
        from shardviz.stepping.plan_step import question_of_step
        from shardviz.targets.hardware import placed_for

        problem = stated()
        placed = placed_for(machine, targets, problem.mesh)
        with working("planning"):
            planned = plan(problem, placed)
        stepped = question_of_step(planned, number, algorithm)
        heading = []
        if not shown.output.as_json:
            output = shown.output
            heading = [*step_lines(planned, number, output.width, output.palette), Text()]
        run = run_on(stepped, placed, None, latency, bandwidth)
        return print_step(pipelined(run), verifier, shown, heading)
