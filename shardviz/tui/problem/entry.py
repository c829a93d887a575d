"""Text as it is typed into a field."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events
from textual.widgets import Input
from textual.widgets.input import Selection

from shardviz.forms.form import PROBLEM_FIELDS, ProblemForm, one_line
from shardviz.render.problem_picture import FieldCell, Typing
from shardviz.tui.problem.changes import entered, text_of
from shardviz.tui.registry import TYPING

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem

MAX_TEXT = 20_000
"""Characters that a field takes."""
AXIS_HINT = "a name, a size, or both: X=4; all axes: X=2,Y=4; nothing removes the axis"
SPEC_HINT = "X_, P('X', None), A[b_X, d] …; all arrays: X_,__->X_; ? where the compiler may choose"


class Entry(Input):
    """One line of text in place of a field's value: enter keeps it, esc leaves the field as it was.

    It is there for one field after another, and hidden between. `on_end` is called with whether the text is
    kept.
    """

    DEFAULT_CSS = """
    Entry, Entry:focus { height: 1; padding: 0; border: none; background: $panel; background-tint: 0%; }
    """

    def __init__(self, on_end: Callable[[bool], None]) -> None:
        super().__init__(compact=True, select_on_focus=False)
        self._on_end = on_end
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
            self._on_end(keep)

    @property
    def draft(self) -> ProblemForm:
        """The draft with the text as it stands."""
        before = self.before.draft
        return before if self.value == self._first else entered(before, self.cell, self.value)

    def typing(self, resolved: ResolvedProblem) -> Typing:
        """The text's errors and hint for the picture of the fields; `resolved` is that of `draft`."""
        cell = self.cell
        faults = tuple(fault for fault in resolved.faults if fault.field == cell.field)
        own = PROBLEM_FIELDS.get(cell.field)
        hint = AXIS_HINT if cell.kind == "axis" else SPEC_HINT if own is None else own.hint
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

    def type_in(self, text: str) -> None:
        """Text in place of what is selected, or at the cursor."""
        self.replace(text, *self.selection)

    def _on_paste(self, event: events.Paste) -> None:
        event.prevent_default()
        event.stop()
        text = one_line(event.text)
        if len(text) > MAX_TEXT:
            self.app.notify(
                f"The text has {len(text):,} characters; the first {MAX_TEXT:,} are kept.",
                severity="warning",
                markup=False,
            )
        self.type_in(text[:MAX_TEXT])
