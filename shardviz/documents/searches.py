"""The answer of a search as JSON: meshes with the shardings of all arrays, by the seconds of a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, Document, DocumentKind, of, one_of, record, records
from shardviz.documents.meshes import MESH, SPEC

if TYPE_CHECKING:
    from shardviz.compare.compiled_sharding import CompiledSharding
    from shardviz.planner.search import MeshRanking

_FOUND = record(
    "A mesh, and the fastest sharding of all arrays on it that fits.",
    mesh=of(MESH, "The mesh; axes of size 1 split nothing.", "problem_mesh"),
    specs=of({str: of(SPEC, "A sharding.")}, "The sharding of every array of the forward pass, by its name."),
    step_seconds=of(float, "Seconds of a step.", "seconds"),
    compute_seconds=of(float, "Seconds of the local work.", "time.work"),
    communication=records(
        "The communication by mesh axes.",
        "All collectives over the same mesh axes.",
        "time.communication",
        axes=of([str], "Mesh axes of their groups.", 0),
        seconds=of(float, "Their seconds in sequence.", 1),
    ),
    exposed_seconds=of(float, "Seconds of communication that nothing hides.", "time.exposed"),
    pipeline_seconds=of(
        float, "Seconds that a device waits for the other stages of a pipeline.", "time.bubble"
    ),
    flops=of(float, "Operations of one device in a step."),
    memory_bytes=of(int, "Bytes that a device holds at once, at least."),
    bound=of(str, '"compute", "HBM", or the mesh axes of the communication that takes longest.'),
    utilisation=of(
        float, "FLOPs of the program, nothing counted twice, over the peak of all devices; null: not known."
    ),
    least_seconds=of(float, "No sharding on this mesh that was looked at is faster."),
)


def _found(answer: MeshRanking) -> Iterator[Beside]:
    from shardviz.planner.search.mesh_ranking import with_order

    for found in answer.found:
        yield Beside(found, problem_mesh=with_order(answer.question.machine, found.mesh))


SEARCH = DocumentKind(
    "search",
    "search",
    "The best meshes and shardings of a program on a machine.",
    program=of(str, "The program.", "question.problem.text"),
    layers=of(int, "How often it runs in a step.", "question.problem.layers"),
    own_arguments=of(
        [str],
        "Arguments of which each layer has its own, such as weights and caches; others pass through.",
        "question.problem.own_arguments",
    ),
    is_train_step=of(
        bool,
        "With the gradients, and the optimizer if there is one.",
        lambda answer: answer.question.training is not None,
    ),
    machine=of(str, "The machine's name.", "question.machine.name"),
    axes=records(
        "The axes of the meshes.",
        "An axis of the meshes.",
        "question.axes",
        name=of(str, "Its name."),
        kind=of(
            one_of("data", "fsdp", "tensor", "sequence", "expert", "pipeline", "any"), "What it may split."
        ),
    ),
    overlap=of(
        one_of("parameters", "none", "all"), "The communication that work can hide.", "question.overlap"
    ),
    assumes=of(str, "What its times rest on, in a sentence.", "question.assumes"),
    memory_limit_bytes=of(int, "Bytes that a program may use on a device; null: not known.", "memory_limit"),
    is_complete=of(bool, "All meshes were looked at."),
    meshes=of(int, "Meshes that the machine's devices make with these axes."),
    meshes_looked_at=of(int, "How many of them were looked at.", "looked_at"),
    shardings=of(int, "Shardings of all arrays on these."),
    least_seconds=of(float, "No step on a mesh that is left can take less."),
    smallest_machine=of(
        str, "The smallest machine of these chips that would do; null: this one does, or none was found."
    ),
    largest_machine_tried=of(
        str, "The largest machine of these chips that was tried where none would do; null: one does."
    ),
    found=of([_FOUND], "The meshes, the fastest step first.", _found),
    compiled=records(
        "The rows that were compiled, the fastest first; null: none were asked for.",
        "A row as the machine's compiler makes it.",
        row=of(int, "Its number in found, from 1."),
        step_seconds=of(
            float, "Seconds of a step in the compiler's schedule; null: there is no program.", "seconds"
        ),
        compute_seconds=of(float, "Seconds of its compute; null: there is none.", "work"),
        exposed_seconds=of(float, "Seconds that the device waits; null: none.", "exposed"),
        layer_memory_bytes=of(
            int, "The compiler's peak of one layer on a device; null: not known.", "memory_bytes"
        ),
        error=of(str, "Why there is no program; null: there is one."),
    ),
    infeasible=records(
        "The meshes that are not possible or were not searched.",
        "A mesh on which no sharding is possible, or that was not searched.",
        mesh=of(MESH, "The mesh."),
        reason=of(str, "The limit that it breaks."),
        memory_bytes=of(int, "The fewest bytes that a device would hold; 0: that is not the limit."),
        is_skipped=of(bool, "It was not searched, having too many shardings; one may be possible."),
    ),
)


def search_document(answer: MeshRanking, compiled: Sequence[CompiledSharding] | None = None) -> Document:
    """All meshes with their figures, and those that were `compiled`."""
    rows = None
    if compiled is not None:
        rows = [Beside(each, row=answer.found.index(each.found) + 1) for each in compiled]
    return SEARCH.document(answer, compiled=rows)
