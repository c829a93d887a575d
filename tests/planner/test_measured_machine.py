"""Plans on a machine whose collectives were measured, in lines that break, claim nothing that is wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.family import CPU, SwitchedNodes
from shardviz.hardware.links import LinkSpec
from shardviz.hardware.machine import Machine, place_mesh
from shardviz.hardware.measured import COLLECTIVES, MeasuredTimes, Regime, links_alike
from shardviz.sharding import Mesh
from tests.conftest import one_in
from tests.planner import optimality
from tests.planner.exhaustive import BYTES, TIME
from tests.planner.random_problems import Draw, Kind

PROBLEMS = 5
GROUPS = (("X",), ("Y",), ("X", "Y"))


class MeasuredDraw(Draw):
    """Problems on machines of which collectives were measured, over small sizes on slow links."""

    def mesh(self):
        return Mesh(("X", "Y"), (2, 4))

    def machine(self, mesh):
        draw = self.random
        figures = DeviceFigures((("bf16", 10 ** draw.uniform(7, 10)),), 10**9, None, 10 ** draw.uniform(6, 9))
        link = LinkSpec(10 ** draw.uniform(-7, -5), 10 ** draw.uniform(6, 8))
        bare = Machine("ours", figures, SwitchedNodes.of(CPU, 8, 1, link, None))
        measured = [
            MeasuredTimes(
                op, str(mesh), axes, self._lines(), links_alike(place_mesh(bare, mesh).levels_for(op, axes))
            )
            for op in COLLECTIVES
            for axes in GROUPS
            if draw.random() < 0.8
        ]
        return place_mesh(replace(bare, measured=tuple(measured)), mesh)

    def _lines(self):
        """Up to three lines that have nothing to do with one another."""
        starts = [0, *sorted(self.random.sample(range(4, 2000), self.random.randrange(3)))]
        return tuple(
            Regime(start, self.random.choice([0.0, 1e-6, 1e-4]), 10 ** self.random.uniform(6, 8))
            for start in starts
        )


@pytest.mark.parametrize("objective", [TIME, BYTES])
@pytest.mark.parametrize(
    "kind", one_in(2, [Kind("chain", 2, parts=2), Kind("einsum", 2)]), ids=lambda kind: kind.name
)
def test_no_plan_costs_less_than_one_that_says_so(kind, objective):
    draw = MeasuredDraw(random.Random(f"{kind.name} 1"), kind)
    found = [optimality._measured(draw, None, objective) for _ in range(PROBLEMS)]
    wrong = [each for each in found if not each.is_within_bound]
    assert not wrong, "\n".join(optimality.described(wrong[0]))
    # Lines that have nothing to do with one another keep to no bound, and no plan says that it is the best.
    assert objective == BYTES or not any(each.cost.plan.optimal for each in found)
