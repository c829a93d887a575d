"""The commands of the registry: listed in help, with a word on each screen, and found by name."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich.text import Text

from shardviz.render.lines import sentence
from shardviz.tui.dialogs.dialog import Dialog, LinesDialog
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
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


class PaletteDialog(FilteredList):
    """Leaves with one of these commands."""

    title_text = "Commands"
    nothing = "No command matches; remove some words."

    def __init__(self, found: Sequence[Command]) -> None:
        super().__init__()
        self._found = found

    def on_mount(self) -> None:
        rows = []
        for command in self._found:
            heading = Text(AREAS.get(command.area, "This window"), "bold")
            line = Text.assemble(f"  {command.title}", (f"  {command.own_key}", "dim"))
            words = f"{command.title} {heading} {command.own_key} {command.help}"
            rows.append(ListRow(line, words, command, heading))
        self.show_rows(rows)

    def about(self, row: ListRow) -> Text:
        return Text(row.value.help)
