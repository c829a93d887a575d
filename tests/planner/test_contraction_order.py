"""The orders of contraction: sums first, products in pairs; the plan takes the cheapest."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.hardware.machine_file import named_machine
from shardviz.notation.einsum import Einsum
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.search.mesh_ranking import best_meshes
from shardviz.planner.search.question import question_from_text
from shardviz.planner.search.rules import parse_axes
from shardviz.planner.statements.contraction_order import contraction_orders, has_all_orders
from shardviz.sharding import PartitionSpec, ShardedArray
from tests.planner.executor import prove, reference, run, values_for


def statement(text, sizes):
    operands, result = text.split("->")
    einsum = Einsum(tuple(map(tuple, operands.split(","))), tuple(result))

    def array(name, dims):
        shape = tuple(sizes[dim] for dim in dims)
        return ShardedArray(name, tuple(dims), shape, "bf16", PartitionSpec.replicated(len(dims)))

    arrays = tuple(array("ABCDEF"[n], dims) for n, dims in enumerate(einsum.operands))
    return Statement(einsum, arrays, array("Out", einsum.result).with_spec(None))


@pytest.mark.parametrize(
    ("text", "orders"),
    [
        ("ab,bc->ac", 1),
        ("abe,bc->ac", 2),
        ("abe,bcg->ac", 4),
        ("abe->a", 3),
        ("abeg->a", 13),
        ("abeg,bc->ac", 6),
        ("aab->a", 1),
        ("ab,bc,cd->ad", 4),
        ("ab,bc,cd,de->ae", 19),
    ],
)
def test_the_number_of_orders(text, orders):
    sizes = dict.fromkeys("abcdeg", 8)
    found = contraction_orders(statement(text, sizes))
    assert len(found) == orders
    assert all(order[-1].result.name == "Out" for order in found)


def test_an_operand_may_be_summed_in_turns():
    orders = contraction_orders(statement("abeg,bc->ac", dict.fromkeys("abceg", 8)))
    texts = [[str(part.einsum) for part in order] for order in orders]
    assert ["abeg->abg", "abg->ab", "ab,bc->ac"] in texts
    for order in orders:
        assert all(has_all_orders(part) for part in order)
        names = [array.name for part in order for array in part.operands]
        assert all(part.result.name in names for part in order[:-1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ab,bc->ac", True), ("abe,bc->ac", True), ("aab,ac->c", False), ("ab,bc,cd,de,ef,fg->ag", False)],
)
def test_whether_all_orders_are_looked_at(text, expected):
    assert has_all_orders(statement(text, dict.fromkeys("abcdefg", 8))) == expected


def test_a_chain_of_three_matrices_is_multiplied_from_its_small_end():
    sizes = {"a": 4096, "b": 4096, "c": 4096, "d": 16}
    problem = Problem(parse_mesh("X=2"), (statement("ab,bc,cd->ad", sizes),))
    found = plan(problem)
    assert [str(part.einsum) for part in found.problem.parts] == ["bc,cd->bd", "ab,bd->ad"]
    other = Problem(parse_mesh("X=2"), (statement("ab,bc,cd->ad", sizes | {"d": 4096, "a": 16}),))
    assert [str(part.einsum) for part in plan(other).problem.parts] == ["ab,bc->ac", "ac,cd->ad"]


@pytest.mark.parametrize(
    ("text", "sizes", "specs"),
    [
        ("Y = silu(X[a,b]), W[b,c], V[c,d] -> ad", "a=256,b=32,c=256,d=32", None),
        ("Y_1 = silu(X[a,b]); Y = Y_1, W[b,c], V[c,d] -> ad", "a=256,b=32,c=256,d=32", None),
        ("X_sum = silu(A[a,b]); Y = X[b,c,e], X_sum -> ac", "a=16,b=16,c=16,e=512", "X=X__"),
        ("Y=X[a]*2,bd,bd,df->bf", "a=64,b=64,d=256,f=256", None),
    ],
)
def test_what_is_made_in_between_has_a_name_of_its_own(text, sizes, specs):
    """The plan was of one array with two contents, where a statement had made a `Y_1` already."""
    problem = problem_from_text(text, mesh=parse_mesh("X=2"), sizes=sizes, specs=specs)
    found = plan(problem)
    made = [part.result.name for part in found.problem.parts]
    assert len({*made}) == len(made) > len(problem.parts)
    prove(found, values_for(problem))
    whole = reference(problem, values_for(problem))["Y"]
    assert np.allclose(run(found, values_for(problem)), whole)
    axes = parse_axes("fsdp,tensor")
    assert best_meshes(question_from_text(text, named_machine("v5e:2x4"), axes, sizes=sizes)).found


def test_a_sum_over_a_dimension_of_one_operand_comes_before_anything_moves():
    mesh = parse_mesh("X=2,Y=4")
    problem = problem_from_text("bdx,df->bf", mesh=mesh, specs="X_Y,__", sizes="b=1024,d=1024,f=1024,x=128")
    found = plan(problem)
    assert (found.steps[0].op, found.steps[0].array) == ("einsum", "A_sum")
    assert not any(step.array == "A" for step in found.steps)
    assert dataclasses.replace(found.problem, parts=problem.parts) == problem


def test_the_alternatives_of_a_plan_in_another_order_are_those_of_what_was_asked():
    mesh = parse_mesh("X=3,Y=3,Z=2")
    problem = problem_from_text("d,bc->", mesh=mesh, specs="(ZY),(XY)_->", sizes="d=384,b=288,c=1536")
    placed = place_mesh(assumed_machine(), mesh)
    for objective in ("time", "bytes"):
        found = plan(problem, placed, objective)
        assert len(found.problem.parts) > 1
        assert found.question == problem
        named = {each.name: each.cost.plan for each in price(found, placed).alternatives}
        other = "fastest" if objective == "bytes" else "fewest bytes"
        assert named[other] == plan(problem, placed, "time" if objective == "bytes" else "bytes")
