"""The sandbox against the goal: the first thing that differs, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from shardviz.drafts.wording import as_sentence
from shardviz.errors import QuestionError, ShardvizError, plural, quote
from shardviz.lessons.differences.kept import kept_difference, wide
from shardviz.lessons.differences.layouts import layout_difference
from shardviz.lessons.differences.plans import plan_difference
from shardviz.lessons.differences.results import result_difference
from shardviz.lessons.lesson import Goal, Lesson
from shardviz.lessons.measures import measured
from shardviz.lessons.measures.subject import array_named, scene_of

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

_LIMITED = {
    "devices": "the mesh has {} devices",
    "axis_size": "axis {0} has {} devices",
    "replicas": "{} devices hold each part of {0}",
    "bytes": "{0} has {}",
    "shard_bytes": "each device holds {} of {0}",
    "sent": "each device sends {}",
    "count": "the plan has {} {0}",
    "rounds": "there are {} rounds",
    "hops": "a message crosses {} links",
}
"""What a measure says of the sandbox: {} is the answer, {0} the first argument."""


def first_difference(goal: Goal, lesson: Lesson, scene: ResolvedProblem) -> str | None:
    """What is not yet as the goal wants it, as a sentence without its full stop; None where the goal is met.

    In this order: a fault, what had to stay, the mesh, the types of its axes, who holds what, what is sent,
    with what it ends, limits. Any sharding passes that leaves every device with the same data.
    """
    if scene.faults:
        return as_sentence(scene.faults[0].message).removesuffix(".")
    try:
        return next(_differences(goal, lesson, scene), None)
    except ShardvizError as error:
        # What the goal speaks of is not there.
        return as_sentence(error.message).removesuffix(".")


def _differences(goal: Goal, lesson: Lesson, scene: ResolvedProblem) -> Iterator[str]:
    problem, setup = scene.problem, scene_of(lesson.setup)
    mesh = wanted_mesh(lesson)
    kept = kept_difference(setup, scene, goal.may_change)
    if kept is not None:
        yield kept
    if goal.mesh is not None and wide(problem.mesh) != wide(mesh):
        # Not which one it wants: that may be all there is to find.
        yield (
            f"the mesh is {problem.mesh}; the goal wants its {mesh.size} devices arranged otherwise"
            if problem.mesh.size == mesh.size
            else f"the mesh has {plural(problem.mesh.size, 'device')}; the goal wants {mesh.size}"
        )
    if goal.axis_types is not None and problem.axis_types != goal.axis_types:
        yield f"the axes are {problem.axis_types}; the goal wants them {goal.axis_types}"
    for name, text in (goal.holds or {}).items():
        array = array_named(scene, name)
        spec = read_spec(text, mesh, array)
        difference = layout_difference(array, problem.mesh, spec, mesh)
        if difference is not None:
            yield difference
    sent = None if goal.collectives is None else plan_difference(scene.plan, goal.collectives)
    if sent is not None:
        yield sent
    ended = None if goal.ends is None else result_difference(scene, scene_of(goal.ends))
    if ended is not None:
        yield ended
    for ask, limit in (goal.at_most or {}).items():
        exceeded = _exceeded(ask, limit, scene)
        if exceeded is not None:
            yield exceeded


def wanted_mesh(lesson: Lesson) -> Mesh:
    """The goal's mesh; its devices in the order that the lesson gives, where it gives one.

    Raises `ShardvizError` for an order that does not fit.
    """
    from shardviz.drafts.parsing import read_mesh

    if lesson.goal.mesh is None:
        return scene_of(lesson.setup).problem.mesh
    return read_mesh(lesson.goal.mesh, lesson.setup.device_order)


def read_spec(text: str, mesh: Mesh, array: ShardedArray) -> PartitionSpec:
    """The spec of an array in any notation. Raises `ShardvizError`."""
    from shardviz.notation import Context, read_sharding

    sizes = dict(zip(array.dims, array.shape, strict=True))
    spec = read_sharding(text, Context(mesh, array.rank, sizes)).spec
    spec.check(mesh, array.rank, array.name)
    return spec


def _exceeded(ask: str, limit: str, scene: ResolvedProblem) -> str | None:
    answer = measured(ask, scene)
    value, most = answer.read(answer.text), answer.read(limit)
    if not isinstance(value, (int, Fraction)) or not isinstance(most, (int, Fraction)):
        raise QuestionError(f"{quote(ask, 30)} has no size", "limit a number or bytes")
    if value <= most:
        return None
    name, *arguments = ask.split()
    said = _LIMITED.get(name, f"{ask} is {{}}")
    if not arguments:
        said = said.removesuffix(" of {0}")
    shown = said.replace("{}", answer.text).replace("{0}", (arguments or [""])[0])
    return f"{shown}; the goal allows {answer.shown(limit)}"
