"""The last line: the keys that work now, help first."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.color import Color
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from shardviz.tui.registry import Command

GAP = 2


class KeyFooter(Widget):
    """As many commands as fit, in order; a click on one presses its key."""

    DEFAULT_CSS = """
    KeyFooter { height: 1; color: $foreground-muted; }
    """

    def __init__(self, commands: Sequence[Command] = ()) -> None:
        super().__init__()
        self._commands: tuple[Command, ...] = ()
        self._places: list[tuple[range, Command]] = []
        self.show_commands(commands)

    def show_commands(self, commands: Sequence[Command]) -> None:
        """Show other keys: of the commands that have a word for this line."""
        self._commands = tuple(command for command in commands if command.footer)
        self.refresh()

    def render(self) -> Content:
        key = Style(foreground=Color.parse(self.app.theme_variables["footer-key-foreground"]), bold=True)
        line = Content()
        self._places = []
        for command in self._commands:
            start = line.cell_length + (GAP if line else 0)
            piece = Content.assemble((f"{command.key_text} ", key), command.footer)
            if start + piece.cell_length > self.size.width:
                break
            line = Content.assemble(line, " " * (start - line.cell_length), piece)
            self._places.append((range(start, start + piece.cell_length), command))
        return line

    def on_click(self, event: events.Click) -> None:
        for columns, command in self._places:
            if event.x in columns and command.keys:
                self.app.simulate_key(command.keys[0])
