"""The base of all dialogs, a window above the screen with a title and a line of keys; and pages of lines."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from shardviz.render.lines import printable, sentence
from shardviz.tui.bars import KeyFooter
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.registry import AREAS, COMMANDS, READING, TABLES, Command, bindings
from shardviz.tui.themes import Styled

CLOSE, HELP, PALETTE = TABLES["WINDOW"]
WIDTHS = [(0, "-narrow"), (72, "-wide"), (100, "-broad")]
HEIGHTS = [(0, "-low"), (20, "-high")]
"""Classes by the columns and lines of the terminal."""


class Dialog(Styled, ModalScreen[Any]):
    """A window that `esc` closes; on a small terminal it takes all of it. One of the class `fitted` is as
    high as its content and lets the screen below be seen; the others spare drawing that with each key."""

    BINDINGS: ClassVar[list[BindingType]] = bindings([CLOSE, HELP, PALETTE])
    HORIZONTAL_BREAKPOINTS = WIDTHS
    VERTICAL_BREAKPOINTS = HEIGHTS
    title_text = ""
    commands: ClassVar[Sequence[Command]] = (CLOSE,)

    def compose(self) -> ComposeResult:
        with Vertical(id="window"):
            yield Static(Text(printable(self.title_text), no_wrap=True, overflow="ellipsis"), classes="title")
            yield from self.content()
            footer = KeyFooter()
            footer.commands = self.commands
            yield footer

    def content(self) -> Sequence[Widget]:
        """The widgets between the title and the keys."""
        return ()

    def dismiss(self, result: Any = None) -> AwaitComplete:
        """Leave the dialog once, and only it: Textual 8.2.8 leaves the screen on top."""
        return super().dismiss(result) if self.is_active else AwaitComplete()

    @property
    def all_commands(self) -> Sequence[Command]:
        """The commands of help and palette."""
        return self.commands

    def copy(self, what: str, text: str, otherwise: str = ".") -> None:
        self.app.copy_to_clipboard(text)
        self.notify(f"{what} copied, if the terminal allows it{otherwise}", markup=False)

    def action_close(self) -> None:
        self.dismiss()


class LinesDialog(Dialog):
    """A page of lines, which follow the width."""

    def content(self) -> Sequence[Widget]:
        return [LinesView()]

    def on_mount(self) -> None:
        self.query_one(LinesView).focus()
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        view = self.query_one(LinesView)
        view.show(TextLines(self.lines(max(20, view.size.width - 1))))

    def lines(self, _width: int) -> list[Text]:
        """The page at a width."""
        raise NotImplementedError


class CommandPage(LinesDialog):
    """The lines that a command line prints, which `y` copies."""

    commands = (HELP, *TABLES["PAGE"], CLOSE)
    BINDINGS = bindings(TABLES["PAGE"])

    def __init__(self, line: str) -> None:
        super().__init__()
        self.line = line

    def action_copy(self) -> None:
        self.copy("Command line", self.line)


Section = tuple[str, Sequence[Command]]
"""A heading and its commands."""


class HelpDialog(LinesDialog):
    """Words on reading a part of the application, and commands under headings, with their keys."""

    commands = TABLES["HELP"]
    BINDINGS = bindings(TABLES["HELP"])

    def __init__(self, title: str, sections: Sequence[Section], reading: str = "") -> None:
        super().__init__()
        self.title_text, self._sections, self._reading = f"Help: {title}", sections, reading

    def lines(self, width: int) -> list[Text]:
        lines = [*sentence(self._reading, width), Text()] if self._reading else []
        for number, section in enumerate(self._sections):
            lines += [Text()] * bool(number) + _section(*section, width)
        return lines


def help_of_areas(areas: Sequence[str], more: Sequence[Command] = ()) -> HelpDialog:
    """The keys of some areas, first of that which has the focus, then those that work everywhere, of which
    `more` are the application's own."""
    every = (*COMMANDS, *more)
    sections = [(AREAS[area], [each for each in every if each.area == area]) for area in (*areas, "app")]
    return HelpDialog(AREAS[areas[0]], [each for each in sections if each[1]], READING[areas[0]])


def _section(heading: str, commands: Sequence[Command], width: int) -> list[Text]:
    keys = max((len(command.own_key) for command in commands), default=0)
    titles = max((len(command.title) for command in commands), default=0)
    lines = [Text(heading, "bold")]
    indent = keys + titles + 4
    for command in commands:
        line = Text.assemble((f"{command.own_key:>{keys}}  ", "bold"), command.title)
        if width - indent < 20:
            lines.append(line)
            lines += [Text(f"{'':{keys + 2}}{part}", "dim") for part in wrap(command.help, width - keys - 2)]
            continue
        first, *rest = wrap(command.help, width - indent) or [""]
        lines.append(line.append(" " * (indent - line.cell_len)).append(first, "dim"))
        lines += [Text(f"{'':{indent}}{part}", "dim") for part in rest]
    return lines
