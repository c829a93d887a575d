"""What compilers answer: targets with their collectives, passes, and programs read from text."""

from __future__ import annotations

from shardviz.schemas.vocabulary import (
    Schema,
    array_of,
    by_name,
    closed,
    count,
    counts,
    flag,
    nullable,
    number,
    one_of,
    ref,
    text,
    texts,
)

_COLLECTIVES = array_of(ref("collective", "A collective."), "Collectives in program order.")
_SLICES = array_of(
    ref("collective", "A slice."), "Slices that each device takes of its own data; nothing is sent."
)
_MATMULS = array_of(
    ref("collective_matmul", "A collective matmul."),
    "Collectives that the compiler took apart into permutes.",
)
_TOTALS = closed(
    "Sums over all runs of one operation on one device.",
    {
        "count": count("Runs, loops included."),
        "bytes": count("Bytes of the larger of operand and result, over all runs."),
        "wire_bytes": count("Bytes that one device must send at least, over all runs."),
        "unknown": count("Collectives in loops of unknown length, which the sums leave out."),
    },
)

DEFINITIONS: dict[str, Schema] = {
    "collective": closed(
        "A collective of a compiled program.",
        {
            "op": text("HLO's name of the operation, such as all-gather."),
            "name": text("The instruction's name."),
            "axes": texts(
                'Mesh axes of its groups, a sub-axis as "Y:(2)2"; empty where the groups follow none.'
            ),
            "groups": nullable(
                array_of(
                    {"type": "array", "items": {"type": "integer", "minimum": 0}},
                    "Device ids of each group, or (source, target) of a permute; null: too many to list.",
                )
            ),
            "group_count": nullable(count("Groups; null: the text does not tell.")),
            "group_size": count("Devices in each group."),
            "operand_shape": counts("Elements along each dimension of a device's operand."),
            "result_shape": counts("Elements along each dimension of a device's result."),
            "dtype": text("The element type."),
            "arrays": count("Arrays that it combines; the shapes are those of the first."),
            "bytes": count("Bytes of the larger of a device's operand and result, all arrays together."),
            "wire_bytes": count("Bytes that one device must send at least."),
            "count": nullable(count("How often it runs; null: in a loop of unknown length.")),
            "in_branch": flag("It runs only where a branch of a conditional is taken."),
            "source": text("Where in the user's program it comes from; empty where the text does not say."),
            "is_async": flag("It starts and ends in different places of the program."),
            "overlapped": array_of(
                closed(
                    "An instruction that runs while the collective is under way.",
                    {
                        "name": text("The instruction's name."),
                        "op": text("Its opcode, or matmul where it multiplies matrices."),
                        "cycles": nullable(
                            count("Clock cycles by the compiler's estimate; null: it gives none.")
                        ),
                    },
                ),
                "What runs while it is under way, in program order.",
            ),
            "algorithm": nullable(text("How the compiler carries it out; null: it does not say.")),
            "standing": nullable(
                closed(
                    "Where it begins among the program's matmuls; null: not known.",
                    {"matmuls_before": count("Matmuls before it."), "matmuls": count("Matmuls in all.")},
                )
            ),
            "between_slices": flag("It crosses the data-center network between TPU slices."),
            "is_host_transfer": flag("It goes between a device and its host, not between devices."),
        },
    ),
    "collective_matmul": closed(
        "A gather before a matmul, or a scatter after it, taken apart into permutes around a ring.",
        {
            "op": one_of("The collective that was taken apart.", "all-gather", "reduce-scatter"),
            "axes": texts("Mesh axes of the ring."),
            "directions": count(
                "1 where all permutes go the same way around the ring, 2 where they go both ways."
            ),
            "group_size": count("Devices of the ring."),
            "permutes": texts("Names of the permutes, in program order."),
            "matmuls": texts("Names of the partial matmuls, in program order."),
            "bytes": count("Bytes of the larger of a device's operand and result of the whole collective."),
            "wire_bytes": nullable(
                count("Bytes that one device sends in all permutes; null: in a loop of unknown length.")
            ),
            "source": text("Where in the user's program it comes from; empty where the text does not say."),
        },
    ),
    "placement": closed(
        "Where the mesh lies on the chips.",
        {
            "torus": counts(
                "Chips along each axis of a slice's torus; empty for GPUs, whose nodes are switches."
            ),
            "wrap": array_of({"type": "boolean"}, "For each axis of the torus whether it closes to a ring."),
            "axes": array_of(
                closed(
                    "A mesh axis on the machine.",
                    {
                        "axis": text("The mesh axis."),
                        "along": texts(
                            "What it runs along, the fastest last: x, y, z, core and slice, or gpu and node."
                        ),
                        "hops": nullable(
                            count(
                                "Links between neighbours at most; null: they are on several slices or nodes."
                            )
                        ),
                        "is_ring": flag(
                            "Three devices or more, of which the last is as near to the first as neighbours."
                        ),
                    },
                ),
                "Every mesh axis, in the mesh's order.",
            ),
            "devices": array_of(
                closed(
                    "A device on the machine.",
                    {
                        "id": count("The device's id."),
                        "coords": counts("Its chip's place in the torus; empty for a GPU."),
                        "core": count("Its core on the chip, or the GPU's number in its node."),
                        "slice": count("Its slice, or node."),
                    },
                ),
                "Every device, by its position in the mesh.",
            ),
        },
    ),
    "target": closed(
        "A target's answer.",
        {
            "target": text("The target's name."),
            "status": one_of("Whether it answered.", "ok", "error", "unavailable"),
            "error": nullable(text("Why it did not; null where it did.")),
            "hint": nullable(text("What would help; null: nothing is known to.")),
            "result_spec": nullable(ref("spec", "How the result is split; null: not known.")),
            "result_unreduced": texts("Mesh axes of the result's pending sum."),
            "collectives": _COLLECTIVES,
            "slices": _SLICES,
            "collective_matmuls": _MATMULS,
            "partitioned": nullable(
                array_of(
                    ref("collective", "A collective."),
                    "Collectives right after partitioning, before the backend rewrote them; null: not known.",
                )
            ),
            "placement": nullable(
                ref("placement", "Where the mesh lies on a TPU or GPU target; null elsewhere.")
            ),
            "elapsed_s": number("Seconds from the request to the answer."),
            "versions": by_name({"type": "string"}, "Versions of what answered, by package."),
        },
        {
            "typeof": by_name({"type": "string"}, "What jax.typeof says of each array under Explicit axes."),
            "text": text("The program that was read, with --hlo."),
        },
    ),
}

EXPLAIN = {
    "problem": ref("problem", "What is asked."),
    "plan": ref("plan", "What should happen, and why."),
    "targets": array_of(ref("target", "A target's answer."), "What the compilers make of it."),
    "differences": array_of(
        closed(
            "A difference between the plan and a target.",
            {
                "target": text("The target's name."),
                "code": text("A stable name of the kind of difference, such as promoted_dtype."),
                "message": text("The cause, in a sentence with the numbers."),
            },
        ),
        "Where targets depart from the plan.",
    ),
}

PASSES = {
    "einsum": text("The einsum, or a chain of them with semicolons."),
    "mesh": ref("mesh", "The mesh."),
    "axis_types": one_of("JAX's type of all mesh axes.", "auto", "explicit"),
    "answer": ref("target", "The target's answer."),
    "stages": array_of(
        closed(
            "A stage of the compiler that changed shardings or collectives.",
            {
                "stage": count("Its number, from 1."),
                "kind": one_of("What it is.", "input", "propagation", "partitioner", "rewrite", "schedule"),
                "title": text("What it did, in a few words."),
                "pass": text("The compiler's name of the pass."),
                "changes": texts("What it changed, a sentence each."),
                "splits": array_of(
                    closed(
                        "A tensor that it split.",
                        {
                            "name": text("The tensor's name."),
                            "op": text("The operation that makes it."),
                            "shape": counts("Elements along each dimension."),
                            "dtype": text("The element type."),
                            "before": nullable(ref("spec", "How it was split; null: it was left open.")),
                            "spec": nullable(ref("spec", "How it is split; null: it is left open.")),
                            "unreduced": texts("Mesh axes of its pending sum."),
                        },
                    ),
                    "The shardings that it decided; at the input those that were given.",
                ),
                "before": array_of(ref("collective", "A collective."), "Collectives before it."),
                "after": array_of(ref("collective", "A collective."), "Collectives after it."),
            },
            {"diff": texts("Lines of a unified diff of the program, where --diff asks for this stage.")},
        ),
        "The stages, in order.",
    ),
}

HLO = {
    "module": text("The module's name."),
    "dialect": one_of("The text's language.", "hlo", "mlir"),
    "num_partitions": nullable(count("Partitions of the program; null: only HLO says.")),
    "replica_count": nullable(count("Replicas of the program; null: only HLO says.")),
    "num_slices": nullable(count("TPU slices that it runs on; null: only HLO says.")),
    "is_scheduled": flag("The instructions stand in the order in which they run."),
    "collective_matmuls": _MATMULS,
    "mesh": nullable(ref("mesh", "The mesh whose axes the collectives name; null: none is known.")),
    "is_mesh_inferred": flag("The mesh was found in the groups."),
    "totals": by_name(_TOTALS, "Totals by HLO's name of the operation, within a slice."),
    "totals_between_slices": by_name(_TOTALS, "Totals by HLO's name, between TPU slices."),
    "totals_of_host_transfers": by_name(_TOTALS, "Totals by HLO's name, between devices and their hosts."),
    "collectives": _COLLECTIVES,
    "slices": _SLICES,
    "unread": texts("What could not be read, a sentence each."),
    "unread_collectives": count("Collectives that could not be read."),
    "awaits_partitioner": flag("The program is not partitioned yet: the compiler will insert collectives."),
}
