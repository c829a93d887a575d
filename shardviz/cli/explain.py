"""`shardviz explain`: the plan of a matmul, and what the compilers make of it. `rank`, `sweep` and `versus`,
which ask the planner alone: all ways to split a problem's arrays, its cost over sizes, two ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_json, print_note, working
from shardviz.cli.process import ExitCode
from shardviz.cli.target_session import TargetSession
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.answers import plans
    from shardviz.cli import export, step as step_command
    from shardviz.documents import fields, plans as documents, programs, rounds
    from shardviz.render import measurements, plan_pages, plan_view, plans_compared, sweep_view
    from shardviz.render.programs import program_pages, target_answers
    from shardviz.render.rounds import matmul_picture
    from shardviz.render.times import report
    from shardviz.timeline import of_plan

if TYPE_CHECKING:
    from shardviz.devices.job import JobAddress
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.targets import Target
    from shardviz.timeline.program_timeline import ProgramTimeline

RANKED = "\0"
"""The value of `--specs` without one: no argument of a process can be this."""
WHOLE = 0
"""The value of `--step` without one."""


@options.command(
    "explain", {"specs": {"flag_value": RANKED, "type": click.UNPROCESSED}, "step": {"flag_value": WHOLE}}
)
@click.argument("einsum", callback=options.refuse_beside_example)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    einsum: str,
    specs: str | None,
    target: str,
    machine: str | None,
    step: int | None,
    vary: str | None,
    versus: str | None,
    job: JobAddress,
    timeout: float,
    output: CommandOutput,
    **given: Any,
) -> int:
    """Explain which collectives EINSUM needs on a mesh, and which ones the compilers insert.

    EINSUM is an einsum, a chain of them with semicolons, a product as the scaling book writes it, or a
    program of named statements: H = X[b,d] * W[d,f]; Y = silu(H) + H."""
    ranked = _is_ranking(einsum, specs, given)
    chosen = options.is_given(ctx, "target")
    asking = {"a ranking": ranked, "--vary": vary is not None, "--versus": versus is not None}
    asked_targets = partial(options.asked_targets, target, given["mesh"])
    if any(asking.values()) and chosen and any(target.machine is None for target in asked_targets()):
        print_note(f"{next(filter(asking.get, asking))} asks the planner only, not --target")

    def stated(specs: str | None = specs) -> plans.PricedProblem:
        """The question; its targets give it a machine where they are chosen, or not of a step."""
        problem = options.stated_problem(einsum, None if specs == RANKED else specs, given, ranked)
        targets = asked_targets() if chosen or step is None else ()
        return plans.PricedProblem(problem, machine, targets)

    try:
        _refuse_beside(ctx.params, ranked)
        if step is None:
            _refuse_stepping(ctx)
    except QuestionError:
        stated()  # what is wrong with the program comes first
        raise
    if versus is not None:
        return _print_comparison(stated(), stated(versus).problem, output)
    if vary is not None:
        return _print_sweep(stated(), vary, output)
    links = {name: given[name] for name in ("algorithm", "latency", "bandwidth")}
    if step is not None:
        shown = step_command.StepOptions(output, given["number"], given["compare"])
        if given["with_matmul"]:
            return _print_matmul(lambda: stated().step(step, **links), shown)
        # The devices among the targets that are chosen, on which JAX verifies a step.
        names = [target.name for target in asked_targets()]
        verifier = next((name for name in ("real", "cpu") if name in names), "none") if chosen else None
        shown.check(verifier, "--target")
        on = "none" if shown.compare else verifier
        with step_command.Verifier(on, timeout, job, "--target") as jax:
            with working("planning"):
                question = stated()
                run = question.played(step)
            if run is not None:
                _refuse_stepping(ctx)
                return step_command.print_plan(run, step, jax, output)
            saved = question.step(step, **links)
            lines = [] if output.as_json else plan_view.step_lines(saved.plan, saved.number, *output.page)
            return step_command.print_step(saved.fastest, jax, shown, lines)
    number = given["why"]
    if number is not None and not output.as_json:
        with working("planning"):
            cost = stated().cost()
        if number > (count := len(cost.steps)):
            problem = f"step {number} does not exist: the plan has {count}"
            raise QuestionError(problem, f"give a step from 1 to {count}")
        output.show(plan_pages.step_page(cost, number, *output.page))
        return ExitCode.FINE
    # The compilers' process loads JAX while this one reads the question and draws.
    with TargetSession(() if ranked else asked_targets(), timeout, not chosen, job) as session:
        question = stated()
        if ranked:
            return _print_ranking(question, output, given["limit"])
        session.ask(question.problem, with_costs=given["with_times"])
        with working("planning"):
            answer = plans.ExplainAnswer.planned(question)
        return _print_answer(answer, session, output, ctx.params)


@command.exports
def _explained(ctx: click.Context, part: export.Part | None) -> export.Subject:
    """One plan, its rounds, a step, its times or its chart over sizes."""
    given = ctx.params
    if _is_ranking(given["einsum"], given["specs"], given):
        raise QuestionError("an export shows one plan, not a ranking", "give --specs 'XY,Y_->X_'")
    problem = options.stated_problem(given["einsum"], given["specs"], given)
    targets = options.asked_targets(given["target"], given["mesh"])
    chosen = targets if options.is_given(ctx, "target") else ()
    if given["versus"] is not None:
        hint = "export each with its own --specs"
        raise QuestionError("an export shows one plan; --versus shows two", hint)
    question = plans.PricedProblem(problem, given["machine"], targets)
    if given["vary"] is not None:
        options.refuse_both({"--vary": True, f"--as {part}": part is not None})
        _refuse_beside(given, ranked=False)
        return _chart(question, given["vary"])
    if given["with_times"]:
        options.refuse_both({"--time": True, "--step": given["step"] is not None})
        options.refuse_both({"--time": True, f"--as {part}": part is not None})
        return _timed(plans.PricedProblem(problem, given["machine"]), chosen, given["timeout"])
    stepping = {name: given[name] for name in ("algorithm", "latency", "bandwidth")}
    if given["step"] is not None:
        if part not in (None, "rounds"):
            complaint = f"--step is one step, but --as {part} exports all of them"
            raise QuestionError(complaint, "leave out one of them")
        run = question.step(given["step"], **stepping).fastest
        title = f"Step {given['step']} of {export.title_of(problem)}"
        return export.Subject(run, f"{title}: {export.title_of(run)}")
    shown: Problem | Plan | CollectiveRun = problem
    if part == "rounds":
        shown = question.step(None, **stepping).fastest
    else:
        _refuse_stepping(ctx)
        if part == "plan":
            shown = question.cost().plan
    if len(chosen) > 1:
        names = ", ".join(target.name for target in chosen)
        raise QuestionError(f"a program is compiled for one target, not for {names}", "choose one of them")
    return export.titled(shown, target=next(iter(chosen), None), placed=question.placed)


def _timed(question: plans.PricedProblem, targets: Sequence[Target], timeout: float) -> export.Subject:
    """The times of the targets' programs on a machine or their own hardware; of the plan without targets.
    Raises `ShardvizError` where a target has no times."""
    timelines: list[ProgramTimeline] = []
    with TargetSession(targets, timeout, may_drop=False) as session:
        session.ask(question.problem, with_costs=True)
        answer = plans.ExplainAnswer.planned(question)
        for result in session.answers():
            answer = answer.with_result(result)
    for result in answer.compiled:
        times = answer.times(result, question.machine).found()
        timelines += [timeline for timeline in (times.model, times.scheduler) if timeline is not None]
    shown = tuple(timelines) or (of_plan.plan_timeline(answer.cost),)
    return export.Subject(shown, f"{export.title_of(question.problem)}: what runs when")


@options.command("rank")
@click.argument("einsum", callback=options.refuse_beside_example)
def rank(
    einsum: str, specs: str | None, machine: str | None, limit: int, output: CommandOutput, **problem: Any
) -> int:
    """Rank all shardings of EINSUM's arrays over a mesh: time, bytes sent, memory, collectives.

    Only the planner answers. EINSUM is what shardviz explain takes."""
    question = plans.PricedProblem(options.stated_problem(einsum, specs, problem, ranked=True), machine)
    return _print_ranking(question, output, limit)


def _print_ranking(question: plans.PricedProblem, output: CommandOutput, limit: int) -> int:
    with working("ranking all shardings"):
        candidates = question.ranking()
    output.answer(
        lambda: documents.ranking_document(candidates),
        lambda: plans_compared.ranking_view(
            question.problem, candidates, *output.page, limit, output.verbose
        ),
        "all that was assumed",
    )
    return ExitCode.FINE


@options.command("sweep")
@click.argument("einsum", callback=options.refuse_beside_example)
@click.argument("over", metavar="NAME=FIRST:LAST")
def sweep(
    einsum: str, over: str, specs: str | None, machine: str | None, output: CommandOutput, **problem: Any
) -> int:
    """Chart compute and communication of EINSUM over sizes of a dimension or of a mesh axis.

    Sizes go from FIRST to LAST by powers of two; b=1Ki:1Mi:4: by powers of four. Each size has its own
    plan. EINSUM is what shardviz explain takes."""
    question = plans.PricedProblem(options.stated_problem(einsum, specs, problem), machine)
    return _print_sweep(question, over, output)


@sweep.exports
def _swept(ctx: click.Context, _part: str | None) -> export.Subject:
    given = ctx.params
    problem = options.stated_problem(given["einsum"], given["specs"], given)
    return _chart(plans.PricedProblem(problem, given["machine"]), given["over"])


def _chart(question: plans.PricedProblem, over: str) -> export.Subject:
    sweep = question.sweep(over)
    return export.Subject(sweep, f"{question.problem.text} over sizes of {sweep.name}")


def _print_sweep(question: plans.PricedProblem, over: str, output: CommandOutput) -> int:
    with working("planning"):
        curve = question.sweep(over)
    output.answer(
        lambda: fields.KINDS["sweep"].document(curve),
        lambda: sweep_view.sweep_view(curve, *output.page, output.verbose),
    )
    return ExitCode.FINE


@options.command("versus")
@click.argument("einsum")
@click.argument("specs")
@click.argument("others", metavar="OTHERS")
def versus(
    einsum: str, specs: str, others: str, machine: str | None, output: CommandOutput, **problem: Any
) -> int:
    """Compare EINSUM sharded as SPECS with the same arrays sharded as OTHERS: time, bytes, memory and
    collectives.

    EINSUM is what shardviz explain takes."""
    first, second = (options.stated_problem(einsum, shardings, problem) for shardings in (specs, others))
    return _print_comparison(plans.PricedProblem(first, machine), second, output)


def _print_comparison(question: plans.PricedProblem, other: Problem, output: CommandOutput) -> int:
    with working("planning"):
        first, second = question.versus(other)
    output.answer(
        lambda: fields.KINDS["versus"].document(first=first, second=second),
        lambda: plans_compared.versus_view(first, second, *output.page, output.verbose),
    )
    return ExitCode.FINE


def _is_ranking(einsum: str, specs: str | None, given: Mapping[str, Any]) -> bool:
    """Return whether all ways to split some operand, or some dimension, are asked for; an open intermediate
    or result is the compiler's choice. Raises `QuestionError` for empty specs, and for a problem that cannot
    be read, where that must be known."""
    if specs == "":
        raise QuestionError(
            "--specs is empty", "write 'XY,Y_->X_', or --specs without a value to rank all shardings"
        )
    if specs is None or specs == RANKED:
        return specs == RANKED or "[" not in einsum
    if "?" not in specs and "UNCONSTRAINED" not in specs:
        return False
    forward = {**given, "backward": "no", "remat": "none", "optimizer": "none", "frozen": ""}
    problem = options.stated_problem(einsum, specs, forward, ranked=True)
    return any(array.spec is None for array in problem.arguments) or any(
        array.spec is not None and array.spec.open_dims for array in problem.arrays
    )


def _refuse_beside(given: Mapping[str, Any], ranked: bool) -> None:
    """Raise `QuestionError` for options about one plan beside others, and for two ways to ask."""
    one = "give --specs 'XY,Y_->X_'"
    ways = {"--versus": given["versus"] is not None, "--vary": given["vary"] is not None}
    ways |= {"a ranking": ranked, "--step": given["step"] is not None}
    way, *others = [name for name, is_given in ways.items() if is_given] or [""]
    about = {"--hlo": "shows what compilers make of one plan"} if given["with_hlo"] else {}
    about |= {"--time": "shows when each operation of one plan runs"} if given["with_times"] else {}
    about |= {"--why": "is about a step of one plan"} if given["why"] is not None else {}
    if others or (about and way in ("--versus", "--vary")):
        other = [*others, *about][0]
        hint = one if "a ranking" in (way, other) else f"leave out {other}"
        raise QuestionError(f"{way} and {other} cannot be combined", hint)
    for flag, words in about.items():
        if way:
            raise QuestionError(f"{flag} {words}", one if ranked else "leave out --step")
        if flag == "--hlo" and given["target"] == "none":
            raise QuestionError(f"{flag} {words}", "add a compiler, such as --target cpu")


def _refuse_stepping(ctx: click.Context) -> None:
    """Raise `QuestionError` for options about the rounds of a collective, where none is chosen."""
    about_rounds = {"--algorithm", "--latency", "--bandwidth", "--round", "--matmul", "--compare"}
    for option in options.given_options(ctx):
        if option in about_rounds:
            problem = f"{option} applies to the rounds of one collective"
            raise QuestionError(problem, "choose a step of the plan with --step N")


def _print_answer(
    answer: plans.ExplainAnswer, session: TargetSession, output: CommandOutput, given: Mapping[str, Any]
) -> int:
    results = session.answers()
    while answer.waits_for(session.requested):
        result = next(results)
        with working("planning as Shardy splits"):
            answer = answer.with_result(result)
    machine, with_times, with_hlo = given["machine"], given["with_times"], given["with_hlo"]
    if output.as_json:
        for result in results:
            answer = answer.with_result(result)
        times = [answer.times(result, machine) for result in answer.compiled] if with_times else None
        print_json(
            programs.explain_document(
                answer.cost, answer.compiled, answer.differences, with_hlo, times, session.job
            )
        )
        return session.exit_code
    cost, page = answer.cost, output.page
    if session.job is not None:
        mesh = answer.problem.mesh
        axes = [(axis,) for axis in mesh.axis_names]
        output.show(measurements.job_lines(session.job, mesh, axes, *page))
    output.show(plan_pages.explain_view(cost, *page, not given["no_layout"], output.verbose))
    if with_times and not session.has_hardware:
        output.show_below(report.timeline_view(of_plan.plan_timeline(cost), *page, output.verbose))
    told = plans.told_of(answer.plan, [*answer.compiled, *results]) if session.requested else ()
    if told:
        output.show(target_answers.targets_table(told, answer.problem, *page))
    if told and output.verbose:
        output.show_below(target_answers.targets_view(told, answer.problem, *page))
    for result, _ in told:
        if with_hlo and result.status == "ok":
            output.show(program_pages.program_view(result, answer.problem.mesh, *page))
        if with_times:
            output.show(report.target_times_view(answer.times(result, machine), *page, output.verbose))
    if not output.verbose:
        more = "-v shows everything, --why N a step."
        output.show(plan_pages.assumption_lines(cost, output.width, more))
    return session.exit_code


def _print_matmul(find_step: Callable[[], plans.PlanStep], shown: step_command.StepOptions) -> int:
    options.refuse_both({"--matmul": True, "--compare": shown.compare}, "leave out one")
    shown.check(None)
    with working("planning"):
        step = find_step()
    matmul, output = step.matmul(), shown.output
    if shown.number is not None:
        step_command.check_round(step.run.schedule, shown.number)
    output.answer(
        lambda: rounds.matmul_document(matmul, step.number),
        lambda: matmul_picture.matmul_lines(matmul, *output.page, shown.number),
    )
    return ExitCode.FINE
