"""A collective shown by a command: every round or one, played, compared or as JSON, verified by JAX."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from shardviz.cli.messages import print_note, wait_for, working
from shardviz.cli.process import ExitCode
from shardviz.cli.screen import Screen, print_json, screen
from shardviz.cli.target_session import WorkerSession
from shardviz.errors import CompilerError, QuestionError, ShardvizError, TargetError, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from shardviz.collectives import Schedule
    from shardviz.compiler import CompilerRequest, ExecutionResult
    from shardviz.hardware.links import Links
    from shardviz.render.palette import Palette
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.stepping.question import CollectiveQuestion
    from shardviz.stepping.verdict import Verdict


USUAL_SPEED = 1.0
"""Rounds a second."""


@dataclass(frozen=True)
class StepOptions:
    """The options that say how a collective is shown.

    `number` is the round to show, None for all. `speed` is in rounds a second, None for the usual one.
    """

    number: int | None = None
    play: bool = False
    speed: float | None = None
    compare: bool = False
    as_json: bool = False
    width: int | None = None
    color: str = "auto"

    @property
    def page(self) -> Screen:
        """The screen as it is now: a terminal may change its size."""
        return screen(self.width, self.color)

    def check(self, verifier: str | None, option: str = "--on") -> None:
        """Raise `QuestionError` for options that cannot be combined, and for playing without a terminal.

        `verifier` is the value of `option`, None where it is not given.
        """
        modes = {
            "--round": self.number is not None,
            "--play": self.play,
            "--compare": self.compare,
            "--json": self.as_json,
        }
        chosen = [mode for mode, wanted in modes.items() if wanted]
        if len(chosen) > 1 and chosen != ["--compare", "--json"]:
            raise QuestionError(
                f"{chosen[0]} and {chosen[1]} cannot be combined",
                f"leave out one: {chosen[1]} or {chosen[0]}",
            )
        if self.speed is not None and not self.play:
            raise QuestionError("--speed is the speed of --play", "add --play, or leave out --speed")
        if self.compare and verifier not in (None, "none"):
            raise QuestionError(
                f"--compare runs nothing that {option} {verifier} could verify",
                f"leave out --compare or {option}",
            )
        if self.play:
            from shardviz.cli.play import check_terminal

            check_terminal()


class Verifier(WorkerSession):
    """JAX, which runs the same collective in a process of its own, so that its results stand beside ours.

    `on` is cpu, real or none; None is cpu, and then nothing that goes wrong is an error. `timeout` is in
    seconds, `option` is where the command line chooses the verifier.
    """

    def __init__(self, on: str | None, timeout: float, option: str = "--on") -> None:
        from shardviz.compiler import TARGETS

        self._target = None if on == "none" else TARGETS[on or "cpu"]
        super().__init__(timeout, *([self._target] if self._target else []))
        self.silence = ""
        """The reason why JAX is not asked, where it would have been."""
        self._chosen = on is not None
        self._option = option
        self._pending: CompilerRequest[ExecutionResult] | None = None

    def ask(self, question: CollectiveQuestion) -> None:
        """Send the collective and its numbers to JAX.

        Raises `TargetError` where there are no numbers, or more devices than the target has, and the
        target was chosen.
        """
        if self._worker is None or self._target is None:
            return
        from shardviz.stepping.verdict import ask_jax

        try:
            self._pending = ask_jax(self._worker, question, self._target)
        except TargetError as error:
            if self._chosen:
                raise TargetError(error.message, self._reworded(error.hint)) from error
            self.silence = f"not verified by JAX: {error.message}"

    def verdict(self, walk: CollectiveRun) -> Verdict | None:
        """JAX's verdict on the walk, as soon as it is ready; None where JAX was not asked or cannot say.

        Raises `CompilerError` where it cannot say and was chosen.
        """
        if self._pending is None or self._target is None:
            return None
        from shardviz.stepping.verdict import compare_with_jax

        try:
            verdict = compare_with_jax(walk.question, walk.frames, wait_for(self._pending, self._target.name))
        except ShardvizError as error:
            if self._chosen:
                hint = self._reworded(error.hint)
                raise CompilerError(f"{self._target.name}: {error.message}", hint) from error
            print_note(f"nothing is verified: {self._target.name}: {error.message}")
            return None
        if not verdict.agrees:
            self.exit_code = ExitCode.CHECK_FAILED
        return verdict

    def _reworded(self, hint: str) -> str:
        """A hint with the option that this command has."""
        return hint.replace("--on ", f"{self._option} ")


def print_step(
    question: CollectiveQuestion,
    links: Links,
    verifier: Verifier,
    shown: StepOptions,
    heading: Sequence[Text] = (),
) -> int:
    """Answer on standard output, with a heading unless it is JSON, and return the exit code.

    Raises `ShardvizError`.
    """
    if shown.compare:
        _compare(question, links, shown, heading)
        return verifier.exit_code
    if shown.number is not None:
        check_round(question.schedule, shown.number)
    from shardviz.stepping.collective_run import CollectiveRun

    walk = CollectiveRun(question, links)
    if shown.as_json:
        check_listed(walk)
    verifier.ask(question)
    if shown.as_json:
        from shardviz.documents.rounds import step_document

        with working("stepping"):
            _ = walk.frames.after
        verdict = verifier.verdict(walk)
        with working("writing"):
            document = step_document(walk, verdict)
        print_json(document)
        return verifier.exit_code
    from shardviz.render.lines import sentence
    from shardviz.render.rounds.step_notes import verdict_lines
    from shardviz.render.rounds.step_view import step_view

    number = _played(walk, shown) if shown.play else shown.number
    page = shown.page
    with working("stepping"):
        lines = step_view(walk, page.width, page.palette, number)
    page.show([*heading, *lines])
    # JAX works while the rounds are read.
    verdict = verifier.verdict(walk)
    if verdict is not None:
        page.show(verdict_lines(verdict, walk.mesh, page.width))
    elif verifier.silence:
        page.show(sentence(verifier.silence, page.width, style="dim"))
    return verifier.exit_code


def _compare(question: CollectiveQuestion, links: Links, shown: StepOptions, heading: Sequence[Text]) -> None:
    """Every algorithm for the question; none of them is run on values."""
    from shardviz.hardware import crossovers, left_out
    from shardviz.stepping.collective_run import CollectiveRun

    walk, pattern = CollectiveRun(question, links), question.schedule.pattern
    with working("comparing"):
        _ = walk.rows  # refused before the crossovers are looked for
        crossed: Sequence[tuple[int, str]] = ()
        skipped: Sequence[tuple[str, str]] = ()
        if question.operation.even:
            crossed = crossovers(pattern, links.topology, links.wire, walk.bytes)
            skipped = left_out(pattern, links.topology)
        # Times are worked out when they are first looked at.
        if shown.as_json:
            from shardviz.documents.rounds import comparison_document

            document = comparison_document(walk, crossed, skipped)
        else:
            from shardviz.render.rounds.costs import comparison_view

            page = shown.page
            lines = comparison_view(walk, crossed, skipped, page.width, page.palette)
    if shown.as_json:
        print_json(document)
    else:
        page.show([*heading, *lines])


def check_round(schedule: Schedule, number: int) -> None:
    """Raise `QuestionError` for a round that does not exist; 0 is before the first."""
    if not 0 <= number <= schedule.rounds:
        raise QuestionError(
            f"round {number} does not exist: {schedule.algorithm} has {plural(schedule.rounds, 'round')} "
            f"here",
            f"0 is before the first, then rounds go from 1 to {schedule.rounds}"
            if schedule.rounds
            else "nothing is sent here; 0 shows what every device holds",
        )


def check_listed(walk: CollectiveRun) -> None:
    """Raise `QuestionError` where a document would list more sends or numbers than anything reads."""
    if walk.unlisted:
        raise QuestionError(
            f"--json lists {walk.unlisted}",
            "take a smaller mesh or array, or leave out --json for a summary",
        )


def _played(walk: CollectiveRun, shown: StepOptions) -> int:
    """Play the frames, and return the number of the one at which the show ended."""
    from shardviz.cli.play import play
    from shardviz.render.rounds.player import PlayedTable

    @lru_cache(maxsize=1)
    def stage(width: int, height: int, palette: Palette) -> PlayedTable:
        return PlayedTable(walk, width, height, palette)

    def picture(number: int, size: tuple[int, int]) -> str:
        page = shown.page
        return page.drawn(stage(page.width, size[1], page.palette).lines(number))

    return play(picture, len(walk.frames), USUAL_SPEED if shown.speed is None else shown.speed)
