"""The lines around the workspace: the headline and the tabs above it, the keys below it; and what stands in
the place of all in a window that is too small for them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import rich.style
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.color import Color
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.style import Style
from textual.widget import Widget
from textual.widgets import Static

from shardviz.forms.form import SCREENS
from shardviz.forms.resolve import ResolvedProblem
from shardviz.render.problem_picture import headline
from shardviz.tui.registry import APP, Command
from shardviz.tui.themes import Styled


class Headline(Styled, Widget):
    """``bd,df->bf   XY,Y_->X_   X=2 Y=4   bf16   v5e:2x4``, and what is wrong."""

    resolved: reactive[ResolvedProblem | None] = reactive(None, always_update=True)
    of_collective = reactive(False)
    """True if the headline is that of the collective that is played."""

    def render(self) -> Text:
        if self.resolved is None:
            return Text()
        return headline(self.resolved, self.content_size.width, self.palette, self.of_collective)


PROBLEM = "problem"
WIDE = 80
"""From so many columns the problem stands beside the screen; on fewer it takes its place."""
PROBLEM_WIDTH = 37
"""Columns of the problem beside a screen, with the gap between them."""


class ScreenTabs(Styled, Widget):
    """``p Problem 1 Layout 2 Plan 3 Step …``: what is shown stands out, a click leads there. Where there is
    little room, first the blanks around the tabs go, then the problem's name, then the blanks within."""

    area = reactive(SCREENS[0])
    """The screen that has the keys."""
    areas: reactive[Collection[str]] = reactive(())
    """Those beside it."""
    left = reactive("Problem")
    """The title of what is on the left."""
    at_left = reactive(False)
    """True if the keys go there."""
    lens = reactive(Text())
    """The device that is marked everywhere, named on the right, where there is room for it."""
    auto_links = False

    def render(self) -> Text:
        lines = (self._line(*room) for room in ((True, True, " "), (False, True, " "), (False, False, " ")))
        line = next((line for line in lines if line.cell_len <= self.size.width + 1), None)
        line = line or self._line(False, False, "")
        room = self.size.width - 1 - line.cell_len - self.lens.cell_len
        return line.append(" " * room).append_text(self.lens) if room > 0 and self.lens else line

    def _line(self, is_roomy: bool, is_named: bool, blank: str) -> Text:
        """All tabs: `is_roomy` with blanks around each, `is_named` with the name of what is on the left, and
        `blank` between a key and its title."""
        line = Text()
        for area in (PROBLEM, *SCREENS):
            action = PROBLEM if area == PROBLEM else f"show('{area}')"
            command = next(command for command in APP if command.name == action)
            title = command.title if area != PROBLEM else self.left if is_named else ""
            text = f"{command.key_text}{blank}{title}".rstrip()
            text = f" {text} " if is_roomy else text
            is_shown = self.at_left if area == PROBLEM else area == self.area
            shown = "bold reverse" if is_roomy else "bold underline"
            style = rich.style.Style.parse(shown if is_shown else "bold" if area in self.areas else "dim")
            line.append(text, style + rich.style.Style(meta={"@click": f"app.{action}"}))
            beside = area == PROBLEM and self.size.width >= WIDE
            line.append(" " * (PROBLEM_WIDTH - line.cell_len) if beside else " ")
        return line


GAP = 2
WAYS_OUT = ("quit", "close")
"""Commands that have their place at any width: out of the application, out of a window."""


class KeyFooter(Styled, Widget):
    """As many commands as fit, in order, and at any width the way out; a click on one presses its key."""

    commands: reactive[Sequence[Command]] = reactive(())
    auto_links = False

    def render(self) -> Content:
        # The help closes by its own key, which is its first.
        shown = [command for command in self.commands if command.footer and command.key_text]
        out = [self._piece(command) for command in shown[1:] if command.name in WAYS_OUT]
        others = [command for command in shown if command is shown[0] or command.name not in WAYS_OUT]
        pieces, room = [], self.size.width + GAP - sum(piece.cell_length + GAP for piece in out)
        for piece in map(self._piece, others):
            room -= piece.cell_length + GAP
            if room < 0:
                break
            pieces.append(piece)
        return Content(" " * GAP).join([*pieces, *out])

    def _piece(self, command: Command) -> Content:
        """``? help``."""
        key = Style(foreground=Color.parse(self.app.theme_variables["footer-key-foreground"]), bold=True)
        piece = Content.assemble((f"{command.key_text} ", key), command.footer)
        if not command.keys:
            return piece
        return piece.stylize(Style.from_meta({"@click": f"app.simulate_key('{command.keys[0]}')"}))


LEAST = (40, 10)
"""Columns and lines that the application needs."""


def is_too_small(width: int, height: int) -> bool:
    return width < LEAST[0] or height < LEAST[1]


class TooSmall(Styled, Screen[None]):
    """Says how large the window has to be, and goes when it is."""

    def compose(self) -> ComposeResult:
        yield Static(markup=False)

    @on(events.Resize)
    @on(events.ScreenResume)  # a dialog that was just about to open has stood above
    def _judge(self) -> None:
        size = self.app.size
        if is_too_small(*size):
            needed, given = ("×".join(map(str, each)) for each in (LEAST, size))
            self.query_one(Static).update(Text(f"shardviz needs {needed}; this window is {given}"))
        elif self.is_active:
            self.dismiss()

    def on_key(self, event: events.Key) -> None:
        """Only leaving works where nothing can be seen."""
        if event.key != "q":
            event.stop()
            event.prevent_default()
