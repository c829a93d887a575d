"""Whole models as JSON: parameters with their shardings, the memory of a device, and the plan of a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, Document, DocumentKind, late
from shardviz.documents.programs import target_answer

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.models.answer import ModelAnswer, ModelChange
    from shardviz.reports.target_result import TargetResult

MODEL = DocumentKind("models", "model")


def model_document(
    answer: ModelAnswer,
    answers: Iterable[tuple[TargetResult, tuple[Difference, ...]]] = (),
    moved: ModelChange | None = None,
) -> Document:
    """The model with its memory, its step and what compilers make of a layer."""
    told = [*answers]
    return MODEL.document(
        answer.question,
        device_memory=answer.memory,
        step=answer.step,
        change=moved,
        targets=[target_answer(compiled, answer.question.mesh) for compiled, _ in told],
        differences=[difference for _, differences in told for difference in differences],
    )


_folded = late("shardviz.models.splitting", "folded")
SOURCES = {
    "optimizer": lambda question: str(question.training.optimizer or "") if question.training else "",
    "parameters": lambda question: _folded(question.split.parameters),
    "training_over_bytes": lambda memory: memory.over(memory.training),
    "serving_over_bytes": lambda memory: memory.over(memory.serving),
    "specs": lambda part: {argument.name: argument.decided_spec for argument in part.part.problem.arguments},
    "collectives": lambda part: (
        Beside(priced.step, priced, phase=phase) for phase, priced in part.collectives()
    ),
    "name": lambda pair: pair[1].name,
    "count": lambda pair: pair[1].count,
    "before": lambda pair: pair[0].first.spec,
    "after": lambda pair: pair[1].first.spec,
}
