"""One subject of each kind that has a picture, with words that no format may take for its own."""

from __future__ import annotations

import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.exports import Subject
from shardviz.sharding import Layout, PartitionSpec, ShardedArray

HOSTILE = "<script>alert(1)</script> & \"quotes\" '{x}' ]]> --> \x1b[31m\x00"
"""A title that is markup, a format string, the end of other markup, and no text at all."""
KINDS = ("problem", "plan", "layout", "run")


@pytest.fixture(scope="session", params=KINDS)
def subject(request, run_of) -> Subject:
    return subjects(run_of)[request.param]


@pytest.fixture(scope="session")
def ring(run_of) -> Subject:
    """All-reduce by ring: three rounds that add up, three that gather."""
    return Subject(run_of("psum", "i=4", range(16)), "psum over i")


def subjects(run_of) -> dict[str, Subject]:
    mesh = parse_mesh("X=2,Y=4")
    problem = problem_from_text("bd,df->bf", specs="XY,_Y", mesh=mesh)
    array = ShardedArray("<b>&", ("d0", "]]>"), (8, 8), "f32", PartitionSpec((("X",), ("Y",))))
    shown = (problem, plan(problem), Layout(array, mesh), run_of("all_gather", "i=4", [3, 9, 5, 2]))
    placed = place_mesh(assumed_machine(), mesh)
    return {
        kind: Subject(each, HOSTILE, HOSTILE, placed=placed) for kind, each in zip(KINDS, shown, strict=True)
    }
