"""Text of the options → the objects that they ask about."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.errors import NotationError, QuestionError, quote
from shardviz.notation import parse_mesh
from shardviz.sharding import Layout, Mesh, ShardedArray, canonical_dtype

if TYPE_CHECKING:
    from shardviz.notation import Reading

SHAPE_HINT = "write sizes with x between them: 16384x16384; () is a scalar"
MAX_DIGITS = 19


def mesh_from_text(text: str, device_order: str | None = None) -> Mesh:
    """The mesh, its devices in the order of the ids in `device_order`. Raises `ShardvizError`."""
    mesh = parse_mesh(text)
    if device_order is None:
        return mesh
    ids = []
    for match in re.finditer(r"[^,\s]+", device_order):
        ids.append(_number(match, device_order, "device id", "write the ids with commas: 0,1,3,2"))
    if len(ids) != mesh.size:
        raise QuestionError(
            f"the device order names {len(ids):,} devices, but the mesh {mesh} has {mesh.size:,}",
            "name each device once",
        )
    return replace(mesh, device_order=tuple(ids))


def layout_from_text(shape: str, mesh: Mesh, spec: str, dtype: str | None) -> Layout:
    """The layout that a user wrote; the sharding's text may name the array, its dimensions and its dtype.

    A `dtype` of None is the text's, else bf16. Raises `ShardvizError` for what does not fit.
    """
    from shardviz.notation import Context, read_sharding

    sizes = parse_shape(shape)
    return layout_as_read(sizes, mesh, spec, read_sharding(spec, Context(mesh, len(sizes))), dtype)


def layout_as_read(
    sizes: tuple[int, ...],
    mesh: Mesh,
    spec: str,
    reading: Reading,
    dtype: str | None,
    default_dtype: str = "bf16",
) -> Layout:
    """The layout of an array of these sizes from what `spec` was read as. Raises as `layout_from_text`."""
    shape = "x".join(map(str, sizes)) or "()"
    if reading.spec.rank != len(sizes):
        raise QuestionError(
            f"the spec {quote(spec)} has rank {reading.spec.rank}, but {quote(shape)} has {len(sizes)}",
            "write one entry for each dimension; _ or None leaves a dimension whole",
        )
    if reading.shape is not None and reading.shape != sizes:
        raise QuestionError(
            f"the spec {quote(spec)} has the shape {'x'.join(map(str, reading.shape))}, not {shape}",
            "give the same sizes twice, or a spec without sizes",
        )
    element = canonical_dtype(dtype or reading.dtype or default_dtype)
    array = ShardedArray(reading.name or "A", reading.dim_names, sizes, element, reading.spec)
    return Layout(array, mesh)


def parse_shape(text: str) -> tuple[int, ...]:
    """Read ``8x2048`` (also with ``×``, commas, blanks or brackets). Raises `NotationError`."""
    body = text.strip()
    if body in ("()", "[]", "scalar"):
        return ()
    sizes = []
    for match in re.finditer(r"[^x×X*,\s()\[\]]+|[x×X*,]", text):
        piece = match.group()
        if piece in "x×X*,":
            continue
        sizes.append(_number(match, text, "size", SHAPE_HINT))
    if not sizes:
        raise NotationError("there is no size", text, len(text), hint=SHAPE_HINT)
    return tuple(sizes)


def _number(match: re.Match[str], text: str, what: str, hint: str) -> int:
    digits = match.group()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > MAX_DIGITS:
        raise NotationError(f"{quote(digits, 30)} is not a {what}", text, *match.span(), hint=hint)
    return int(digits)
