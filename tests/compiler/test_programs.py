"""Programs of several statements, parts of mesh axes and layers, as the compilers answer them."""

from __future__ import annotations

import pytest

from shardviz.compiler import TARGETS
from shardviz.compiler.reading import with_parts_of_axes
from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Problem, Statement
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

SIZES = {"b": 64, "d": 128, "f": 256}
MESH = Mesh(("X", "Y"), (4, 2))


def array(name, dims, *spec):
    shape = tuple(SIZES[dim] for dim in dims)
    return ShardedArray(name, tuple(dims), shape, "bf16", PartitionSpec(spec) if spec else None)


def statement(text, *operands, result):
    left, right = text.split("->")
    einsum = Einsum(tuple(map(tuple, left.split(","))), tuple(right))
    return Statement(einsum, operands, result)


def gated(first=("X:(1)2",), layers=1):
    """Two products of the same operand, multiplied by each other, and brought back."""
    x = array("X", "bd", ("X",), ())
    h, g, s = (array(name, "bf") for name in "HGS")
    parts = (
        statement("bd,df->bf", x, array("W1", "df", first, ("Y",)), result=h),
        statement("bd,df->bf", x, array("W2", "df", (), ("Y",)), result=g),
        statement("bf,bf->bf", h, g, result=s),
        statement("bf,fd->bd", s, array("W3", "fd", ("Y",), ()), result=array("Y", "bd", ("X",), ())),
    )
    return Problem(MESH, parts, layers=layers)


def statements_of(collectives):
    """Operation, axes, how often it runs, and the statement in the name that the program gives it."""
    return [
        (
            each.op,
            each.axes,
            each.count,
            next((name for name in each.source.split("/") if name in "HGSY"), ""),
        )
        for each in collectives
    ]


@pytest.mark.parametrize("layers", [1, 3])
def test_cpu_gathers_a_part_of_an_axis_for_one_statement_of_a_program(worker, layers):
    answer = worker.ask(gated(layers=layers), TARGETS["cpu"])
    assert (answer.status, answer.error) == ("ok", "")
    assert statements_of(answer.partitioned) == [
        ("all-gather", ("X:(1)2",), layers, "H"),
        ("all-reduce", ("Y",), layers, "Y"),
    ]
    assert [each.bytes for each in answer.partitioned] == [128 * 128 * 2, 16 * 128 * 2]
    assert answer.result_spec == PartitionSpec((("X",), ()))


def test_shardy_names_parts_of_axes_and_statements(worker):
    answer = worker.ask(gated(), TARGETS["shardy"])
    assert (answer.status, answer.error) == ("ok", "")
    assert '@mesh = <["X"=4, "Y"=2]>' in answer.text
    assert '"X":(1)2' in answer.text
    assert "loc(" not in answer.text
    sums = [each for each in answer.collectives if each.op in ("reduce-scatter", "all-reduce")]
    assert statements_of(sums) == [("reduce-scatter", ("X:(1)2",), 1, "H"), ("all-reduce", ("Y",), 1, "Y")]
    assert answer.result_spec == PartitionSpec((("X",), ()))


def test_whole_axes_leave_the_text_as_it_is(worker):
    answer = worker.ask(gated(first=()), TARGETS["shardy"])
    assert with_parts_of_axes(answer.text, MESH) == answer.text
    assert statements_of(answer.collectives) == [("all-reduce", ("Y",), 1, "Y")]


def test_results_in_between_are_returned_as_they_are_asked_for(worker):
    problem = gated(first=())
    *_, last = problem.parts
    kept = array("H", "bf", (), ("Y",))
    parts = (statement("bd,df->bf", *problem.parts[0].operands, result=kept), *problem.parts[1:])
    answer = worker.ask(Problem(MESH, parts, returned=("H",)), TARGETS["cpu"])
    assert answer.status == "ok", answer.error
    assert ("all-gather", ("X",), 1) in [each[:3] for each in statements_of(answer.collectives)]
    assert answer.result_spec == last.result.spec


def test_a_program_that_cannot_follow_itself_is_refused(worker):
    problem = gated()
    answer = worker.ask(Problem(MESH, problem.parts[:1], layers=2), TARGETS["cpu"])
    assert answer.status == "error"
    assert "H cannot be the next layer's X" in answer.error
