"""The search over meshes: for each the best sharding of every array, the fastest step first. It looks at
every way to give a machine's devices to the axes; its answer so far can be shown or left at any time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shardviz.hardware.clusters import cluster_named
from shardviz.planner.problem import Problem
from shardviz.planner.search.fastest_sharding import SharedState, side_by_side
from shardviz.planner.search.mesh_choices import InfeasibleMesh, MeshSharding, best_on_mesh, figures
from shardviz.planner.search.meshes import mesh_shapes, with_order, without_ones
from shardviz.planner.search.question import SearchQuestion
from shardviz.sharding import Mesh

AT_ONCE = 64
"""Meshes that are looked at side by side, fewer of those with axes of any kind."""
DOUBLINGS = 12
"""Machines that are tried, each of twice as many devices as the one before."""


@dataclass(frozen=True)
class MeshRanking:
    """The answer of a search, or what it has so far.

    `found` are ranked by the seconds of a step, then by communication and memory. Of `meshes`, `looked_at`
    were looked at, which have `shardings` of all arrays together. No step takes less than `least_seconds`.
    `smallest_machine` would do where this one is too small, if it was looked for; where none would,
    `largest_machine_tried` is too small as well. With `fitting_options` this one would do."""

    question: SearchQuestion
    found: tuple[MeshSharding, ...] = ()
    infeasible: tuple[InfeasibleMesh, ...] = ()
    meshes: int = 0
    looked_at: int = 0
    shardings: int = 0
    least_seconds: float = 0.0
    smallest_machine: str = ""
    largest_machine_tried: str = ""
    fitting_options: str = ""

    @property
    def alike(self) -> list[list[MeshSharding]]:
        """The rows in groups with the same figures: their axes have changed places, or split the same
        dimensions together."""
        groups: dict[tuple[float, ...], list[MeshSharding]] = {}
        for row in self.found:
            time = row.time
            sent = sorted(spent for _, spent in time.communication)
            told = time.seconds, time.work, time.exposed, row.memory_bytes, *sent
            groups.setdefault(told, []).append(row)
        return [*groups.values()]

    @property
    def is_complete(self) -> bool:
        return self.looked_at == self.meshes


def search_meshes(question: SearchQuestion) -> Iterator[MeshRanking]:
    """The answer so far, again and again, the last one complete. Raises `QuestionError` where no mesh has the
    sizes that are fixed."""
    machine = question.machine
    meshes = mesh_shapes(question.axes, machine.devices, question.named_axes)
    device = machine.device
    peak = device.flops_per_second(question.problem.result.dtype)
    peak = peak or max(dict(device.peak).values(), default=0.0)
    # Those of a step's FLOPs on all devices, nothing sent.
    least_seconds = question.flops / (peak * machine.devices) if peak else 0.0
    answer = MeshRanking(question, meshes=len(meshes), least_seconds=least_seconds)
    shared = SharedState()
    # Those that split the examples least, most of which are slow, come last: less needs to be known of them.
    in_order = sorted(meshes, key=lambda mesh: -question.example_parts(mesh))
    at_once = max(1, AT_ONCE >> 2 * sum(axis.kind == "any" for axis in question.axes))
    for start in range(0, len(in_order), at_once):
        searches = [best_on_mesh(question, mesh, shared) for mesh in in_order[start : start + at_once]]
        for result in side_by_side(searches):
            if result is None:
                yield answer
                continue
            outcome, shardings = result
            if isinstance(outcome, InfeasibleMesh):
                answer = replace(answer, infeasible=(*answer.infeasible, outcome))
            else:
                answer = replace(answer, found=tuple(sorted((*answer.found, outcome), key=figures)))
            number = answer.looked_at + 1
            answer = replace(answer, looked_at=number, shardings=answer.shardings + shardings)
            yield answer


def best_meshes(question: SearchQuestion) -> MeshRanking:
    *_, answer = search_meshes(question)
    return answer


def with_smallest_machine(answer: MeshRanking) -> MeshRanking:
    """The answer with what would do where memory is what lacks: other options on this machine, and the
    smallest machine of as many devices times a power of two, or the largest that was tried."""
    if answer.found or not any(mesh.memory_bytes for mesh in answer.infeasible):
        return answer
    question = answer.question
    answer = replace(answer, fitting_options=_fitting_options(question))
    axes = tuple(replace(axis, size=None) for axis in question.axes)
    tried = ""
    for doubling in range(1, DOUBLINGS + 1):
        names = question.machine.names_of_size(question.machine.devices << doubling)
        if names and (machine := cluster_named(names[0])) is not None:
            if _fitting(replace(question, machine=machine, axes=axes)):
                return replace(answer, smallest_machine=machine.name)
            tried = machine.name
    return replace(answer, largest_machine_tried=tried)


def _fitting(question: SearchQuestion) -> MeshSharding | None:
    """A mesh that fits with all that a compiler may allocate, if one does."""
    limit = question.machine.device.limit_bytes or 0
    found = (sharding for answer in search_meshes(question) for sharding in answer.found)
    return next((sharding for sharding in found if sharding.allocated_bytes <= limit), None)


def _fitting_options(question: SearchQuestion) -> str:
    """The options of a train step that holds less and fits; "" where none does."""
    if (training := question.training) is None:
        return ""
    layer, optimizer = training._replace(remat="layer"), training.optimizer
    own = replace(question, training=layer, remats=())
    tries = {"--remat layer": own} if layer != training else {}
    if optimizer is not None and optimizer.rule == "adam":
        small = optimizer._replace(moments="bf16")
        tries[f"--remat layer --optimizer {small}"] = replace(own, training=layer._replace(optimizer=small))
    if optimizer is not None and question.machine.device.host:
        tries["--remat layer --offload optimizer"] = replace(own, offload="optimizer")
    return next((options for options, asked in tries.items() if _fitting(asked)), "")


def problem_of(question: SearchQuestion, sharding: MeshSharding) -> Problem:
    """The step of a row as a problem to plan and compile, all named forward arrays split as there."""
    return question.on(with_order(question.machine, sharding.mesh), dict(sharding.specs), sharding.training)


def shown_mesh(question: SearchQuestion, sharding: MeshSharding) -> Mesh:
    """The mesh of a row without axes of size 1, in the order in which it lies on the machine."""
    return without_ones(with_order(question.machine, sharding.mesh))
