"""The answer of a search as JSON: meshes with the shardings of all arrays, by the seconds of a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    Beside,
    Document,
    DocumentKind,
    array_of,
    by_name,
    closed,
    count,
    flag,
    null_if_empty,
    nullable,
    number,
    one_of,
    text,
    texts,
)
from shardviz.documents.plans import MESH, SPEC

if TYPE_CHECKING:
    from shardviz.compare.compiled_sharding import CompiledSharding
    from shardviz.planner.search import MeshRanking

_FOUND = closed(
    "A mesh, and the fastest sharding of all arrays on it that fits.",
    mesh=MESH("The mesh; axes of size 1 split nothing.").of("problem_mesh"),
    specs=by_name(SPEC("A sharding."), "The sharding of every array of the forward pass, by its name."),
    step_seconds=number("Seconds of a step.").of("seconds"),
    compute_seconds=number("Seconds of the local work.").of("time.work"),
    communication=array_of(
        closed(
            "All collectives over the same mesh axes.",
            axes=texts("Mesh axes of their groups.").of(lambda each: each[0]),
            seconds=number("Their seconds in sequence.").of(lambda each: each[1]),
        ),
        "The communication by mesh axes.",
    ).of("time.communication"),
    exposed_seconds=number("Seconds of communication that nothing hides.").of("time.exposed"),
    pipeline_seconds=number("Seconds that a device waits for the other stages of a pipeline.").of(
        "time.bubble"
    ),
    flops=number("Operations of one device in a step."),
    memory_bytes=count("Bytes that a device holds at once, at least."),
    bound=text('"compute", "HBM", or the mesh axes of the communication that takes longest.'),
    utilisation=nullable(
        number("FLOPs of the program, nothing counted twice, over the peak of all devices; null: not known.")
    ),
    least_seconds=number("No sharding on this mesh that was looked at is faster."),
)

SEARCH = DocumentKind(
    "search",
    "search",
    "The best meshes and shardings of a program on a machine.",
    program=text("The program.").of("question.problem.text"),
    layers=count("How often it runs in a step.").of("question.problem.layers"),
    own_arguments=texts(
        "Arguments of which each layer has its own, such as weights and caches; others pass through."
    ).of("question.problem.own_arguments"),
    is_train_step=flag("With the gradients, and the optimizer if there is one.").of(
        lambda answer: answer.question.training is not None
    ),
    machine=text("The machine's name.").of("question.machine.name"),
    axes=array_of(
        closed(
            "An axis of the meshes.",
            name=text("Its name."),
            kind=one_of(
                "What it may split.", "data", "fsdp", "tensor", "sequence", "expert", "pipeline", "any"
            ),
        ),
        "The axes of the meshes.",
    ).of("question.axes"),
    overlap=one_of("The communication that work can hide.", "parameters", "none", "all").of(
        "question.overlap"
    ),
    assumes=text("What its times rest on, in a sentence.").of("question.assumes"),
    memory_limit_bytes=nullable(count("Bytes that a program may use on a device; null: not known.")).of(
        "memory_limit"
    ),
    is_complete=flag("All meshes were looked at."),
    meshes=count("Meshes that the machine's devices make with these axes."),
    meshes_looked_at=count("How many of them were looked at.").of("looked_at"),
    shardings=count("Shardings of all arrays on these."),
    least_seconds=number("No step on a mesh that is left can take less."),
    smallest_machine=null_if_empty(
        text("The smallest machine of these chips that would do; null: this one does, or none was found.")
    ),
    largest_machine_tried=null_if_empty(
        text("The largest machine of these chips that was tried where none would do; null: one does.")
    ),
    found=array_of(_FOUND, "The meshes, the fastest step first.").of(lambda answer: _found(answer)),
    compiled=nullable(
        array_of(
            closed(
                "A row as the machine's compiler makes it.",
                row=count("Its number in found, from 1."),
                step_seconds=nullable(
                    number("Seconds of a step in the compiler's schedule; null: there is no program.")
                ).of("seconds"),
                compute_seconds=nullable(number("Seconds of its compute; null: there is none.")).of("work"),
                exposed_seconds=nullable(number("Seconds that the device waits; null: none.")).of("exposed"),
                layer_memory_bytes=nullable(
                    count("The compiler's peak of one layer on a device; null: not known.")
                ).of("memory_bytes"),
                error=null_if_empty(text("Why there is no program; null: there is one.")),
            ),
            "The rows that were compiled, the fastest first.",
        )
    ),
    infeasible=array_of(
        closed(
            "A mesh on which no sharding is possible, or that was not searched.",
            mesh=MESH("The mesh."),
            reason=text("The limit that it breaks."),
            memory_bytes=count("The fewest bytes that a device would hold; 0: that is not the limit."),
            is_skipped=flag("It was not searched, having too many shardings; one may be possible."),
        ),
        "The meshes that are not possible or were not searched.",
    ),
)


def _found(answer: MeshRanking) -> Iterator[Beside]:
    from shardviz.planner.search.mesh_shapes import with_order

    for found in answer.found:
        yield Beside(found, problem_mesh=with_order(answer.question.machine, found.mesh))


def search_document(answer: MeshRanking, compiled: Sequence[CompiledSharding] | None = None) -> Document:
    """All meshes with their figures, and those that were `compiled`."""
    rows = None
    if compiled is not None:
        rows = [Beside(each, row=answer.found.index(each.found) + 1) for each in compiled]
    return SEARCH.document(answer, compiled=rows)
