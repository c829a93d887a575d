"""A compilation step by step as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardviz import schemas
from shardviz.render.documents import mesh_document
from shardviz.render.programs.target_document import Document, collective_document, target_document

if TYPE_CHECKING:
    from shardviz.compiler import Traced
    from shardviz.hlo.mlir.tensor_splits import Axes, TensorSplit
    from shardviz.hlo.passes.stage import Stage
    from shardviz.planner.problem import Problem


def passes_document(traced: Traced, problem: Problem, diffs: frozenset[int] = frozenset()) -> Document:
    """`stages`, numbered from 1, and the target's `answer`; those in `diffs` have a `diff`."""
    return schemas.document(
        "passes",
        {
            "einsum": "; ".join(str(part.einsum) for part in problem.parts),
            "mesh": mesh_document(problem.mesh),
            "axis_types": problem.axis_types,
            "answer": target_document(traced.compiled, problem.mesh),
            "stages": [
                _stage(stage, number, number in diffs) for number, stage in enumerate(traced.stages, 1)
            ],
        },
    )


def _stage(stage: Stage, number: int, with_diff: bool) -> Document:
    document: dict[str, Any] = {
        "stage": number,
        "kind": stage.kind,
        "title": stage.title,
        "pass": stage.pass_name,
        "changes": list(stage.changes),
        "splits": [_split(split) for split in stage.splits],
        "before": [collective_document(each) for each in stage.before],
        "after": [collective_document(each) for each in stage.after],
    }
    if with_diff:
        document["diff"] = list(stage.diff())
    return document


def _split(split: TensorSplit) -> Document:
    return {
        "name": split.name,
        "op": split.op,
        "shape": list(split.shape),
        "dtype": split.dtype,
        "before": _axes(split.before),
        "spec": _axes(split.dims),
        "unreduced": list(split.unreduced),
    }


def _axes(dims: Axes | None) -> list[list[str]] | None:
    return None if dims is None else [list(axes) for axes in dims]
