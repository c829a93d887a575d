"""A small form for another collective, with the fields of `shardviz step`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from rich.text import Text
from textual import events
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
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow

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
    "pieces": "as the algorithm has it"
}


class ChoiceField(Input):
    """Takes any text; `space` asks for a list of what there is."""

    class ListAsked(Message):
        """All choices are to be listed."""

        def __init__(self, field: ChoiceField) -> None:
            super().__init__()
            self.field = field

    choices: Sequence[str] = ()

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "space":
            event.stop()
            event.prevent_default()
            if self.choices:
                self.post_message(self.ListAsked(self))


class ChoicesDialog(FilteredList):
    """The choices for a field of the form, and what each is; `enter` leaves with a name."""

    def __init__(self, title: str, abouts: Mapping[str, str], first: str | None) -> None:
        super().__init__()
        self.title_text = title
        self._abouts, self._first = abouts, first

    def on_mount(self) -> None:
        rows = [ListRow(Text(name), f"{name} {about}", name) for name, about in self._abouts.items()]
        self.show_rows(rows, self._first)

    def about(self, row: ListRow) -> Text:
        return Text.assemble((f"{row.value}\n", "bold"), self._abouts[row.value])


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
                field = ChoiceField if name in CHOSEN else Input
                yield field(id=f"field-{name}", placeholder=hint, compact=True)
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

    def on_choice_field_list_asked(self, message: ChoiceField.ListAsked) -> None:
        from shardviz.collectives.algorithms import ALGORITHMS

        field = message.field
        typed = field.value.strip()
        first = next((name for name in field.choices if typed and name.startswith(typed)), None)
        if field.id == "field-op":
            docs = {name: (OPERATIONS[name].__doc__ or "").partition("\n\n")[0] for name in field.choices}
            abouts = {name: " ".join(doc.replace("`", "").split()) for name, doc in docs.items()}
            dialog = ChoicesDialog("Operations", abouts, first)
        else:
            abouts = {name: as_sentence(ALGORITHMS[name].summary) for name in field.choices}
            dialog = ChoicesDialog("Algorithms that can do it", abouts, first)

        def fill(name: str | None) -> None:
            if name is not None:
                field.value = name
                field.cursor_position = len(name)

        self.app.push_screen(dialog, fill)

    def on_input_changed(self, _event: Input.Changed) -> None:
        self._check()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        if self._check():
            self._state.edit(replace(self._state.history.draft, collective=self.collective))
            self.post_message(self.Done())

    def action_leave(self) -> None:
        self.post_message(self.Done())

    def _offer(self, name: str, choices: list[str]) -> None:
        self.query_one(f"#field-{name}", ChoiceField).choices = choices
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
