"""ragged_all_to_all by an all_gather of everything, since JAX has it on GPUs and TPUs alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.stepping.question import CollectiveQuestion


def table_code(question: CollectiveQuestion) -> list[str]:
    """Lines that name, for each receiver and each row of its result, a row of all shards, one behind the
    other; one beyond them where the row stays 0."""
    rows = [f"        {row}," for row in _table(question)]
    return [
        "# On GPUs and TPUs this is jax.lax.ragged_all_to_all, which JAX has not on CPUs: here each device",
        "# takes its rows out of all of them.",
        "rows = jnp.array(",
        "    [",
        *rows,
        "    ]",
        ")",
        "",
        "",
    ]


def ragged_code(shard: str, axes: str) -> list[str]:
    """The lines of one device's function, the last of them its result."""
    return [
        f"everything = jax.lax.all_gather({shard}, {axes}, tiled=True)",
        f"mine = rows[jax.lax.axis_index({axes})]",
        'jnp.take(everything, mine, axis=0, mode="fill", fill_value=0)',
    ]


def _table(question: CollectiveQuestion) -> list[list[int]]:
    sizes = question.operation.parameters["send_sizes"]
    count, height = len(sizes), question.layout.shard_shape[0]
    tall = max(sum(sizes[sender][receiver] for sender in range(count)) for receiver in range(count))
    table = []
    for receiver in range(count):
        line: list[int] = []
        for sender in range(count):
            start = sender * height + sum(sizes[sender][:receiver])
            line += range(start, start + sizes[sender][receiver])
        # Beyond all rows, which `take` fills.
        table.append(line + [count * height] * (tall - len(line)))
    return table
