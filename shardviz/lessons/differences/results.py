"""With which numbers the devices end after a collective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError, plural
from shardviz.lessons.measures.collective import operands_of, results_of
from shardviz.lessons.measures.kinds import numbers_text, shape_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.drafts.resolve import ResolvedProblem

MAX_SHOWN = 8
"""Numbers of a device that one sentence lists."""


def result_difference(scene: ResolvedProblem, wanted: ResolvedProblem) -> str | None:
    """The first device, by its number, that ends with other numbers than in another scene, or that begins
    with other ones: they are what the question is about.

    Raises `QuestionError` for a collective whose numbers are not followed.
    """
    if scene.collective is None or wanted.collective is None:
        raise QuestionError("no collective is set, and the goal wants one", "press o on the step screen")
    meshes = scene.problem.mesh, wanted.problem.mesh
    if meshes[0].size != meshes[1].size:
        return f"the mesh has {plural(meshes[0].size, 'device')}; the goal wants {meshes[1].size:,}"
    begun = _differing(operands_of(scene), operands_of(wanted))
    if begun is not None:
        return "device {:,} begins with {}; the goal keeps {}".format(*begun)
    ours, theirs = results_of(scene), results_of(wanted)
    if ours.shape != theirs.shape:
        if ours[0].size != theirs[0].size:
            return f"device 0 ends with {_shown(ours[0])}; the goal wants {_shown(theirs[0])}"
        shapes = [shape_text(each.shape[1:]) for each in (ours, theirs)]
        return f"each device ends with the shape {shapes[0]}; the goal wants {shapes[1]}"
    ended = _differing(ours, theirs)
    return None if ended is None else "device {:,} ends with {}; the goal wants {}".format(*ended)


def _differing(ours: NDArray[Any], theirs: NDArray[Any]) -> tuple[int, str, str] | None:
    """The first device whose numbers differ, and both; None where none does, and for different shapes."""
    import numpy as np

    if ours.shape != theirs.shape:
        return None
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    for device in np.flatnonzero(~same.reshape(len(same), -1).all(axis=1)).tolist():
        return device, _shown(ours[device]), _shown(theirs[device])
    return None


def _shown(values: NDArray[Any]) -> str:
    found = values.reshape(-1).tolist()
    return numbers_text(tuple(found[:MAX_SHOWN])) + (", …" if len(found) > MAX_SHOWN else "")
