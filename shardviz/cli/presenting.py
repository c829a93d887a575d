"""A question about a collective, answered: every round or one, played, compared or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from shardviz.cli.narration import working
from shardviz.cli.screen import Screen, print_json, screen
from shardviz.errors import QuestionError, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from shardviz.cli.judge import Judge
    from shardviz.collectives import Schedule
    from shardviz.hardware.links import Links
    from shardviz.render.palette import Palette
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.stepping.question import CollectiveQuestion

USUAL_SPEED = 1.0
"""Rounds a second."""


@dataclass(frozen=True)
class Manner:
    """How an answer is given.

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
        """Raise `QuestionError` for options that do not go together, and for a show without a terminal.

        `verifier` is who verifies as `option` says, None where it says nothing.
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
                f"{chosen[0]} and {chosen[1]} are different answers",
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


def present(
    question: CollectiveQuestion, links: Links, judge: Judge, manner: Manner, heading: Sequence[Text] = ()
) -> int:
    """Answer on standard output, with a heading unless it is JSON, and return the exit code.

    Raises `ShardvizError`.
    """
    if manner.compare:
        _compare(question, links, manner, heading)
        return judge.exit_code
    if manner.number is not None:
        check_round(question.schedule, manner.number)
    from shardviz.stepping.collective_run import CollectiveRun

    walk = CollectiveRun(question, links)
    if manner.as_json:
        check_listed(walk)
    judge.ask(question)
    if manner.as_json:
        from shardviz.documents.rounds import step_document

        with working("stepping"):
            _ = walk.frames.after
        verdict = judge.verdict(walk)
        with working("writing"):
            document = step_document(walk, verdict)
        print_json(document)
        return judge.exit_code
    from shardviz.render.lines import sentence
    from shardviz.render.rounds.step_view import step_view
    from shardviz.render.rounds.verdict_lines import verdict_lines

    number = _played(walk, manner) if manner.play else manner.number
    page = manner.page
    with working("stepping"):
        lines = step_view(walk, page.width, page.palette, number)
    page.show([*heading, *lines])
    # JAX's verdict is on its way while the rounds are read.
    verdict = judge.verdict(walk)
    if verdict is not None:
        page.show(verdict_lines(verdict, walk.mesh, page.width))
    elif judge.silence:
        page.show(sentence(judge.silence, page.width, style="dim"))
    return judge.exit_code


def _compare(question: CollectiveQuestion, links: Links, manner: Manner, heading: Sequence[Text]) -> None:
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
        if manner.as_json:
            from shardviz.documents.rounds import comparison_document

            document = comparison_document(walk, crossed, skipped)
        else:
            from shardviz.render.rounds.comparison_view import comparison_view

            page = manner.page
            lines = comparison_view(walk, crossed, skipped, page.width, page.palette)
    if manner.as_json:
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


def _played(walk: CollectiveRun, manner: Manner) -> int:
    """Play the frames, and return the number of the one at which the show ended."""
    from shardviz.cli.play import play
    from shardviz.render.rounds.play_lines import Stage

    @lru_cache(maxsize=1)
    def stage(width: int, height: int, palette: Palette) -> Stage:
        return Stage(walk, width, height, palette)

    def picture(number: int, size: tuple[int, int]) -> str:
        page = manner.page
        return page.drawn(stage(page.width, size[1], page.palette).lines(number))

    return play(picture, len(walk.frames), USUAL_SPEED if manner.speed is None else manner.speed)
