"""What had to stay as the lesson set it up, and means something else now."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count
from operator import eq
from typing import TYPE_CHECKING

from shardviz.lessons.differences.layouts import layout_difference
from shardviz.lessons.measures.kinds import shape_text
from shardviz.lessons.measures.subject import array_named

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.planner import Problem
    from shardviz.sharding import Mesh


def kept_difference(
    setup: ResolvedProblem, scene: ResolvedProblem, may_change: Collection[str]
) -> str | None:
    """The first field that is not in `may_change` and does not mean what it means in `setup`.

    Where a collective of its own is what may change, of the problem beside it only the mesh counts. Targets
    may always be others.
    """
    return next(_differences(setup, scene, {*may_change}), None)


def wide(mesh: Mesh) -> list[tuple[str, int]]:
    """The axes with more than one device, in order: an axis of one splits nothing."""
    return [(name, size) for name, size in mesh.shape.items() if size > 1]


def _differences(setup: ResolvedProblem, scene: ResolvedProblem, may_change: set[str]) -> Iterator[str]:
    was, now = setup.problem, scene.problem
    if "mesh" not in may_change and wide(now.mesh) != wide(was.mesh):
        yield f"the mesh is {now.mesh}; the goal keeps {was.mesh}"
    can_be_kept = was.mesh.size == now.mesh.size or not _order(was.mesh)
    if "device_order" not in may_change and can_be_kept and _order(now.mesh) != _order(was.mesh):
        yield "the devices stand in another order; the goal keeps the one that they had"
    if setup.collective is not None:
        if "collective" in may_change:
            return
        if scene.shown.collective != setup.shown.collective:
            yield "the collective has changed; the goal keeps the one that was there"
    if "einsum" not in may_change and _einsums(now) != _einsums(was):
        yield f"the einsum is {_einsums(now)}; the goal keeps {_einsums(was)}"
    if "einsum" not in may_change and "sizes" not in may_change:
        for array, before in zip(now.arguments, was.arguments, strict=True):
            if array.shape != before.shape:
                held, kept = shape_text(array.shape), shape_text(before.shape)
                yield f"{array.name} has the shape {held}; the goal keeps {kept}"
    if "dtype" not in may_change and now.result.dtype != was.result.dtype:
        yield f"the dtype is {now.result.dtype}; the goal keeps {was.result.dtype}"
    if "axis_types" not in may_change and now.axis_types != was.axis_types:
        yield f"the axes are {now.axis_types}; the goal keeps them {was.axis_types}"
    if not {"specs", "einsum"} & may_change:
        yield from _specs(setup, scene)


def _specs(setup: ResolvedProblem, scene: ResolvedProblem) -> Iterator[str]:
    for name in dict.fromkeys(row.name for row in scene.rows):
        array, spec = array_named(scene, name), array_named(setup, name).decided_spec
        mesh = scene.problem.mesh
        if not {*spec.axes, *spec.unreduced} <= {*mesh.axis_names}:
            mesh = setup.problem.mesh
        difference = layout_difference(array, scene.problem.mesh, spec, mesh, "keeps")
        if difference is not None:
            yield difference


def _order(mesh: Mesh) -> tuple[int, ...]:
    """The devices' numbers by mesh position; none where they simply count."""
    order = mesh.device_order or ()
    return () if all(map(eq, order, count())) else order


def _einsums(problem: Problem) -> str:
    """The einsums with their arrays: ``A[I, J] W[J, K] -> Out[I, K]``."""
    return "; ".join(
        " ".join(f"{array.name}[{', '.join(array.dims)}]" for array in part.operands)
        + f" -> {part.result.name}[{', '.join(part.result.dims)}]"
        for part in problem.parts
    )
