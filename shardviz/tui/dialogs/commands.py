"""The commands of the registry: listed in help, with a word on each screen, and found by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from textwrap import wrap
from typing import Any

from rich.text import Text
from textual.await_complete import AwaitComplete
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.markup import escape

from shardviz.render.lines import sentence
from shardviz.tui.dialogs.dialog import Dialog, LinesDialog
from shardviz.tui.registry import AREAS, COMMANDS, READING, TABLES, Command, bindings

KEYS = TABLES["HELP"]


class HelpDialog(LinesDialog):
    """The keys of some areas, first of that which has the focus, then those that work everywhere, of which
    `more` are the application's own."""

    commands = KEYS
    BINDINGS = bindings(KEYS)

    def __init__(self, areas: Sequence[str], more: Sequence[Command] = ()) -> None:
        super().__init__()
        self._areas, self._more = areas, more
        self.title_text = f"Help: {AREAS[areas[0]]}"

    def lines(self, width: int) -> list[Text]:
        return help_lines(self._areas, width, self._more)

    async def action_help(self) -> None:
        """Help has no help of its own: its key closes it."""
        self.dismiss()


class WindowHelp(HelpDialog):
    """The keys of a window."""

    def __init__(self, window: Dialog) -> None:
        super().__init__(("app",))
        self.title_text = f"Help: {window.title_text}"
        self._commands = window.all_commands

    def lines(self, width: int) -> list[Text]:
        return key_list([("This window", self._commands)], width)


def help_lines(areas: Sequence[str], width: int, more: Sequence[Command] = ()) -> list[Text]:
    """The dialog's text, in lines of `width` columns."""
    sections = [
        (AREAS[area], [command for command in (*COMMANDS, *more) if command.area == area])
        for area in (*areas, "app")
    ]
    return [
        *sentence(READING[areas[0]], width),
        Text(),
        *key_list([section for section in sections if section[1]], width),
    ]


Section = tuple[str, Sequence[Command]]


def key_list(sections: Sequence[Section], width: int) -> list[Text]:
    """Titled commands with their keys and what they do, the sections below one another."""
    lines: list[Text] = []
    for section in sections:
        lines += [Text()] * bool(lines) + _section(*section, width)
    return lines


def _section(heading: str, commands: Sequence[Command], width: int) -> list[Text]:
    keys = max((len(command.key_text) for command in commands), default=0)
    titles = max((len(command.title) for command in commands), default=0)
    lines = [Text(heading, "bold")]
    indent = keys + titles + 4
    for command in commands:
        line = Text.assemble((f"{command.key_text:>{keys}}  ", "bold"), command.title)
        if width - indent < 20:
            lines.append(line)
            lines += [Text(f"{'':{keys + 2}}{part}", "dim") for part in wrap(command.help, width - keys - 2)]
            continue
        first, *rest = wrap(command.help, width - indent) or [""]
        lines.append(line.append(" " * (indent - line.cell_len)).append(first, "dim"))
        lines += [Text(f"{'':{indent}}{part}", "dim") for part in rest]
    return lines


FOUND = [command for command in COMMANDS if command.name != "command_palette"]
"""All but the one that opens the palette itself."""


class CommandMenu(CommandPalette):
    """Textual's palette, of these commands alone, which is left once."""

    def __init__(self) -> None:
        super().__init__([CommandSearch])

    def dismiss(self, result: None = None) -> AwaitComplete:
        return super().dismiss(result) if self.is_active else AwaitComplete()


class CommandSearch(Provider):
    """Offers the commands of all screens; one of another screen puts that on first."""

    @property
    def _found(self) -> Sequence[Command]:
        """The commands of the window below the palette but those of its fields; without a window, those of
        the application."""
        window = self.screen
        if not isinstance(window, Dialog):
            return [*FOUND, *self.app.own_commands]  # type: ignore[attr-defined]
        return [command for command in window.all_commands if hasattr(window, f"action_{command.action}")]

    async def discover(self) -> Hits:
        for command in self._found:
            yield DiscoveryHit(_shown(command), self._run(command), _name(command), escape(command.help))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._found:
            score = matcher.match(_name(command))
            if score > 0:
                title = matcher.highlight(_name(command))
                yield Hit(score, title, self._run(command), _name(command), escape(command.help))

    def _run(self, command: Command) -> partial[Any]:
        if isinstance(self.screen, Dialog):
            return partial(self.screen.run_action, command.name)
        return partial(self.app.run_action, ("app", "run_command", (command,)))


def _name(command: Command) -> str:
    """``Compiler: Next target  (n)``: what is looked through."""
    area = (
        ""
        if command.area not in AREAS or command.area == "app"
        else f"{AREAS[command.area].lstrip('12345 ')}: "
    )
    key = f"  ({command.key_text})" if command.key_text else ""
    return f"{area}{command.title}{key}"


def _shown(command: Command) -> Content:
    return Content(_name(command))
