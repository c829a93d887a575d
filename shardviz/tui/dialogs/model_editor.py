"""The texts that a person edits of a model: its fields, and splits that are changed; with undo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from shardviz.models.answer import (
    ModelQuestion,
    changed_split,
    model_question,
    with_changes,
)
from shardviz.models.model import Model
from shardviz.models.rule_files import named_rules
from shardviz.models.rule_set import ShardingRule
from shardviz.models.sources import read_model
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.training import parse_training
from shardviz.targets.hardware import placed_for


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
        kept = tuple(each for each in self.changes if each.subject != pattern)
        return replace(self, changes=(changed_split(pattern, spec), *kept) if spec else kept)


_model = lru_cache(maxsize=4)(read_model)


def stated(form: ModelForm) -> ModelQuestion:
    """The question of a form, without its changes. Raises `QuestionError` for texts that state none."""
    mesh = parse_mesh(form.mesh)
    model: Model = _model(form.source)
    return model_question(
        model,
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
