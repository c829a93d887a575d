"""`shardviz.search`: the best meshes and shardings of a program on a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from shardviz.api.arguments import MachineLike, as_machine
from shardviz.api.shown import Shown
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.planner.search import MeshRanking, MeshSharding
    from shardviz.render.palette import Palette

SHOWN = 10
"""Meshes that are shown; `SearchReport.found` has all."""


@dataclass(frozen=True, repr=False)
class SearchReport(Shown):
    """The answer of `shardviz search`: `ranking` has every mesh with its best sharding, the fastest first."""

    ranking: MeshRanking

    @property
    def found(self) -> tuple[MeshSharding, ...]:
        return self.ranking.found

    def lines(self, width: int, palette: Palette) -> list[Text]:
        from shardviz.render.search_view import search_view

        return search_view(self.ranking, width, palette, SHOWN)

    def document(self) -> dict[str, Any]:
        from shardviz.documents.searches import search_document

        return search_document(self.ranking)


def search(
    program: str,
    *,
    machine: MachineLike,
    axes: str = "data,fsdp,tensor",
    sizes: Mapping[str, int] | str | None = None,
    dtype: str = "bf16",
    keep: str = "",
    backward: bool = False,
    remat: Literal["none", "layer", "dots"] = "none",
    optimizer: str | None = None,
    overlap: Literal["parameters", "none", "all"] = "parameters",
    microbatches: int = 8,
) -> SearchReport:
    """The mesh and the shardings that run a program fastest on a machine.

    `program` is an einsum, a chain of them, or statements, and ends with ``x 32`` where it is a layer that
    runs so often. `axes` are those of the meshes, with their kinds or sizes where needed: ``data,X=fsdp``,
    ``tensor=8``. `keep` are shardings that may not change: ``W1=_ tensor``. With `backward` it is a train
    step, and `remat` and `optimizer` say of what kind. Raises `QuestionError` for a question that cannot be
    read.
    """
    from shardviz.planner.search import best_meshes, parse_axes, question_from_text, with_smallest_machine
    from shardviz.planner.training import parse_training
    from shardviz.sharding import Mesh

    named = as_machine(machine)
    if named is None:
        raise QuestionError("a search needs a machine", "give machine='v5p:4x4x8'")
    parsed = parse_axes(axes)
    mesh = Mesh(tuple(axis.name for axis in parsed), (1,) * len(parsed))
    if sizes is not None and not isinstance(sizes, str):
        sizes = ",".join(f"{dim}={size}" for dim, size in sizes.items())
    question = question_from_text(
        program,
        named,
        parsed,
        sizes=sizes or "",
        dtype=dtype,
        keep=keep,
        training=parse_training(backward, remat, optimizer or "none", mesh),
        overlap=overlap,
        microbatches=microbatches,
    )
    return SearchReport(with_smallest_machine(best_meshes(question)))
