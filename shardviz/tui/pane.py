"""The base of the workspace's sides, which have commands of their own, and of the panes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.message import Message
from textual.worker import Worker, WorkerState

from shardviz.lazy_names import LazyImports
from shardviz.tui.registry import AREAS, COMMANDS, Command, CommandsChanged
from shardviz.tui.themes import palette_of

with LazyImports():
    from shardviz.codegen import problem as problem_program
    from shardviz.documents import programs
    from shardviz.forms import command_line as command_lines
    from shardviz.planner.pricing import costs as pricing

if TYPE_CHECKING:
    from shardviz.documents.fields import Document
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem
    from shardviz.render.palette import Palette
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.timeline.program_timeline import ProgramTimeline
    from shardviz.tui.compiler_queries import ShownAnswer
    from shardviz.tui.state import EditorState


BESIDE, GAP = 110, 3
"""From so many columns a pane has its second part beside the first, these columns apart; else below it."""


class Side(Vertical):
    """The left or the right of the workspace: the problem, a pane, or a lesson's widget in their place."""

    @property
    def commands(self) -> Sequence[Command]:
        """Those of the part's commands that do something now; `CommandsChanged` says when they change."""
        return ()

    @property
    def typing(self) -> Sequence[Command]:
        """The commands that work while text is typed in the part; empty while none is.

        Every other key is text then. Moving the focus into a field and out of it needs no `CommandsChanged`.
        """
        return ()

    @property
    def palette(self) -> Palette:
        """The colours of the terminal and the theme."""
        return palette_of(self.app)

    def is_beside(self, part: str) -> bool:
        """Return whether a part is on screen as well, and what it says need not be said twice."""
        return any(widget.display for widget in self.screen.query(part))


class Pane(Side):
    """One of the screens. `area` is its name in the registry.

    `show_problem` and `show_answers` are called when the pane comes on screen, and, while it is there,
    whenever something has changed; there it may have others beside it. With them, `state.lens` may have
    changed too; where nothing else has, `show_lens` is called. What is exported is the problem of `state`,
    unless the pane shows something else.
    """

    area: ClassVar[str]

    @dataclass
    class Failed(Message):
        """A thread of a pane has failed unforeseen."""

        area: str
        error: BaseException

    @dataclass
    class StepOpened(Message):
        """A step of the plan is to be played, by its number."""

        number: int

    @dataclass
    class RoundOpened(Message, bubble=False):
        """A round of the collective that is played is to be shown: sent to the pane that may play one."""

        number: int

    @dataclass
    class InstructionOpened(Message, bubble=False):
        """An instruction of a target's program is to be shown on the screen of that area: sent to the
        application, and from there to the pane."""

        area: str
        target: str
        name: str

    def __init__(self, state: EditorState) -> None:
        super().__init__(id=self.area)
        self.border_title = AREAS[self.area]
        self.state = state
        self._commands_before: Sequence[Command] = ()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A thread that fails ends its own work, not the application."""
        if event.state is WorkerState.ERROR:
            assert event.worker.error is not None
            self.post_message(self.Failed(self.area, event.worker.error))

    def draw(self) -> None:
        """Draw what the state says now, and have worked out what that needs."""

    def on_show(self) -> None:
        self.draw()

    def show_problem(self, _resolved: ResolvedProblem) -> None:
        """Draw another problem."""
        self.draw()

    def show_step(self) -> None:
        """Put the cursor on the plan's step of `state.step_number`, or on what it makes."""

    def show_lens(self) -> None:
        """Mark the device of `state.lens`, or none: draw only what looks different now."""
        self.draw()

    def begin(self, place: AnswerLocation) -> None:
        """Begin at the location of a lesson's answer."""

    def show_answers(self, _answers: Mapping[str, ShownAnswer]) -> None:
        """Draw the targets' answers, by target name, in the order of the form."""
        self.draw()

    @property
    def idle(self) -> Collection[str]:
        """Actions of the pane that do nothing now, such as "round"."""
        return ()

    @property
    def commands(self) -> Sequence[Command]:
        idle = self.idle
        own = [command for command in COMMANDS if command.area == self.area]
        return [command for command in own if command.action not in idle]

    def update_commands(self) -> None:
        """Send `CommandsChanged` where `commands` are others than last time."""
        commands = self.commands
        if commands != self._commands_before:
            self._commands_before = commands
            self.post_message(CommandsChanged())

    def command_line(self) -> str:
        """The command line that shows the same."""
        return command_lines.to_command_line(self.state.resolved.shown, "explain")

    def jax_code(self) -> str:
        """The JAX program of what the pane shows. Raises `ShardvizError` where it would not run."""
        return problem_program.problem_code(self.state.resolved.problem)

    def exported(self) -> Problem | Plan | CollectiveRun:
        """The subject of a page or a notebook of the pane."""
        return self.state.resolved.problem

    @property
    def timelines(self) -> Sequence[ProgramTimeline]:
        """The timelines on screen, of which there are pages and traces."""
        return ()

    def document(self) -> Document:
        """The JSON document of what the pane shows. Raises `ShardvizError` for one that would be too long."""
        resolved = self.state.resolved
        answers = self.state.queries.answers.values()
        return programs.explain_document(
            pricing.price(resolved.plan, resolved.placed),
            [answer.compiled for answer in answers if answer.compiled is not None],
            [difference for answer in answers for difference in answer.differences],
        )
