"""The smallest machine of the same chips on which a program fits, where it does not fit on the one asked
for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shardviz.hardware.clusters import Fault, parse_cluster
from shardviz.hardware.machine import Machine, machine_of
from shardviz.planner.search.mesh_ranking import MeshRanking, search_meshes

DOUBLINGS = 12
"""Machines that are tried, each of twice as many devices as the one before."""


def with_smallest_machine(answer: MeshRanking) -> MeshRanking:
    """The answer with the name of the smallest machine that would do, of as many devices times a power of
    two, or of the largest one that was tried where none would do; as it is where a mesh was found and where
    memory is not what lacks."""
    if answer.found or not any(each.memory_bytes for each in answer.infeasible):
        return answer
    axes = tuple(replace(axis, size=None) for axis in answer.question.axes)
    tried = ""
    for machine in _larger(answer.question.machine):
        # The first mesh that fits is enough.
        if any(each.found for each in search_meshes(replace(answer.question, machine=machine, axes=axes))):
            return replace(answer, smallest_machine=machine.name)
        tried = machine.name
    return replace(answer, largest_machine_tried=tried)


def _larger(machine: Machine) -> Iterator[Machine]:
    """Machines of the same chip, two times, four times, … as large, as far as they are built."""
    try:
        cluster = parse_cluster(machine.name)
    except Fault:
        return
    for doubling in range(1, DOUBLINGS + 1):
        names = [] if cluster is None else cluster.of_size(machine.devices << doubling)
        larger = parse_cluster(names[0]) if names else None
        if larger is not None:
            yield machine_of(larger)
