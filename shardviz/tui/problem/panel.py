"""The problem's fields: a cursor on their cells, single keys that change them, and text for everything; below
them the figures of the problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.geometry import Region

from shardviz.forms import axis_edits
from shardviz.forms.parsing import parsed
from shardviz.lazy_names import LazyImports
from shardviz.render.problem_picture import FieldCell, FieldRow, FieldsPicture, field_rows, mesh_in
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.pane import Side
from shardviz.tui.problem import fields
from shardviz.tui.problem.fields import Cursor, Entry
from shardviz.tui.registry import PROBLEM, TYPING, Command, bindings
from shardviz.tui.state import EditorState

with LazyImports():
    from shardviz.forms import enter as entering
    from shardviz.render import questions_view
    from shardviz.tui.dialogs import lists


class FieldsView(LinesView, inherit_bindings=False):
    """The fields, and below them the figures, to which no cursor goes; the keys are the panel's."""


class ProblemPanel(Side):
    """The fields of the draft, beside the screen or in its place."""

    BINDINGS = bindings(PROBLEM)

    def __init__(self, state: EditorState) -> None:
        super().__init__()
        self.state = state
        self.cursor = Cursor()
        self._rows: list[FieldRow] = []
        self.picture: FieldsPicture | None = None
        self._figures: list[Text] = []
        self.view, self._entry = FieldsView(), Entry()

    def compose(self) -> ComposeResult:
        yield self.view

    def on_mount(self) -> None:
        self.watch(self.view, "scroll_y", self._place_entry, init=False)

    @property
    def is_typing(self) -> bool:
        return self._entry.is_open

    @property
    def cell(self) -> FieldCell:
        return fields.cell_at(self._rows or field_rows(self.state.resolved), self.cursor)

    @property
    def commands(self) -> list[Command]:
        """The commands that do something to the cell under the cursor; the axes by their letters."""
        cell, resolved, axes = self.cell, self.state.resolved, fields.letters_text(self.letters)
        works = (command for command in PROBLEM if fields.works_on(command.name, cell, resolved))
        named = (replace(work, shown=axes) if work.name == "assign" else work for work in works)
        listed = cell.field in fields.LISTED
        return [
            replace(command, footer="list") if command.name == "cycle" and listed else command
            for command in named
            if axes or command.name != "assign"
        ]

    @property
    def typing(self) -> Sequence[Command]:
        return TYPING if self.is_typing else ()

    @property
    def letters(self) -> dict[str, str]:
        """The axes by the letters that mean them to the cell under the cursor, before any other command."""
        if not fields.works_on("assign", self.cell, self.state.resolved):
            return {}
        return fields.letters_of(mesh_in(self.state.resolved).axis_names)

    def show_problem(self) -> None:
        hidden, self._figures = (fields.PRICED, []) if self.state.is_quiet else ((), self._figures)
        self._rows = [row for row in field_rows(self.state.resolved) if row.field not in hidden]
        self._draw()

    def on_resize(self) -> None:
        self._draw()
        self.call_after_refresh(self.draw_figures)

    def _draw(self) -> None:
        """Draw the fields for the panel's size, which is none while it is hidden; the last column is the
        scrollbar's."""
        width, height = self.size
        if not self._rows or not width:
            self.picture = None
            return
        typing = self._entry.typing(self.state.resolved) if self.is_typing else None
        self.picture = FieldsPicture(
            self._rows, width - 1, height, mesh_in(self.state.resolved), self.palette, typing
        )
        if self.is_typing:
            self._entry.notes = self.picture.typing_notes
        self._mark_cursor()

    def draw_figures(self) -> None:
        """Draw what the problem costs into the lines that its fields leave, in a frame after theirs."""
        is_unpriced = self.state.is_quiet or self.state.is_empty or self.state.resolved.is_as_given
        if self.picture is None or is_unpriced:
            return
        width, height = self.size
        resolved = self.state.resolved
        before = next(iter(self.state.questions.before(resolved)), None)
        room = height - self.picture.height
        self._figures = questions_view.figures_beside(
            resolved, before, width - 1, room, self.palette, self.is_beside("PlanPane")
        )
        self._show()

    def _show(self) -> None:
        if self.picture is not None:
            picture = self.picture
            drawn = [picture.line(y, 0, picture.width) for y in range(picture.height)]
            room = max(self.size.height - picture.height, 0)
            self.view.show(TextLines([*drawn, *self._figures[:room]]))

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def _mark_cursor(self) -> None:
        picture = self.picture
        if picture is None:
            return
        picture.cursor, picture.has_focus = self.cell, self.view.has_focus
        lines = [place.y for place in picture.places if place.cell == picture.cursor]
        if self.is_typing:
            lines = [picture.typing_line, picture.typing_line + picture.typing_notes]
        region = Region(0, lines[0], 1, lines[-1] - lines[0] + 1)
        self._show()
        self.view.scroll_to_region(region, animate=False, force=True)
        self._place_entry()
        self.refresh_bindings()

    def _place_entry(self) -> None:
        if self.is_typing and self.picture:
            left, line = self.picture.value_column, self.picture.typing_line
            self._entry.styles.offset = left, line - round(self.view.scroll_y)
            self._entry.styles.width = self.size.width - 1 - left

    def on_lines_view_clicked(self, event: FieldsView.Clicked) -> None:
        place = fields.place_at(self.picture.places, event.column, event.line) if self.picture else None
        if place is not None:
            self._put_cursor(place.cell)
            if event.is_double:
                self.call_next(self.action_edit)

    def action_move(self, direction: str) -> None:
        if self.picture and not self.is_typing:
            self._put_cursor(fields.moved(self.picture.places, self.cell, direction))

    def _put_cursor(self, cell: FieldCell) -> None:
        self.cursor = fields.cursor_on(self._rows, cell)
        self._mark_cursor()

    def takes(self, event: events.Key) -> bool:
        """Split over the axis whose letter a key is, if it is one; return whether it is."""
        axis = self.letters.get(event.character or "")
        if axis is None:
            return False
        if moved := fields.moved_from(self._rows, self.cell, axis):
            self.notify(f"{axis} moves here from {moved}.", markup=False)
        self.state.edit(fields.assigned(self.state.resolved.draft, self.cell, axis))
        return True

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """A key that does nothing to the cell under the cursor is still a key of the problem: None."""
        works = not self.is_typing and fields.works_on(action, self.cell, self.state.resolved)
        return works or None

    async def action_assign(self) -> None:
        """From the palette, where no letter is pressed: as text."""
        await self.action_edit()

    def action_cycle(self) -> None:
        field = self.cell.field

        def take(text: str | None) -> None:
            if text is not None:
                self.state.edit(entering.enter(self.state.resolved.draft, field, text))

        if field in fields.LISTED:
            self.app.push_screen(lists.PICKERS[field](self.state.resolved), take)
        else:
            self.state.edit(fields.cycled(self.state.resolved.draft, self.cell, self.state.resolved))

    def action_sum(self) -> None:
        draft = axis_edits.cycle_unreduced(self.state.resolved.draft, self.cell.row)
        if draft == self.state.resolved.draft:
            self.notify("Every axis already shards this array: ⌫ on a dimension frees its axes.")
        self.state.edit(draft)

    def action_clear(self) -> None:
        self.state.edit(fields.cleared(self.state.resolved.draft, self.cell))

    def action_axis(self, edit: str) -> None:
        """Double, halve or remove the axis under the cursor."""
        self.state.edit(getattr(axis_edits, f"{edit}_axis")(self.state.resolved.draft, *self.cell.axes))

    def action_add_axis(self) -> None:
        self.cursor = Cursor("mesh", len(mesh_in(self.state.resolved).axis_names))
        self.state.edit(axis_edits.add_axis(self.state.resolved.draft))

    def action_move_axis(self, places: int) -> None:
        axis = self.cell.axes[0]
        draft = axis_edits.move_axis(self.state.resolved.draft, axis, places)
        mesh = parsed(draft).mesh
        if mesh is not None:
            self.cursor = Cursor("mesh", mesh.axis_names.index(axis))
        self.state.edit(draft)

    async def action_edit(self) -> None:
        if not self._entry.is_open:
            if not self._entry.is_attached:
                await self.mount(self._entry)
            self._entry.open(self.cell, self.state.resolved)
            self._draw()

    def on_input_changed(self) -> None:
        """Show the draft at each key, or what was there before the text where it cannot be read and planned:
        no step of undo yet."""
        if self._entry.is_open:
            self.state.show(self._entry.draft, self._entry.before)

    def on_entry_ended(self, event: Entry.Ended) -> None:
        """Keep the text as one step of undo, or go back to the problem before it."""
        if self.screen.focused is self._entry:
            self.screen.set_focus(self.view)
        if event.keep:
            self.state.edit(self._entry.draft)
            self._draw()
        else:
            self.state.show(self.state.history.draft, self._entry.before)
