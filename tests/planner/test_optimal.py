"""Plans of random problems are the best there are, by a search that tries everything."""

import pytest

from tests.planner.exhaustive import BYTES, TIME
from tests.planner.optimality import KINDS, described, measured

FEW = {4: 3, 5: 1}
"""Problems by the number of axes: the search of many takes long."""
LONG = "one einsum, three axes of up to 4"
"""Of its problems one takes a minute."""
PROGRAMS = 15
"""Problems of a kind of programs."""


@pytest.mark.slow
@pytest.mark.parametrize("objective", [TIME, BYTES])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_plan_costs_less(kind, objective):
    few = 3 if kind.name == LONG else FEW.get(kind.axes, 5)
    tally = measured(kind, PROGRAMS if kind.shared else few, seed=1, objective=objective)
    assert not tally.wrongly_claimed, "\n".join(described(tally.wrongly_claimed[0]))
