"""A layout in two texts: the array's shape, and how it is split, in any notation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.notation.notations import read_sharding
from shardviz.notation.reading import Context
from shardviz.notation.shape import parse_shape
from shardviz.sharding import Layout, ShardedArray, canonical_dtype

if TYPE_CHECKING:
    from shardviz.notation.reading import Reading
    from shardviz.sharding import Mesh


def parse_layout(shape: str, mesh: Mesh, spec: str, dtype: str | None) -> Layout:
    """The layout that a user wrote; the sharding's text may name the array, its dimensions and its dtype.

    A `dtype` of None is the text's, else bf16. Raises `ShardvizError` for what does not fit.
    """
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
    """The layout of an array of these sizes from what `spec` was read as. Raises as `parse_layout`."""
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
    element = canonical_dtype((reading.dtype or default_dtype) if dtype is None else dtype)
    array = ShardedArray(reading.name or "A", reading.dim_names, sizes, element, reading.spec)
    return Layout(array, mesh)
