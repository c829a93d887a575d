"""Hosts and slices: who holds and loads what, and which groups use the network between them.

A job has processes, one on each host, with so many devices each in the order of the devices' numbers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from shardviz.devices.job import Job, group_span
from shardviz.errors import QuestionError, plural
from shardviz.lessons.measures.answers import NUMBER, SLICES, AnswerKind, ComputedAnswer, whole_number
from shardviz.lessons.measures.subject import layout_named, position_of

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.sharding import Mesh


def process(resolved: ResolvedProblem, device: str, each: str) -> ComputedAnswer:
    """The process that holds a device, where every process has `each` of them."""
    mesh = resolved.problem.mesh
    return NUMBER.answer(_job(mesh, each).holder(mesh, position_of(mesh, device)))


def loads(resolved: ResolvedProblem, array: str, holder: str, each: str) -> ComputedAnswer:
    """The part of an array that a process gives to its devices, start and stop of each dimension."""
    layout = layout_named(resolved, array)
    job, number = _job(layout.mesh, each), whole_number(holder)
    if number >= job.processes:
        raise QuestionError(
            f"there is no process {number:,}", f"there are {plural(job.processes, 'process', 'processes')}"
        )
    places = range(layout.mesh.size)
    own = {layout[place].slices for place in places if job.holder(layout.mesh, place) == number}
    sides = zip(*own, strict=True)
    bounds = tuple((min(start for start, _ in each), max(stop for _, stop in each)) for each in sides)
    if sum(map(_elements, own)) != _elements(bounds):
        raise QuestionError(
            f"the parts of {array} on the devices of process {number} are apart",
            "take another mesh, or another spec",
        )
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


def _read_links(text: str) -> frozenset[str]:
    return frozenset(text.replace(",", " and ").split(" and "))


def _job(mesh: Mesh, each: str) -> Job:
    """The job whose processes have `each` devices, every one on a host of its own."""
    devices = whole_number(each)
    if not devices or mesh.size % devices:
        raise QuestionError(
            f"{plural(mesh.size, 'device')} are not a whole number of processes with {devices:,} each",
            "write a number that divides the devices of the mesh",
        )
    count = mesh.size // devices
    hosts = tuple(f"host {number}" for number in range(count))
    return Job(0, count, hosts, tuple(number // devices for number in range(mesh.size)))


_LINKS = AnswerKind(_read_links, lambda names: " and ".join(sorted(names)) or "nothing")
