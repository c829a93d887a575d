"""A small form for another collective, with the fields of `shardviz step`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
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

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.sharding import Mesh
    from shardviz.tui.state import EditorState

FIELDS = tuple(COLLECTIVE_FIELDS)
SETTINGS = ("pieces", *(name for name in PARAMETERS if name != "untiled"), "untiled")
"""Fields that only some algorithms or operations take."""
CHOSEN = ("op", "algorithm")
"""Fields below which stands what can be chosen for them."""
HINTS = {name: field.hint for name, field in COLLECTIVE_FIELDS.items()} | {
    "pieces": "the algorithm's default"
}


class CollectiveForm(VerticalScroll):
    """A line for each field; enter plays it, esc leaves all as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "leave", "Leave"),
        ("up", "app.focus_previous", "Up"),
        ("down", "app.focus_next", "Down"),
    ]
    DEFAULT_CSS = """
    CollectiveForm { height: 1fr; }
    CollectiveForm #form-title { height: 1; margin: 0 0 1 0; }
    CollectiveForm Horizontal { height: 1; }
    CollectiveForm Horizontal Static { width: 18; }
    CollectiveForm Input { width: 1fr; }
    CollectiveForm .choices { height: auto; padding: 0 0 0 2; text-style: dim; }
    CollectiveForm .fault { height: auto; padding: 0 0 0 2; color: $text-error; }
    """

    class Done(Message):
        """The form may be closed."""

    def __init__(self, state: EditorState) -> None:
        super().__init__()
        self._state = state
        self._filled: CollectiveFields | None = None

    def compose(self) -> ComposeResult:
        yield Static(Text("Another collective", "bold"), id="form-title")
        for name in (*FIELDS, *SETTINGS):
            hint = PARAMETERS[name].example if name in PARAMETERS else HINTS[name]
            with Horizontal(id=f"row-{name}"):
                yield Static(Text(name.replace("_", " ")))
                yield Input(id=f"field-{name}", placeholder=hint, compact=True)
            if name in CHOSEN:
                yield Static(id=f"choices-{name}", classes="choices", markup=False)
            fault = Static(id=f"fault-{name}", classes="fault", markup=False)
            fault.display = False
            yield fault

    @property
    def first_field(self) -> Input:
        return self.query_one("#field-op", Input)

    def show_problem(self, resolved: ResolvedProblem) -> None:
        """The collective of a problem; what somebody is writing stays while that is the same."""
        collective = resolved.draft.collective or CollectiveFields()
        if collective != self._filled:
            self._filled = collective
            values = {name: getattr(collective, name) for name in FIELDS} | dict(collective.parameters)
            with self.prevent(Input.Changed):
                for name in (*FIELDS, *SETTINGS):
                    self.query_one(f"#field-{name}", Input).value = values.get(name, "")
        self._check()

    @property
    def collective(self) -> CollectiveFields:
        """The collective that the fields describe."""
        texts = {name: self.query_one(f"#field-{name}", Input).value.strip() for name in FIELDS}
        parameters = [(name, self.query_one(f"#field-{name}", Input).value.strip()) for name in SETTINGS]
        return CollectiveFields(
            **texts, parameters=tuple(parameter for parameter in parameters if parameter[1])
        )

    def on_input_changed(self, _event: Input.Changed) -> None:
        self._check()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        if self._check():
            self._state.edit(replace(self._state.history.draft, collective=self.collective))
            self.post_message(self.Done())

    def action_leave(self) -> None:
        self.post_message(self.Done())

    def _offer(self, name: str, choices: list[str]) -> None:
        shown = self.query_one(f"#choices-{name}", Static)
        shown.update(Text("  ".join(choices)))
        shown.display = bool(choices)

    def _check(self) -> bool:
        """Say what is wrong, at its field; whether nothing is."""
        collective = self.collective
        for name, parameter in PARAMETERS.items():
            only, written = takers(parameter), bool(self.query_one(f"#field-{name}", Input).value)
            self.query_one(f"#row-{name}").display = len(only) > 1 or collective.op in only or written
        wrong = ""
        mesh = self._state.resolved.problem.mesh
        self._offer("op", [*OPERATIONS])
        self._offer("algorithm", _algorithms(collective, mesh))
        error = _error(collective, mesh)
        if error is not None:
            if isinstance(error, CollectiveFieldError):
                wrong, reason = error.field, error.reason
            else:
                wrong, reason = _culprit(collective, mesh), error.message
            self.query_one(f"#fault-{wrong}", Static).update(
                Text(f"✗ {as_sentence(reason)} {as_sentence(error.hint)}".rstrip())
            )
        for name in (*FIELDS, *SETTINGS):
            self.query_one(f"#fault-{name}").display = name == wrong
        return not wrong


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
        others = tuple(each for each in collective.parameters if each != parameter)
        if _error(replace(collective, parameters=others), mesh) is None:
            return parameter[0]
    return "op"
