"""Machines of round figures, whose every mesh axis is a ring of its own, for tests of prices."""

import pytest

from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.links import Dimension, LinkSpec
from shardviz.hardware.machine import AxisRings, Machine, place_mesh
from shardviz.planner.planner import Planner, plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from tests.conftest import OWN_PLAN

FIGURES = {
    "v5e": DeviceFigures((("bf16", 1.97e14), ("s8", 3.94e14)), 16 * 10**9, 15 * 2**30, 8.2e11),
    "v5p": DeviceFigures((("bf16", 4.59e14),), 96 * 10**9, 95 * 2**30, 2.8e12),
    "h100": DeviceFigures((("bf16", 9.9e14),), 80 * 10**9, None, 3.35e12),
    # A core of a chip, two of which are two devices.
    "v2": DeviceFigures((("bf16", 2.3e13),), 8 * 10**9, None, 3.58e11),
    "v5e without memory": DeviceFigures((("bf16", 1.97e14),)),
}


def _placed(mesh, chip="v5e", bandwidth=4.5e10, kind="ring"):
    link = LinkSpec(1e-6, bandwidth)
    dimensions = tuple(
        Dimension(axis.lower(), size, mesh.stride(axis), kind, link, axis.lower())
        for axis, size in mesh.shape.items()
    )
    return place_mesh(Machine("test", FIGURES[chip], AxisRings(chip, dimensions, link, mesh.size)), mesh)


@pytest.fixture
def placed():
    """A mesh on a chip by name, each axis on a dimension of its own, named after it: X lies on x."""
    return _placed


@pytest.fixture
def priced():
    """The cost of the plan of a problem on such a machine."""

    def cost(text, specs, sizes="", mesh=Mesh(("X", "Y"), (2, 4)), dtype="bf16", **machine):  # noqa: B008
        problem = problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes, dtype=dtype)
        return price(plan(problem), _placed(mesh, **machine))

    return cost


@pytest.fixture(autouse=True)
def every_plan_is_made_anew(monkeypatch):
    """Also one that another test has asked for."""
    monkeypatch.setattr(Planner, "plan", OWN_PLAN)
