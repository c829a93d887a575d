"""A question about a collective, answered: every round or one, played, compared or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.cli.narration import working
from shardviz.cli.screen import Screen, print_json, screen
from shardviz.errors import QuestionError
from shardviz.stepping.device_numbers import held

if TYPE_CHECKING:
    from shardviz.cli.judge import Judge
    from shardviz.stepping.links import Links
    from shardviz.stepping.question import CollectiveQuestion
    from shardviz.stepping.walk import Walk

MAX_SENDS = 2**18
MAX_NUMBERS = 2**22
"""What one JSON document may list."""


@dataclass(frozen=True)
class Manner:
    """How an answer is given. `number` is the round to show, None for all; `speed` is in rounds a second."""

    number: int | None = None
    play: bool = False
    speed: float = 1.0
    compare: bool = False
    as_json: bool = False
    width: int | None = None
    color: str = "auto"

    @property
    def page(self) -> Screen:
        """The screen as it is now: a terminal may change its size."""
        return screen(self.width, self.color)

    def check(self) -> None:
        """Raise `QuestionError` for options that do not go together, and for a show without a terminal."""
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
        if self.play:
            from shardviz.cli.play import check_terminal

            check_terminal()


def present(question: CollectiveQuestion, links: Links, judge: Judge, manner: Manner) -> int:
    """Answer on standard output and return the exit code. Raises `ShardvizError`."""
    if manner.compare:
        _compare(question, links, manner)
        return judge.exit_code
    if manner.number:
        # Said before anything is computed.
        question.schedule.phase(manner.number)
    if manner.as_json:
        check_listed(question)
    from shardviz.stepping.walk import Walk

    judge.ask(question)
    walk = Walk(question, links)
    if manner.as_json:
        from shardviz.render.step_document import step_document

        with working("stepping"):
            _ = walk.frames.after
        verdict = judge.verdict(walk)
        with working("writing"):
            document = step_document(walk, verdict)
        print_json(document)
        return judge.exit_code
    from shardviz.render.lines import sentence
    from shardviz.render.step_view import step_view
    from shardviz.render.verdict_lines import verdict_lines

    number = _played(walk, manner) if manner.play else manner.number
    page = manner.page
    with working("stepping"):
        lines = step_view(walk, page.width, page.palette, number)
    page.show(lines)
    # JAX's verdict is on its way while the rounds are read.
    verdict = judge.verdict(walk)
    if verdict is not None:
        page.show(verdict_lines(verdict, walk.mesh, page.width))
    elif judge.silence:
        page.show(sentence(judge.silence, page.width, style="dim"))
    return judge.exit_code


def _compare(question: CollectiveQuestion, links: Links, manner: Manner) -> None:
    """Every algorithm for the question; none of them is run on values."""
    from shardviz.hardware import crossovers, left_out
    from shardviz.stepping.walk import Walk

    walk, pattern = Walk(question, links), question.schedule.pattern
    with working("comparing"):
        _ = walk.rows  # refused before the crossovers are looked for
        crossed = crossovers(pattern, links.topology, links.wire)
        skipped = left_out(pattern, links.topology)
        # Times are worked out when they are first looked at.
        if manner.as_json:
            from shardviz.render.step_document import comparison_document

            document = comparison_document(walk, crossed, skipped)
        else:
            from shardviz.render.comparison_view import comparison_view

            page = manner.page
            lines = comparison_view(walk, crossed, skipped, page.width, page.palette)
    if manner.as_json:
        print_json(document)
    else:
        page.show(lines)


def check_listed(question: CollectiveQuestion) -> None:
    """Raise `QuestionError` where a document would list more sends or numbers than anything reads."""
    schedule, mesh = question.schedule, question.layout.mesh
    groups = mesh.size // schedule.pattern.group_size
    hint = "take a smaller mesh or array, or leave out --json for a summary"
    if question.shards is not None and held(question.layout, question.operation) > MAX_NUMBERS:
        raise QuestionError(
            f"--json lists every number, and {mesh.size:,} devices hold more than {MAX_NUMBERS:,}", hint
        )
    sends = 0
    for phase in schedule.phases:
        for number in range(1 if phase.alike else phase.rounds):
            sent = phase.sends(number)
            sends += groups * len(sent) * sent.span * (phase.rounds if phase.alike else 1)
            if sends > MAX_SENDS:
                raise QuestionError(
                    f"--json lists every send, and {schedule.algorithm} on {mesh.size:,} devices has more "
                    f"than {MAX_SENDS:,}",
                    hint,
                )


def _played(walk: Walk, manner: Manner) -> int:
    """Play the frames, and return the number of the one at which the show ended."""
    from shardviz.cli.play import play
    from shardviz.render.play_lines import play_lines

    def picture(number: int, size: tuple[int, int]) -> str:
        page = manner.page
        return page.drawn(play_lines(walk, number, page.width, size[1], page.palette))

    return play(picture, len(walk.frames), manner.speed)
