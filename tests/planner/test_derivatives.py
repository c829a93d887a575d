"""The table of derivatives: complete, and of functions that there are."""

from __future__ import annotations

import pytest

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement
from shardviz.planner.problem.functions import FUNCTIONS, PROGRAM_FUNCTIONS
from shardviz.planner.training import DERIVATIVES, GRADIENT, derivatives
from shardviz.sharding import ShardedArray


def statement(function: str) -> Statement:
    array = ShardedArray("X", ("b", "d"), (2, 3), "f32", None)
    operands = (array,) * (FUNCTIONS[function].operands or 2)
    return Statement(Einsum((("b", "d"),) * len(operands), ("b", "d")), operands, array, function, number=2.0)


def test_every_function_that_a_program_may_take_has_derivatives():
    assert set(DERIVATIVES) == set(PROGRAM_FUNCTIONS)


@pytest.mark.parametrize("name", PROGRAM_FUNCTIONS)
def test_a_derivative_is_linear_in_the_gradient(name):
    found = derivatives(statement(name))
    assert len(found) == (PROGRAM_FUNCTIONS[name].operands or 2)
    for each in found:
        if each is not None:
            function = FUNCTIONS[each.function]
            assert function.operands in (None, len(each.takes))
            assert function.may_pend(each.takes.index(GRADIENT))
