"""The best meshes and shardings of a program on a machine, as a question in the words of the options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from shardviz.planner.problem.training import parse_training
from shardviz.planner.search.mesh_ranking import MeshRanking, best_meshes, with_smallest_machine
from shardviz.planner.search.question import SearchQuestion, question_from_text
from shardviz.planner.search.rules import parse_axes
from shardviz.sharding import Mesh

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine


def search_question(
    program: str,
    machine: Machine,
    axes: str,
    *,
    sizes: str = "",
    dtype: str = "bf16",
    keep: str = "",
    backward: bool = False,
    remat: str = "none",
    optimizer: str = "none",
    overlap: Literal["parameters", "none", "all"] = "parameters",
    microbatches: int = 8,
) -> SearchQuestion:
    """The question, checked. Raises `QuestionError` for words that state none."""
    named = parse_axes(axes)
    mesh = Mesh(tuple(axis.name for axis in named), (1,) * len(named))
    training = parse_training(backward, remat, optimizer, mesh)
    return question_from_text(
        program,
        machine,
        named,
        sizes=sizes,
        dtype=dtype,
        keep=keep,
        training=training,
        overlap=overlap,
        microbatches=microbatches,
    )


def searched(question: SearchQuestion) -> MeshRanking:
    """The answer; where no mesh fits the machine, with the smallest machine on which one does."""
    return with_smallest_machine(best_meshes(question))
