"""`shardviz.model`: every parameter of a model, split by rules, and what a step of it costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from shardviz.api.arguments import MachineLike, MeshLike, as_machine, as_mesh
from shardviz.api.pytrees import pytree_model
from shardviz.api.shown import Shown
from shardviz.errors import QuestionError, quote
from shardviz.models.answer import ModelAnswer, answered
from shardviz.models.memory import ModelMemory
from shardviz.models.model import Model
from shardviz.models.question import ModelQuestion, model_question, named_rules
from shardviz.models.rules.rule_files import function_rules, rules_of_pairs, spec_of_jax
from shardviz.models.rules.rule_set import RuleSet
from shardviz.models.sources.reading import read_model
from shardviz.models.splitting import SplitParameter
from shardviz.models.step import ModelStep

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.render.palette import Palette
    from shardviz.sharding import Mesh

ModelLike: TypeAlias = "str | PathLike[str] | Model | Any"
"""``"llama-3-8b"``, the path of a file or folder, a pytree whose leaves have a shape and a dtype."""
RulesLike: TypeAlias = (
    "str | PathLike[str] | Mapping[str, Any] | Sequence[tuple[str, Any]] "
    "| Callable[[str, tuple[int, ...]], Any] | None"
)
"""``"fsdp+tensor"``, the path of a file, pairs of patterns and specs or of logical axes and mesh axes, a
function of a name and a shape; None for what the parameters say themselves."""


@dataclass(frozen=True, repr=False)
class ModelReport(Shown):
    """The answer of `shardviz model`."""

    answer: ModelAnswer

    @property
    def question(self) -> ModelQuestion:
        """The model as it is split, the mesh, the tokens and the machine."""
        return self.answer.question

    @property
    def memory(self) -> ModelMemory:
        """Bytes of a device."""
        return self.answer.memory

    @property
    def step(self) -> ModelStep | None:
        """The plan of a step; None where nothing says how the parameters are used."""
        return self.answer.step

    @property
    def parameters(self) -> tuple[SplitParameter, ...]:
        """Every parameter with its spec."""
        return self.question.split.parameters

    @property
    def bytes_per_device(self) -> int:
        """Bytes of a device for all parameters."""
        return self.memory.parameters

    def lines(self, width: int, palette: Palette) -> list[Text]:
        from shardviz.render.models.page import answer_view, parameters_view

        return [
            *parameters_view(self.question, width, palette),
            *answer_view(self.answer, width, palette),
        ]

    def document(self) -> dict[str, Any]:
        from shardviz.documents.models import model_document

        return model_document(self.answer)


def model(
    source: ModelLike,
    *,
    rules: RulesLike = None,
    mesh: MeshLike,
    machine: MachineLike = None,
    dtype: str = "",
    batch: int | None = None,
    sequence: int | None = None,
    inputs: str = "",
    backward: bool = True,
    remat: Literal["none", "layer", "dots"] = "layer",
    optimizer: str = "adam",
) -> ModelReport:
    """Split every parameter of a model by rules; its memory on a device, and the collectives of a step.

    `rules` are names of sets (``"fsdp+tensor"``), the path of a file, pairs of a regular expression and a
    spec or of a logical axis and mesh axes, or a function of a name and a shape; without any the parameters
    are split as they say themselves: by their shardings, or by annotations that name mesh axes. A step has
    `batch` sequences of `sequence` tokens, split by `inputs` (``"data _"``); without `backward` it is the
    forward pass alone.

    Raises `QuestionError` for a model, rules or a mesh that cannot be read or do not fit one another.
    """
    question = question_of(
        source, rules, mesh, machine, dtype, batch, sequence, inputs, backward, remat, optimizer
    )
    return ModelReport(answered(question))


def question_of(
    source: ModelLike,
    rules: RulesLike,
    mesh: MeshLike,
    machine: MachineLike,
    dtype: str,
    batch: int | None,
    sequence: int | None,
    inputs: str,
    backward: bool,
    remat: str,
    optimizer: str,
) -> ModelQuestion:
    """The question of a call of `model`."""
    from shardviz.planner.problem.training import parse_training
    from shardviz.targets.machines import placed_for

    devices = as_mesh(mesh)
    return model_question(
        as_model(source),
        as_rules(rules, devices),
        placed_for(as_machine(machine), (), devices),
        devices,
        training=parse_training(backward, remat, optimizer, devices) if backward else None,
        dtype=dtype,
        batch=batch,
        sequence=sequence,
        inputs=inputs,
    )


def as_model(source: ModelLike) -> Model:
    """The model. Raises `QuestionError` for what is not one."""
    if isinstance(source, Model):
        return source
    return read_model(fspath(source)) if isinstance(source, str | PathLike) else pytree_model(source)


def as_rules(rules: RulesLike, mesh: Mesh) -> RuleSet:
    """The rules. Raises `QuestionError` for what are not any."""
    if rules is None:
        return RuleSet("as annotated", "annotations")
    if isinstance(rules, RuleSet):
        return rules
    if isinstance(rules, str | PathLike):
        return named_rules(fspath(rules), mesh)
    if callable(rules):
        return function_rules(rules, getattr(rules, "__name__", "function"))
    pairs = rules.items() if isinstance(rules, Mapping) else rules
    try:
        found = [(subject, _value(value)) for subject, value in pairs]
    except (TypeError, ValueError):
        raise QuestionError(
            f"{quote(repr(rules), 60)} are not rules", "give [('q_proj', P('tensor', None)), …] or a name"
        ) from None
    return rules_of_pairs([(str(subject), value, 0) for subject, value in found], "rules")


def _value(value: Any) -> Any:
    """A value of a rule, a spec of JAX's as ours."""
    is_plain = value is None or isinstance(value, str | list) or type(value) is tuple
    return value if is_plain else spec_of_jax(value, "rules")
