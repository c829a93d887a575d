"""The page of what is played, a collective or the whole plan: its head, the picture of the round that is
shown, and below that its cost with JAX's verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from shardviz.errors import ShardvizError
from shardviz.forms.wording import as_sentence
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.rounds import device_values, step_notes
from shardviz.render.rounds.player import LOW, PlayerPage, View
from shardviz.stepping.collective_matmul import BlockwiseMatmul
from shardviz.stepping.collective_run import PreparedRun
from shardviz.stepping.plan_run import PlanRun
from shardviz.stepping.question import CollectiveQuestion
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.state import EditorState
from shardviz.tui.step.choice import CollectiveChoice
from shardviz.tui.themes import palette_of

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Rounds a second."""
VERDICT_LINES = 2
"""The most lines for JAX's verdict."""


class PlanPage:
    """A plan of which each step is a picture, numbered as there; before the first are the arguments."""

    lens: int | None = None

    def __init__(self, run: PlanRun, size: tuple[int, int], palette: Palette, verdict: int) -> None:
        self._run, self.palette, self.verdict_lines = run, palette, verdict
        self._width, self._is_low = size[0] - 1, size[1] < LOW

    def head(self, number: int, speed: str) -> list[Text]:
        where = f"step {number} of {len(self._run.steps)}"
        return [Text.assemble((where, "bold"), f"  {speed}"), Text()]

    def foot(self, _number: int, verdict: Sequence[Text]) -> list[Text]:
        """The sizes, and JAX's verdict; on a low page its first line."""
        return (
            [*verdict[:1]] if self._is_low else [*device_values.size_lines(self._run, self._width), *verdict]
        )

    def canvas(self, number: int) -> TextLines:
        """The numbers of every device before and after a step."""
        return TextLines(device_values.step_lines(self._run, number, self._width, self.palette))

    def position_at(self, _number: int, _x: int, _y: int) -> None:
        """No device: an array stands for all that hold it."""


class Rounds(LinesView, inherit_bindings=False):
    """The picture of round `number` of `rounds`; 0 is before any. It plays `speed` rounds a second by itself.
    `page` has the pictures; None where nothing is played.
    Scrolls up and down by keys; arrows to the left and right belong to the rounds."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("up", "scroll_up", "Up"),
        ("down", "scroll_down", "Down"),
        ("pageup", "page_up", "Page up"),
        ("pagedown", "page_down", "Page down"),
    ]

    class RoundChanged(Message):
        """Another round is shown, or playing has begun or ended."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = self.number = 0
        self.playing, self.speed = False, 1.0
        self.page: PlayerPage | PlanPage | None = None

    @property
    def fraction(self) -> float:
        """The part of the way that is done, 0 to 1."""
        return self.number / self.rounds if self.rounds else 0.0

    def load(self, rounds: int, fraction: float = 0.0) -> None:
        self.rounds, self.number = rounds, round(fraction * rounds)
        self.playing = self.playing and self.number < rounds
        self._keep_time()

    def play(self) -> None:
        """Play, from the start where it is at its end; or pause."""
        self.playing = not self.playing and self.rounds > 0
        if self.playing and self.number == self.rounds:
            self.number = 0
        self._keep_time()
        self.post_message(self.RoundChanged())

    def faster(self, steps: int) -> None:
        """Another speed, `steps` doublings away or as far as there is one."""
        index = SPEEDS.index(self.speed) + steps
        self.speed = SPEEDS[min(max(index, 0), len(SPEEDS) - 1)]
        self._keep_time()
        self.post_message(self.RoundChanged())

    def step(self, steps: int) -> None:
        self.go(self.number + steps)

    def to_end(self) -> None:
        self.go(self.rounds)

    def go(self, number: int) -> None:
        self.playing = False
        self._show_round(min(max(number, 0), self.rounds))

    def automatic_refresh(self) -> None:
        if self.playing and self.display and self.page is not None:
            self.playing = self.number + 1 < self.rounds
            self._show_round(self.number + 1)

    def draw(self) -> None:
        if self.page is not None:
            self.show(self.page.canvas(self.number))

    def _show_round(self, number: int) -> None:
        self.number = number
        if not self.playing:
            self._keep_time()
        self.post_message(self.RoundChanged())

    def _keep_time(self) -> None:
        self.auto_refresh = 1 / self.speed if self.playing else None


class StepLines(LinesView, can_focus=False, inherit_bindings=False):
    """Lines above or below the picture, as high as they are many."""

    def put(self, lines: list[Text]) -> None:
        """Show lines; the screen is laid out again only where they are more or fewer than before."""
        self.styles.height = len(lines)
        self.show(TextLines(lines))


class CollectivePage(Vertical):
    """Shows one `group` of a `prepared` collective in a `view`, or in the view "values" the whole plan;
    without one, the `fault` that stands in its way."""

    def __init__(self, state: EditorState, chosen: CollectiveChoice) -> None:
        super().__init__()
        self.state, self.chosen = state, chosen
        self.head, self.rounds, self.foot = StepLines(id="step-head"), Rounds(), StepLines(id="step-foot")
        self.prepared: PreparedRun | None = None
        self.fault: ShardvizError | None = None
        self.view: View = "devices"
        self.group = 0
        self._followed: int | None = None
        """The device whose group was gone to; g goes on from there."""

    def compose(self) -> ComposeResult:
        yield self.head
        yield self.rounds
        yield self.foot

    @property
    def matmul(self) -> BlockwiseMatmul | None:
        return None if self.prepared is None else self.chosen.matmul(self.prepared.run)

    def on_resize(self) -> None:
        self.call_after_refresh(self.draw_anew)

    def show_prepared(self, prepared: PreparedRun | None) -> None:
        self.prepared = prepared
        if prepared is not None:
            self.group = min(self.group, len(prepared.run.groups) - 1)
        self.draw_anew()

    def show_group(self, number: int, view: View | None = None) -> None:
        """Show one of the groups that do it together, in the same view or another."""
        self.group, self.view = number, view or self.view
        self.draw_anew()

    def begin(self) -> None:
        """Show the first group of another collective, whose device is yet to be followed."""
        self.group, self._followed, self.rounds.playing = 0, None, False

    def next_view(self) -> None:
        self.rounds.scroll_home(animate=False)
        views: list[View] = ["devices"]
        views += ["matmul"] if self.matmul else []
        views += [] if self.chosen.is_own else ["values"]
        self.view = views[(views.index(self.view) + 1) % len(views)]

    def on_lines_view_clicked(self, message: Rounds.Clicked) -> None:
        """Mark a device, or no longer."""
        if self.rounds.page is None or message.view is not self.rounds:
            return
        position = self.rounds.page.position_at(self.rounds.number, message.column, message.line)
        if position is not None:
            self.state.set_lens(None if position == self.state.lens else position)

    def draw_anew(self) -> None:
        """Draw what another problem, group, view or size changes."""
        self.rounds.page = None
        self.draw()

    @on(Rounds.RoundChanged)
    def draw(self) -> None:
        """Draw what another round or another marked device changes."""
        self.state.round_number = self.rounds.number
        if not self.size.width:
            return
        if self.fault is not None or (self.prepared is None and self.view != "values"):
            words = ["Computing the sends …"]
            if self.fault is not None:
                words = [as_sentence(self.fault.message), as_sentence(self.fault.hint)]
            self.foot.put([])
            self.head.put([])
            self.rounds.show(TextLines([line for each in words for line in sentence(each, self.size.width)]))
            return
        if self.prepared is not None:
            if self.state.lens is not None and self.state.lens != self._followed:
                group, _ = self.prepared.run.places.get(self.state.lens, (self.group, 0))
                if group != self.group:
                    self.group, self.rounds.page = group, None
            self._followed = self.state.lens
        if self.rounds.page is None or self.rounds.page.palette is not palette_of(self.app):
            self.rounds.page = self._new_page()
        self.rounds.page.lens = self.state.lens
        speed = f"{self.rounds.speed:g}/s" if self.rounds.playing else ""
        self.head.put(self.rounds.page.head(self.rounds.number, speed))
        verdict = self._verdict()
        self.foot.put(self.rounds.page.foot(self.rounds.number, verdict))
        if len(verdict) != self.rounds.page.verdict_lines:  # the picture makes room for a longer one
            self.rounds.page = self._new_page(len(verdict))
            self.rounds.page.lens = self.state.lens
        self.rounds.draw()

    def _new_page(self, verdict: int = 1) -> PlayerPage | PlanPage:
        if self.view == "values":
            return PlanPage(self.chosen.plan_run, self.size, palette_of(self.app), verdict)
        if self.matmul is None:
            self.view = "devices"
        assert self.prepared is not None
        return PlayerPage(
            self.prepared,
            self.view,
            self.group,
            *self.size,
            palette_of(self.app),
            "" if self.chosen.is_own else f"step {self.chosen.step}  ",
            None if self.state.is_quiet else self.chosen.links_of,
            verdict,
            self.matmul if self.view == "matmul" else None,
        )

    def _verdict(self) -> list[Text]:
        question: PlanRun | CollectiveQuestion | None = None
        if self.view == "values":
            question = self.chosen.plan_run
        elif self.prepared is not None and self.prepared.drawn.question.shards is not None:
            question = self.prepared.drawn.question
        width = self.size.width
        if question is None:
            said = "nothing to verify: too many numbers"
        else:
            known = self.state.queries.verified(question)
            if known.answer is not None:
                return step_notes.verdict_lines(known.answer, question.mesh, width)[:VERDICT_LINES]
            if known.error is not None:
                said = as_sentence(f"not verified by JAX: {known.error.message}")
            elif known.state == "cancelled":
                said = "not verified: cancelled; r recompiles"
            else:
                said = "… JAX verifies"
        return sentence(said, width, style="dim")[:VERDICT_LINES]
