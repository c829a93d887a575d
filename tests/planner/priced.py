"""A machine of round figures, whose every mesh axis is a ring of its own, for tests of prices."""

from shardviz.hardware.links import LinkSpec
from shardviz.hardware.machine import DeviceFigures, LinkLevel, Machine, PlacedMesh
from shardviz.planner import plan, problem_from_text
from shardviz.planner.costs import price
from shardviz.sharding import Mesh

V5E = DeviceFigures((("bf16", 1.97e14), ("s8", 3.94e14)), 16 * 10**9, 15 * 2**30, 8.2e11)
V5P = DeviceFigures((("bf16", 4.59e14),), 96 * 10**9, 95 * 2**30, 2.8e12)


def placed(mesh, device=V5E, bandwidth=4.5e10, kind="ring", latency=1e-6):
    """Each axis of the mesh on a dimension of its own, named after it: X lies on x."""
    link = LinkSpec(latency, bandwidth)
    levels = tuple(
        (axis, (LinkLevel(kind, size, link, axis.lower()),)) for axis, size in mesh.shape.items()
    )
    return PlacedMesh(Machine("test", "v5e", device, mesh.size), levels)


def priced(text, specs, sizes="", mesh=None, dtype="bf16", **machine):
    """The cost of a problem's plan."""
    mesh = mesh or Mesh(("X", "Y"), (2, 4))
    problem = problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes, dtype=dtype)
    return price(plan(problem), placed(mesh, **machine))
