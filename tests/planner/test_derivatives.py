"""The table of derivatives: complete, and of functions that there are."""

from __future__ import annotations

import pytest

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement
from shardviz.planner.problem.functions import FUNCTIONS, GRADIENT, PROGRAM_FUNCTIONS, derivatives
from shardviz.sharding import ShardedArray


def statement(function: str) -> Statement:
    array = ShardedArray("X", ("b", "d"), (2, 3), "f32", None)
    operands = (array,) * (FUNCTIONS[function].operands or 2)
    return Statement(
        Einsum((("b", "d"),) * len(operands), ("b", "d")),
        operands,
        array,
        function,
        (),
        ("b", "d"),
        number=2.0,
        along="d",
    )


@pytest.mark.parametrize("name", PROGRAM_FUNCTIONS)
def test_a_derivative_is_linear_in_the_gradient(name):
    found = derivatives(statement(name))
    assert len(found) == (PROGRAM_FUNCTIONS[name].operands or 2)
    for each in found:
        if each is not None:
            function = FUNCTIONS[each.function]
            assert function.operands in (None, len(each.takes))
            assert function.may_pend(each.takes.index(GRADIENT))
