"""The lines around the workspace: the headline and the tabs above it, the keys below it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import rich.style
from rich.text import Text
from textual.color import Color
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from shardviz.forms.form import SCREENS
from shardviz.forms.wording import as_sentence
from shardviz.render.problem_picture import headline
from shardviz.tui.registry import APP, Command
from shardviz.tui.themes import palette_of

if TYPE_CHECKING:
    from shardviz.errors import QuestionError
    from shardviz.forms.resolve import ResolvedProblem


class Headline(Widget):
    """``bd,df->bf   XY,Y_->X_   X=2 Y=4   bf16   v5e:2x4``, and what is wrong."""

    DEFAULT_CSS = """
    Headline { height: 1; padding: 0 1 0 2; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._resolved: ResolvedProblem | None = None
        self._of_collective = False

    def show_problem(self, resolved: ResolvedProblem, of_collective: bool) -> None:
        """Show another problem, or its collective if that is what the screen shows."""
        self._resolved, self._of_collective = resolved, of_collective
        self.refresh()

    def render(self) -> Text:
        if self._resolved is None:
            return Text()
        return headline(self._resolved, self.content_size.width, palette_of(self.app), self._of_collective)


PROBLEM = "problem"
WIDE = 80
"""From so many columns the problem stands beside the screen; on fewer it takes its place."""
PROBLEM_WIDTH = 37
"""Columns of the problem beside a screen, with the gap between them."""


class ScreenTabs(Widget):
    """``p Problem   1 Layout  2 Plan  3 Step …``: what is shown stands out, a click leads there.

    Where there is little room, first the blanks around the tabs go, then the problem's name, then the
    blanks within.
    """

    DEFAULT_CSS = """
    ScreenTabs { height: 1; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._area = SCREENS[0]
        self._areas: Collection[str] = ()
        self._left = "Problem"
        self._at_left = False
        self._lens = Text()
        self.auto_links = False

    def show_lens(self, lens: Text) -> None:
        """Name the device that is marked everywhere, on the right, where there is room for it."""
        if lens != self._lens:
            self._lens = lens
            self.refresh()

    def show(self, area: str, areas: Collection[str], at_left: bool, left: str) -> None:
        """Mark the screen that has the keys, those beside it, and, if the keys go there, what is on the left,
        of that title."""
        before = self._area, self._areas, self._at_left, self._left
        self._area, self._areas, self._at_left, self._left = area, areas, at_left, left
        if before != (area, areas, at_left, left):
            self.refresh()

    def render(self) -> Text:
        lines = (self._line(*room) for room in ((True, True, " "), (False, True, " "), (False, False, " ")))
        line = next((line for line in lines if line.cell_len <= self.size.width + 1), None)
        line = line or self._line(False, False, "")
        room = self.size.width - 1 - line.cell_len - self._lens.cell_len
        return line.append(" " * room).append_text(self._lens) if room > 0 and self._lens else line

    def _line(self, is_roomy: bool, is_named: bool, blank: str) -> Text:
        """All tabs: `is_roomy` with blanks around each, `is_named` with the name of what is on the left, and
        `blank` between a key and its title."""
        line = Text()
        for area in (PROBLEM, *SCREENS):
            action = PROBLEM if area == PROBLEM else f"show('{area}')"
            command = next(command for command in APP if command.name == action)
            title = command.title if area != PROBLEM else self._left if is_named else ""
            text = f"{command.key_text}{blank}{title}".rstrip()
            text = f" {text} " if is_roomy else text
            is_shown = self._at_left if area == PROBLEM else area == self._area
            shown = "bold reverse" if is_roomy else "bold underline"
            style = rich.style.Style.parse(shown if is_shown else "bold" if area in self._areas else "dim")
            line.append(text, style + rich.style.Style(meta={"@click": f"app.{action}"}))
            beside = area == PROBLEM and self.size.width >= WIDE
            line.append(" " * (PROBLEM_WIDTH - line.cell_len) if beside else " ")
        return line


GAP = 2
WAYS_OUT = ("quit", "close")
"""Commands that have their place at any width: out of the application, out of a window."""


class KeyFooter(Widget):
    """As many commands as fit, in order, and at any width the way out; a click on one presses its key."""

    DEFAULT_CSS = """
    KeyFooter { height: 1; color: $foreground-muted; }
    """

    def __init__(self, commands: Sequence[Command] = ()) -> None:
        super().__init__()
        self._commands: tuple[Command, ...] = ()
        self.auto_links = False
        self.show_commands(commands)

    def show_commands(self, commands: Sequence[Command]) -> None:
        """Show other keys: of the commands that have a word for this line."""
        shown = tuple(command for command in commands if command.footer and command.key_text)
        before, self._commands = self._commands, shown
        if self._commands != before:
            self.refresh()

    def render(self) -> Content:
        # The help closes by its own key, which is its first.
        out = [self._piece(command) for command in self._commands[1:] if command.name in WAYS_OUT]
        shown, room = [], self.size.width + GAP - sum(piece.cell_length + GAP for piece in out)
        others = (
            *self._commands[:1],
            *(command for command in self._commands[1:] if command.name not in WAYS_OUT),
        )
        for piece in map(self._piece, others):
            room -= piece.cell_length + GAP
            if room < 0:
                break
            shown.append(piece)
        return Content(" " * GAP).join([*shown, *out])

    def _piece(self, command: Command) -> Content:
        """``? help``."""
        key = Style(foreground=Color.parse(self.app.theme_variables["footer-key-foreground"]), bold=True)
        piece = Content.assemble((f"{command.key_text} ", key), command.footer)
        if not command.keys:
            return piece
        return piece.stylize(Style.from_meta({"@click": f"app.simulate_key('{command.keys[0]}')"}))


class RefusedKeys(Widget):
    """Why the keys of one's own are not used: until it is dismissed, whatever else is notified."""

    DEFAULT_CSS = """
    RefusedKeys { height: auto; max-height: 4; padding: 0 1; background: $panel; }
    """

    def __init__(self, error: QuestionError) -> None:
        super().__init__()
        self._error = error

    def render(self) -> Text:
        said = Text(f"✗ {as_sentence(self._error.message)}", "bold")
        said.append(" All keys are the usual ones; esc hides this line. ", "not bold")
        return said.append(as_sentence(self._error.hint), "dim not bold")
