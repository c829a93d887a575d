"""A small form for another collective, with the fields of `shardviz step`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.widgets import Input, Static

from shardviz.collectives.operations import OPERATIONS, PARAMETERS, takers
from shardviz.errors import ShardvizError
from shardviz.forms.collective import CollectiveFieldError, collective_question
from shardviz.forms.form import COLLECTIVE_FIELDS, CollectiveFields
from shardviz.forms.wording import as_sentence
from shardviz.sharding import Mesh
from shardviz.tui.state import EditorState
from shardviz.tui.themes import STYLES

FIELDS = tuple(COLLECTIVE_FIELDS)
SETTINGS = ("pieces", *(name for name in PARAMETERS if name != "untiled"), "untiled")
"""Fields that only some algorithms or operations take."""
HINTS = {name: field.hint for name, field in COLLECTIVE_FIELDS.items()}
HINTS |= {name: parameter.example for name, parameter in PARAMETERS.items()}
HINTS |= {"pieces": "the algorithm's default"}


class CollectiveForm(VerticalScroll):
    """A line for each field; enter plays it, esc leaves all as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "Leave"),
        ("up", "app.focus_previous", "Up"),
        ("down", "app.focus_next", "Down"),
    ]
    DEFAULT_CSS = STYLES["CollectiveForm"]

    class Done(Message):
        """The form may be closed."""

    def __init__(self, state: EditorState) -> None:
        super().__init__()
        self._state = state
        self._filled: CollectiveFields | None = None

    def compose(self) -> ComposeResult:
        yield Static(Text("Another collective", "bold"), id="form-title")
        for name in (*FIELDS, *SETTINGS):
            with Horizontal(id=f"row-{name}"):
                yield Static(Text(name.replace("_", " ")))
                yield Input(id=f"field-{name}", placeholder=HINTS[name], compact=True)
            if name in ("op", "algorithm"):
                yield Static(id=f"choices-{name}", classes="choices", markup=False)
            fault = Static(id=f"fault-{name}", classes="fault", markup=False)
            fault.display = False
            yield fault

    def show_problem(self) -> None:
        """Show the problem's collective; what somebody is writing stays while that is the same."""
        collective = self._state.resolved.draft.collective or CollectiveFields()
        if collective != self._filled:
            self._filled = collective
            values = {name: getattr(collective, name) for name in FIELDS} | dict(collective.parameters)
            with self.prevent(Input.Changed):
                for name in (*FIELDS, *SETTINGS):
                    self._field(name).value = values.get(name, "")
        self._check()

    @property
    def collective(self) -> CollectiveFields:
        texts = {name: self._field(name).value.strip() for name in (*FIELDS, *SETTINGS)}
        parameters = tuple((name, texts.pop(name)) for name in SETTINGS)
        return CollectiveFields(**texts, parameters=tuple(each for each in parameters if each[1]))

    def _field(self, name: str) -> Input:
        return self.query_one(f"#field-{name}", Input)

    @on(Input.Changed)
    def _check(self) -> bool:
        """Say what is wrong, at its field; whether nothing is."""
        collective, mesh = self.collective, self._state.resolved.problem.mesh
        for name, parameter in PARAMETERS.items():
            only, written = takers(parameter), bool(self._field(name).value)
            self.query_one(f"#row-{name}").display = len(only) > 1 or collective.op in only or written
        for name, choices in (("op", [*OPERATIONS]), ("algorithm", _algorithms(collective, mesh))):
            offered = self.query_one(f"#choices-{name}", Static)
            offered.update(Text("  ".join(choices)))
            offered.display = bool(choices)
        wrong, error = "", _error(collective, mesh)
        if error is not None:
            wrong, reason = _culprit(collective, mesh), error.message
            if isinstance(error, CollectiveFieldError):
                wrong, reason = error.field, error.reason
            said = f"✗ {as_sentence(reason)} {as_sentence(error.hint)}".rstrip()
            self.query_one(f"#fault-{wrong}", Static).update(Text(said))
        for name in (*FIELDS, *SETTINGS):
            self.query_one(f"#fault-{name}").display = name == wrong
        return not wrong

    @on(Input.Submitted)
    def _submit(self) -> None:
        if self._check():
            self._state.edit(replace(self._state.history.draft, collective=self.collective))
            self.post_message(self.Done())

    def action_leave(self) -> None:
        self.post_message(self.Done())


def _algorithms(collective: CollectiveFields, mesh: Mesh) -> list[str]:
    """Those that can do it, as far as it is a collective."""
    from shardviz.collectives.algorithms import schedules_for

    try:
        question = collective_question(replace(collective, algorithm=""), mesh)
        return [schedule.algorithm for schedule in schedules_for(question.schedule.pattern)]
    except ShardvizError:
        return []


def _error(collective: CollectiveFields, mesh: Mesh) -> ShardvizError | None:
    try:
        collective_question(collective, mesh)
    except ShardvizError as error:
        return error
    return None


def _culprit(collective: CollectiveFields, mesh: Mesh) -> str:
    """The field without which all would be well, of those that clash; else the operation."""
    for name in FIELDS[:0:-1]:
        emptied: dict[str, Any] = {name: ""}
        if getattr(collective, name) and _error(replace(collective, **emptied), mesh) is None:
            return name
    for parameter in collective.parameters:
        others = tuple(other for other in collective.parameters if other != parameter)
        if _error(replace(collective, parameters=others), mesh) is None:
            return parameter[0]
    return "op"
