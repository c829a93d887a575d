"""A collective round by round, and its algorithms side by side."""

from __future__ import annotations

from shardviz.schemas.vocabulary import (
    Schema,
    anything,
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

_LINK = array_of(
    {"anyOf": [{"type": "integer", "minimum": 0}, {"const": "switch"}]},
    "A link, from one device's id to the other's, or the switch in the middle; null: nothing is sent.",
)
_VALUES = anything("Numbers as nested lists, NaN and infinities as text, complex ones as [real, imaginary].")
_WAITING = nullable(count("Messages that wait for a link; null: the queues are too long to follow."))
_SECONDS = number(
    "Seconds by store and forward over shortest paths; a lower bound where queues are too long."
)

DEFINITIONS: dict[str, Schema] = {
    "device_values": closed(
        "A device and its numbers.",
        {
            "id": count("The device's id."),
            "coords": counts("Its place along each mesh axis."),
            "values": _VALUES,
        },
    ),
    "algorithm": {
        "description": "An algorithm, or why it cannot be compared.",
        "oneOf": [
            closed(
                "An algorithm, in numbers.",
                {
                    "algorithm": text("The algorithm's name."),
                    "rounds": count("Rounds in all."),
                    "wire_bytes": count("Bytes that one device sends at most, over all rounds."),
                    "busiest_bytes": count("Bytes that the busiest link carries, over all rounds."),
                    "waiting_messages": _WAITING,
                    "seconds": _SECONDS,
                },
            ),
            closed(
                "An algorithm without numbers.",
                {"algorithm": text("The algorithm's name."), "reason": text("Why it has none.")},
            ),
        ],
    },
}

_QUESTION = {
    "op": text("JAX's name of the collective, such as all_gather."),
    "axes": texts("Mesh axes of its groups, the major one first."),
    "parameters": by_name(anything("A value."), "JAX's parameters, by name."),
    "mesh": ref("mesh", "The mesh."),
    "shape": counts("Elements along each dimension of the whole array."),
    "dtype": text("The element type."),
    "spec": text("How the array is split, as text."),
    "shard_shape": counts("Elements along each dimension of one device's shard."),
    "bytes": count("Bytes of the larger of a device's operand and result."),
    "topology": text("How the devices of a group are joined."),
    "latency_s": number("Seconds of one hop."),
    "bandwidth_bytes_per_s": {
        "description": "Bytes a second of one link, one way; inf where that takes no time.",
        "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"const": "inf"}],
    },
    "chip": nullable(text("The chip that has such links; null where their figures were given.")),
    "optimum": closed(
        "The least that any algorithm needs.",
        {
            "rounds": count("Rounds, where a device sends one message a round."),
            "wire_bytes": count("Bytes that one device must send."),
        },
    ),
}
_ALGORITHMS = array_of(ref("algorithm", "An algorithm."), "Every algorithm that can carry it out.")

STEP = {
    **_QUESTION,
    "algorithm": text("The algorithm that is followed."),
    "groups": array_of(
        {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "Device ids of each group; all groups run at the same time.",
    ),
    "chunks": count("Chunks that a device's data is cut into."),
    "before": nullable(
        array_of(ref("device_values", "A device."), "What every device holds before; null: no numbers.")
    ),
    "rounds": array_of(
        closed(
            "A round.",
            {
                "round": count("Its number, from 1."),
                "phase": text("What the rounds of its part of the algorithm do together."),
                "sends": array_of(
                    closed(
                        "A chunk on its way from one device to another.",
                        {
                            "src": count("The sender's id."),
                            "dst": count("The receiver's id."),
                            "chunk": count("The chunk's number, from 0."),
                            "bytes": count("Bytes of the chunk."),
                            "reduce": flag("The receiver adds it to what it has; else it takes its place."),
                        },
                    ),
                    "Everything that is sent, in all groups.",
                ),
                "device_bytes": count("Bytes that one device sends at most."),
                "busiest_link": nullable(_LINK),
                "busiest_bytes": count("Bytes on the busiest link."),
                "links": array_of(
                    closed(
                        "A link of the first group.",
                        {
                            "ends": _LINK,
                            "bytes": count("Bytes that it carries."),
                        },
                    ),
                    "Links of the first group that carry something.",
                ),
                "waiting_messages": _WAITING,
                "hops": count("Links that all messages of a group cross together."),
                "seconds": _SECONDS,
            },
        ),
        "The rounds, in order.",
    ),
    "after": nullable(
        array_of(ref("device_values", "A device."), "What every device holds after; null: no numbers.")
    ),
    "result": nullable(
        closed(
            "What shard_map returns; null: no numbers, or scalars that cannot be joined.",
            {
                "dtype": text("The element type."),
                "shape": counts("Elements along each dimension."),
                "spec": text("How it is split, as text."),
                "values": _VALUES,
            },
        )
    ),
    "wire_bytes": count("Bytes that one device sends at most, over all rounds."),
    "busiest_bytes": count("Bytes that the busiest link carries, over all rounds."),
    "waiting_messages": _WAITING,
    "seconds": _SECONDS,
    "algorithms": _ALGORITHMS,
    "verified_against": nullable(
        one_of("Whose result agrees; null: nobody was asked, or the results differ.", "cpu", "real")
    ),
    "verdict": nullable(
        one_of(
            "How JAX's result compares, bit for bit or within rounding; null: nobody was asked.",
            *("equal", "rounding", "different"),
        )
    ),
    "program": nullable(text("What JAX ran; null: nothing.")),
}

COMPARISON = {
    **_QUESTION,
    "algorithms": _ALGORITHMS,
    "crossovers": array_of(
        closed(
            "The fastest algorithm from a payload on.",
            {"from_bytes": count("Bytes of the payload."), "algorithm": text("The algorithm's name.")},
        ),
        "Which algorithm is fastest, from small payloads to large ones.",
    ),
    "left_out": array_of(
        closed(
            "An algorithm that was not compared over payloads.",
            {"algorithm": text("The algorithm's name."), "reason": text("Why it was not.")},
        ),
        "Algorithms that the crossovers leave out.",
    ),
}
