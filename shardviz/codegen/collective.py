"""One collective as a JAX program: `shard_map` over the mesh, and what every device then holds."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from shardviz.codegen.code_literals import (
    axes_code,
    devices_code,
    dtype_code,
    mesh_code,
    printed_code,
    program_text,
    spec_code,
    tuple_code,
)
from shardviz.compiler.question import UNSAFE
from shardviz.compiler.targets import MAX_CPU_DEVICES
from shardviz.errors import QuestionError
from shardviz.sharding import PartitionSpec

if TYPE_CHECKING:
    from shardviz.stepping.question import CollectiveQuestion


MAX_LISTED = 64
"""Devices whose results are printed."""
MAX_PRINTED = 2**16
"""Numbers of all results; of more the first and the last are printed."""
MAX_WRITTEN = 4096
"""Numbers that the code itself may list."""
MAX_BYTES = 2**31
"""Bytes that the devices may hold together before."""
WIDTH = 92
"""Of the longest lines that need not be longer."""


def collective_code(question: CollectiveQuestion, about: str = "") -> str:
    """A complete program that runs the collective on its numbers.

    It prints the collective that was compiled, and what is left on each device; `about` is a comment above
    the numbers. The addends of a pending sum stand along an extra dimension in front. Raises `QuestionError`
    for a mesh or an array too large for simulated devices.
    """
    layout = question.layout
    mesh = layout.mesh
    if mesh.size > MAX_CPU_DEVICES or layout.bytes_per_device * mesh.size > MAX_BYTES:
        raise QuestionError(
            f"{mesh.size:,} devices with {layout.bytes_per_device:,} bytes each are too much to simulate",
            f"use up to {MAX_CPU_DEVICES:,} devices, and smaller arrays",
        )
    if layout.array.dtype in UNSAFE:
        raise QuestionError(f"XLA for CPU does not move {layout.array.dtype} reliably", "use s4, u4 or s8")
    over = ", ".join(question.operation.axes)
    parts = [
        [f'"""{question.operation.name} over {over} on the mesh {mesh}."""', ""],
        [*_imports(question), ""],
        [*devices_code(mesh.size, layout.array.dtype), ""],
        [*mesh_code(mesh, "Auto"), ""],
        [*[f"# {about}"] * bool(about), *_numbers(question), "", ""],
        [*_program(question), "", ""],
        _run(question),
    ]
    return program_text(parts)


def _imports(question: CollectiveQuestion) -> list[str]:
    lines = ["import re", "", "import jax", "import jax.numpy as jnp"]
    if question.layout.mesh.device_order is not None:
        lines.append("import numpy as np")
    return [*lines, "from jax.sharding import AxisType", "from jax.sharding import PartitionSpec as P"]


def _shape(question: CollectiveQuestion) -> tuple[int, ...]:
    """The shape of the whole array, with the addends of a pending sum in front."""
    layout = question.layout
    addends = (layout.mesh.group_size(layout.spec.unreduced),) if layout.spec.unreduced else ()
    return (*addends, *layout.array.shape)


def _numbers(question: CollectiveQuestion) -> list[str]:
    shape, dtype = _shape(question), dtype_code(question.layout.array.dtype)
    count = math.prod(shape)
    reshape = "" if len(shape) == 1 else f".reshape({tuple_code(shape)})"
    if question.shards is None or question.counted:
        values = f"jnp.arange({count})"
        limit = _distinct(question.layout.array.dtype)
        values += f" % {limit}" if limit and limit < count else ""
        values = f"({values})" if "%" in values else values
        return [f"x = {values}.astype({dtype}){reshape}"]
    numbers = _given(question)
    if len(numbers) > MAX_WRITTEN:
        raise QuestionError(f"{len(numbers):,} numbers are too many to write down", "give fewer")
    listed = f"[{', '.join(map(_number, numbers))}]"
    line = f"x = jnp.array({listed}, dtype={dtype}){reshape}"
    if len(line) <= WIDTH:
        return [line]
    lines = textwrap.wrap(f"{listed},", WIDTH, initial_indent="    ", subsequent_indent="     ")
    return ["x = jnp.array(", *lines, f"    dtype={dtype},", f"){reshape}"]


def _distinct(dtype: str) -> int:
    """The count of whole numbers from 0 on that the dtype holds; 0 where that is more than anything."""
    from shardviz.stepping.question import MAX_COUNTED, counted

    counting = counted(MAX_COUNTED, dtype)
    again = (counting[1:] == counting[0]).nonzero()[0]
    return int(again[0]) + 1 if len(again) else 0


def _given(question: CollectiveQuestion) -> list[object]:
    """The whole array's numbers, in rows."""
    import numpy as np

    layout, shards = question.layout, question.shards
    assert shards is not None
    whole = np.empty(layout.array.shape, dtype=shards.dtype)
    for position in range(layout.mesh.size):
        bounds = layout.slices(layout.block(position))
        whole[tuple(slice(*each) for each in bounds)] = shards[position]
    found: list[object] = whole.reshape(-1).tolist()
    return found


def _number(value: object) -> str:
    text = repr(value)
    return f'float("{text}")' if text.lstrip("-") in ("inf", "nan") else text


def _program(question: CollectiveQuestion) -> list[str]:
    """The function of one device's shard, and what it needs before it."""
    operation = question.operation
    shard, axes = shard_code(question), axes_code(operation.axes)
    before: list[str] = []
    if operation.name == "pbroadcast":
        before = ["# On GPUs this is jax.lax.pbroadcast, which JAX has not on CPUs."]
        body = [f"jax.lax.all_gather({shard}, {axes})[{operation.parameters['source']}]"]
    elif operation.name == "ragged_all_to_all":
        before, body = _ragged_table(question), _ragged_body(shard, axes)
    else:
        body = [f"jax.lax.{operation.name}({shard}, {axes}{_parameters(question)})"]
    *first, last = body
    # Results that no spec joins stand one behind the other, by device.
    last = last if question.final_spec else f"({last})[None]"
    return [*before, "def program(shard):", *(f"    {line}" for line in first), f"    return {last}"]


def _parameters(question: CollectiveQuestion) -> str:
    rank = max(1, question.layout.array.rank)
    written = []
    for name, value in question.operation.parameters.items():
        if name in ("scatter_dimension", "split_axis", "concat_axis"):
            # JAX before 0.12 takes no negative ones here.
            value %= rank
        written.append(f", {name}={list(value) if isinstance(value, tuple) else value}")
    return "".join(written)


def shard_code(question: CollectiveQuestion) -> str:
    """A device's own shard, as the function that `shard_map` calls has it."""
    return "shard[0]" if question.layout.spec.unreduced else "shard"


def into_code(question: CollectiveQuestion) -> str:
    """The spec by which `shard_map` cuts `x` into shards."""
    spec = question.layout.spec
    addends = (spec.unreduced,) if spec.unreduced else ()
    return spec_code(PartitionSpec((*addends, *spec.dims)))


def _run(question: CollectiveQuestion) -> list[str]:
    layout = question.layout
    into = into_code(question)
    out = question.final_spec.replace("'", '"')
    if not out:
        out = spec_code(PartitionSpec((layout.mesh.axis_names,)))
    specs = f"in_specs={into}, out_specs={out}"
    call = f"mapped = jax.shard_map(program, mesh=mesh, {specs}, check_vma=False)"
    lines = [call]
    if len(call) > WIDTH:
        lines = ["mapped = jax.shard_map(", f"    program, mesh=mesh, {specs}, check_vma=False", ")"]
    lines += ["compiled = jax.jit(mapped).lower(x).compile()", "", *printed_code(), ""]
    lines.append("result = compiled(x)")
    if _results(question) > MAX_PRINTED:
        ends = '"from", result.ravel()[0], "to", result.ravel()[-1]'
        return [*lines, f'print("final result:", result.shape, {ends})']
    if layout.mesh.size <= MAX_LISTED:
        data = "shard.data.tolist()" if question.final_spec else "shard.data[0].tolist()"
        lines += [
            "for shard in result.addressable_shards:",
            f'    print(f"device {{shard.device.id}}:", {data})',
        ]
    return [*lines, 'print("final result:", result.tolist())']


def _results(question: CollectiveQuestion) -> int:
    """Numbers that all devices end with, or start with, where these are more."""
    layout, members = question.layout, question.schedule.pattern.group_size
    return layout.mesh.size * math.prod(question.operation.larger(layout.shard_shape, members))


def _ragged_table(question: CollectiveQuestion) -> list[str]:
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


def _ragged_body(shard: str, axes: str) -> list[str]:
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
