"""Smaller arrays in place of large ones: the same rounds, and numbers."""

from __future__ import annotations

import pytest

from shardviz.hardware.links import links_from_text
from shardviz.notation import parse_mesh
from shardviz.planner import plan
from shardviz.planner.question import problem_from_text
from shardviz.stepping.plan_step import question_of_step
from shardviz.stepping.stand_in import stand_in
from shardviz.stepping.walk import Walk

PROBLEMS = [
    ("bd,df->bf", "X=2,Y=4", "XY,Y_->X_"),
    ("bd,df->bf", "X=2,Y=4", "XY,Y_->XY"),
    ("bd,df->bf", "X=2,Y=4", "XY,_Y->X_"),
    ("bd,df->bf", "X=2,Y=3", "X_,Y_->_X"),
    ("bsd,df->bsf", "X=2,Y=2,Z=2", "X_Y,YZ->X_Z"),
]


def collectives(einsum, mesh, specs, sizes=""):
    made = plan(problem_from_text(einsum, mesh=parse_mesh(mesh), specs=specs, sizes=sizes))
    numbers = [place for place, step in enumerate(made.steps, 1) if step.op not in ("einsum", "slice")]
    return [question_of_step(made, number) for number in numbers]


@pytest.mark.parametrize(("einsum", "mesh", "specs"), PROBLEMS)
def test_the_rounds_stay_and_no_chunk_is_empty(einsum, mesh, specs):
    dims = {letter for letter in einsum if letter.isalpha()}
    sizes = ",".join(f"{dim}=6144" for dim in sorted(dims))
    questions = collectives(einsum, mesh, specs, sizes)
    assert questions
    for question in questions:
        small = stand_in(question)
        assert small is not None
        assert small.schedule is question.schedule
        assert small.layout.spec == question.layout.spec
        walk = Walk(small, links_from_text(small.schedule.pattern.dims, None, None, None))
        assert walk.frames.after is not None
        assert walk.chunk_bytes == 2


def test_who_has_numbers_needs_no_other():
    (question,) = collectives("bd,df->bf", "X=2,Y=4", "XY,Y_->X_", "b=8,d=8,f=8")
    assert question.shards is not None
    assert stand_in(question) is None


def test_many_devices_have_none():
    (question,) = collectives("bd,df->bf", "X=32,Y=32", "XY,Y_->X_", "b=4096,d=4096,f=4096")
    assert stand_in(question) is None
