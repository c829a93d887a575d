"""What can be read of a draft, field by field: for edits, which go on where other fields are wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from shardviz.drafts.draft import OPEN, Draft, Row
from shardviz.drafts.reader_errors import reader_errors
from shardviz.drafts.rows import Einsums, read_einsums
from shardviz.errors import QuestionError, ShardvizError

if TYPE_CHECKING:
    from shardviz.notation import Reading
    from shardviz.sharding import Mesh, PartitionSpec

_SPEC_STRING = re.compile(r"[\w ]*")
"""Texts that no other notation could mean."""

Spec: TypeAlias = "PartitionSpec | str | None"
"""A row's spec, None where it is open, its text where that cannot be read."""


@lru_cache(maxsize=8)  # an order of many devices takes long to read, and seldom changes
@reader_errors()
def read_mesh(text: str, device_order: str) -> Mesh:
    """The mesh, its devices in an order, or as JAX has them where that is empty. Raises `ShardvizError`."""
    from shardviz.notation import parse_mesh

    return parse_mesh(text, device_order.strip() or None)


def mesh_of(draft: Draft) -> Mesh | None:
    """The mesh, without a device order that does not fit; None where it cannot be read."""
    for order in (draft.device_order.strip(), ""):
        try:
            return read_mesh(draft.mesh, order)
        except ShardvizError:
            continue
    return None


def sizes_of(draft: Draft) -> dict[str, int] | None:
    """Elements by dimension; None where they cannot be read."""
    from shardviz.notation import parse_sizes

    try:
        with reader_errors():
            return parse_sizes(draft.sizes)
    except ShardvizError:
        return None


def ellipsis_rank(sizes: dict[str, int] | None) -> int:
    """How many dimensions ``...`` stands for: as many as have sizes."""
    return sum(name.startswith("...") for name in sizes or {})


def einsums_of(draft: Draft, mesh: Mesh | None) -> Einsums | None:
    """The einsums and their rows; None where they cannot be read."""
    try:
        return read_einsums(
            draft.einsum, ellipsis_rank(sizes_of(draft)), None if mesh is None else mesh.axis_names
        )
    except ShardvizError:
        return None


@reader_errors()
def read_spec(text: str, mesh: Mesh, row: Row | None) -> PartitionSpec | None:
    """A row's spec, None where it is open. Raises `ShardvizError`, also for the text of another array."""
    from shardviz.notation.reading import Context

    if text.strip() == OPEN:
        return None
    context = Context(mesh, None if row is None else len(row.dims))
    if _SPEC_STRING.fullmatch(text):
        # Spared: loading all the other notations.
        from shardviz.notation.spec_string import read_spec_string

        return read_spec_string(text, context).spec
    from shardviz.notation import read_sharding

    reading = read_sharding(text, context)
    if row is not None:
        check_array(reading, row)
    return reading.spec


def check_array(reading: Reading, row: Row) -> None:
    """Raise `QuestionError` where a text names another array than that of the row, or other dimensions."""
    name, dims = reading.name or row.name, reading.dims or row.dims
    is_own = any(dim.startswith("...") for dim in row.dims) or _same(dims, row.dims)
    if not is_own or not _same([name], [row.name]):
        own = f"{row.name}[{', '.join(row.dims)}]"
        raise QuestionError(
            f"{name}[{', '.join(dims)}] is not the array of this row, {own}",
            f"name {own} with its axes, or write the axes alone",
        )


def _same(names: Sequence[str], others: Sequence[str]) -> bool:
    """Whether names are the same, capital or not."""
    return [name.casefold() for name in names] == [name.casefold() for name in others]


def specs_of(draft: Draft, mesh: Mesh | None, einsums: Einsums | None = None) -> list[Spec]:
    """The spec of every row."""
    rows: Sequence[Row | None] = [None] * len(draft.specs)
    if einsums is not None and len(einsums.rows) == len(draft.specs):
        rows = einsums.rows
    return [_spec(text, mesh, row) for text, row in zip(draft.specs, rows, strict=True)]


def spec_texts(specs: Sequence[Spec]) -> tuple[str, ...]:
    """The specs as a draft has them."""
    from shardviz.notation import write_spec

    return tuple(spec if isinstance(spec, str) else write_spec(spec) for spec in specs)


def _spec(text: str, mesh: Mesh | None, row: Row | None) -> Spec:
    if mesh is None:
        return text
    try:
        return read_spec(text, mesh, row)
    except ShardvizError:
        return text
