"""The commands of the registry: listed in help, with a word on each screen, and found by name."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from rich.text import Text

from shardviz.render.lines import sentence
from shardviz.tui.dialogs.dialog import LinesDialog
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
from shardviz.tui.registry import AREAS, COMMANDS, READING, TABLES, Command, bindings

KEYS = TABLES["HELP"]
Section = tuple[str, Sequence[Command]]
"""A heading and its commands."""


class HelpDialog(LinesDialog):
    """Words on reading a part of the application, and commands under headings, with their keys."""

    commands = KEYS
    BINDINGS = bindings(KEYS)

    def __init__(self, title: str, sections: Sequence[Section], reading: str = "") -> None:
        super().__init__()
        self.title_text, self._sections, self._reading = f"Help: {title}", sections, reading

    def lines(self, width: int) -> list[Text]:
        lines = [*sentence(self._reading, width), Text()] if self._reading else []
        for number, section in enumerate(self._sections):
            lines += [Text()] * bool(number) + _section(*section, width)
        return lines

    async def action_help(self) -> None:
        """Help has no help of its own: its key closes it."""
        self.dismiss()


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
