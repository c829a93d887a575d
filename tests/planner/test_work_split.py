"""The four cases of the textbook, named right."""

from __future__ import annotations

import pytest

from shardviz.planner.planner import Planner, plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y"), (2, 4))


@pytest.mark.parametrize(
    ("text", "specs", "case"),
    [
        # The book's own examples of the four cases, in its order.
        ("ij,jk->ik", "X_,_Y->XY", "case 1"),
        ("ij,jk->ik", "_X,__->__", "case 2 over X"),
        ("ij,jk->ik", "_X,X_->__", "case 3 over X"),
        ("ij,jk->ik", "X_,_X", "case 4 over X"),
        ("ij,jk->ik", "__,__", "case 1"),
        ("ij,jk->ik", "XY,_Y->XY", "case 2 over Y"),
        ("ij,jk->ik", "XY,Y_->X_", "case 3 over Y"),
        ("ij,jk->ik", "_X,XY->_Y", "case 3 over X"),
        ("ij,jk->ik", "_(XY),(XY)_->__", "case 3 over X, Y"),
        ("ij,jk->ik", "_Y,X_->__", "case 2 over X, Y"),
        ("ij,jk->ik", "XY,Y_->__", "case 3 over Y"),
        ("ij,jk->ik", "XY,_X->__", "case 2 over Y, case 4 over X"),
        ("ij,jk->ik", "X_,X_->__", "case 2 over X"),
        ("bij,bjk->bik", "X__,X__->X__", "case 1"),
        ("bij,bjk->bik", "X__,_X_->X__", "case 2 over X"),
        ("ij->i", "_X->_", "case 3 over X"),
        ("ij->i", "X_->X", "case 1"),
        ("ij,k->jk", "X_,_->__", "case 3 over X"),
    ],
)
def test_case(text, specs, case):
    # What is summed before anything else is a statement of its own, and not the einsum's case.
    planner = Planner(MESH, objective="bytes", anywhere=False)
    found = planner.plan(problem_from_text(text, mesh=MESH, specs=specs))
    assert case in found.cases


def test_each_part_of_a_chain_has_its_case():
    problem = problem_from_text("bx,xy->by;by,yz->bz", mesh=MESH, specs="__,_Y;,Y_")
    assert plan(problem).cases == ("case 1", "case 3 over Y")
