"""The answer of a search as JSON: meshes with the shardings of all arrays, by the seconds of a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, Document, DocumentKind

if TYPE_CHECKING:
    from shardviz.compare.compiled_sharding import CompiledSharding
    from shardviz.planner.search.mesh_ranking import MeshRanking

SEARCH = DocumentKind("searches", "search")


def search_document(answer: MeshRanking, compiled: Sequence[CompiledSharding] | None = None) -> Document:
    """All meshes with their figures, and those that were `compiled`."""
    rows = None
    if compiled is not None:
        rows = [Beside(sharding, row=answer.found.index(sharding.found) + 1) for sharding in compiled]
    return SEARCH.document(answer, compiled=rows)


def _found(answer: MeshRanking) -> Iterator[Beside]:
    from shardviz.planner.search.mesh_ranking import with_order

    for sharding in answer.found:
        yield Beside(sharding, problem_mesh=with_order(answer.question.machine, sharding.mesh))


SOURCES = {"found": _found, "is_train_step": lambda answer: answer.question.training is not None}
