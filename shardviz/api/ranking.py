"""`shardviz.rank`: every sharding of an einsum that is worth considering, the cheapest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.api.explaining import problem_of
from shardviz.api.meshes import MeshLike
from shardviz.api.shown import Shown
from shardviz.api.specs import SpecsLike

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.planner import Candidate, Problem
    from shardviz.render.palette import Palette

SHOWN = 20
"""Candidates that are shown; `Ranking.candidates` has all."""


@dataclass(frozen=True, repr=False)
class Ranking(Shown):
    """What `shardviz explain --specs` shows: the candidates, each with its plan, by bytes sent."""

    problem: Problem
    candidates: tuple[Candidate, ...]

    def lines(self, width: int, palette: Palette) -> list[Text]:
        from shardviz.render.plans.ranking_view import ranking_view

        return ranking_view(self.problem, self.candidates, width, palette, SHOWN)

    def document(self) -> dict[str, Any]:
        from shardviz.documents.plans import ranking_document

        return ranking_document(self.candidates)


def rank(
    einsum: str,
    *,
    mesh: MeshLike | None = None,
    specs: SpecsLike = None,
    sizes: Mapping[str, int] | str | None = None,
    dtype: str | None = None,
) -> Ranking:
    """Every sharding of an einsum's operands that is worth considering, by the planner alone.

    The parameters are those of `explain`; `specs` constrain the ranking: an operand's is open where it is
    ``?`` or None, as in ``X_,?->X_``, and without any all are. Raises `QuestionError` for a question that
    cannot be read, and where there are too many ways.
    """
    from shardviz.planner import search

    problem = problem_of(einsum, mesh, specs, sizes, dtype, ranked=True)
    return Ranking(problem, search(problem))
