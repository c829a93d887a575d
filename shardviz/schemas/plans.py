"""Problems and their plans, rankings, layouts, translations, and what can be asked."""

from __future__ import annotations

from shardviz.schemas.vocabulary import (
    Schema,
    array_of,
    by_name,
    closed,
    count,
    counts,
    exactly,
    flag,
    nullable,
    one_of,
    ref,
    text,
    texts,
)

_ARRAY = {
    "name": text("The array's name, such as A, W or Out."),
    "dims": texts("The name of each dimension; empty where they have none."),
    "shape": counts("Elements along each dimension of the whole array."),
    "dtype": text("The element type, such as bf16."),
    "spec": ref("spec", "How it is split."),
    "unreduced": texts("Mesh axes over which its partial sums are not added up yet."),
    "shard_shape": counts("Elements along each dimension of one device's shard."),
    "bytes_per_device": count("Bytes of one device's shard."),
    "replicas": count("Devices that hold the same shard."),
}

DEFINITIONS: dict[str, Schema] = {
    "spec": array_of(
        {"type": "array", "items": {"type": "string"}},
        "For each dimension the mesh axes that split it, the major one first; empty where it is whole.",
    ),
    "mesh": closed(
        "A mesh of devices.",
        {
            "axis_names": texts("The axes, the major one first."),
            "axis_sizes": counts("Devices along each axis."),
            "device_order": nullable(
                counts("Device ids by row-major position; null: the ids count the positions.")
            ),
        },
    ),
    "array": closed(
        "An array of a problem, and how the plan splits it.",
        {
            "role": one_of("What the array is in the problem.", "operand", "intermediate", "result"),
            **_ARRAY,
            "asked_spec": nullable(
                ref(
                    "spec",
                    "How it is split by request; null: the compiler may choose, and spec is the plan's.",
                )
            ),
        },
    ),
    "problem": closed(
        "What is asked.",
        {
            "einsum": text("The einsum, or a chain of them with semicolons."),
            "mesh": ref("mesh", "The mesh."),
            "axis_types": one_of("JAX's type of all mesh axes.", "auto", "explicit"),
            "arrays": array_of(ref("array", "An array."), "Operands, intermediates of a chain, the result."),
        },
    ),
    "plan": closed(
        "What should happen, by the rules of the textbook.",
        {
            "cases": texts("For each einsum of the chain the case of a sharded matmul that it is."),
            "steps": array_of(
                closed(
                    "An operation that every device performs at the same time.",
                    {
                        "op": one_of(
                            "JAX's name of the operation; einsum and slice are local.",
                            *(
                                "einsum",
                                "slice",
                                "all_gather",
                                "psum",
                                "psum_scatter",
                                "all_to_all",
                                "ppermute",
                            ),
                        ),
                        "array": text("The array that it changes or makes."),
                        "axes": texts("Mesh axes of its groups, the major one first."),
                        "dim": nullable(
                            count(
                                "The dimension that is gathered, scattered or sliced, from 0; null: none is."
                            )
                        ),
                        "from_spec": ref("spec", "How the array is split before."),
                        "from_unreduced": texts("Mesh axes of the pending sum before."),
                        "to_spec": ref("spec", "How the array is split after."),
                        "to_unreduced": texts("Mesh axes of the pending sum after."),
                        "shape": counts("Elements of the larger of a device's operand and result."),
                        "dtype": text("The element type."),
                        "bytes": count("Bytes of the larger of a device's operand and result."),
                        "wire_bytes": count("Bytes that one device must send at least."),
                        "reason": text("Why the step is needed, in a sentence with the numbers."),
                    },
                ),
                "The steps, in order.",
            ),
            "result_spec": ref("spec", "How the result is split."),
            "result_unreduced": texts("Mesh axes of the result's pending sum."),
            "wire_bytes": count("Bytes that one device must send at least, in all steps together."),
        },
    ),
}

_MESH = ref("mesh", "The mesh.")

RANKING = {
    "einsum": text("The einsum, or a chain of them with semicolons; empty where there is no candidate."),
    "mesh": nullable(ref("mesh", "The mesh; null where there is no candidate.")),
    "candidates": array_of(
        closed(
            "One way to split the arrays.",
            {
                "arrays": array_of(ref("array", "An array."), "Operands, intermediates, the result."),
                "plan": ref("plan", "The plan for it."),
                "wire_bytes": count("Bytes that one device must send at least."),
                "memory_bytes_per_device": count("Bytes of all operands and results on one device."),
                "multiply_adds_per_device": count("Multiply-adds that one device computes."),
                "best": flag("No other candidate sends less without holding or computing more."),
            },
        ),
        "All candidates, the fewest bytes sent first.",
    ),
}

LAYOUT = {
    "mesh": _MESH,
    "array": closed("The array.", {"role": exactly("array", "The array stands alone."), **_ARRAY}),
    "devices": array_of(
        closed(
            "A device, and what it holds.",
            {
                "id": count("The device's id."),
                "coords": counts("Its place along each mesh axis."),
                "slices": array_of(
                    {**counts("Start and stop."), "minItems": 2, "maxItems": 2},
                    "For each dimension the elements that it holds: from start to before stop.",
                ),
                "shard": count("The number of its shard: equal numbers are equal data."),
            },
        ),
        "Every device, in the mesh's order.",
    ),
}

TRANSLATE = {
    "text": text("The text that was read."),
    "notation": text("The notation that it was read in."),
    "mesh": nullable(ref("mesh", "The mesh; null where the text was read without one.")),
    "arrays": array_of(
        closed(
            "An array of the text.",
            {
                "name": nullable(text("The array's name; null where it has none.")),
                "translations": by_name(
                    {"type": "string"}, "Its text in each notation, by the notation's name."
                ),
                "untranslatable": by_name({"type": "string"}, "Why it has no text in a notation, by name."),
            },
        ),
        "The arrays, in the order of the text.",
    ),
}

TARGETS = {
    "groups": array_of(
        closed(
            "Targets that need the same packages.",
            {
                "group": text("The group's name, and that of the extra of this package."),
                "title": text("What these targets are."),
                "available": flag("They can answer here."),
                "missing": nullable(text("What is not here; null where all is.")),
                "install": nullable(text("The command that installs it; null where nothing does here.")),
                "versions": by_name(
                    {"type": "string"}, "Versions of the packages that are here, by package."
                ),
                "targets": array_of(
                    closed(
                        "A target, or one of many.",
                        {
                            "target": text("A name that --target takes."),
                            "description": text("What answers under that name."),
                        },
                    ),
                    "Targets of the group.",
                ),
                "takes": nullable(text("Which other names the group takes; null: no others.")),
            },
        ),
        "All groups.",
    ),
}

INFO = {
    "versions": by_name({"type": "string"}, "Versions of all that an answer can depend on, by name."),
    "warning": nullable(text("Why these versions do not fit together; null where they do.")),
}
