"""What of specs and sizes stays when the einsum changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.drafts.book_text import product_text
from shardviz.drafts.draft import Draft, Row
from shardviz.drafts.parsing import Spec, einsums_of, ellipsis_rank, mesh_of, sizes_of, spec_texts, specs_of
from shardviz.drafts.rows import Einsums, read_einsums
from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.sharding import PartitionSpec


def enter_einsum(draft: Draft, text: str) -> Draft:
    """Put an einsum, a chain or a product into the field `einsum`.

    A product's subscripts move into the rows. Without any, dimensions that stay keep their axes. They keep
    their sizes, and new dimensions have the defaults.
    """
    mesh = mesh_of(draft)
    try:
        einsums = read_einsums(
            text, ellipsis_rank(sizes_of(draft)), None if mesh is None else mesh.axis_names
        )
    except ShardvizError:
        return replace(draft, einsum=text)
    written = einsums.written_specs
    specs = list(written) if written is not None else _carried_specs(draft, einsums)
    return replace(
        draft, einsum=_canonical(text, einsums), specs=spec_texts(specs), sizes=_carried_sizes(draft, einsums)
    )


def with_subscripts_moved(draft: Draft) -> Draft:
    """The draft, the subscripts of a product moved into its rows if they can be read by now."""
    if "[" not in draft.einsum:
        return draft
    einsums = einsums_of(draft, mesh_of(draft))
    return draft if einsums is None or einsums.written_specs is None else enter_einsum(draft, draft.einsum)


def enter_sizes(draft: Draft, text: str) -> Draft:
    """Put sizes into their field: ``b=8,d=2048``, where dimensions left out keep theirs, or the shapes of the
    operands, ``8x2048,2048x8192``. The dimensions of an ellipsis are as many as have sizes."""
    from shardviz.notation import parse_sizes

    if not text.strip():
        return _with_rank(draft, "")
    einsums = einsums_of(draft, mesh_of(draft))
    try:
        given = _of_shapes(text, einsums) or parse_sizes(text)
    except ShardvizError:
        return replace(draft, sizes=text)
    if einsums is None:
        return replace(draft, sizes=text)
    dims = _dims_with_rank(draft.einsum, einsums, ellipsis_rank(given) or ellipsis_rank(sizes_of(draft)))
    if not given.keys() <= {*dims}:
        return replace(draft, sizes=text)
    return _with_rank(draft, sizes_text(_completed(dims, {**(sizes_of(draft) or {}), **given}, given)))


def sizes_text(sizes: Mapping[str, int]) -> str:
    """The text that `parse_sizes` reads as these sizes: ``...=4x8,b=2``."""
    outer = [str(size) for name, size in sizes.items() if name.startswith("...")]
    words = [f"...={'x'.join(outer)}"] if outer else []
    return ",".join([*words, *(f"{name}={n}" for name, n in sizes.items() if not name.startswith("..."))])


def _dims_with_rank(text: str, einsums: Einsums, rank: int) -> tuple[str, ...]:
    """The dimensions of the einsums if the ellipsis stands for `rank` of them."""
    return read_einsums(text, rank).dims if "..." in text else einsums.dims


def _completed(dims: Sequence[str], known: Mapping[str, int], given: Mapping[str, int]) -> dict[str, int]:
    """Sizes for all of `dims`: those known, else the defaults; of an ellipsis only those given, if any."""
    from shardviz.planner.problem import usual_sizes

    usual = usual_sizes(dims)
    outer = ellipsis_rank(dict(given))
    fitting = {
        dim: size for dim, size in known.items() if not (outer and dim.startswith("...") and dim not in given)
    }
    return {dim: fitting.get(dim, usual[dim]) for dim in dims}


def _with_rank(draft: Draft, sizes: str) -> Draft:
    """The draft with other sizes, and its specs for as many dimensions as its ellipsis then has."""
    changed = replace(draft, sizes=sizes)
    if "..." not in draft.einsum:
        return changed
    einsums = einsums_of(changed, mesh_of(changed))
    return changed if einsums is None else replace(changed, specs=spec_texts(_carried_specs(draft, einsums)))


def _of_shapes(text: str, einsums: Einsums | None) -> dict[str, int]:
    """Sizes by dimension from the operands' shapes in order; none where the text is no shapes that fit."""
    from shardviz.notation import parse_shape

    if einsums is None or "=" in text:
        return {}
    operands = [row for row in einsums.rows if row.role == "operand"]
    shapes = [parse_shape(piece) for piece in text.replace(";", ",").split(",")]
    sizes: dict[str, int] = {}
    if len(shapes) > len(operands):
        return {}
    for row, shape in zip(operands, shapes, strict=False):
        if len(shape) != len(row.dims):
            return {}
        for dim, size in zip(row.dims, shape, strict=True):
            if sizes.setdefault(dim, size) != size:
                return {}
    return sizes


def _canonical(text: str, einsums: Einsums) -> str:
    """The einsums as the field has them; the text itself where that would say something else."""
    if einsums.product is not None:
        written = product_text(einsums.product)
    elif "..." in text:
        return " ".join(text.split())
    else:
        written = "; ".join(map(str, einsums.parts))
    again = read_einsums(written)
    return written if (again.parts, again.names) == (einsums.parts, einsums.names) else text


def _carried_sizes(draft: Draft, einsums: Einsums) -> str:
    known = sizes_of(draft)
    if known is None:
        return draft.sizes
    if not any(dim in known for dim in einsums.dims):
        return ""
    return sizes_text(_completed(einsums.dims, known, {}))


def _carried_specs(draft: Draft, einsums: Einsums) -> list[Spec]:
    """For every new row what fits of the old row in its place: operands by order, the last result by name of
    its dimensions; a row that is new is whole, or open where it may be."""
    mesh = mesh_of(draft)
    before = einsums_of(draft, mesh)
    specs = specs_of(draft, mesh, before)
    if before is None or len(before.rows) != len(specs):
        # Nobody knows what the rows were called: those of the same rank stay.
        return [
            _same_rank(specs[place] if place < len(specs) else None, row)
            for place, row in enumerate(einsums.rows)
        ]
    old = dict(zip(_keys(before.rows), zip(before.rows, specs, strict=True), strict=True))
    return [
        _refitted(row, *old[key]) if key in old else _new(row)
        for key, row in zip(_keys(einsums.rows), einsums.rows, strict=True)
    ]


def _keys(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """What a row is called when rows of two einsums are compared."""
    keys = []
    operands = 0
    for place, row in enumerate(rows):
        if row.role == "operand":
            keys.append(("operand", operands))
            operands += 1
        else:
            keys.append(("last", 0) if place == len(rows) - 1 else (row.role, row.part))
    return keys


def _new(row: Row) -> PartitionSpec | None:
    from shardviz.sharding import PartitionSpec

    return PartitionSpec.replicated(len(row.dims)) if row.role == "operand" else None


def _same_rank(spec: Spec, row: Row) -> Spec:
    return spec if isinstance(spec, str) or (spec and spec.rank == len(row.dims)) else _new(row)


def _refitted(row: Row, old_row: Row, spec: Spec) -> Spec:
    """A spec of the old row for the new one: every dimension keeps its axes by name; by place where all have
    other names."""
    from shardviz.sharding import PartitionSpec

    if not isinstance(spec, PartitionSpec):
        return _new(row) if spec is None or row.dims != old_row.dims else spec
    if row.dims == old_row.dims:
        return spec
    if not {*row.dims} & {*old_row.dims} and len(row.dims) == len(old_row.dims):
        return spec
    axes = dict(zip(old_row.dims, spec.dims, strict=False))
    dims = [axes.pop(dim, ()) for dim in row.dims]
    return PartitionSpec(tuple(dims), spec.unreduced)
