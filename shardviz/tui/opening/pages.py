"""The windows of what was opened: a program with its collectives and its times, a folder's modules, a
sharding in every notation."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on
from textual.widget import Widget
from textual.widgets import Input, Static

from shardviz.errors import ShardvizError, plural
from shardviz.forms.enter import read_any
from shardviz.forms.wording import error_words
from shardviz.notation.notations import write_all
from shardviz.render.caption import translate_view
from shardviz.render.lines import sentence
from shardviz.render.programs.changes_view import changes_view, summary_view
from shardviz.render.programs.cost_lines import log_lines, rematerialization_lines
from shardviz.render.programs.program_view import hlo_view, modules_view, program_view
from shardviz.render.times.live_memory import memory_report_lines
from shardviz.render.times.report import target_times_view, timeline_view
from shardviz.tui.compiler.program_box import ProgramBox, ProgramKeys
from shardviz.tui.dialogs.dialog import CLOSE, HELP, CommandPage, Dialog, copy_line
from shardviz.tui.dialogs.filtered_list import ListRow
from shardviz.tui.opening.dialog import CompareDialog, ReadingDialog, ReadingList
from shardviz.tui.opening.kinds import Openable, words_of
from shardviz.tui.opening.reading import Opened, OpenedChanges, OpenedModules, OpenedProgram
from shardviz.tui.registry import TABLES, bindings
from shardviz.tui.themes import palette_of

if TYPE_CHECKING:
    from shardviz.tui.state import EditorState

VIEWS = ("collectives", "program", "time")
PROGRAM, (KEEP,) = TABLES["PROGRAM"], TABLES["ENTRY"]
TITLES = {"mesh": "Mesh", "machine": "Machine that times are for", "target": "Target to compile for"}
HINTS = {
    "mesh": "data=4,model=2; empty: as the program's groups tell it, or the problem's mesh",
    "machine": "v5e:2x4, h100:8, or a file; empty: the problem's",
    "target": "cpu, v5e:2x4, h100:8; empty: the problem's",
}


class ProgramDialog(ProgramKeys, ReadingDialog):
    """A program of a file: `v` goes from its collectives to its text and to its times."""

    commands = (HELP, *PROGRAM, CLOSE)
    BINDINGS = bindings(PROGRAM)
    DEFAULT_CSS = """
    ProgramDialog #views { height: auto; max-height: 3; }
    ProgramDialog ProgramBox { height: 1fr; }
    """

    def __init__(self, opened: OpenedProgram, state: EditorState) -> None:
        super().__init__()
        self.opened, self.state = opened, state
        self.title_text = opened.found.name
        self._view = VIEWS[0]

    def content(self) -> Sequence[Widget]:
        return [Static(id="views"), ProgramBox()]

    def on_mount(self) -> None:
        self.box.view.focus()
        self.call_after_refresh(self.draw)

    def on_program_view_resized(self) -> None:
        self.draw()

    @property
    def box(self) -> ProgramBox:  # type: ignore[override]
        return self.query_one(ProgramBox)

    @property
    def views(self) -> list[str]:
        """Those that this program has."""
        opened, report = self.opened, self.opened.report
        has_times = opened.compiled is not None or (report is not None and report.timeline is not None)
        has = {"collectives": True, "program": opened.listed is not None, "time": has_times}
        return [view for view in VIEWS if has[view]]

    def describe(self, text: Text) -> None:
        self.query_one("#views", Static).update(text)

    def show_failure(self, error: ShardvizError) -> None:
        self.draw()
        self.notify(error_words(error), severity="error", markup=False)

    def show_opened(self, opened: Opened) -> None:
        assert isinstance(opened, OpenedProgram)
        self.opened = opened
        if self._view not in self.views:
            self._view = VIEWS[0]
        self.draw()

    def draw(self) -> None:
        if self.reading is None:
            names = ((name, "bold reverse" if name == self._view else "dim") for name in self.views)
            line = Text("  ").join(Text(f" {name} ", style) for name, style in names)
            if words := words_of(self.opened.options):
                line.append("  " + " ".join(words), "dim")
            line.truncate(max(1, self.query_one("#views").size.width), overflow="ellipsis")
            self.describe(line)
        if self._view == "program" and self.opened.listed is not None:
            self.box.show_program(self.opened.listed, palette_of(self.app), is_old=False)
        else:
            self.box.show_lines(self._lines(self.box.view.room), (self._view, self.opened))

    def _lines(self, width: int) -> list[Text]:
        opened, report, palette = self.opened, self.opened.report, palette_of(self.app)
        if opened.saved is not None:
            return summary_view(opened.saved, width)
        if opened.compiled is not None:
            if self._view == "time" and opened.told is not None:
                return target_times_view(opened.told, width, palette)
            return program_view(opened.compiled, report, width, palette)
        if report is None:
            return log_lines(opened.remade, opened.mesh, width, is_given="mesh" in opened.options)
        if self._view == "time" and report.timeline is not None:
            return timeline_view(report.timeline, width, palette)
        lines = hlo_view(report, opened.mesh if "mesh" in opened.options else None, width, palette)
        if report.timeline is not None and report.timeline.memory is not None:
            lines += [Text(), *memory_report_lines(report.timeline.memory, width, palette)]
        if opened.remade:
            lines += rematerialization_lines(opened.remade, width)
        return [*lines, *(Text(f"note: {note}") for note in opened.notes)]

    def action_view(self) -> None:
        self.box.leave_search()
        views = self.views
        self._view = views[(views.index(self._view) + 1) % len(views)]
        self.draw()

    def to_program(self) -> bool:
        if self.opened.listed is not None and self._view != "program":
            self._view = "program"
            self.draw()
        return self.box.is_program

    def action_compare(self) -> None:
        def show(changes: OpenedChanges | None) -> None:
            if changes is not None:
                self.app.push_screen(ChangesDialog(changes))

        if self.opened.report is None and self.opened.saved is None:
            self.notify("There is no program to compare.")
        else:
            self.app.push_screen(CompareDialog(self.state, self.opened), show)

    def action_option(self, name: str) -> None:
        """Read it again with another mesh or on other hardware, which is typed."""
        opened = self.opened
        if opened.saved is not None:
            self.notify("A saved report has the mesh and the machine that it was saved with.")
            return
        if name == "hardware":
            name = "target" if opened.found.kind == "function" else "machine"

        def take(text: str | None) -> None:
            if text is not None:
                words = words_of({**self.opened.options, name: text.strip()})
                self.open(replace(self.opened.found, options=tuple(words)))

        self.app.push_screen(OptionEntry(name, opened.options.get(name, "")), take)

    def action_close(self) -> None:
        if self.stop_reading():
            self.draw()
        else:
            self.dismiss()

    def action_copy(self) -> None:
        views = {"program": "--picture", "time": "--time"}
        is_listed = self._view == "program" and self.opened.found.kind == "function"
        copy_line(
            self, self.opened.command(*([views[self._view]] if self._view in views and not is_listed else []))
        )


class OptionEntry(Dialog):
    """Leaves with the text of an option."""

    commands = (KEEP, CLOSE)

    def __init__(self, name: str, text: str) -> None:
        super().__init__(classes="fitted")
        self.title_text = TITLES[name]
        self._option, self._text = name, text

    def content(self) -> Sequence[Widget]:
        return [Input(self._text, compact=True), Static(HINTS[self._option], markup=False)]

    @on(Input.Submitted)
    def action_keep(self) -> None:
        self.dismiss(self.query_one(Input).value)


class ModulesDialog(ReadingList):
    """Leaves with the final program of a module."""

    title_text = "The final programs of a folder of dumps"
    nothing = "No module has these words; take some away."
    is_table = True

    def __init__(self, opened: OpenedModules, state: EditorState) -> None:
        super().__init__()
        self._opened, self.state = opened, state

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
        self.open(Openable(row.value.file.path, "program", tuple(words_of(self._opened.options))))


class TranslationDialog(CommandPage):
    """A sharding in every notation."""

    title_text = "In every notation"

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def lines(self, width: int) -> list[Text]:
        notation, readings, context = read_any(self._text)
        written = [write_all(reading, context) for reading in readings]
        return translate_view(readings, notation, written, context.mesh, width, palette_of(self.app))

    @property
    def line(self) -> str:
        return shlex.join(["shardviz", "translate", self._text])


class ChangesDialog(CommandPage):
    """The changes from one program to another."""

    def __init__(self, opened: OpenedChanges) -> None:
        super().__init__()
        self._opened = opened
        self.title_text = " → ".join(each.name for each in opened.found.pair)

    def lines(self, width: int) -> list[Text]:
        notes = (line for note in self._opened.notes for line in sentence(note, width, lead="note: "))
        return [*changes_view(self._opened.changes, (), width), *notes]

    @property
    def line(self) -> str:
        return self._opened.command
