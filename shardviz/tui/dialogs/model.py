"""A whole model: its fields, with undo, and its parameters as rows, groups of layers that open and fold, each
with a bar of its bytes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from rich.text import Text
from textual import events, on, work
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import get_current_worker

from shardviz.errors import ShardvizError
from shardviz.forms.wording import error_words
from shardviz.lazy_names import LazyImports
from shardviz.models.answer import (
    ModelAnswer,
    ModelQuestion,
    answered,
    change,
    changed_split,
    model_memory,
    model_question,
    with_changes,
)
from shardviz.models.rule_files import named_rules
from shardviz.models.rule_set import ShardingRule
from shardviz.models.sources import read_model
from shardviz.models.splitting import FoldedParameter, SplitModel, alike_pattern, folded
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.spec_string import write_spec
from shardviz.planner.problem.training import parse_training
from shardviz.render.caption import mesh_text
from shardviz.render.lines import bar, columns
from shardviz.render.model_view import layer_groups, split_text
from shardviz.render.palette import Palette
from shardviz.targets.hardware import placed_for
from shardviz.tui.dialogs.dialog import CLOSE, HELP, Dialog
from shardviz.tui.registry import TABLES, bindings
from shardviz.tui.themes import palette_of
from shardviz.units import human_bytes, human_count, times

with LazyImports():
    from shardviz.render import model_view

OPEN, FOLDED = "▾", "▸"
BAR = 10
"""Columns of a bar."""
SIZE = 3
"""The place of a device's bytes among the cells."""
KEPT = ((0, 1, 2, SIZE, 4), (0, 2, SIZE, 4), (0, 2, SIZE))
"""The cells of a row that are shown, by the room that there is."""


@dataclass(frozen=True)
class ModelForm:
    """The texts of the fields, and the changes as `with_changes` takes them.

    Without a `machine` a v5e whose every mesh axis is a ring prices the step; with `is_training` it is a
    train step with Adam.
    """

    source: str = "llama-3-8b"
    rules: str = "fsdp+tensor"
    mesh: str = "data=4,tensor=2"
    machine: str = ""
    is_training: bool = False
    changes: tuple[ShardingRule, ...] = ()

    def with_field(self, name: str, text: str) -> ModelForm:
        """The form with another text of a field."""
        values: dict[str, Any] = {name: text}
        return replace(self, **values)

    def changed(self, pattern: str, spec: str) -> ModelForm:
        """The form with another split of a pattern; without a `spec` that of the rules."""
        kept = tuple(rule for rule in self.changes if rule.subject != pattern)
        return replace(self, changes=(changed_split(pattern, spec), *kept) if spec else kept)


_model = lru_cache(maxsize=4)(read_model)


def stated(form: ModelForm) -> ModelQuestion:
    """The question of a form, without its changes. Raises `QuestionError` for texts that state none."""
    mesh = parse_mesh(form.mesh)
    return model_question(
        _model(form.source),
        named_rules(form.rules, mesh),
        placed_for(form.machine or None, (), mesh),
        mesh,
        training=parse_training(form.is_training, "layer", "adam", mesh) if form.is_training else None,
    )


class ModelEditor:
    """The form on screen and those before it; `question` is that of the last form that states one."""

    def __init__(self) -> None:
        self._forms = [ModelForm()]
        self.base = self.question = stated(self.form)

    @property
    def form(self) -> ModelForm:
        return self._forms[-1]

    def edit(self, form: ModelForm) -> None:
        """Another form. Raises `QuestionError` for one that states no question; the last one then stays."""
        base = stated(form)
        question = with_changes(base, form.changes)
        if form != self.form:
            self._forms.append(form)
        self.base, self.question = base, question

    def undo(self) -> bool:
        """Go back to the form before; False where there is none."""
        if len(self._forms) == 1:
            return False
        self._forms.pop()
        self.edit(self.form)
        return True


@dataclass(frozen=True)
class TreeRow:
    """A row: a group of layers, whose `parameter` is None, or a parameter within one or beside them."""

    name: str
    group: str
    parameter: FoldedParameter | None
    count: int
    bytes_per_device: int
    is_changed: bool = False


def tree_rows(
    split: SplitModel, base: SplitModel, closed: Collection[str], found_by: str = ""
) -> list[TreeRow]:
    """All rows in order, without those within groups that are `closed`; `base` is without changes. Of those
    that are `found_by` words only the parameters whose names have them, wherever they are."""
    before = {parameter.parameter.name: parameter.spec for parameter in base.parameters}
    words = found_by.lower().split()
    rows = []
    for group, members in layer_groups(folded(split.parameters)):
        if group and not words:
            held = sum(parameter.bytes_per_device for _, parameter in members)
            rows.append(TreeRow(group, group, None, max(parameter.count for _, parameter in members), held))
        if group in closed and not words:
            continue
        for name, parameter in members:
            if not all(word in parameter.first.parameter.name.lower() for word in words):
                continue
            is_changed = before[parameter.first.parameter.name] != parameter.first.spec
            rows.append(
                TreeRow(name, group, parameter, parameter.count, parameter.bytes_per_device, is_changed)
            )
    return rows


def row_texts(rows: list[TreeRow], closed: Collection[str], width: int, palette: Palette) -> list[Text]:
    """A line for each row: name, shape, split, what a device holds of all layers, and that as a bar.

    Where there is no room, shapes go first, then the bars.
    """
    most = max((row.bytes_per_device for row in rows), default=0)
    cells = []
    for row in rows:
        drawn = Text(bar(row.bytes_per_device, most, BAR), palette.lanes["memory"])
        cells.append([*_cells(row, closed, palette), drawn])
    for kept in KEPT:
        chosen = [[row[index] for index in kept] for row in cells]
        lines = columns(chosen, width, right=frozenset({kept.index(SIZE)}))
        if lines is not None:
            return lines
    lines = [Text("  ").join(row) for row in chosen]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return lines


def _cells(row: TreeRow, closed: Collection[str], palette: Palette) -> list[Text]:
    held = Text(human_bytes(row.bytes_per_device))
    if row.parameter is None:
        mark = FOLDED if row.group in closed else OPEN
        return [Text(f"{mark} {row.name}", "bold"), Text(f"× {row.count}"), Text(), held]
    first = row.parameter.first
    split = split_text(first.spec, first.mesh, palette) if first.is_matched else Text("no rule", "italic")
    if row.is_changed:
        split.append(" *", "bold")
    name = row.name.removesuffix(".weight")
    return [Text(f"{'  ' * (1 + bool(row.group))}{name}"), Text(times(first.parameter.shape)), split, held]


COMMANDS = TABLES["MODEL"]
HINTS = {
    "source": "a name such as llama-3-8b or mixtral-8x7b, a config.json, a .safetensors file",
    "rules": "fsdp, tensor, fsdp+tensor, X=fsdp+Y=tensor, or a file",
    "mesh": "data=4,tensor=2",
    "machine": "v5p:2x2x2, h100:8, or a file; empty: a v5e whose every axis is a ring",
    "find": "words of a parameter's name; enter keeps them, esc shows all",
    "split": "_ leaves a dimension whole: tensor _, (data tensor) _, replicated",
}


class ModelDialog(Dialog):
    """Arrows walk the tree; below it are the memory of a device and the step, or what the changes move.

    It opens on the form where the `editor` was left.
    """

    title_text = "A whole model"
    commands = (HELP, *COMMANDS[:-1], CLOSE, COMMANDS[-1])
    BINDINGS = bindings(COMMANDS)
    DEFAULT_CSS = """
    ModelDialog #fields { height: auto; }
    ModelDialog OptionList, ModelDialog OptionList:focus {
        height: auto; max-height: 50%; min-height: 4; border: none; padding: 0;
        background: transparent; scrollbar-size: 1 1;
    }
    ModelDialog OptionList > .option-list--option-highlighted,
    ModelDialog OptionList:focus > .option-list--option-highlighted {
        background: $primary 25%; color: $foreground; text-style: bold;
    }
    ModelDialog #about { height: 1fr; scrollbar-size: 1 1; margin: 1 0 0 0; }
    ModelDialog.-low #about { margin: 0; }
    ModelDialog Input { height: 1; border: none; padding: 0; background: $panel; display: none; }
    ModelDialog #note { height: auto; color: $foreground-muted; display: none; }
    """

    def __init__(self, editor: ModelEditor) -> None:
        super().__init__()
        self.editor = editor
        self._shut_groups: set[str] = set()
        self._rows: list[TreeRow] = []
        self._answers: dict[ModelForm, ModelAnswer] = {}
        self._typed = ""
        self._found_by = ""

    def content(self) -> Sequence[Widget]:
        return (
            Static(id="fields"),
            OptionList(markup=False, compact=True),
            Input(compact=True, select_on_focus=True),
            Static(id="note", markup=False),
            VerticalScroll(Static(id="answer"), id="about"),
        )

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self.call_after_refresh(self._draw)

    def on_resize(self, _: events.Resize) -> None:
        self.call_after_refresh(self._draw)

    @property
    def _width(self) -> int:
        return max(self.query_one("#window", Vertical).content_size.width - 2, 36)

    def _draw(self) -> None:
        question, palette = self.editor.question, palette_of(self.app)
        model, form = question.model, self.editor.form
        line = Text.assemble((form.source, "bold"), f"  {human_count(model.elements)} parameters  ")
        line.append_text(mesh_text(question.mesh, palette)).append(f"  {form.rules}", "bold")
        line.append(f"  {question.placed.machine.name}")
        self.query_one("#fields", Static).update(line)
        self._draw_tree()
        self._draw_answer()

    def _draw_tree(self) -> None:
        choices = self.query_one(OptionList)
        index = choices.highlighted or 0
        self._rows = tree_rows(
            self.editor.question.split, self.editor.base.split, self._shut_groups, self._found_by
        )
        texts = row_texts(self._rows, self._shut_groups, self._width, palette_of(self.app))
        choices.clear_options()
        choices.add_options([Option(text) for text in texts])
        choices.highlighted = min(index, len(self._rows) - 1) if self._rows else None

    def _draw_answer(self) -> None:
        form = self.editor.form
        plain = replace(form, changes=())
        if form in self._answers and plain in self._answers:
            self._show_answers(self._answers[plain], self._answers[form])
            return
        question = self.editor.question
        lines = model_view.memory_lines(model_memory(question), question, self._width, palette_of(self.app))
        self._about([*lines, Text("planning a step …", "dim")])
        self._plan(form, plain)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _plan(self, form: ModelForm, plain: ModelForm) -> None:
        worker = get_current_worker()
        questions = {plain: self.editor.base, form: self.editor.question}
        try:
            found = {form: self._answers.get(form) or answered(asked) for form, asked in questions.items()}
        except ShardvizError as error:
            if not worker.is_cancelled:
                self.app.call_from_thread(self._about, [Text(error_words(error))])
            return

        def show() -> None:
            self._answers |= found
            if form == self.editor.form:
                self._show_answers(found[plain], found[form])

        if not worker.is_cancelled:
            self.app.call_from_thread(show)

    def _show_answers(self, before: ModelAnswer, after: ModelAnswer) -> None:
        palette, width, question = palette_of(self.app), self._width, after.question
        lines = []
        if self.editor.form.changes:
            lines += [*model_view.change_lines(change(before, after), width, palette), Text()]
        lines += model_view.memory_lines(after.memory, question, width, palette)
        if after.step is not None:
            lines += [Text(), *model_view.step_lines(after.step, question, width, palette)]
        self._about(lines)

    def _about(self, lines: Sequence[Text]) -> None:
        self.query_one("#answer", Static).update(Text("\n").join(lines))

    # Commands.

    @property
    def _row(self) -> TreeRow | None:
        index = self.query_one(OptionList).highlighted
        return None if index is None or index >= len(self._rows) else self._rows[index]

    def action_fold(self) -> None:
        row = self._row
        if row is not None and row.group:
            self._shut_groups ^= {row.group}
            self._draw_tree()
            names = [row.group for row in self._rows if row.parameter is None]
            if row.group in names:
                heading = next(index for index, each in enumerate(self._rows) if each.name == row.group)
                self.query_one(OptionList).highlighted = heading

    @on(OptionList.OptionSelected)
    def action_change(self) -> None:
        row = self._row
        if row is None or row.parameter is None:
            self.action_fold()
            return
        self._open("split", write_spec(row.parameter.first.spec))

    def action_restore(self) -> None:
        row = self._row
        if row is not None and row.parameter is not None:
            self._edit(self.editor.form.changed(_pattern(row), ""))

    def action_field(self, name: str) -> None:
        self._open(name, getattr(self.editor.form, name))

    def action_find(self) -> None:
        self._open("find", self._found_by)

    def _find(self, words: str) -> None:
        self._found_by = words
        self._draw_tree()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        if self._typed == "find" and self.query_one(Input).display:
            self._find(event.value)

    def action_training(self) -> None:
        form = self.editor.form
        self._edit(replace(form, is_training=not form.is_training))

    def action_undo(self) -> None:
        if self.editor.undo():
            self._draw()

    # Text that is typed.

    def _open(self, field: str, text: str) -> None:
        self._typed = field
        entry = self.query_one(Input)
        entry.value, entry.display = text, True
        self._note(HINTS[field])
        entry.focus()

    def _note(self, words: str) -> None:
        note = self.query_one("#note", Static)
        note.update(words)
        note.display = bool(words)

    def _leave(self) -> None:
        self.query_one(Input).display = False
        self._note("")
        self.query_one(OptionList).focus()

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        form, text, row = self.editor.form, event.value.strip(), self._row
        if self._typed == "find":
            self._leave()
            return
        if self._typed == "split":
            if row is not None and row.parameter is not None:
                form = form.changed(_pattern(row), text)
        else:
            form = form.with_field(self._typed, text)
        if self._edit(form):
            self._leave()

    def _edit(self, form: ModelForm) -> bool:
        """Take another form where it states a question; else say why not."""
        try:
            self.editor.edit(form)
        except ShardvizError as error:
            # The row says which parameter it is about, and its pattern nobody has typed.
            cause = error.__cause__ if self._typed == "split" else None
            self._note(error_words(cause if isinstance(cause, ShardvizError) else error))
            return False
        self._draw()
        return True

    def action_close(self) -> None:
        """Out of the text that is typed, then out of the screen."""
        if self.query_one(Input).display:
            self._leave()
            if self._typed == "find":
                self._find("")
        else:
            self.dismiss()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:  # noqa: ARG002
        """While text is typed, keys are text."""
        is_typing = isinstance(self.focused, Input)
        return not is_typing or action not in {command.action for command in COMMANDS}


def _pattern(row: TreeRow) -> str:
    assert row.parameter is not None
    return alike_pattern(row.parameter.first.parameter.name)
