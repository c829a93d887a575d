"""One collective as a JAX program: by `jax.lax`, and the same by hand, one ppermute an exchange."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.codegen import code_literals as code
from shardviz.collectives.operations.several_dims import OfSeveral, PSumScatterOfSeveral
from shardviz.errors import QuestionError
from shardviz.planner.problem.jax_code import dtype_code
from shardviz.sharding import PartitionSpec
from shardviz.stepping.question import CollectiveQuestion, distinct, joined
from shardviz.targets import MAX_CPU_DEVICES, UNSAFE

if TYPE_CHECKING:
    from shardviz.collectives.operation import Operation
    from shardviz.collectives.schedule import Sends
    from shardviz.stepping.collective_run import CollectiveRun

MAX_LISTED = 64
MAX_PRINTED = 2**16
"""Numbers of all results; of more the first and the last are printed."""
MAX_WRITTEN = 4096
MAX_BYTES = 2**31
"""Bytes that the devices may hold together before."""
MAX_EXCHANGES = 64
"""Exchanges by hand that one program compiles, each a ppermute."""
MAX_SENDS = 2048
MAX_NUMBERS = 2**12
"""Numbers that all devices may hold in their shards, to be printed after every round."""

Exchange = tuple[str, list[tuple[int, int, int]]]
"""The receiver's part, "take" or "add", and (from, to, chunk) where each sends once and is sent once."""


def collective_code(question: CollectiveQuestion, about: str = "") -> str:
    """A complete program that runs the collective on its numbers, and prints the collective that was compiled
    and what is left on each device. `about` is a comment above the numbers. The addends of a pending sum
    stand along an extra dimension in front. Raises `QuestionError` for a mesh or an array too large for
    simulated devices."""
    layout = question.layout
    mesh = layout.mesh
    if mesh.size > MAX_CPU_DEVICES or layout.bytes_per_device * mesh.size > MAX_BYTES:
        problem = (
            f"{mesh.size:,} devices with {layout.bytes_per_device:,} bytes each are too much to simulate"
        )
        raise QuestionError(problem, f"use up to {MAX_CPU_DEVICES:,} devices, and smaller arrays")
    if layout.array.dtype in UNSAFE:
        raise QuestionError(f"XLA for CPU does not move {layout.array.dtype} reliably", "use s4, u4 or s8")
    operation = question.operation
    before, (*first, last) = shard_code(
        operation, layout.shard_shape, _shard(question), code.axes_code(operation.axes)
    )
    # Results that no spec joins stand one behind the other, by device.
    last = last if question.final_spec else f"({last})[None]"
    parts = [
        [*code.devices_code(mesh.size, layout.array.dtype), ""],
        [*code.mesh_code(mesh, "Auto"), ""],
        [*[f"# {about}"] * bool(about), *_numbers(question), "", ""],
        [*before, "def program(shard):", *(f"    {line}" for line in first), f"    return {last}", "", ""],
        _run(question),
    ]
    return code.program_text(f"{operation.name} over {', '.join(operation.axes)} on the mesh {mesh}.", parts)


def _numbers(question: CollectiveQuestion) -> list[str]:
    layout = question.layout
    shape = code.stacked_shape(layout.array.shape, layout.spec, layout.mesh)
    dtype = dtype_code(layout.array.dtype)
    count = math.prod(shape)
    reshape = "" if len(shape) == 1 else f".reshape({code.tuple_code(shape)})"
    if question.shards is None or question.counted:
        values = f"jnp.arange({count})"
        limit = distinct(layout.array.dtype)
        values += f" % {limit}" if limit < count else ""
        values = f"({values})" if "%" in values else values
        return [f"x = {values}.astype({dtype}){reshape}"]
    numbers = joined(question.shards, layout).reshape(-1).tolist()
    if len(numbers) > MAX_WRITTEN:
        raise QuestionError(f"{len(numbers):,} numbers are too many to write down", "give fewer")
    words = map(repr, numbers)
    listed = ", ".join(f'float("{word}")' if word.lstrip("-") in ("inf", "nan") else word for word in words)
    listed = f"[{listed}]"
    line = f"x = jnp.array({listed}, dtype={dtype}){reshape}"
    if len(line) <= code.WIDTH:
        return [line]
    lines = textwrap.wrap(f"{listed},", code.WIDTH, initial_indent="    ", subsequent_indent="     ")
    return ["x = jnp.array(", *lines, f"    dtype={dtype},", f"){reshape}"]


def shard_code(
    operation: Operation, shape: tuple[int, ...], shard: str, axes: str
) -> tuple[list[str], list[str]]:
    """The lines before the function of one device's shard, and its own, the last its result, for all
    platforms."""
    if operation.name == "pbroadcast":
        before = ["# On GPUs this is jax.lax.pbroadcast, which JAX lacks on CPUs."]
        return before, [f"jax.lax.all_gather({shard}, {axes})[{operation.parameters['source']}]"]
    if operation.name == "ragged_all_to_all":
        return _ragged_code(operation.parameters["send_sizes"], shape[0], shard, axes)
    if isinstance(operation, OfSeveral):
        # The pieces for each device, along a dimension in front, are sent; what arrives is put together.
        pieces = f"pieces = {code.rearranged_code(shard, operation.deal(shape))}"
        if isinstance(operation, PSumScatterOfSeveral):
            return [], [pieces, f"jax.lax.psum_scatter(pieces, {axes})"]
        sent = f"arrived = jax.lax.all_to_all(pieces, {axes}, 0, 0, tiled=True)"
        return [], [pieces, sent, code.rearranged_code("arrived", operation.collect(shape))]
    given = code.parameters_code(operation.parameters, len(shape))
    return [], [f"jax.lax.{operation.name}({shard}, {axes}{given})"]


def _shard(question: CollectiveQuestion) -> str:
    """A device's own shard, as the function that `shard_map` calls has it."""
    return "shard[0]" if question.layout.spec.unreduced else "shard"


def _run(question: CollectiveQuestion) -> list[str]:
    layout = question.layout
    out = question.final_spec.replace("'", '"') or code.spec_code(PartitionSpec((layout.mesh.axis_names,)))
    lines = code.mapped_code("program", code.shard_map_spec(layout.spec), out)
    lines += [
        "compiled = jax.jit(mapped).lower(x).compile()",
        "",
        *code.text_lines("collectives"),
        "",
        "result = compiled(x)",
    ]
    # The numbers that all devices end with, or start with, where these are more.
    most = question.operation.larger(layout.shard_shape, question.schedule.pattern.group_size)
    if layout.mesh.size * math.prod(most) > MAX_PRINTED:
        ends = '"from", result.ravel()[0], "to", result.ravel()[-1]'
        return [*lines, f'print("final result:", result.shape, {ends})']
    if layout.mesh.size <= MAX_LISTED:
        data = "shard.data.tolist()" if question.final_spec else "shard.data[0].tolist()"
        lines += [
            "for shard in result.addressable_shards:",
            f'    print(f"device {{shard.device.id}}:", {data})',
        ]
    return [*lines, 'print("final result:", result.tolist())']


def _ragged_code(
    sizes: Sequence[Sequence[int]], height: int, shard: str, axes: str
) -> tuple[list[str], list[str]]:
    """Lines that name, for each receiver and each row of its result, a row of all shards, one behind the
    other; one beyond them where the row stays 0. And the lines of one device's function."""
    tall = max(map(sum, zip(*sizes, strict=True)))
    rows = "\n".join(f"{_rows_code(sizes, height, receiver, tall)}," for receiver in range(len(sizes)))
    before = code.text_lines("gathered rows", rows=rows, dtype="" if tall else ", dtype=int")
    return before, code.text_lines("ragged", shard=shard, axes=axes)


def _rows_code(sizes: Sequence[Sequence[int]], height: int, receiver: int, tall: int) -> str:
    """The rows of a receiver in ranges; then one beyond all, which `take` fills."""
    starts = [sender * height + sum(row[:receiver]) for sender, row in enumerate(sizes)]
    taken = [range(start, start + row[receiver]) for start, row in zip(starts, sizes, strict=True)]
    beyond, left = len(sizes) * height, tall - sum(map(len, taken))
    parts = [*(f"*{rows}" for rows in taken if rows), *[f"*[{beyond}] * {left}"] * bool(left)]
    return f"[{', '.join(parts)}]"


def rounds_code(run: CollectiveRun) -> str:
    """The program of `collective_code`, then its rounds by `jax.lax.ppermute` and a check that both agree: of
    counted numbers on a smaller array, and only the first program where there is too much to list, and of a
    collective that is a ppermute itself."""
    question, about = run.question, ""
    is_given = question.shards is not None and not question.counted
    if not _is_small(question) and not is_given:
        from shardviz.stepping.collective_run import small_example

        # The smallest array of which no chunk is empty.
        if (small := small_example(replace(question, shards=None))) is not None:
            shape = "×".join(map(str, question.layout.array.shape))
            question, about = small, f"A smaller array than {shape}, so that every round can be printed."
    buffer = _buffer(question)
    rounds = _rounds(question) if buffer is not None else []
    if not rounds or buffer is None:
        return collective_code(run.question)
    start, end = buffer
    listed = [
        "",
        "",
        f"# The same by hand, with the {question.schedule.algorithm} algorithm. Each exchange of a round:",
        "# whether the receiver takes or adds a chunk, and the sends as (from, to, chunk).",
        "rounds = [",
    ]
    for number, (phase, exchanges) in enumerate(rounds, 1):
        listed.append(f"    [  # {number}: {phase}")
        listed += [f'        ("{what}", {sends}),' for what, sends in exchanges]
        listed.append("    ],")
    parts = [[*listed, "]", "", ""], [*_by_hand(question, start, end), "", ""], _compared(question)]
    return collective_code(question, about) + code.lines_text(parts)


def _is_small(question: CollectiveQuestion) -> bool:
    layout = question.layout
    return math.prod(layout.shard_shape) * layout.mesh.size <= MAX_NUMBERS


def _buffer(question: CollectiveQuestion) -> tuple[str, str] | None:
    """Code for the chunks of a shard, and for the result of the chunks; None if cut otherwise."""
    operation, shape, chunks = question.operation, question.layout.shard_shape, question.schedule.chunks
    members = question.schedule.pattern.group_size
    shard, given = _shard(question), operation.parameters
    mine = f"jnp.zeros(({chunks}, *{shard}.shape), {shard}.dtype).at[me].set({shard})"
    is_other = isinstance(operation, OfSeveral) or question.layout.array.dtype == "pred"
    if is_other or not _is_small(question):
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
    rounds: list[tuple[str, list[Exchange]]] = []
    sends = exchanges = 0
    for number in range(1, schedule.rounds + 1):
        sent = schedule.round(number).expanded(schedule.chunks)
        sends += len(sent)
        if sends > MAX_SENDS:
            return []
        rounds.append((schedule.phase(number)[0].name, _exchanges(sent)))
        exchanges += len(rounds[-1][1])
        if exchanges > MAX_EXCHANGES:
            return []
    return rounds


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


def _by_hand(question: CollectiveQuestion, start: str, end: str) -> list[str]:
    axes = code.axes_code(question.operation.axes)
    members, chunks = question.schedule.pattern.group_size, question.schedule.chunks
    *first, made = start.split("\n")
    same = "jnp.array_equal(result, wanted)"
    if question.schedule.pattern.reduces and question.layout.array.dtype[0] not in "su":
        # Floats depend on the order in which they are added.
        same = "jnp.allclose(result, wanted, rtol=0.01, equal_nan=True)"
    return code.text_lines(
        "by hand",
        axes=axes,
        start="\n".join([*first, f"chunks = {made}"]),
        members=members,
        chunks=chunks,
        permuted="\n".join(_permuted(question)),
        end=end,
        same=same.replace("wanted", "wanted.reshape(result.shape)"),
    )


def _permuted(question: CollectiveQuestion) -> list[str]:
    """The lines of one exchange. JAX's ppermute counts the members by the mesh's own order of the axes."""
    mesh, axes = question.layout.mesh, question.operation.axes
    ordered = tuple(axis for axis in mesh.axis_names if axis in axes)
    exchange = f"arrived = jax.lax.ppermute(history[-1][mine], {code.axes_code(ordered)}, pairs)"
    if ordered == axes:
        return ["pairs = [(src, dst) for src, dst, _ in sends]", exchange]
    counted = mesh.groups(ordered)[0]
    numbers = [counted.index(position) for position in mesh.groups(axes)[0]]
    return [
        "# ppermute counts by the mesh's own order of the axes.",
        f"number = {numbers}",
        "pairs = [(number[src], number[dst]) for src, dst, _ in sends]",
        exchange,
    ]


def _compared(question: CollectiveQuestion) -> list[str]:
    layout, reduces = question.layout, question.schedule.pattern.reduces
    into, out = code.shard_map_spec(layout.spec), f"P({code.axes_code(layout.mesh.axis_names)})"
    before = "before" if reduces else "before (0: not received yet)"
    return [*code.mapped_code("by_hand", into, out), *code.text_lines("compared", before=before)]
