"""What the four screens have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.containers import Vertical
from textual.worker import Worker, WorkerState

from shardviz.tui.command import Command, CommandsChanged
from shardviz.tui.editor import Editor, as_editor
from shardviz.tui.registry import COMMANDS

if TYPE_CHECKING:
    from shardviz.documents.fields import Document
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.lessons.pointing import Place
    from shardviz.planner import Plan
    from shardviz.render.palette import Palette
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.tui.target_answers import TargetAnswer


class Pane(Vertical):
    """One of the four screens. `area` is its name in the registry.

    `show_scene` and `show_answers` are called when the pane comes on screen, and, while it is there, whenever
    something has changed.
    """

    area: ClassVar[str]

    def __init__(self) -> None:
        super().__init__(id=self.area)
        self._told: Sequence[Command] = ()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A thread of the screen that fails unforeseen ends its own work, not the application."""
        if event.state is WorkerState.ERROR:
            assert event.worker.error is not None
            self.editor.say_failure(event.worker.error, self.area.capitalize())

    def show_scene(self, scene: ResolvedProblem) -> None:
        """Draw another scene."""

    def begin(self, place: Place) -> None:
        """Begin where a lesson points, whatever was looked at before."""

    def show_answers(self, answers: Mapping[str, TargetAnswer]) -> None:
        """Draw the targets' answers, by target name, in the order of the draft."""

    @property
    def commands(self) -> Sequence[Command]:
        """Those of the screen's commands that do something now; `CommandsChanged` says when they change."""
        return [command for command in COMMANDS if command.area == self.area]

    def tell_commands(self) -> None:
        """Send `CommandsChanged` where `commands` are others than last time."""
        commands = self.commands
        if commands != self._told:
            self._told = commands
            self.post_message(CommandsChanged())

    @property
    def typing(self) -> Sequence[Command]:
        """The commands that work while text is typed on the screen; empty while none is.

        Every other key is text then. Moving the focus into a field and out of it needs no `CommandsChanged`.
        """
        return ()

    def command_words(self) -> str:
        """The command line that shows the same; empty where it is that of the draft."""
        return ""

    def jax_code(self) -> str:
        """The JAX program of what the pane shows; empty where it is that of the draft's problem.

        Raises `ShardvizError` where it would not run.
        """
        return ""

    def exported(self) -> Plan | CollectiveRun | None:
        """What a page or a notebook of the pane shows; None where it is the draft's problem."""
        return None

    def document(self) -> Document | None:
        """The JSON document of what the pane shows; None where it is that of the draft's problem.

        Raises `ShardvizError` for one that would be too long.
        """
        return None

    @property
    def editor(self) -> Editor:
        """The application."""
        return as_editor(self.app)

    @property
    def palette(self) -> Palette:
        """The colours of the terminal and the theme."""
        return self.editor.palette
