"""The step screen: a collective of the plan, or any other, round by round."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult

from shardviz.collectives.operations import OPERATIONS
from shardviz.errors import QuestionError, ShardvizError
from shardviz.forms.collective import collective_question
from shardviz.forms.command_line import to_arguments, to_command_line, with_collective_from_line
from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.stepping.plan_step import collective_steps
from shardviz.tui.pane import Pane
from shardviz.tui.registry import STEP, bindings
from shardviz.tui.step.choice import CollectiveChoice, is_large
from shardviz.tui.step.page import CollectivePage, Rounds

with LazyImports():
    from shardviz.codegen import collective as collective_program
    from shardviz.documents import rounds
    from shardviz.documents.fields import KINDS
    from shardviz.tui.dialogs import tables
    from shardviz.tui.opening import pages

if TYPE_CHECKING:
    from shardviz.documents.fields import Document
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.planner.problem import Problem
    from shardviz.stepping.collective_run import CollectiveRun, PreparedRun
    from shardviz.stepping.question import CollectiveQuestion
    from shardviz.tui.state import EditorState


class StepPane(Pane):
    """The player."""

    area = "step"
    BINDINGS = bindings(STEP)

    def __init__(self, state: EditorState) -> None:
        super().__init__(state)
        self.chosen = CollectiveChoice(state.resolved)
        self.page = CollectivePage(state, self.chosen)
        self._ticket = 0

    def compose(self) -> ComposeResult:
        yield self.page

    @property
    def player(self) -> Rounds:
        return self.page.rounds

    def show_problem(self) -> None:
        self.page.rounds.page = None
        if self.state.step_number in collective_steps(self.state.resolved.plan):
            self.chosen.step = self.state.step_number
        else:
            self.page.view = "values"
        self._choose()

    def show_step(self) -> None:
        number, is_played = self.state.step_number, self.page.view == "values"
        if self.chosen.is_own or number == (self.player.number if is_played else self.chosen.step):
            return
        if number in self.chosen.collectives:
            self.chosen.step = number
            self.page.view = "devices" if is_played else self.page.view
            self._choose(is_played)
        else:
            self.page.view = "values"
            self._load(0.0)

    def on_rounds_round_changed(self) -> None:
        if self.page.view == "values":
            self.state.set_step(self.player.number)

    def show_round(self, number: int) -> None:
        if number != self.player.number:
            self.player.go(number)

    def begin(self, location: AnswerLocation) -> None:
        self.page.show_group(self.chosen.group_of(location.position), "devices")
        if self.chosen.forget():
            self._load(0.0)
        self.player.go(location.round)

    @property
    def idle(self) -> Collection[str]:
        question, is_own = self.chosen.question, self.chosen.is_own
        idle = set()
        if question is None:  # nothing is sent
            idle = {"rounds", "algorithm", "compare", "view", "device", "links"}
        if self.page.view == "values":
            idle = {"algorithm", "compare", "device", "links", "group", *["view"] * (question is None)}
        if question is None or question.layout.mesh.size == question.schedule.pattern.group_size:
            idle.add("group")
        if is_own or len(self.chosen.collectives) < 2:
            idle.add("collective")
        if not is_own:
            idle.add("back_to_plan")
        return idle

    def command_line(self) -> str:
        shown = self.state.resolved.shown
        if self.page.view == "values":
            number = self.player.number
            is_local = number and number not in self.chosen.collectives
            return f"{to_command_line(shown, 'explain')} --step{f' {number}' if is_local else ''}"
        played = to_command_line(shown, "explain" if shown.collective is None else "step")
        if not self.chosen.command_line:
            return played
        return f"{self.chosen.command_line}{' --matmul' * (self.page.view == 'matmul')}"

    def jax_code(self) -> str:
        if self.page.prepared is not None and self.page.view != "values":
            return collective_program.rounds_code(self.page.prepared.drawn)
        # While it is worked out, a collective that is not the plan's has its program already.
        question = self.state.resolved.collective
        return super().jax_code() if question is None else collective_program.collective_code(question)

    def exported(self) -> CollectiveRun | Problem:
        return self.state.resolved.problem if self.page.prepared is None else self.page.prepared.run

    def document(self) -> Document:
        if self.page.view == "values":
            return KINDS["plan_steps"].document(self.chosen.plan_run, verdict=None)
        if self.page.prepared is None:
            return super().document()
        run = self.page.prepared.run
        if self.page.view == "matmul" and self.page.matmul is not None:
            return rounds.matmul_document(self.page.matmul, self.chosen.step)
        if unlisted := run.unlisted():
            raise QuestionError(f"the document would list {unlisted}", "use a smaller mesh or array")
        return rounds.step_document(run, None)

    def action_rounds(self, what: str, *places: int) -> None:
        """Play, pause, or go to another round."""
        getattr(self.player, what)(*places)

    def action_view(self) -> None:
        before = self.page.view
        if before == "values" and self.chosen.question is None:
            return
        self.page.next_view()
        if "values" in (before, self.page.view):
            self._load(0.0)
        else:
            self.page.draw_anew()

    def action_algorithm(self, steps: int) -> None:
        self.chosen.next_algorithm(steps)
        self._play_algorithm()

    def action_compare(self) -> None:
        if self.page.prepared is not None:
            self.app.push_screen(tables.AlgorithmsDialog(self.page.prepared.run), self._choose_algorithm)

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
        if self.page.prepared is not None:
            self.chosen.next_links()
            self._load(self.player.fraction)

    def action_group(self, steps: int) -> None:
        if self.page.prepared is not None:
            self.page.show_group((self.page.group + steps) % len(self.page.prepared.run.groups))

    def action_device(self, steps: int) -> None:
        """Mark a device of the group: the first or the last where none of it is marked."""
        if self.page.prepared is None:
            return
        group = self.page.prepared.run.groups[self.page.group]
        index = group.index(self.state.lens) + steps if self.state.lens in group else min(0, steps)
        self.state.set_lens(group[index % len(group)])

    def draw(self) -> None:
        self.page.draw()

    def action_pan(self, steps: int) -> None:
        """Scroll 16 columns for each step."""
        self.page.rounds.scroll_relative(x=16 * steps, animate=False)

    def action_collective(self, steps: int) -> None:
        if self.chosen.is_own:
            self.notify("O goes back to the collectives of the plan.", markup=False)
            return
        self.chosen.next_step(steps)
        is_played = self.page.view == "values"
        self.page.view = "devices" if is_played else self.page.view
        self.state.set_step(self.chosen.step)
        self._choose(is_played)

    def action_other(self, line: str = "") -> None:
        """Ask for the line of another collective, which begins as the one of now."""
        draft = self.state.history.draft
        own = ProblemForm(collective=draft.collective or CollectiveFields())
        line = line or shlex.join(to_arguments(own, "step")[1:])
        entry = pages.LineEntry(line, "Another collective", f"{', '.join(OPERATIONS)}, with step's options")
        self.app.push_screen(entry, self._play_other)

    def _play_other(self, line: str | None) -> None:
        if line is None:
            return
        try:
            draft = with_collective_from_line(line, self.state.history.draft)
            collective_question(draft.collective or CollectiveFields(), parse_mesh(draft.mesh))
        except ShardvizError as error:
            self.notify(error_words(error), markup=False)
            self.action_other(line)
        else:
            self.state.edit(draft)

    def action_back_to_plan(self) -> None:
        self.state.edit(replace(self.state.history.draft, collective=None))

    def _choose(self, is_other_view: bool = False) -> None:
        """Play what the problem has of the choice; what is the same goes on."""
        change = self.chosen.look(self.state.resolved)
        if change == "other":
            self.page.begin()
        if self.chosen.is_own and self.page.view == "values":
            self.page.view = "devices"
        if self.chosen.base is None and not self.chosen.is_own and self.chosen.fault is None:
            self.page.view = "values"
        if change != "same" or is_other_view:
            self._load(0.0 if change == "other" else self.player.fraction)
        else:
            self.page.draw()

    def _load(self, fraction: float) -> None:
        """Work out the chosen collective, at a part of its rounds; a large one beside the screen."""
        self._ticket += 1
        self.refresh_bindings()
        self.page.rounds.page, self.page.fault = None, self.chosen.fault
        question = self.chosen.question
        if self.page.view == "values":
            try:
                self.page.rounds.load(len(self.chosen.plan_run.steps), 0.0)
                self.player.number = self.state.step_number
            except ShardvizError as error:
                self.page.fault = error
            self.page.show_prepared(None)
            return
        self.page.rounds.load(0 if question is None else question.schedule.rounds, fraction)
        if question is not None and not is_large(question):
            self._take(self.chosen.worked_out(question), self._ticket)
            return
        if question is not None:
            self._work_out(question, self._ticket)
        self.page.show_prepared(None)

    @work(thread=True, group="step", exclusive=True)
    def _work_out(self, question: CollectiveQuestion, ticket: int) -> None:
        self.call_later(self._take, self.chosen.worked_out(question), ticket)

    def _take(self, found: PreparedRun | ShardvizError | None, ticket: int) -> None:
        """Show a collective, or why it cannot be played, unless another one has been chosen since."""
        if ticket != self._ticket:
            return
        if isinstance(found, ShardvizError):
            self.page.fault, found = found, None
        self.page.show_prepared(found)
