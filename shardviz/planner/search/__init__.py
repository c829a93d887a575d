"""The best meshes and shardings of a program on a machine.

Loads numpy. The space and what is left out of it: docs/search.md.
"""

from shardviz.planner.search.rules import DEFAULT_AXES, SearchAxis, parse_axes
from shardviz.planner.search.mesh_search import OVERLAPS
from shardviz.planner.search.mesh_ranking import (
    InfeasibleMesh,
    MeshRanking,
    MeshSharding,
    best_meshes,
    problem_of,
    search_meshes,
    shown_mesh,
    with_smallest_machine,
)
from shardviz.planner.search.question import SearchQuestion, question_from_text

__all__ = [
    "DEFAULT_AXES",
    "OVERLAPS",
    "InfeasibleMesh",
    "MeshRanking",
    "MeshSharding",
    "SearchAxis",
    "SearchQuestion",
    "best_meshes",
    "parse_axes",
    "problem_of",
    "question_from_text",
    "search_meshes",
    "shown_mesh",
    "with_smallest_machine",
]
