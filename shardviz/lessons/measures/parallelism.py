"""Hosts, experts and pipelines: which groups use the network between hosts, tokens that find no place at an
expert, stages that wait.

A job has processes, one on each host, with so many devices each in the order of the devices' numbers. An
expert has so many places; a token that chooses a full one is dropped. Of a pipeline the devices along a mesh
axis are stages, and micro-batches go through them one after the other: in every tick a stage works on one
micro-batch and hands it to the next stage, so stage s works on micro-batch t − s in tick t (Huang et al.,
"GPipe", 2019). The backward pass goes the same way back, with the same share of time idle.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from shardviz.devices.job import Job, group_span
from shardviz.errors import QuestionError, plural, quote
from shardviz.lessons.measures.answers import (
    NUMBER,
    PERCENT,
    SLICES,
    AnswerKind,
    ComputedAnswer,
    whole_number,
)
from shardviz.lessons.measures.subject import layout_named, position_of
from shardviz.strict_table import closest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.sharding import Mesh


def size(resolved: ResolvedProblem, dim: str) -> ComputedAnswer:
    """The size of a dimension, given or derived, such as that of an expert's places."""
    return NUMBER.answer(_size_of(resolved, dim))


def dropped(resolved: ResolvedProblem, dim: str, loads: str) -> ComputedAnswer:
    """The choices that find no place, where `loads` says how many tokens of a sequence choose each expert and
    each expert has as many places as `dim` is long."""
    places = _size_of(resolved, dim)
    chosen = [whole_number(each) for each in loads.split(",")]
    if len(chosen) < 2:
        raise QuestionError(f"{quote(loads, 30)} is one load", "write one for each expert: 9,3,2,2")
    return NUMBER.answer(sum(max(0, each - places) for each in chosen))


def ticks(resolved: ResolvedProblem, axis: str, dim: str) -> ComputedAnswer:
    """The ticks until the last micro-batch has left the last stage."""
    return NUMBER.answer(len(_schedule(resolved, axis, dim)))


def busy(resolved: ResolvedProblem, axis: str, dim: str, tick: str) -> ComputedAnswer:
    """The number of stages that work in a tick; the first is tick 0."""
    schedule = _schedule(resolved, axis, dim)
    number = whole_number(tick)
    if number >= len(schedule):
        raise QuestionError(f"there is no tick {number:,}", f"they go from 0 to {len(schedule) - 1:,}")
    return NUMBER.answer(sum(each is not None for each in schedule[number]))


def bubble(resolved: ResolvedProblem, axis: str, dim: str) -> ComputedAnswer:
    """The share of its time for which a stage has nothing to do."""
    works = [stage is not None for stages in _schedule(resolved, axis, dim) for stage in stages]
    return PERCENT.answer(1 - Fraction(sum(works), len(works)))


def _schedule(resolved: ResolvedProblem, axis: str, dim: str) -> Sequence[Sequence[int | None]]:
    """For each tick the micro-batch of each stage, None where it has none."""
    stages = resolved.problem.mesh.axis_size(axis)
    count = _size_of(resolved, dim)
    every = range(count + stages - 1)
    return [
        [tick - stage if 0 <= tick - stage < count else None for stage in range(stages)] for tick in every
    ]


def _size_of(resolved: ResolvedProblem, dim: str) -> int:
    known = {
        name: extent
        for part in resolved.problem.forward
        for array in (*part.operands, part.result)
        for name, extent in zip(array.dims, array.shape, strict=True)
    }
    if dim not in known:
        raise QuestionError(f"there is no dimension {quote(dim, 30)}", closest(dim, tuple(known)))
    return known[dim]


def process(resolved: ResolvedProblem, device: str, each: str) -> ComputedAnswer:
    """The process that holds a device, where every process has `each` of them."""
    mesh = resolved.problem.mesh
    return NUMBER.answer(_job(mesh, each).holder(mesh, position_of(mesh, device)))


def loads(resolved: ResolvedProblem, array: str, holder: str, each: str) -> ComputedAnswer:
    """The part of an array that a process gives to its devices, start and stop of each dimension."""
    layout = layout_named(resolved, array)
    job, number = _job(layout.mesh, each), whole_number(holder)
    if number >= job.processes:
        problem = f"there is no process {number:,}"
        raise QuestionError(problem, f"there are {plural(job.processes, 'process', 'processes')}")
    places = range(layout.mesh.size)
    own = {layout[index].slices for index in places if job.holder(layout.mesh, index) == number}
    sides = zip(*own, strict=True)
    bounds = tuple((min(start for start, _ in side), max(stop for _, stop in side)) for side in sides)
    if sum(map(_elements, own)) != _elements(bounds):
        problem = f"the parts of {array} on the devices of process {number} are apart"
        raise QuestionError(problem, "take another mesh, or another spec")
    return SLICES.answer(bounds)


def crossing(resolved: ResolvedProblem, axis: str, each: str) -> ComputedAnswer:
    """The number of groups along an axis whose devices are not all of one process."""
    mesh = resolved.problem.mesh
    mesh.axis_size(axis)
    return NUMBER.answer(group_span(_job(mesh, each), mesh, (axis,)).across_hosts)


def links(resolved: ResolvedProblem, axis: str) -> ComputedAnswer:
    """The links that join the devices along an axis: DCN, NVLink, or axes of a torus (``x and y``)."""
    mesh, placed = resolved.problem.mesh, resolved.placed
    mesh.axis_size(axis)
    return _LINKS.answer(frozenset(word for level in placed.group_levels((axis,)) for word in level.words))


def _elements(bounds: tuple[tuple[int, int], ...]) -> int:
    return math.prod(stop - start for start, stop in bounds)


def _job(mesh: Mesh, each: str) -> Job:
    """The job whose processes have `each` devices, every one on a host of its own."""
    devices = whole_number(each)
    if not devices or mesh.size % devices:
        problem = f"{plural(mesh.size, 'device')} are not a whole number of processes with {devices:,} each"
        raise QuestionError(problem, "write a number that divides the devices of the mesh")
    count = mesh.size // devices
    hosts = tuple(f"host {number}" for number in range(count))
    return Job(0, count, hosts, tuple(number // devices for number in range(mesh.size)))


_LINKS = AnswerKind(
    lambda text: frozenset(text.replace(",", " and ").split(" and ")),
    lambda names: " and ".join(sorted(names)) or "nothing",
)
