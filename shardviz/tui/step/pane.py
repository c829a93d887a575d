"""The step screen: a collective of the plan, or any other, round by round."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events, work
from textual.app import ComposeResult

from shardviz.errors import QuestionError, ShardvizError
from shardviz.forms.command_line import to_command_line
from shardviz.forms.wording import as_sentence, error_words
from shardviz.lazy_names import LazyImports
from shardviz.render.lines import sentence
from shardviz.render.rounds import player as player_page
from shardviz.render.rounds import step_notes
from shardviz.stepping.plan_step import played_steps
from shardviz.tui.lines_view import TextLines
from shardviz.tui.pane import Pane
from shardviz.tui.registry import FORM, STEP, Command, CommandsChanged, bindings
from shardviz.tui.step.choice import CollectiveChoice, is_large, worked_out
from shardviz.tui.step.form import CollectiveForm
from shardviz.tui.step.player import Player, Rounds, StepLines

with LazyImports():
    from shardviz.codegen import collective as collective_program
    from shardviz.documents import rounds
    from shardviz.tui.step import dialogs

if TYPE_CHECKING:
    from shardviz.documents.fields import Document
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.group_links import Links
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.planner.problem import Problem
    from shardviz.render.rounds.player import View
    from shardviz.stepping.collective_matmul import BlockwiseMatmul
    from shardviz.stepping.collective_run import CollectiveRun, PreparedRun
    from shardviz.stepping.question import CollectiveQuestion
    from shardviz.tui.compiler_queries import ShownAnswer
    from shardviz.tui.state import EditorState

PAN = 16
"""Columns of one key press."""
_OF_ROUNDS = ("play", "round", "algorithm", "compare", "view", "device", "links")
"""Commands that do nothing where nothing is sent."""
_OPTIONS = {"transfers": " --transfers", "matmul": " --matmul"}
"""What the command line adds for a view."""
VERDICT_LINES = 2
"""The most lines for JAX's verdict."""


class StepPane(Pane):
    """The player."""

    area = "step"
    BINDINGS = bindings(STEP)
    DEFAULT_CSS = """
    StepPane.other Rounds, StepPane.other #step-head, StepPane.other #step-foot { display: none; }
    """

    def __init__(self, state: EditorState) -> None:
        super().__init__(state)
        self.rounds = Rounds()
        self.prepared: PreparedRun | None = None
        self.chosen = CollectiveChoice(state.resolved)
        self._group = 0
        self._followed: int | None = None
        """The device whose group was gone to; g goes on from there."""
        self._view: View = "devices"
        self._fault: ShardvizError | None = None
        self._ticket = 0
        self._form = CollectiveForm(state)
        """Its many fields are put on the screen when it is opened first."""

    def compose(self) -> ComposeResult:
        yield StepLines(id="step-head")
        yield self.rounds
        yield StepLines(id="step-foot")

    @property
    def player(self) -> Player:
        return self.rounds.player

    def show_problem(self, resolved: ResolvedProblem) -> None:
        self.rounds.page = None
        if self.state.step_number in played_steps(resolved.plan):
            self.chosen.step = self.state.step_number
        if self.has_class("other"):
            self._form.show_problem(resolved)
        self._choose()

    def show_step(self) -> None:
        number = self.state.step_number
        if not self.chosen.is_own and number != self.chosen.step and number in self.chosen.collectives:
            self.chosen.step = number
            self._choose()

    def show_round(self, number: int) -> None:
        if number != self.player.number:
            self.rounds.go(number)

    @property
    def round_shown(self) -> int:
        return self.player.number

    def begin(self, location: AnswerLocation) -> None:
        self._group, self.rounds.page, self._view = self.chosen.group_of(location.position), None, "devices"
        self._show_form(False)
        if self.chosen.forget():
            self._load(0.0)
        self.rounds.go(location.round)

    def show_answers(self, _answers: Mapping[str, ShownAnswer]) -> None:
        self._draw_foot()

    @property
    def idle(self) -> Collection[str]:
        question, is_own = self.chosen.question, self.chosen.is_own
        idle = set() if question is not None else set(_OF_ROUNDS)
        if question is None or question.layout.mesh.size == question.schedule.pattern.group_size:
            idle.add("group")
        if is_own or len(self.chosen.collectives) < 2:
            idle.add("collective")
        if not is_own:
            idle.add("back_to_plan")
        return idle

    @property
    def typing(self) -> Sequence[Command]:
        return FORM if self.has_class("other") else ()

    def on_resize(self, _event: events.Resize) -> None:
        self.rounds.page = None
        self.call_after_refresh(self._draw)

    def command_line(self) -> str:
        shown = self.state.resolved.shown
        played = to_command_line(shown, "explain" if shown.collective is None else "step")
        if not self.chosen.command_line:
            return played
        return f"{self.chosen.command_line}{_OPTIONS.get(self._view, '')}"

    def jax_code(self) -> str:
        if self.prepared is not None:
            return collective_program.rounds_code(self.prepared.drawn)
        # While it is worked out, a collective that is not the plan's has its program already.
        question = self.state.resolved.collective
        return super().jax_code() if question is None else collective_program.collective_code(question)

    def exported(self) -> CollectiveRun | Problem:
        return self.state.resolved.problem if self.prepared is None else self.prepared.run

    def document(self) -> Document:
        if self.prepared is None:
            return super().document()
        run = self.prepared.run
        if self._view == "matmul" and self._matmul is not None:
            return rounds.matmul_document(self._matmul, self.chosen.step)
        if unlisted := run.unlisted():
            raise QuestionError(f"the document would list {unlisted}", "take a smaller mesh or array")
        if self._view == "transfers":
            return rounds.transfers_document(run)
        return rounds.step_document(run, None)

    def action_play(self) -> None:
        self.rounds.play()

    def action_round(self, steps: int) -> None:
        self.rounds.go(self.player.number + steps)

    def action_first(self) -> None:
        self.rounds.go(0)

    def action_last(self) -> None:
        self.rounds.go(self.player.rounds)

    def action_speed(self, steps: int) -> None:
        self.rounds.faster(steps)

    def on_rounds_round_changed(self) -> None:
        self._draw()
        self.rounds.follow()

    def action_view(self) -> None:
        later = (*player_page.VIEWS[player_page.VIEWS.index(self._view) + 1 :], *player_page.VIEWS)
        self._view = next(view for view in later if self._has_view(view))
        self.rounds.page = None
        self.rounds.scroll_home(animate=False)
        self._draw()
        self.call_after_refresh(self.rounds.follow)

    def action_algorithm(self, steps: int) -> None:
        try:
            self.chosen.next_algorithm(steps)
        except ShardvizError as error:
            self.notify(error_words(error), markup=False)
            return
        self._play_algorithm()

    def action_compare(self) -> None:
        if self.prepared is not None:
            self.app.push_screen(dialogs.AlgorithmsDialog(self.prepared.run), self._choose_algorithm)

    def _choose_algorithm(self, name: str | None) -> None:
        if name is not None:
            self.chosen.algorithm = name
            self._play_algorithm()

    def _play_algorithm(self) -> None:
        """Play by the algorithm that was chosen, at the same part of its rounds."""
        if (draft := self.chosen.settled(self.state.history.draft)) is not None:
            self.state.edit(draft)
        else:
            self._load(self.player.fraction)

    def action_links(self) -> None:
        if self.prepared is not None:
            self.chosen.next_links()
            self._load(self.player.fraction)

    def action_ask_now(self) -> None:
        self.state.queries.ask_now()
        self._draw()

    def action_group(self, steps: int) -> None:
        if self.prepared is not None:
            self._group = (self._group + steps) % len(self.prepared.run.groups)
            self.rounds.page = None
            self._draw()

    def action_device(self, steps: int) -> None:
        """Mark a device of the group: the first or the last where none of it is marked."""
        if self.prepared is None:
            return
        run = self.prepared.run
        group = run.groups[self._group]
        index = group.index(self.state.lens) + steps if self.state.lens in group else min(0, steps)
        self.state.set_lens(group[index % len(group)])

    def show_lens(self) -> None:
        self._draw()

    def _follow_lens(self, prepared: PreparedRun) -> None:
        """Show the group of the marked device, wherever that was marked."""
        if self.state.lens is not None and self.state.lens != self._followed:
            group, _ = prepared.run.places.get(self.state.lens, (self._group, 0))
            if group != self._group:
                self._group, self.rounds.page = group, None
        self._followed = self.state.lens

    def action_pan(self, steps: int) -> None:
        self.rounds.scroll_relative(x=steps * PAN, animate=False)

    def action_collective(self, steps: int) -> None:
        if self.chosen.is_own:
            self.notify("O goes back to the collectives of the plan.", markup=False)
            return
        self.chosen.next_step(steps)
        self.state.set_step(self.chosen.step)
        self._choose()

    async def action_other(self) -> None:
        if not self._form.is_attached:
            await self.mount(self._form, before="#step-foot")
        self._show_form(not self.has_class("other"))
        if self._form.display:
            self._form.show_problem(self.state.resolved)
        (self._form.first_field if self._form.display else self.rounds).focus()

    def _show_form(self, is_open: bool) -> None:
        self._form.display = is_open
        self.set_class(is_open, "other")

    def action_back_to_plan(self) -> None:
        self.state.edit(replace(self.state.history.draft, collective=None))

    async def on_collective_form_done(self) -> None:
        await self.action_other()

    def on_lines_view_clicked(self, message: Rounds.Clicked) -> None:
        """A transfer leads to its round, a device is marked."""
        if self.rounds.page is None or not isinstance(message.view, Rounds):
            return
        number = self.player.number
        found = self.rounds.page.round_at(number, message.line)
        position = None if found else self.rounds.page.position_at(number, message.column, message.line)
        if position is not None:
            self.state.set_lens(None if position == self.state.lens else position)
        elif found is not None and found != number:
            self.rounds.go(found)

    def _choose(self) -> None:
        """Play what the problem has of the choice; what is the same goes on."""
        found = self.chosen.look(self.state.resolved)
        moved = self.chosen.find_links()
        if found == "other":
            self._group, self._followed, self.player.playing = 0, None, False
        if found != "same" or moved:
            self._load(0.0 if found == "other" else self.player.fraction)
        else:
            self._draw()

    def _load(self, fraction: float) -> None:
        """Work out the chosen collective, at a part of its rounds; a large one beside the screen."""
        self._ticket += 1
        self.post_message(CommandsChanged())
        self.rounds.page, self._fault = None, self.chosen.fault
        question = self.chosen.question
        self.rounds.load(0 if question is None else question.schedule.rounds, fraction)
        links = None if question is None else self._links()
        if question is None or links is None or is_large(question):
            self.prepared = None
            self._draw()
            if question is not None and links is not None:
                self._work_out(question, links, self._ticket)
            return
        self._take(worked_out(question, links), self._ticket)

    def _links(self) -> Links | None:
        try:
            return self.chosen.links
        except ShardvizError as error:
            self._fault = error
            return None

    @work(thread=True, exit_on_error=False, group="step", exclusive=True)
    def _work_out(self, question: CollectiveQuestion, links: Links, ticket: int) -> None:
        self.call_later(self._take, worked_out(question, links), ticket)

    def _take(self, found: PreparedRun | ShardvizError, ticket: int) -> None:
        """Show a collective, or why it cannot be played, unless another one has been chosen since."""
        if ticket != self._ticket:
            return
        if isinstance(found, ShardvizError):
            self.prepared, self._fault = None, found
        else:
            self.prepared = found
            self._group = min(self._group, len(found.run.groups) - 1)
        self.rounds.page = None
        self._draw()

    def _draw(self) -> None:
        width = self.size.width
        if not width:
            return
        if self.prepared is None:
            self._draw_words(width)
            return
        self._follow_lens(self.prepared)
        if self.rounds.page is None or self.rounds.page.palette is not self.palette:
            self.rounds.page = self._new_page(self.prepared)
        self.rounds.page.lens = self.state.lens
        self._draw_head()
        self._draw_foot()
        self.rounds.draw()

    def _new_page(self, prepared: PreparedRun, verdict: int = 1) -> player_page.PlayerPage:
        lead = "" if self.chosen.is_own else f"step {self.chosen.step}  "
        palette, links_of = self.palette, self.chosen.links_of
        if not self._has_view(self._view):
            self._view = "devices"
        return player_page.PlayerPage(
            prepared,
            self._view,
            self._group,
            *self.size,
            palette,
            lead,
            links_of,
            verdict,
            self._matmul if self._view == "matmul" else None,
        )

    def _has_view(self, view: View) -> bool:
        return view != "matmul" or self._matmul is not None

    @property
    def _matmul(self) -> BlockwiseMatmul | None:
        return None if self.prepared is None else self.chosen.matmul(self.prepared.run)

    def _draw_head(self) -> None:
        if self.rounds.page is not None:
            player = self.player
            speed = f"{player.speed:g}/s" if player.playing else ""
            self._put("#step-head", self.rounds.page.head(player.number, speed))

    def _draw_foot(self) -> None:
        if self.rounds.page is None or self.prepared is None or not self.size.width:
            return  # A pane that a lesson hides has no room, and draws itself again when it is shown.
        verdict = self._verdict(self.prepared)
        lines = self.rounds.page.foot(self.player.number, verdict)
        if len(verdict) != self.rounds.page.verdict_lines:
            # The picture makes room for a longer verdict.
            self.rounds.page = self._new_page(self.prepared, len(verdict))
            self.rounds.page.lens = self.state.lens
            self.rounds.draw()
        self._put("#step-foot", lines)

    def _put(self, name: str, lines: list[Text]) -> None:
        """Show lines; the screen is laid out again only where they are more or fewer than before."""
        view = self.query_one(name, StepLines)
        view.styles.height = len(lines)
        view.show(TextLines(lines))

    def _verdict(self, prepared: PreparedRun) -> list[Text]:
        question = prepared.drawn.question
        width = self.size.width
        if question.shards is None:
            said = "no numbers to verify: they would be too many"
        else:
            known = self.state.queries.verified(question)
            if known.answer is not None:
                return step_notes.verdict_lines(known.answer, prepared.run.mesh, width)[:VERDICT_LINES]
            if known.error is not None:
                said = as_sentence(f"not verified by JAX: {known.error.message}")
            elif known.state == "cancelled":
                said = "not verified: cancelled; r asks again"
            else:
                said = "… JAX computes the same"
        return sentence(said, width, style="dim")[:VERDICT_LINES]

    def _draw_words(self, width: int) -> None:
        self._put("#step-foot", [])
        self._put("#step-head", [])
        if self._fault is not None:
            words = [as_sentence(self._fault.message), as_sentence(self._fault.hint)]
        elif self.chosen.base is not None:
            words = ["Working out who sends what to whom …"]
        else:
            words = ["No collective: nothing is sent.", "i plays any other."]
        lines = [line for word in words for line in sentence(word, width)]
        self.rounds.show(TextLines(lines))
