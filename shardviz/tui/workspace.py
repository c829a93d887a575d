"""The part of the screen between the first lines and the keys: the problem, and beside it one pane or
three."""

from __future__ import annotations

import sys
from asyncio import Lock, to_thread
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from textual.app import ComposeResult
from textual.containers import Container, Horizontal
from textual.message import Message
from textual.screen import Screen

from shardviz.tui.bars import WIDE
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.pane import Pane, Side
from shardviz.tui.problem.panel import ProblemPanel
from shardviz.tui.state import EditorState
from shardviz.tui.themes import Styled

PANES = {
    "layout": "layout_pane.LayoutPane",
    "plan": "plan_pane.PlanPane",
    "step": "step.pane.StepPane",
    "compiler": "compiler.pane.CompilerPane",
    "time": "time.pane.TimePane",
}
"""The panes' modules and classes by area, loaded when they are first shown."""
TALL = 30
"""From so many lines there is room for blank ones around both."""
DASHBOARD = (140, 30)
"""From so many columns and lines three panes stand together."""
FEW_STEPS, ROOMY = 6, 50
"""Plans of so many steps leave most of a window of so many lines to the picture of the arrays."""
FIRST, LAST = ("layout", "plan"), ("time", "compiler")
"""The areas of a dashboard: above, below it on the left, and one of `LAST` beside that, at first `time`."""


class Workspace(Styled, Horizontal):
    """The problem on the left and a pane on the right, or, in a narrow window, the one that has the keys.

    In a large window a dashboard has three panes on the right, unless one of them is to be seen alone. A
    lesson has but one, and may put something else in the place of the problem or of the pane: `covers`. The
    keys go to the left if `is_left`."""

    class PaneShown(Message):
        """Other panes are shown, or another of them has the keys."""

    def __init__(self, state: EditorState) -> None:
        super().__init__(id="body")
        self.state = state
        self.is_left = False
        self.is_alone = False
        """True if the pane with the keys is to be seen alone where there is room for others."""
        self.covers: tuple[Side | None, Side | None] | None = None
        """What a lesson has in the places of problem and pane; None while none is open."""
        self.panel = ProblemPanel(state)
        self.room = Container(id="panes")
        """The right side: the panes, and what covers them."""
        self._panes: dict[str, Pane] = {}
        self._behind: set[Pane] = set()
        """The panes whose cursor is not on the plan's step yet: they were not shown when it changed."""
        self._last = LAST[0]
        self._wanted = ""
        """The area that was asked for last."""
        self._mounting = Lock()
        """A mounted pane has its children."""
        self._waiting: list[Callable[[], None]] = []
        """The drawings of what has changed that are still to do, each in a frame of its own."""
        self._is_due = False
        """True if the next of them is to come after the next frame."""

    def compose(self) -> ComposeResult:
        yield self.panel
        with self.room:
            yield self.pane

    def _pane(self, area: str) -> Pane:
        if area not in self._panes:
            module, _, name = f"shardviz.tui.{PANES[area]}".rpartition(".")
            self._panes[area] = getattr(import_module(module), name)(self.state)
        return self._panes[area]

    @property
    def pane(self) -> Pane:
        return self._pane(self.state.area)

    @property
    def areas(self) -> Sequence[str]:
        area = self.state.area
        if area in LAST:
            self._last = area
        return (*FIRST, self._last) if not self.no_room and not self.is_alone else (area,)

    @property
    def no_room(self) -> str:
        """The reason why the pane with the keys is the only one; empty where others have room beside it."""
        if self.covers is not None:
            return "A lesson shows one screen at a time."
        if self.state.area not in (*FIRST, *LAST):
            return "This screen needs all of the room."
        columns, lines = self.app.size
        if columns < DASHBOARD[0] or lines < DASHBOARD[1]:
            return "Screens are shown together from {}×{} on.".format(*DASHBOARD)
        return ""

    @property
    def shown(self) -> list[Pane]:
        """The panes that are on screen, first the one with the keys."""
        panes = (self._panes.get(area) for area in self.areas)
        shown = [pane for pane in panes if pane is not None and pane.is_mounted]
        return sorted(shown, key=lambda pane: pane is not self.pane)

    @property
    def left(self) -> Side:
        return (self.covers and self.covers[0]) or self.panel

    @property
    def right(self) -> Side:
        return (self.covers and self.covers[1]) or self.pane

    @property
    def part(self) -> Side:
        return self.left if self.is_left else self.right

    @property
    def is_narrow(self) -> bool:
        return self.app.size.width < WIDE

    async def put_on(self, area: str) -> None:
        """Show a pane, and begin to draw what may have changed for it. What it needs may take a sixth of a
        second to load: the screen goes on meanwhile, and a pane that is asked for later is what is shown."""
        self.state.find_first_plan()
        self._wanted = area
        if (module := f"shardviz.tui.{PANES[area]}".rpartition(".")[0]) not in sys.modules:
            await to_thread(import_module, module)
        if area != self._wanted:
            return
        self.state.area = area
        await self.show_panes()
        self._draw(self.pane)
        self.post_message(self.PaneShown())

    async def show_panes(self) -> None:
        """Show the panes that belong on screen, and have those draw that were not there before."""
        before = {pane for pane in self._panes.values() if pane.display and pane.is_attached}
        self.show_parts()
        if self.state.resolved.is_as_given:
            return  # the other panes show the plan
        self._draw_later(self.panel.draw_figures)
        for area in self.areas:
            pane = self._pane(area)
            async with self._mounting:
                if not pane.is_attached:
                    await self.room.mount(pane)
                    self.room.sort_children(key=lambda widget: [*PANES, widget.id].index(widget.id))
            if pane not in before:
                self._draw(pane)

    def _draw(self, pane: Pane) -> None:
        pane.show_problem()
        if pane in self._behind:
            self._behind.discard(pane)
            if self.state.step_number <= len(self.state.resolved.plan.steps):
                pane.show_step()

    def show_step(self) -> None:
        """Have all panes put their cursor on the plan's step: at once, or when they are shown next."""
        self._behind.update(set(self._panes.values()).difference(self.shown))
        self.draw_each(lambda pane: pane.show_step())

    def show_problem(self, is_first: bool = False) -> None:
        """Draw the problem: at once what has the keys, its fields or a pane, then the other one, the figures
        below the fields and the other panes, each in a frame of its own: no key waits for all of them.

        For the first frame fields and pane are drawn together, and after a time without a problem all panes:
        what stands in them is of no problem that was asked for."""
        is_back = not (self.room.visible or self.state.is_empty)
        for view in self.room.query(LinesView) if is_back else ():
            view.show(TextLines(()))  # a pane without a size draws nothing, and would come back with it
        self.room.visible = not self.state.is_empty
        self.room.set_class(bool(self.state.resolved.faults), "of-before")
        self.mark_size(self.screen)
        self._waiting.clear()  # what they waited to draw is of the previous problem
        pane, *others = self._drawings(lambda pane: pane.show_problem())
        fields = self.panel.show_problem
        first, second = (fields, pane) if self.is_left else (pane, fields)
        first()
        if is_first or is_back:
            for draw in (second, *(others if is_back else ())):
                draw()
            self._draw_later(self.panel.draw_figures)
        else:
            self._draw_later(second, self.panel.draw_figures, *others)

    def draw_each(self, draw: Callable[[Pane], None]) -> None:
        """Draw all panes, the one with the keys at once, each other in a frame of its own."""
        first, *others = self._drawings(draw)
        first()
        self._draw_later(*others)

    def _drawings(self, draw: Callable[[Pane], None]) -> list[Callable[[], None]]:
        """One of each pane, first of the one with the keys; a pane that is gone by then draws nothing."""

        def draw_if_shown(pane: Pane) -> None:
            if pane in self.shown:
                draw(pane)

        return [partial(draw_if_shown, pane) for pane in self.shown or [self.pane]]

    def _draw_later(self, *drawings: Callable[[], None]) -> None:
        self._waiting += drawings
        if self._waiting and not self._is_due:
            self._is_due = self.call_after_refresh(self._draw_next)

    def _draw_next(self) -> None:
        self._is_due = False
        if self._waiting:
            self._waiting.pop(0)()
        self._draw_later()

    def face(self, is_left: bool) -> None:
        self.is_left = is_left
        self.show_parts()
        self.refresh_bindings()

    def mark_size(self, screen: Screen[object]) -> None:
        """Give the screen and the right side the classes of the window's size. Done before anything is on the
        screen, it finds no styles anew."""
        screen.set_class(self.is_narrow, "narrow")
        screen.set_class(self.app.size.height >= TALL, "tall")
        self.room.set_class(len(self.areas) > 1, "dashboard")
        is_short = len(self.state.resolved.plan.steps) <= FEW_STEPS and self.app.size.height >= ROOMY
        self.room.set_class(is_short, "few-steps")

    def show_parts(self) -> None:
        """Show left and right side by side, or the one with the keys alone in a narrow window."""
        self.mark_size(self.screen)
        areas = self.areas
        for widget in self.children:
            is_here = not self.is_narrow or (widget is self.room) != self.is_left
            widget.display = is_here and widget in (self.left, self.room)
        for widget in self.room.children:
            is_shown = widget is self.right or (self.right is self.pane and widget.id in areas)
            widget.display = is_shown and self.room.display
        self._mark_pane()
        part, focused = self.part, self.screen.focused
        if focused is None or part not in focused.ancestors_with_self:
            self.screen.set_focus(next((widget for widget in part.query("*") if widget.focusable), None))

    def on_descendant_focus(self) -> None:
        """The keys went elsewhere, by the mouse or from part to part."""
        focused = self.screen.focused
        if focused is None:
            return
        parts = focused.ancestors_with_self
        self.is_left = self.left in parts
        pane = next((pane for pane in self.shown if pane in parts), None)
        if pane is not None and pane is not self.pane:
            self.state.area = pane.area
            self.post_message(self.PaneShown())
        self._mark_pane()

    def _mark_pane(self) -> None:
        """Mark the pane of a dashboard that has the keys. `:focus-within` would do it, and find all its
        widgets' styles anew at each move of the keys within it."""
        for pane in self._panes.values():
            pane.set_class(len(self.areas) > 1 and not self.is_left and pane is self.pane, "-with-keys")
