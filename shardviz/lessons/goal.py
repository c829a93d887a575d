"""The sandbox against the goal: the first thing that differs, in one sentence."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError, ShardvizError, plural, quote
from shardviz.forms.form import CollectiveFields
from shardviz.forms.parsing import read_mesh
from shardviz.forms.wording import as_sentence
from shardviz.lessons.lesson import Goal, Lesson
from shardviz.lessons.measures import measured
from shardviz.lessons.measures.answers import Sent, byte_count, collectives, numbers_text, shape_text
from shardviz.lessons.measures.collective import operands_of, results_of
from shardviz.lessons.measures.layout import bounds_by_device, sums_by_device
from shardviz.lessons.measures.plan import sent_by
from shardviz.lessons.measures.subject import array_named, resolve_once
from shardviz.notation.notations import read_sharding
from shardviz.notation.reading import Context
from shardviz.planner.plan import LOCAL_OPS, Plan
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray
from shardviz.units import human_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner.problem import Problem


_KEPT = {
    "objective": "the objective of the plan",
    "backward": "the backward pass",
    "remat": "the rematerialization",
    "optimizer": "the optimizer",
    "frozen": "the frozen arrays",
}
"""Fields that say the same where their texts do, in a sentence about the sandbox."""
_LIMITED = {
    "devices": "the mesh has {} devices",
    "replicas": "{} devices hold each part of {0}",
    "bytes": "{0} has {}",
    "shard_bytes": "each device holds {} of {0}",
    "sent": "each device sends {}",
    "count": "the plan has {} {0}",
    "flops": "each device does {}",
    "seconds": "{0} takes {}",
    "overlapped": "with perfect overlap it takes {}",
    "step": "a step takes {} if only parameter and gradient communication overlaps",
    "exposed": "{} of communication stays exposed with perfect overlap",
    "dropped": "{} choices are dropped",
    "ticks": "the pipeline takes {} ticks",
    "bubble": "a stage is idle for {} of its time",
    "crossing": "{} groups along {0} cross hosts",
    "memory": "a device holds {} of {0}",
    "peak": "the peak memory of a device is {}",
    "rounds": "there are {} rounds",
    "hops": "a message crosses {} links",
}
"""The sentence of a measure about the sandbox: {} is the answer, {0} the first argument."""


def first_difference(goal: Goal, lesson: Lesson, resolved: ResolvedProblem) -> str | None:
    """The first thing that the goal wants otherwise, as a sentence without its full stop, or None. In this
    order: a fault, what had to stay, the mesh, the types of its axes, who holds what, what is sent, with what
    it ends, limits. Any sharding passes that leaves every device with the same data."""
    if resolved.faults:
        return as_sentence(resolved.faults[0].message).removesuffix(".")
    try:
        return next(filter(None, _differences(goal, lesson, resolved)), None)
    except ShardvizError as error:
        # What the goal speaks of is not there.
        return as_sentence(error.message).removesuffix(".")


def _differences(goal: Goal, lesson: Lesson, resolved: ResolvedProblem) -> Iterator[str | None]:
    """A sentence, or None, for each condition."""
    problem, setup, mesh = resolved.problem, resolve_once(lesson.setup), wanted_mesh(lesson)
    yield from changes(setup, resolved, goal.may_change)
    if goal.mesh is not None and wide(problem.mesh) != wide(mesh):
        # Not which one it wants: that may be all there is to find.
        yield (
            f"the mesh is {problem.mesh}; the goal wants its {mesh.size} devices arranged differently"
            if problem.mesh.size == mesh.size
            else f"the mesh has {plural(problem.mesh.size, 'device')}; the goal wants {mesh.size}"
        )
    is_algorithm_free = "collective" in goal.may_change and goal.ends is None
    if is_algorithm_free and _without_algorithm(setup) != _without_algorithm(resolved):
        yield "the collective has changed; only its algorithm may change"
    if goal.axis_types is not None and problem.axis_types != goal.axis_types:
        yield f"the axes are {problem.axis_types}; the goal wants them {goal.axis_types}"
    for name, text in (goal.holds or {}).items():
        array = array_named(resolved, name)
        yield layout_difference(array, problem.mesh, read_spec(text, mesh, array), mesh)
    if goal.collectives is not None:
        yield plan_difference(resolved.plan, goal.collectives)
    if goal.ends is not None:
        yield result_difference(resolved, resolve_once(goal.ends))
    for ask, limit in (goal.at_most or {}).items():
        yield _exceeded(ask, limit, resolved)


def _without_algorithm(resolved: ResolvedProblem) -> CollectiveFields | None:
    collective = resolved.shown.collective
    if collective is None:
        return None
    parameters = tuple(parameter for parameter in collective.parameters if parameter[0] != "pieces")
    return replace(collective, algorithm="", parameters=parameters)


def wanted_mesh(lesson: Lesson) -> Mesh:
    """The goal's mesh in the lesson's order of devices. Raises `ShardvizError` for one that does not fit."""
    if lesson.goal.mesh is None:
        return resolve_once(lesson.setup).problem.mesh
    return read_mesh(lesson.goal.mesh, lesson.setup.device_order)


def read_spec(text: str, mesh: Mesh, array: ShardedArray) -> PartitionSpec:
    """The spec of an array in any notation. Raises `ShardvizError`."""
    sizes = dict(zip(array.dims, array.shape, strict=True))
    spec = read_sharding(text, Context(mesh, array.rank, sizes)).spec
    spec.check(mesh, array.rank, array.name)
    return spec


def _exceeded(ask: str, limit: str, resolved: ResolvedProblem) -> str | None:
    answer = measured(ask, resolved)
    value, most = answer.read(answer.text), answer.read(limit)
    if not isinstance(value, (int, Fraction)) or not isinstance(most, (int, Fraction)):
        raise QuestionError(f"{quote(ask, 30)} has no size", "limit a number or bytes")
    if value <= most:
        return None
    name, *arguments = ask.split()
    said = _LIMITED.get(name, f"{ask} is {{}}")
    if not arguments:
        said = said.removesuffix(" of {0}")
    text = answer.text
    if answer.read is byte_count and human_bytes(int(value)) != human_bytes(int(most)):
        text = human_bytes(int(value))
    shown = said.replace("{}", text).replace("{0}", (arguments or ["it"])[0])
    return f"{shown}; the goal allows {answer.shown(limit)}"


def wide(mesh: Mesh) -> list[tuple[str, int]]:
    """The axes with more than one device, in order: an axis of one splits nothing."""
    return [(name, size) for name, size in mesh.shape.items() if size > 1]


def changes(
    setup: ResolvedProblem, resolved: ResolvedProblem, may_change: Collection[str]
) -> Iterator[str | None]:
    """A sentence for each field that is not in `may_change` and does not mean what it means in `setup`, and
    None for some that do. Where a collective of its own is what may change, of the problem beside it only the
    mesh counts. Targets may always be others."""
    was, now = setup.problem, resolved.problem
    if "mesh" not in may_change and wide(now.mesh) != wide(was.mesh):
        yield f"the mesh is {now.mesh}; the goal keeps {was.mesh}"
    can_be_kept = was.mesh.size == now.mesh.size or not _order(was.mesh)
    if setup.named is not None and "machine" not in may_change and resolved.machine != setup.machine:
        yield f"the machine is {resolved.machine.name}; the goal keeps {setup.machine.name}"
    if "device_order" not in may_change and can_be_kept and _order(now.mesh) != _order(was.mesh):
        yield "the order of the devices has changed; the goal keeps it"
    if setup.collective is not None:
        if "collective" in may_change:
            return
        if resolved.shown.collective != setup.shown.collective:
            yield "the collective has changed; the goal keeps it"
    for name, said in _KEPT.items():
        kept, given = getattr(setup.shown, name), getattr(resolved.shown, name)
        if name not in may_change and given != kept:
            yield f"{said} is {given or 'none'}; the goal keeps {kept or 'none'}"
    if "einsum" not in may_change and _einsums(now) != _einsums(was):
        yield f"the einsum is {_einsums(now)}; the goal keeps {_einsums(was)}"
    if "einsum" not in may_change and "sizes" not in may_change:
        arguments = (replace(problem, parts=problem.forward).arguments for problem in (now, was))
        for array, before in zip(*arguments, strict=True):
            if array.shape != before.shape:
                held, kept = shape_text(array.shape), shape_text(before.shape)
                yield f"{array.name} has the shape {held}; the goal keeps {kept}"
    dtype, kept_dtype = (problem.forward[-1].result.dtype for problem in (now, was))
    if "dtype" not in may_change and dtype != kept_dtype:
        yield f"the dtype is {dtype}; the goal keeps {kept_dtype}"
    if "axis_types" not in may_change and now.axis_types != was.axis_types:
        yield f"the axes are {now.axis_types}; the goal keeps them {was.axis_types}"
    if {"specs", "einsum"} & {*may_change}:
        return
    for name in dict.fromkeys(row.name for row in resolved.rows):
        array, spec = array_named(resolved, name), array_named(setup, name).decided_spec
        has_axes = {*spec.axes, *spec.unreduced} <= {*now.mesh.axis_names}
        yield layout_difference(array, now.mesh, spec, now.mesh if has_axes else was.mesh, "keeps")


def _order(mesh: Mesh) -> tuple[int, ...]:
    """The devices' numbers by mesh position; none where they simply count."""
    order = mesh.device_order or ()
    return () if order == tuple(range(len(order))) else order


def _einsums(problem: Problem) -> str:
    return "; ".join(
        " ".join(f"{array.name}[{', '.join(array.dims)}]" for array in part.operands)
        + f" -> {part.result.name}[{', '.join(part.result.dims)}]"
        for part in problem.forward
    )


def layout_difference(
    array: ShardedArray, mesh: Mesh, wanted: PartitionSpec, wanted_mesh: Mesh, verb: str = "wants"
) -> str | None:
    """The first difference of an array on a mesh from the array under another spec, on another mesh of the
    same devices: the first device, by its number, that holds other elements or another partial sum.

    None where all hold the same, however that is written. Raises `QuestionError` for more devices than can be
    compared, and for a spec that does not fit the array."""
    if mesh.size != wanted_mesh.size:
        return f"the mesh has {plural(mesh.size, 'device')}; the goal {verb} {wanted_mesh.size:,}"
    layouts = Layout(array, mesh), Layout(array.with_spec(wanted), wanted_mesh)
    dims = {1: ("elements",), 2: ("rows", "columns")}.get(array.rank, array.dims)
    differences: list[tuple[int, str]] = []
    for dim, name in enumerate(dims[: array.rank]):
        held, want = (bounds_by_device(layout, dim) for layout in layouts)
        if held != want:
            device = _first_unlike(held, want)
            (start, stop), (want_start, want_stop) = held[device], want[device]
            what = f"{name} {start}:{stop} of {array.name}"
            differences.append((device, f"holds {what}; the goal {verb} {want_start}:{want_stop}"))
    sums, want_sums = map(sums_by_device, layouts)
    if sums != want_sums:
        device = _first_unlike(sums, want_sums)
        said, asked = "a partial sum", "another one" if want_sums[device] else "the whole sum"
        if not sums[device]:
            said, asked = "the whole sum", "a partial one"
        differences.append((device, f"holds {said} of {array.name}; the goal {verb} {asked}"))
    # Of several at one device, that of the first dimension.
    number, words = min(differences, key=lambda difference: difference[0], default=(0, ""))
    return f"device {number:,} {words}" if words else None


def _first_unlike(held: Sequence[object], wanted: Sequence[object]) -> int:
    return next(index for index, pair in enumerate(zip(held, wanted, strict=True)) if pair[0] != pair[1])


_VERBS = {
    "all_gather": ("gathers", "gather"),
    "psum": ("sums", "sum"),
    "psum_scatter": ("sums and scatters", "sum and scatter"),
    "all_to_all": ("exchanges parts of", "exchange parts of"),
    "ppermute": ("permutes", "permute"),
}


def plan_difference(plan: Plan, wanted: Sequence[str]) -> str | None:
    """The first collective of a plan that is not the wanted one; `wanted` has texts: all_gather A X."""
    wishes = [collective for text in wanted for collective in collectives(text)]
    numbers = [number for number, step in enumerate(plan.steps, 1) if step.op not in LOCAL_OPS]
    for number, sent, wish in zip_longest(numbers, sent_by(plan), wishes):
        if sent == wish:
            continue
        more = "more " if wishes and wish is None else ""
        asked = f"nothing {more}to be sent" if wish is None else f"to {_sent_words(wish, 1)}"
        if sent is None:
            sends = "sends nothing more" if numbers else "sends nothing"
            return f"the plan {sends}; the goal wants {asked}"
        return f"step {number} {_sent_words(sent, 0)}; the goal wants {asked}"
    return None


def _sent_words(sent: Sent, form: int) -> str:
    op, array, axes = sent
    return f"{_VERBS[op][form]} {array} over {', '.join(axes)}"


MAX_SHOWN = 8
"""Numbers of a device that one sentence lists."""


def result_difference(resolved: ResolvedProblem, wanted: ResolvedProblem) -> str | None:
    """The first device, by its number, that ends with other numbers than in another problem, or that begins
    with other ones: they are what the question is about. Raises `QuestionError` for a collective whose
    numbers are not followed."""
    if resolved.collective is None or wanted.collective is None:
        raise QuestionError("no collective is set, and the goal wants one", "press i on the step screen")
    meshes = resolved.problem.mesh, wanted.problem.mesh
    if meshes[0].size != meshes[1].size:
        return f"the mesh has {plural(meshes[0].size, 'device')}; the goal wants {meshes[1].size:,}"
    begun = _differing(operands_of(resolved), operands_of(wanted))
    if begun is not None:
        return "device {:,} begins with {}; the goal keeps {}".format(*begun)
    ours, theirs = results_of(resolved), results_of(wanted)
    if ours.shape != theirs.shape:
        if ours[0].size != theirs[0].size:
            return f"device 0 ends with {_shown_numbers(ours[0])}; the goal wants {_shown_numbers(theirs[0])}"
        shapes = [shape_text(result.shape[1:]) for result in (ours, theirs)]
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
        return device, _shown_numbers(ours[device]), _shown_numbers(theirs[device])
    return None


def _shown_numbers(values: NDArray[Any]) -> str:
    numbers = values.reshape(-1).tolist()
    return numbers_text(tuple(numbers[:MAX_SHOWN])) + (", …" if len(numbers) > MAX_SHOWN else "")
