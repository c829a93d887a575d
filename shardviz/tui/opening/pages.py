"""The windows of what was opened: a program with its collectives and its times, a folder's modules, a
sharding in every notation."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget
from textual.widgets import Static

from shardviz.errors import plural
from shardviz.forms.any_notation import read_any
from shardviz.notation import write_all
from shardviz.render.programs.hlo_view import hlo_view
from shardviz.render.programs.modules_view import modules_view
from shardviz.render.programs.rematerialization_lines import log_lines, rematerialization_lines
from shardviz.render.times.report import memory_report_lines, timeline_view
from shardviz.render.translate_view import translate_view
from shardviz.tui.compiler.program_box import ProgramBox
from shardviz.tui.dialogs.dialog import CLOSE, Dialog
from shardviz.tui.dialogs.filtered_list import ListRow
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.opening.dialog import ReadingList
from shardviz.tui.opening.reading import OpenedModules, OpenedProgram, open_program
from shardviz.tui.registry import bindings, commands_of
from shardviz.tui.themes import palette_of

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine

VIEWS = ("collectives", "program", "time")
PROGRAM = commands_of(
    "dialog",
    ("view", "v", "View", "Its collectives by cost, its text, what runs when.", "view"),
    ("collective(1)", "j", "Next collective", "In the text.", "next"),
    ("collective(-1)", "k", "Previous collective", "In the text."),
    ("search", "slash", "Search", "Find text in the program.", "search", "/"),
    ("fold", "f", "All of the text", "The text as it is in the file, or folded."),
    ("copy", "y", "Copy", "Copy the command line that prints the same.", "copy"),
    ("move(-1)", "up", "Up", "A line up."),
    ("move(1)", "down", "Down", "A line down.", "scroll", "↑↓"),
    ("page(-1)", "pageup", "Page up", "A page up."),
    ("page(1)", "pagedown", "Page down", "A page down."),
)


class ProgramDialog(Dialog):
    """A program of a file: `v` goes from its collectives to its text and to its times."""

    commands = (*PROGRAM, CLOSE)
    BINDINGS = bindings(PROGRAM)
    DEFAULT_CSS = """
    ProgramDialog #views { height: 1; }
    ProgramDialog ProgramBox { height: 1fr; }
    """

    def __init__(self, opened: OpenedProgram) -> None:
        super().__init__()
        self.opened = opened
        self.title_text = Path(opened.path).name
        timeline = opened.report.timeline if opened.report is not None else None
        has = {"collectives": True, "program": opened.listed is not None, "time": timeline is not None}
        self._views = [view for view in VIEWS if has[view]]
        self._view = self._views[0]

    def content(self) -> Sequence[Widget]:
        return [Static(id="views"), ProgramBox()]

    def on_mount(self) -> None:
        self.box.view.focus()
        self.call_after_refresh(self._draw)

    def on_program_view_resized(self) -> None:
        self._draw()

    @property
    def box(self) -> ProgramBox:
        return self.query_one(ProgramBox)

    def _draw(self) -> None:
        names = ((name, "bold reverse" if name == self._view else "dim") for name in self._views)
        line = Text("  ").join(Text(f" {name} ", style) for name, style in names)
        self.query_one("#views", Static).update(line)
        if self._view == "program" and self.opened.listed is not None:
            self.box.show_program(self.opened.listed, palette_of(self.app), is_old=False)
        else:
            self.box.show_lines(self._lines(self.box.view.room), self._view)

    def _lines(self, width: int) -> list[Text]:
        opened, report, palette = self.opened, self.opened.report, palette_of(self.app)
        if report is None:
            return log_lines(opened.remade, opened.mesh, width, is_given=False)
        if self._view == "time" and report.timeline is not None:
            return timeline_view(report.timeline, width, palette)
        lines = hlo_view(report, None, width, palette)
        if report.timeline is not None and report.timeline.memory is not None:
            lines += [Text(), *memory_report_lines(report.timeline.memory, width, palette)]
        if opened.remade:
            lines += rematerialization_lines(opened.remade, width)
        return [*lines, *(Text(f"note: {note}") for note in opened.notes)]

    def action_view(self) -> None:
        self.box.leave_search()
        self._view = self._views[(self._views.index(self._view) + 1) % len(self._views)]
        self._draw()

    def _to_program(self) -> bool:
        if self.opened.listed is not None and self._view != "program":
            self._view = "program"
            self._draw()
        return self.box.is_program

    def action_collective(self, step: int) -> None:
        if self._to_program():
            self.box.to_collective(step)

    def action_search(self) -> None:
        if self._to_program():
            self.box.open_search()

    def action_fold(self) -> None:
        if self._to_program():
            self.box.folded = not self.box.folded
            self._draw()

    def action_copy(self) -> None:
        words = ["shardviz", "hlo", self.opened.path]
        words += ["--picture"] if self._view == "program" else ["--time"] if self._view == "time" else []
        self.app.copy_to_clipboard(shlex.join(words))
        self.notify("The command line is copied, where the terminal lets programs copy.", markup=False)

    def action_move(self, step: int) -> None:
        self.box.view.move(step)

    def action_page(self, step: int) -> None:
        self.box.view.move(step * max(1, self.box.view.size.height - 1))


class ModulesDialog(ReadingList):
    """Leaves with the final program of a module."""

    title_text = "The final programs of a folder of dumps"
    nothing = "No module has these words; take some away."
    DEFAULT_CSS = """
    ModulesDialog.-broad.-high #choice { layout: vertical; }
    ModulesDialog.-broad.-high OptionList { width: 100%; height: 1fr; }
    ModulesDialog.-broad.-high #about { padding: 1 0 0 0; max-height: 12; }
    """

    def __init__(self, opened: OpenedModules, machine: Machine) -> None:
        super().__init__()
        self._opened, self._machine = opened, machine

    def on_mount(self) -> None:
        rows = []
        for module in self._opened.modules:
            line = Text.assemble((f"{module.file.number:>4}  {module.file.module}", "bold"))
            if module.report is not None:
                line.append(f"  {plural(len(module.report.entries), 'collective')}", "dim")
            rows.append(ListRow(line, line.plain, module))
        self.show_rows(rows)

    def about(self, row: ListRow) -> Text:
        width = max(30, self.query_one("#choice").content_size.width)
        return Text("\n").join(modules_view([row.value], width)[:-2])

    def leave_with(self, row: ListRow) -> None:
        path = row.value.file.path
        self.read(path, lambda _: open_program(path, self._machine))


class TranslationDialog(Dialog):
    """A sharding in every notation."""

    title_text = "In every notation"

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def content(self) -> Sequence[Widget]:
        return [LinesView()]

    def on_mount(self) -> None:
        self.query_one(LinesView).focus()
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    def _draw(self) -> None:
        view, palette = self.query_one(LinesView), palette_of(self.app)
        notation, readings, context = read_any(self._text)
        written = [write_all(reading, context) for reading in readings]
        width = max(20, view.size.width - 1)
        view.show(TextLines(translate_view(readings, notation, written, context.mesh, width, palette)))
