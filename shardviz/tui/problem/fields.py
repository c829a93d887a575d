"""The cells of the problem's fields: what each key does to the form, the text that is typed into one, and the
cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual import events
from textual.message import Message
from textual.widgets import Input
from textual.widgets.input import Selection

from shardviz.forms import axis_edits
from shardviz.forms.form import PROBLEM_FIELDS, ProblemForm, one_line
from shardviz.forms.parsing import looks_like_command
from shardviz.forms.retain_fields import sizes_text
from shardviz.lazy_names import LazyImports
from shardviz.planner.plan import decided_parts
from shardviz.render.problem_picture import FieldCell, FieldPlace, FieldRow, Kind, Typing
from shardviz.tui.registry import TYPING
from shardviz.tui.themes import Styled

with LazyImports():
    from shardviz.forms import enter as entering

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.sharding import PartitionSpec

WORKS_ON: dict[str, tuple[Kind, ...]] = {
    "edit": ("text", "axis", "array", "dim", "sums", "choice"),
    "cycle": ("dim", "array", "choice", "text"),
    "assign": ("dim", "sums"),
    "sum": ("array", "sums"),
    "clear": ("dim", "sums"),
    "axis": ("axis",),
    "move_axis": ("axis",),
}
"""The kinds of cells on which a command does something; commands that are not here need no cell."""
PRICED = ("machine", "objective", "backward", "remat", "optimizer", "frozen")
"""Fields about seconds and memory, which a lesson without them does not show."""
LISTED = ("dtype", "targets", "machine")
"""Fields whose values are chosen from a list, not one after the other."""


def works_on(command: str, cell: FieldCell, resolved: ResolvedProblem) -> bool:
    command = command.partition("(")[0]
    if command in WORKS_ON and cell.kind not in WORKS_ON[command]:
        return False
    if command == "cycle" and cell.kind == "text":
        return cell.field in LISTED or (
            cell.field in PROBLEM_FIELDS and bool(PROBLEM_FIELDS[cell.field].usual)
        )
    if command == "cycle" and cell.kind == "array":
        return cell.row < len(resolved.rows) and resolved.rows[cell.row].role != "operand"
    return True


def text_of(cell: FieldCell, resolved: ResolvedProblem) -> str:
    """The text that one edits: an axis with its size, or the whole field."""
    draft = resolved.draft
    if cell.kind == "axis":
        return f"{cell.axes[0]}{cell.after}"
    if cell.field.startswith("specs."):
        return draft.specs[cell.row]
    if cell.field == "sizes":
        return draft.sizes or sizes_text(resolved.problem.sizes)
    text: str = getattr(draft, cell.field)
    return text


def entered(draft: ProblemForm, cell: FieldCell, text: str) -> ProblemForm:
    if cell.kind != "axis" or looks_like_command(text):
        return entering.enter(draft, cell.field, text)
    if not text.strip():
        return axis_edits.remove_axis(draft, cell.axes[0])
    return axis_edits.enter_axis(draft, cell.axes[0], text)


def cycled(draft: ProblemForm, cell: FieldCell, resolved: ResolvedProblem) -> ProblemForm:
    if cell.kind == "dim":
        return axis_edits.cycle(draft, cell.row, cell.number)
    if cell.kind in ("array", "choice"):
        planned: PartitionSpec | None = None
        if not resolved.faults:  # else the plan is not that of the form
            arrays = [
                each for operands, result in decided_parts(resolved.plan) for each in (*operands, result)
            ]
            planned = arrays[cell.row].spec
        return axis_edits.toggle_open(draft, cell.row, planned)
    choices = PROBLEM_FIELDS[cell.field].usual
    index = choices.index(cell.text) + 1 if cell.text in choices else 0
    return entering.enter(draft, cell.field, choices[index % len(choices)])


def assigned(draft: ProblemForm, cell: FieldCell, axis: str) -> ProblemForm:
    """A mesh axis more for a dimension, or for the axes over which an array is a pending sum."""
    if cell.kind == "dim":
        return axis_edits.assign(draft, cell.row, cell.number, axis)
    return axis_edits.toggle_unreduced(draft, cell.row, axis)


def moved_from(rows: Sequence[FieldRow], cell: FieldCell, axis: str) -> str:
    """The other place of the array that has an axis: ``d of A``; empty where none has."""
    row = next(row for row in rows if row.field == cell.field)
    name = row.cells[0].text.removeprefix("→ ")
    for other in row.cells:
        if axis in other.axes and other != cell:
            return (
                f"{other.text.rstrip('_')} of {name}" if other.kind == "dim" else f"the partial sum of {name}"
            )
    return ""


def cleared(draft: ProblemForm, cell: FieldCell) -> ProblemForm:
    if cell.kind == "dim":
        return axis_edits.clear(draft, cell.row, cell.number)
    for axis in cell.axes:
        draft = axis_edits.toggle_unreduced(draft, cell.row, axis)
    return draft


def letters_of(axis_names: Sequence[str]) -> dict[str, str]:
    """The mesh axes by the letters that mean them: an axis of that name, or the only one that begins so."""
    firsts = Counter(name[0] for name in axis_names)
    alone = {name[0]: name for name in axis_names if firsts[name[0]] == 1}
    return alone | {name: name for name in axis_names if len(name) == 1}


def letters_text(letters: Collection[str]) -> str:
    """Letters for the footer: ``X Y``, or, where there are many, ``S T U V …``."""
    shown = [*letters][:4]
    return " ".join(shown if len(shown) == len(letters) else [*shown, "…"])


MAX_TEXT = 20_000
"""Characters that a field takes."""


class Entry(Styled, Input):
    """One line of text in place of a field's value: enter keeps it, esc leaves the field as it was. It is
    there for one field after another, and hidden between."""

    @dataclass
    class Ended(Message):
        """The text is no longer typed; `keep` where it is kept."""

        keep: bool

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False)
        self.cursor_blink = False
        self.is_open = False
        self.notes = 0
        """Lines that the notes on the text have taken so far."""
        self.display = False

    def open(self, cell: FieldCell, before: ResolvedProblem) -> None:
        """Begin with the text of a cell; `before` is what esc brings back."""
        self.cell, self.before = cell, before
        self._first = one_line(text_of(cell, before))
        with self.prevent(Input.Changed):
            self.value = self._first
        self.selection = Selection(0, len(self._first))
        self.notes, self.is_open, self.display = 0, True, True
        self.screen.set_focus(self)

    def close(self, keep: bool) -> None:
        """End here; the text stays in `draft`."""
        if self.is_open:
            self.is_open = self.display = False
            self.post_message(self.Ended(keep))

    @property
    def draft(self) -> ProblemForm:
        before = self.before.draft
        return before if self.value == self._first else entered(before, self.cell, self.value)

    def typing(self, resolved: ResolvedProblem) -> Typing:
        """The text's errors and hint for the picture of the fields; `resolved` is that of `draft`."""
        cell = self.cell
        faults = tuple(fault for fault in resolved.faults if fault.field == cell.field)
        own = PROBLEM_FIELDS.get(cell.field)
        hint = "X_, P('X', None), A[b_X, d] …; all arrays: X_,__->X_; ? where the compiler may choose"
        if cell.kind == "axis":
            hint = "a name, a size, or both: X=4; all axes: X=2,Y=4; empty removes the axis"
        elif own is not None:
            hint = own.hint
        return Typing(cell.field, faults, hint, self.notes)

    async def _on_key(self, event: events.Key) -> None:
        ending = next((command for command in TYPING if event.key in command.keys), None)
        if ending is not None:
            event.prevent_default()
            event.stop()
            self.close(ending.name == "keep")

    def _on_blur(self, event: events.Blur) -> None:
        """Another widget has the focus, and not only another window of the desktop: the text is kept."""
        super()._on_blur(event)
        event.prevent_default()
        if self.app.app_focus:
            self.close(keep=True)

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        text = one_line(event.text)
        if len(text) > MAX_TEXT:
            self.app.notify(
                f"Only the first {MAX_TEXT:,} of {len(text):,} characters are kept.",
                severity="warning",
                markup=False,
            )
        self.replace(text[:MAX_TEXT], *self.selection)


@dataclass(frozen=True)
class Cursor:
    """FieldCell `index` of the row of `field`; what stands there may change, the cursor stays."""

    field: str = "mesh"
    index: int = 0


def cell_at(rows: Sequence[FieldRow], cursor: Cursor) -> FieldCell:
    """The cell under the cursor, or, where that is gone, the nearest before it."""
    row = next((row for row in rows if row.field == cursor.field), None)
    if row is None:
        row = [row for row in rows if row.is_array or not cursor.field.startswith("specs.")][-1]
    return row.cells[min(cursor.index, len(row.cells) - 1)]


def cursor_on(rows: Sequence[FieldRow], cell: FieldCell) -> Cursor:
    """The cursor that stands on a cell of the rows."""
    row = next(row for row in rows if row.field == cell.field)
    return Cursor(cell.field, row.cells.index(cell))


def moved(places: Sequence[FieldPlace], cell: FieldCell, direction: str) -> FieldCell:
    """The cell next to another: "up" and "down" the nearest on another line, "left" and "right" in its field;
    at the edge the same cell."""
    if direction in ("left", "right"):
        cells = list(dict.fromkeys(place.cell for place in places if place.cell.field == cell.field))
        number = cells.index(cell) + (1 if direction == "right" else -1)
        return cells[number] if 0 <= number < len(cells) else cell
    own = [place for place in places if place.cell == cell]
    start, is_up = own[0 if direction == "up" else -1], direction == "up"
    beyond = [place for place in places if (place.y < start.y if is_up else place.y > start.y)]
    if not beyond:
        return cell
    nearest = max(place.y for place in beyond) if is_up else min(place.y for place in beyond)
    line = [place for place in beyond if place.y == nearest]

    def distance(place: FieldPlace) -> int:
        return 0 if place.left <= start.left < place.right else abs(place.left - start.left)

    return min(line, key=distance).cell


def place_at(places: Sequence[FieldPlace], x: int, y: int) -> FieldPlace | None:
    """The cell in a column of a line, or the nearest on that line."""
    line = [place for place in places if place.y == y]
    return min(line, key=lambda place: max(place.left - x, x - place.right + 1, 0), default=None)
