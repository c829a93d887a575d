"""The part of the screen between the first lines and the keys: the problem, and beside it a pane."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static

from shardviz.tui.bars import WIDE
from shardviz.tui.pane import Pane, Side
from shardviz.tui.problem.panel import ProblemPanel
from shardviz.tui.registry import CommandsChanged

if TYPE_CHECKING:
    from shardviz.tui.state import EditorState


PANES = {
    "layout": "LayoutPane",
    "plan": "PlanPane",
    "step": "StepPane",
    "compiler": "CompilerPane",
    "time": "TimePane",
}
"""The panes' classes by area, each in the module `pane` of its folder, loaded when it is first shown."""
TALL = 30
"""Lines from which on there is room for blank ones around both."""


class Workspace(Horizontal):
    """The problem on the left and a pane on the right, or, in a narrow window, the one that has the keys.

    A lesson may put something else in the place of either: `covers`. The keys go to the left if `is_left`.
    """

    class PaneShown(Message):
        """Another pane is shown."""

    def __init__(self, state: EditorState) -> None:
        super().__init__(id="body")
        self.state = state
        self.is_left = False
        self.covers: tuple[Side | None, Side | None] = None, None
        self.panel = ProblemPanel(state)
        self._panes: dict[str, Pane] = {}

    def compose(self) -> ComposeResult:
        yield self.panel
        yield self.pane

    @property
    def pane(self) -> Pane:
        """The pane that is shown."""
        area = self.state.area
        if area not in self._panes:
            module = import_module(f"shardviz.tui.{area}.pane")
            self._panes[area] = getattr(module, PANES[area])(self.state)
        return self._panes[area]

    @property
    def left(self) -> Side:
        """The problem, or what a lesson has in its place."""
        return self.covers[0] or self.panel

    @property
    def right(self) -> Side:
        """The pane that is shown, or what a lesson has in its place."""
        return self.covers[1] or self.pane

    @property
    def part(self) -> Side:
        """The one of both that has the keys."""
        return self.left if self.is_left else self.right

    @property
    def is_narrow(self) -> bool:
        """True where there is no room for the problem beside the pane."""
        return self.app.size.width < WIDE

    async def put_on(self, area: str) -> None:
        """Show another of the panes."""
        self.pane.display = False
        self.state.area = area
        self.pane.display = True
        if not self.pane.is_attached:
            await self.mount(self.pane)
        self.pane.show_problem(self.state.resolved)
        self.pane.show_answers(self.state.queries.answers)
        self.post_message(self.PaneShown())

    def face(self, is_left: bool) -> None:
        """Have the keys go to the left or to the right."""
        self.is_left = is_left
        self.show_parts()
        self.post_message(CommandsChanged())

    def show_parts(self) -> None:
        """Show left and right side by side, or the one with the keys alone in a narrow window."""
        self.screen.set_class(self.is_narrow, "narrow")
        self.screen.set_class(self.app.size.height >= TALL, "tall")
        part, focused = self.part, self.screen.focused
        shown = {part} if self.is_narrow else {self.left, self.right}
        for widget in self.children:
            widget.display = widget in shown
        if focused is None or part not in focused.ancestors_with_self:
            self.screen.set_focus(next((each for each in part.query("*") if each.focusable), None))

    def on_descendant_focus(self) -> None:
        focused = self.screen.focused
        if focused is not None:
            self.is_left = self.left in focused.ancestors_with_self
            self.post_message(CommandsChanged())


LEAST = (40, 10)
"""Columns and lines that the application needs."""


def is_too_small(width: int, height: int) -> bool:
    """True where nothing useful fits."""
    return width < LEAST[0] or height < LEAST[1]


class TooSmall(Screen[None]):
    """Says how large the window has to be, and goes when it is."""

    DEFAULT_CSS = """
    TooSmall { align: center middle; }
    TooSmall Static { width: 100%; text-align: center; }
    TooSmall ToastRack { display: none; }
    """

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    def on_resize(self, event: events.Resize) -> None:
        self._judge(*event.size)

    def on_screen_resume(self) -> None:
        """A dialog that was just about to open has stood above."""
        self._judge(*self.app.size)

    def _judge(self, width: int, height: int) -> None:
        if is_too_small(width, height):
            needed, given = ("×".join(map(str, size)) for size in (LEAST, (width, height)))
            self.query_one(Static).update(Text(f"shardviz needs {needed}; this window is {given}"))
        elif self.is_active:
            self.dismiss()

    def on_key(self, event: events.Key) -> None:
        """Only leaving works where nothing can be seen."""
        if event.key != "q":
            event.stop()
            event.prevent_default()
