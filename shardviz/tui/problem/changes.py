"""The effect of each key on the form, by the cell under the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from shardviz.forms import axis_edits
from shardviz.forms.form import PROBLEM_FIELDS, ProblemForm
from shardviz.forms.parsing import looks_like_command
from shardviz.lazy_names import LazyImports
from shardviz.planner.plan import decided_parts
from shardviz.render.problem_picture import FieldCell, FieldRow, Kind, default_sizes

with LazyImports():
    from shardviz.forms import enter as entering

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.sharding import PartitionSpec

MAX_LETTERS = 4
"""Letters of axes that the footer names."""
WORKS_ON: dict[str, tuple[Kind, ...]] = {
    "edit": ("text", "axis", "array", "dim", "sums", "choice"),
    "cycle": ("dim", "array", "choice", "text"),
    "assign": ("dim", "sums"),
    "sum": ("array", "sums"),
    "clear": ("dim", "sums"),
    "double": ("axis",),
    "halve": ("axis",),
    "remove_axis": ("axis",),
    "move_axis": ("axis",),
}
"""The kinds of cells on which a command does something; commands that are not here need no cell."""
LISTED = ("dtype", "targets", "machine")
"""Fields whose values are chosen from a list, not one after the other."""


def works_on(command: str, cell: FieldCell, resolved: ResolvedProblem) -> bool:
    """Return whether a command does something to a cell."""
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
        return draft.sizes or default_sizes(resolved)
    text: str = getattr(draft, cell.field)
    return text


def entered(draft: ProblemForm, cell: FieldCell, text: str) -> ProblemForm:
    """Another text in place of that of a cell; an axis without a text is removed."""
    if cell.kind != "axis" or looks_like_command(text):
        return entering.enter(draft, cell.field, text)
    if not text.strip():
        return axis_edits.remove_axis(draft, cell.axes[0])
    return axis_edits.enter_axis(draft, cell.axes[0], text)


def cycled(draft: ProblemForm, cell: FieldCell, resolved: ResolvedProblem) -> ProblemForm:
    """The next choice for a cell."""
    if cell.kind == "dim":
        return axis_edits.cycle(draft, cell.row, cell.number)
    if cell.kind in ("array", "choice"):
        return axis_edits.toggle_open(draft, cell.row, planned_spec(cell.row, resolved))
    choices = PROBLEM_FIELDS[cell.field].usual
    index = choices.index(cell.text) + 1 if cell.text in choices else 0
    return entering.enter(draft, cell.field, choices[index % len(choices)])


def planned_spec(row: int, resolved: ResolvedProblem) -> PartitionSpec | None:
    """The spec of an array in the plan; None where the plan is not that of the form."""
    if resolved.faults:
        return None
    arrays = [array for operands, result in decided_parts(resolved.plan) for array in (*operands, result)]
    return arrays[row].spec


def assigned(draft: ProblemForm, cell: FieldCell, axis: str) -> ProblemForm:
    """A mesh axis more for a dimension, or for the axes over which an array is a pending sum."""
    if cell.kind == "dim":
        return axis_edits.assign(draft, cell.row, cell.number, axis)
    return axis_edits.toggle_unreduced(draft, cell.row, axis)


def moved_from(rows: Sequence[FieldRow], cell: FieldCell, axis: str) -> str:
    """The other place of the array that has an axis: ``d of A``; empty where none has."""
    row = next(row for row in rows if row.field == cell.field)
    name = row.cells[0].text.removeprefix("→ ")
    for each in row.cells:
        if axis in each.axes and each != cell:
            return (
                f"{each.text.rstrip('_')} of {name}" if each.kind == "dim" else f"the pending sum of {name}"
            )
    return ""


def cleared(draft: ProblemForm, cell: FieldCell) -> ProblemForm:
    """No axis for a dimension, or no pending sum."""
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
    shown = [*letters][:MAX_LETTERS]
    return " ".join(shown if len(shown) == len(letters) else [*shown, "…"])
