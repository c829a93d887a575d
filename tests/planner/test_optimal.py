"""Plans of random problems are the best there are, by a search that tries everything."""

import pytest

from tests.conftest import covering
from tests.planner.exhaustive import BYTES, TIME
from tests.planner.optimality import KINDS, described, measured
from tests.planner.random_problems import Kind

FEW = {4: 3, 5: 1}
"""Problems by the number of axes: the search of many takes long."""
LONG = "one einsum, three axes of up to 4"
"""Of its problems one takes a minute."""
PROGRAMS = 8
"""Problems of a kind of programs."""


def check(kind: Kind, count: int, objective: str) -> None:
    tally = measured(kind, count, seed=1, objective=objective)
    assert not tally.wrongly_claimed, "\n".join(described(tally.wrongly_claimed[0]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "objective"), covering(KINDS, [TIME, BYTES]), ids=lambda each: getattr(each, "name", None)
)
def test_no_plan_costs_less(kind, objective):
    few = 5 if kind.name == LONG else FEW.get(kind.axes, 8 // kind.parts)
    check(kind, PROGRAMS if kind.shared else few, objective)


@pytest.mark.slow
@pytest.mark.parametrize("objective", [TIME, BYTES])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_plan_of_many_costs_less(kind, objective):
    check(kind, 5 * PROGRAMS if kind.shared else FEW.get(kind.axes, 8), objective)
