"""A collective as a JAX program, and the same by hand: the rounds of its schedule, one ppermute each."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.codegen.code_literals import axes_code, program_text, tuple_code
from shardviz.codegen.collective import collective_code, into_code, shard_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shardviz.collectives import Sends
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.stepping.question import CollectiveQuestion


MAX_EXCHANGES = 64
"""That one program compiles, each a ppermute."""
MAX_SENDS = 2048
"""That a program lists."""
MAX_NUMBERS = 2**12
"""That all devices hold in their shards, to be printed after every round."""

Exchange = tuple[str, list[tuple[int, int, int]]]
"""The receiver's part, "take" or "add", and (from, to, chunk) where each sends once and is sent once."""


def rounds_code(walk: CollectiveRun) -> str:
    """The program of `collective_code`, then its rounds by `jax.lax.ppermute` and a check that both agree.

    Of an array with many numbers, all of them counted, a smaller one takes the place. Only the first program
    where there is too much to list, and of a collective that is a ppermute itself. Raises as
    `collective_code` does.
    """
    question, about = walk.question, ""
    if not _is_small(question) and (small := _smaller(question)) is not None:
        shape = "×".join(map(str, question.layout.array.shape))
        question, about = small, f"In place of {shape}: few enough numbers to print them round by round."
    buffer = _buffer(question)
    rounds = _rounds(question) if buffer is not None else []
    if not rounds or buffer is None:
        return collective_code(walk.question)
    start, end = buffer
    parts = [["", ""], [*_listed(question, rounds), "", ""], [*_by_hand(question, start, end), "", ""]]
    return collective_code(question, about) + program_text([*parts, _compared(question)])


def _is_small(question: CollectiveQuestion) -> bool:
    layout = question.layout
    return math.prod(layout.shard_shape) * layout.mesh.size <= MAX_NUMBERS


def _smaller(question: CollectiveQuestion) -> CollectiveQuestion | None:
    """The same on the smallest array of which no chunk is empty; None where the numbers are given."""
    if question.shards is not None and not question.counted:
        return None
    from shardviz.stepping.collective_run import small_example

    return small_example(replace(question, shards=None))


def _buffer(question: CollectiveQuestion) -> tuple[str, str] | None:
    """Code for the chunks of a shard, and for the result of the chunks; None if cut otherwise."""
    operation, shape, chunks = question.operation, question.layout.shard_shape, question.schedule.chunks
    members = question.schedule.pattern.group_size
    shard, given = shard_code(question), operation.parameters
    mine = f"jnp.zeros(({chunks}, *{shard}.shape), {shard}.dtype).at[me].set({shard})"
    if question.layout.array.dtype == "pred" or not _is_small(question):
        return None
    if operation.name == "all_gather" and chunks == members:
        axis = given["axis"]
        joined = f"jnp.concatenate([*chunks], {axis})" if given["tiled"] else f"jnp.stack([*chunks], {axis})"
        return mine, joined
    if operation.name == "psum_scatter" and chunks == members:
        dim = given["scatter_dimension"]
        if given["tiled"]:
            return f"jnp.stack(jnp.split({shard}, {members}, {dim}))", "chunks[me]"
        return f"jnp.moveaxis({shard}, {dim}, 0)", "chunks[me]"
    if operation.name == "psum" and math.prod(shape) % chunks == 0:
        return f"{shard}.reshape({chunks}, -1)", f"chunks.reshape({shard}.shape)"
    if operation.name == "all_to_all" and chunks == members**2 and given["tiled"]:
        blocks = f"jnp.stack(jnp.split({shard}, {members}, {given['split_axis']}))"
        start = f"jnp.zeros(({members}, *blocks.shape), blocks.dtype).at[me].set(blocks)"
        every = f"chunks.reshape({members}, {members}, *blocks.shape[1:])"
        end = f"jnp.concatenate([*{every}[:, me]], {given['concat_axis']})"
        return f"blocks = {blocks}\n{start}.reshape({chunks}, *blocks.shape[1:])", end
    return None


def _rounds(question: CollectiveQuestion) -> list[tuple[str, list[Exchange]]]:
    """The rounds, each with its phase's name; none where they are too many."""
    schedule = question.schedule
    found: list[tuple[str, list[Exchange]]] = []
    sends = exchanges = 0
    for number in range(1, schedule.rounds + 1):
        sent = schedule.round(number).expanded(schedule.chunks)
        sends += len(sent)
        if sends > MAX_SENDS:
            return []
        found.append((schedule.phase(number)[0].name, _exchanges(sent)))
        exchanges += len(found[-1][1])
        if exchanges > MAX_EXCHANGES:
            return []
    return found


def _exchanges(sends: Sends) -> list[Exchange]:
    """One round as ppermutes: in each, every member sends at most once and is sent at most once."""
    exchanges: list[Exchange] = []
    columns = (sends.src.tolist(), sends.dst.tolist(), sends.chunk.tolist(), sends.reduce.tolist())
    for src, dst, chunk, adds in zip(*columns, strict=True):
        what = "add" if adds else "take"
        for verb, listed in exchanges:
            if verb == what and all(src != other and dst != to for other, to, _ in listed):
                listed.append((src, dst, chunk))
                break
        else:
            exchanges.append((what, [(src, dst, chunk)]))
    return exchanges


def _listed(question: CollectiveQuestion, rounds: Sequence[tuple[str, list[Exchange]]]) -> list[str]:
    lines = [
        f"# The same by hand, as {question.schedule.algorithm} does it. In a round, some exchanges: what the",
        "# receiver does, and who sends which chunk: (from, to, chunk).",
        "rounds = [",
    ]
    for number, (phase, exchanges) in enumerate(rounds, 1):
        lines.append(f"    [  # {number}: {phase}")
        lines += [f'        ("{what}", {sends}),' for what, sends in exchanges]
        lines.append("    ],")
    return [*lines, "]"]


def _by_hand(question: CollectiveQuestion, start: str, end: str) -> list[str]:
    """The function of one device."""
    axes = axes_code(question.operation.axes)
    members, chunks = question.schedule.pattern.group_size, question.schedule.chunks
    *first, made = start.split("\n")
    same = "jnp.array_equal(result, wanted)"
    if question.schedule.pattern.reduces and question.layout.array.dtype[0] not in "su":
        # Floats depend on the order in which they are added.
        same = "jnp.allclose(result, wanted, rtol=0.01, equal_nan=True)"
    return [
        "def by_hand(shard):",
        f"    me = jax.lax.axis_index({axes})",
        *(f"    {line}" for line in first),
        f"    chunks = {made}",
        "    history = [chunks]",
        "    for exchanges in rounds:",
        "        for what, sends in exchanges:",
        "            sent = {src: chunk for src, _, chunk in sends}",
        "            come = {dst: chunk for _, dst, chunk in sends}",
        f"            mine = jnp.array([sent.get(member, 0) for member in range({members})])[me]",
        f"            # Where nothing comes, it goes beyond the last of {chunks} chunks, and is dropped.",
        f"            place = jnp.array([come.get(member, {chunks}) for member in range({members})])[me]",
        *_permuted(question),
        "            there = chunks.at[place]",
        '            added = there.add(arrived, mode="drop")',
        '            chunks = added if what == "add" else there.set(arrived, mode="drop")',
        "        history.append(chunks)",
        f"    result, wanted = {end}, program(shard)",
        f"    same = {same.replace('wanted', 'wanted.reshape(result.shape)')}",
        "    return same[None], jnp.stack(history)[None]",
    ]


def _permuted(question: CollectiveQuestion) -> list[str]:
    """The lines of one exchange. JAX's ppermute counts the members by the mesh's own order of the axes."""
    mesh, axes = question.layout.mesh, question.operation.axes
    ordered = tuple(axis for axis in mesh.axis_names if axis in axes)
    exchange = f"            arrived = jax.lax.ppermute(history[-1][mine], {axes_code(ordered)}, pairs)"
    if ordered == axes:
        return ["            pairs = [(src, dst) for src, dst, _ in sends]", exchange]
    counted = mesh.groups(ordered)[0]
    numbers = [counted.index(position) for position in mesh.groups(axes)[0]]
    return [
        "            # ppermute counts by the mesh's own order of the axes.",
        f"            number = {numbers}",
        "            pairs = [(number[src], number[dst]) for src, dst, _ in sends]",
        exchange,
    ]


def _compared(question: CollectiveQuestion) -> list[str]:
    mesh = question.layout.mesh
    every = f"P({tuple_code(mesh.axis_names) if len(mesh.axis_names) > 1 else axes_code(mesh.axis_names)})"
    lines = [
        "mapped = jax.shard_map(",
        f"    by_hand, mesh=mesh, in_specs={into_code(question)}, out_specs={every}, check_vma=False",
        ")",
        "same, history = jax.device_get(jax.jit(mapped)(x))",
        "assert same.all()",
        'print("round by round the result is the same")',
    ]
    whole = question.schedule.pattern.reduces
    before = "before" if whole else "before, with 0 where nothing has come"
    return [
        *lines,
        "for number in range(history.shape[1]):",
        f'    print(f"after round {{number}}:" if number else "{before}:")',
        "    for device, chunks in zip(mesh.devices.flat, history[:, number]):",
        '        print(f"    device {device.id}:", chunks.tolist())',
    ]
