"""Problems and their plans, rankings, layouts, translations, targets and versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    STRING,
    Beside,
    Document,
    DocumentKind,
    JsonField,
    array_of,
    by_name,
    closed,
    count,
    counts,
    exactly,
    flag,
    null_if_empty,
    nullable,
    one_of,
    shared,
    text,
    texts,
)
from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.notation import Reading
    from shardviz.planner.plan import Plan
    from shardviz.planner.search import Candidate
    from shardviz.sharding import Layout, Mesh

SPEC = shared(
    "spec",
    array_of(
        JsonField({"type": "array", "items": STRING.schema}, list),
        "For each dimension the mesh axes that split it, the major one first; empty where it is whole.",
    ).by(lambda spec: [list(axes) for axes in spec.dims]),
)
MESH = shared(
    "mesh",
    closed(
        "A mesh of devices.",
        axis_names=texts("The axes, the major one first."),
        axis_sizes=counts("Devices along each axis."),
        device_order=nullable(counts("Device ids by row-major position; null: the ids count the positions.")),
    ),
)
AXIS_TYPES = one_of("JAX's type of all mesh axes.", "auto", "explicit")


def _array(role: JsonField) -> dict[str, JsonField]:
    """The fields of an array beside which stands its `mesh`."""
    return {
        "name": text("The array's name, such as A, W or Out."),
        "role": role,
        "dims": texts("The name of each dimension; empty where they have none."),
        "shape": counts("Elements along each dimension of the whole array."),
        "dtype": text("The element type, such as bf16."),
        "spec": SPEC("Its sharding.").of("decided_spec"),
        "unreduced": texts("Mesh axes over which its partial sums are not added up yet.").of(
            "decided_spec.unreduced"
        ),
        "shard_shape": counts("Elements along each dimension of one device's shard.").of(
            lambda array: array.shard_shape(array.mesh)
        ),
        "bytes_per_device": count("Bytes of one device's shard.").of(
            lambda array: array.bytes_per_device(array.mesh)
        ),
        "replicas": count("Devices that hold the same shard.").of(lambda array: array.replicas(array.mesh)),
    }


def _arrays(plan: Plan) -> Iterator[Beside]:
    """Arguments, intermediates of a chain, and the result, each once; `asked_spec` is what was asked."""
    from shardviz.planner.plan import decided_parts

    problem, parts = plan.problem, decided_parts(plan)
    asked = {array.name: array.spec for array in problem.arrays if array.spec is not None}
    for number, (operands, result) in enumerate(parts):
        last = "result" if number == len(parts) - 1 else "intermediate"
        roles = [*((each, "operand") for each in operands[1 if number else 0 :]), (result, last)]
        for array, role in roles:
            yield Beside(array, role=role, mesh=problem.mesh, asked_spec=asked.get(array.name))


_ARRAY = shared(
    "array",
    closed(
        "An array of a problem, and how the plan splits it.",
        **_array(one_of("The role of the array in the problem.", "operand", "intermediate", "result")),
        asked_spec=nullable(
            SPEC("The sharding that is asked for; null: the compiler may choose, and spec is the plan's.")
        ),
    ),
)
PROBLEM = shared(
    "problem",
    closed(
        "The problem.",
        einsum=text("The einsum, or a chain of them with semicolons.").of("problem.text"),
        mesh=MESH("The mesh.").of("problem.mesh"),
        axis_types=AXIS_TYPES.of("problem.axis_types"),
        arrays=array_of(_ARRAY("An array."), "Operands, intermediates of a chain, the result.").of(_arrays),
    ),
)
PLAN = shared(
    "plan",
    closed(
        "The operations that should happen, by the rules of the textbook.",
        cases=texts("For each einsum of the chain the case of a sharded matmul that it is."),
        steps=array_of(
            closed(
                "An operation that every device performs at the same time.",
                op=one_of(
                    "JAX's name of the operation; einsum and slice are local.",
                    *("einsum", "slice", "all_gather", "psum", "psum_scatter"),
                    *("all_to_all", "ppermute"),
                ),
                array=text("The array that it changes or makes."),
                axes=texts("Mesh axes of its groups, the major one first."),
                dim=nullable(
                    count("The dimension that is gathered, scattered or sliced, from 0; null: none is.")
                ),
                from_spec=SPEC("The array's sharding before."),
                from_unreduced=texts("Mesh axes of the pending sum before.").of("from_spec.unreduced"),
                to_spec=SPEC("The array's sharding after."),
                to_unreduced=texts("Mesh axes of the pending sum after.").of("to_spec.unreduced"),
                shape=counts("Elements of the larger of a device's operand and result."),
                dtype=text("The element type."),
                bytes=count("Bytes of the larger of a device's operand and result."),
                wire_bytes=count("Bytes that one device must send at least."),
                reason=text("The reason for the step, in a sentence with the numbers."),
            ),
            "The steps, in order.",
        ),
        result_spec=SPEC("The sharding of the result."),
        result_unreduced=texts("Mesh axes of the result's pending sum.").of("result_spec.unreduced"),
        wire_bytes=count("Bytes that one device must send at least, in all steps together."),
    ),
)

RANKING = DocumentKind(
    "ranking",
    "explain --specs",
    "Every sharding of an einsum worth considering.",
    einsum=text("The einsum, or a chain of them with semicolons; empty where there is no candidate."),
    mesh=nullable(MESH("The mesh; null where there is no candidate.")),
    candidates=array_of(
        closed(
            "One way to split the arrays.",
            arrays=array_of(_ARRAY("An array."), "Operands, intermediates, the result.").of(
                lambda candidate: _arrays(candidate.plan)
            ),
            plan=PLAN("The plan for it."),
            wire_bytes=count("Bytes that one device must send at least.").of("plan.wire_bytes"),
            memory_bytes_per_device=count("Bytes of all operands and results on one device.").of(
                "memory_per_device"
            ),
            multiply_adds_per_device=count("Multiply-adds that one device computes.").of("work_per_device"),
            best=flag("No other candidate sends less without holding or computing more."),
        ),
        "All candidates, the fewest bytes sent first.",
    ),
)


def ranking_document(candidates: Sequence[Candidate]) -> Document:
    """Every candidate of a search, in order."""
    first = candidates[0].plan.problem if candidates else None
    einsum, mesh = (first.text, first.mesh) if first else ("", None)
    return RANKING.document(einsum=einsum, mesh=mesh, candidates=candidates)


LAYOUT = DocumentKind(
    "layout",
    "layout",
    "The slice of an array that every device holds.",
    mesh=MESH("The mesh."),
    array=closed("The array.", **_array(exactly("array", "The array stands alone."))).of(
        lambda layout: Beside(layout.array, mesh=layout.mesh)
    ),
    devices=array_of(
        closed(
            "A device, and the slice that it holds.",
            id=count("The device's id."),
            coords=counts("Its place along each mesh axis."),
            slices=array_of(
                JsonField({**counts("Start and stop.").schema, "minItems": 2, "maxItems": 2}, list),
                "For each dimension the elements that it holds: from start to before stop.",
            ),
            shard=count("The number of its shard: equal numbers are equal data."),
        ),
        "Every device, in the mesh's order.",
    ),
)


def layout_document(layout: Layout) -> Document:
    """`array` and, for every device, its coordinates, its slices and the number of its shard."""
    return LAYOUT.document(layout, devices=layout)


TRANSLATE = DocumentKind(
    "translate",
    "translate",
    "A sharding in every notation.",
    text=text("The text that was read."),
    notation=text("The notation that it was read in."),
    mesh=nullable(MESH("The mesh; null where the text was read without one.")),
    arrays=array_of(
        closed(
            "An array of the text.",
            name=nullable(text("The array's name; null where it has none.")),
            translations=by_name(STRING, "Its text in each notation, by the notation's name.").of(
                lambda array: {key: said for key, said in array.written if isinstance(said, str)}
            ),
            untranslatable=by_name(STRING, "The reason why it has no text in a notation, by name.").of(
                lambda array: {key: said.message for key, said in array.written if not isinstance(said, str)}
            ),
        ),
        "The arrays, in the order of the text.",
    ),
)


def translate_document(
    text: str,
    notation: str,
    readings: Sequence[Reading],
    written: Sequence[Mapping[str, str | ShardvizError]],
    mesh: Mesh | None,
) -> Document:
    """The text as it was read, and by notation each array's text, or why there is none."""
    arrays = [
        Beside(name=each.name, written=one.items()) for each, one in zip(readings, written, strict=True)
    ]
    return TRANSLATE.document(text=text, notation=notation, mesh=mesh, arrays=arrays)


TARGETS = DocumentKind(
    "targets",
    "targets",
    "The targets, and how to install them.",
    groups=array_of(
        closed(
            "Targets that need the same packages.",
            group=text("The group's name, and that of the extra of this package.").of("name"),
            title=text("A description of these targets."),
            available=flag("They can answer here.").of(lambda group: not group.missing),
            missing=null_if_empty(text("The packages that are missing; null: none.")),
            install=null_if_empty(
                text("The command that installs them; null: there is none for this machine.")
            ).of("command"),
            versions=by_name(STRING, "Versions of the packages that are here, by package."),
            targets=array_of(
                closed(
                    "A target, or one of many.",
                    target=text("A name that --target takes.").of("name"),
                    description=text("The compiler or hardware of that name.").of("what"),
                ),
                "Targets of the group.",
            ).of("choices"),
            takes=null_if_empty(text("Other names that the group takes; null: no others.")),
        ),
        "All groups.",
    ),
)


INFO = DocumentKind(
    "info",
    "info",
    "Versions of all that an answer can depend on.",
    versions=by_name(STRING, "Versions of all that an answer can depend on, by name."),
    warning=null_if_empty(text("The reason why these versions do not fit together; null where they do.")),
)
