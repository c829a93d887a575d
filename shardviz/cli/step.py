"""`shardviz step`: a collective round by round, value by value: all rounds or one, compared or as JSON, and
verified by JAX. `shardviz explain --step` shows a plan's collective in the same way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_json, print_note, wait_for, working
from shardviz.cli.process import ExitCode
from shardviz.cli.target_session import WorkerSession
from shardviz.collectives.operations import PARAMETERS, check_operation
from shardviz.errors import CompilerError, JobLost, QuestionError, ShardvizError, TargetError, plural, quote
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.targets import TARGETS

with LazyImports():
    from shardviz.cli import export
    from shardviz.documents import fields, rounds as documents
    from shardviz.render import lines as render_lines, measurements
    from shardviz.render.rounds import device_values, step_notes, step_view
    from shardviz.stepping import collective_run, question as stepping_question
    from shardviz.targets import hardware

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.collectives.schedule import Schedule
    from shardviz.compiler import CompilerRequest
    from shardviz.devices.job import JobAddress
    from shardviz.reports.target_result import ExecutionResult
    from shardviz.stepping.collective_run import CollectiveRun, Verdict
    from shardviz.stepping.plan_run import PlanRun


@options.command("step")
@click.argument("operation", metavar="OP")
def command(
    operation: str,
    number: int | None,
    compare: bool,
    on: str | None,
    job: JobAddress,
    timeout: float,
    output: CommandOutput,
    **given: Any,
) -> int:
    """Step through a collective: what each device sends and holds, round by round.

    OP is JAX's name: all_gather, psum, pmean, pmax, pmin, psum_scatter, all_to_all, ppermute, pbroadcast or
    ragged_all_to_all."""
    given |= {"operation": operation}
    if "->" in operation or ".py:" in operation:
        way = f"explain {quote(operation)} --step" if "->" in operation else f"program {operation} --values"
        raise QuestionError(f"{quote(operation)} is not one collective", f"play it with: shardviz {way}")
    check_operation(operation, {name: given[name] for name in PARAMETERS})
    shown = StepOptions(output, number, compare)
    shown.check(on)
    # JAX loads in a process of its own while this one computes and draws.
    with Verifier("none" if compare else on, timeout, job) as verifier:
        return print_step(_run(given), verifier, shown)


def _run(given: Mapping[str, Any]) -> CollectiveRun:
    """The collective of a command's options on its links, in as many pieces as they say, or are fastest."""
    names = ("axis", "data", "shape", "spec", "dtype", "algorithm", "pieces")
    question = stepping_question.question_from_options(
        given["operation"],
        {name: given[name] for name in PARAMETERS},
        mesh=parse_mesh(given["mesh"]),
        **{name: given[name] for name in names},
    )
    placed = hardware.placed_for(given["machine"], (), question.layout.mesh)
    run = collective_run.run_on(question, placed, given["topology"], given["latency"], given["bandwidth"])
    return run if given["pieces"] is not None else collective_run.pipelined(run)


command.exports(lambda ctx, _: export.titled(_run(ctx.params)))


@dataclass(frozen=True)
class StepOptions:
    """The options that say how a collective is shown. `number` is the round to show, None for all."""

    output: CommandOutput
    number: int | None = None
    compare: bool = False

    def check(self, verifier: str | None, option: str = "--on") -> None:
        """Raise `QuestionError` for options that cannot be combined; `verifier` is the value of `option`."""
        modes = {"--round": self.number is not None, "--compare": self.compare, "--json": self.output.as_json}
        chosen = [mode for mode, wanted in modes.items() if wanted]
        if len(chosen) > 1 and chosen != ["--compare", "--json"]:
            problem = f"{chosen[0]} and {chosen[1]} cannot be combined"
            raise QuestionError(problem, f"leave out one: {chosen[1]} or {chosen[0]}")
        if self.compare and verifier not in (None, "none"):
            problem = f"--compare runs no collective, so {option} {verifier} has nothing to verify"
            raise QuestionError(problem, f"leave out --compare or {option}")


class Verifier(WorkerSession):
    """JAX, which runs the same collective in a process of its own, so that its results stand beside ours.
    `on` is cpu, real or none; None is cpu, and then nothing that goes wrong is an error. `timeout` is in
    seconds, `option` is where the command line chooses the verifier."""

    def __init__(self, on: str | None, timeout: float, job: JobAddress, option: str = "--on") -> None:
        self._target = None if on == "none" else TARGETS[on or "cpu"]
        super().__init__(timeout, *([self._target] if self._target else []), job=job)
        self.silence = ""
        """The reason why JAX is not asked, where it would have been."""
        self._chosen = on is not None
        self._option = option
        self._pending: CompilerRequest[ExecutionResult] | None = None

    def ask(self, question: stepping_question.CollectiveQuestion | PlanRun) -> None:
        """Send the collective, or the plan, and its numbers to JAX. Raises `TargetError` where the shards
        have no values, or need more devices than the target has, and the target was chosen."""
        if self._worker is None or self._target is None:
            return
        self.join()
        try:
            self._pending = getattr(self._worker, question.jax_call)(*question.for_jax(), self._target)
        except TargetError as error:
            if self._chosen:
                raise TargetError(error.message, self._or_none(error.hint)) from error
            self.silence = f"not verified by JAX: {error.message}"

    def verdict(self, run: CollectiveRun | PlanRun) -> Verdict | None:
        """JAX's verdict on the run, or None where JAX cannot say. Raises `CompilerError` if it was chosen."""
        if self._pending is None or self._target is None:
            return None
        try:
            verdict = run.compared(wait_for(self._pending, self._target.name))
        except JobLost:
            raise
        except ShardvizError as error:
            if self._chosen:
                hint = self._or_none(error.hint)
                raise CompilerError(f"{self._target.name}: {error.message}", hint) from error
            print_note(f"nothing is verified: {self._target.name}: {error.message}")
            return None
        if not verdict.agrees:
            self.exit_code = ExitCode.CHECK_FAILED
        return verdict

    def _or_none(self, hint: str) -> str:
        return f"{hint}{', or ' if hint else ''}skip verification with {self._option} none"


def print_step(
    run: CollectiveRun, verifier: Verifier, shown: StepOptions, heading: Sequence[Text] = ()
) -> int:
    """Answer on standard output, below a heading unless it is JSON; the exit code. Raises `ShardvizError`."""
    output, number = shown.output, shown.number

    def print_heading() -> None:
        if heading:
            output.show(heading)
            output.show([])

    if shown.compare:
        # Times are worked out when they are first looked at.
        with working("comparing"):
            document = fields.KINDS["comparison"].document(run) if output.as_json else {}
            lines = [] if output.as_json else step_notes.comparison_view(run, *output.page)
        if not output.as_json:
            print_heading()
        output.answer(lambda: document, lambda: lines)
        return verifier.exit_code
    if number is not None:
        check_round(run.schedule, number)
    if output.as_json and (unlisted := run.unlisted(number)):
        # More sends or numbers than anything reads.
        hint = "take a smaller mesh or array, or leave out --json for a summary"
        raise QuestionError(f"--json lists {unlisted}", hint)
    verifier.ask(run.question)
    with working("stepping"):
        if output.as_json:
            _ = run.frames.after
        else:
            lines = step_view.step_view(run, *output.page, number, output.verbose)
    if output.as_json:
        verdict = verifier.verdict(run)
        with working("writing"):
            document = documents.step_document(run, verdict, verifier.job)
        print_json(document)
        return verifier.exit_code
    print_heading()
    if verifier.job is not None:
        axes = [run.operation.axes]
        lines = [*measurements.job_lines(verifier.job, run.mesh, axes, *output.page), *lines]
    output.show(lines)
    _show_verdict(run, verifier, output)
    if run.schedule.rounds:
        output.show_more("each sum in full, the time by formula and the other algorithms")
    return verifier.exit_code


def print_plan(run: PlanRun, number: int, verifier: Verifier, output: CommandOutput) -> int:
    """Answer with what devices hold before and after all steps of a plan, 0, or one; the exit code."""
    verifier.ask(run)
    if output.as_json:
        print_json(fields.KINDS["plan_steps"].document(run, verdict=verifier.verdict(run)))
        return verifier.exit_code
    with working("stepping"):
        lines = device_values.plan_steps_view(run, *output.page, number)
    output.show(lines)
    _show_verdict(run, verifier, output)
    return verifier.exit_code


def _show_verdict(run: CollectiveRun | PlanRun, verifier: Verifier, output: CommandOutput) -> None:
    # JAX works while the rounds are read.
    verdict = verifier.verdict(run)
    if verdict is not None:
        output.show(step_notes.verdict_lines(verdict, run.mesh, output.width))
    elif verifier.silence:
        output.show(render_lines.sentence(verifier.silence, output.width, style="dim"))


def check_round(schedule: Schedule, number: int) -> None:
    """Raise `QuestionError` for a round that does not exist; 0 is before the first."""
    if not 0 <= number <= schedule.rounds:
        raise QuestionError(
            f"round {number} does not exist: {schedule.algorithm} has {plural(schedule.rounds, 'round')} "
            f"here",
            f"0 is before the first, then rounds are 1 to {schedule.rounds}"
            if schedule.rounds
            else "nothing is sent; 0 shows what each device holds",
        )
