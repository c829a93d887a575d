"""Text into the spec of an array, in any notation; it may say more: a mesh, sizes, a dtype, other arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.drafts.draft import OPEN, Draft
from shardviz.drafts.edits.carrying import enter_einsum, enter_sizes, sizes_text
from shardviz.drafts.edits.mesh_axes import enter_mesh
from shardviz.drafts.parsing import check_array, einsums_of, mesh_of, spec_texts
from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.drafts.rows import Einsums
    from shardviz.notation import Reading
    from shardviz.sharding import Mesh, PartitionSpec


def enter_sharding(draft: Draft, row: int, text: str) -> Draft:
    """Put text into the spec of a row.

    Specs of all arrays (``XY,Y_->X_``) fill all rows, a product (``A[B_X, D] * W[D, F]``) takes the place of
    the einsum. The mesh of a ``NamedSharding(…)`` or of Shardy's text, the sizes and the dtype of a
    `jax.typeof` are taken over. Text that cannot be read, or is that of another array, stays, and changes
    nothing else.
    """
    specs = list(draft.specs)
    if not 0 <= row < len(specs):
        return draft
    specs[row] = text
    typed = replace(draft, specs=tuple(specs))
    if text.strip() == OPEN:
        return replace(typed, specs=(*specs[:row], OPEN, *specs[row + 1 :]))
    from shardviz.notation.mesh import spec_alone

    try:
        return _entered(_with_mesh(draft, text), row, spec_alone(text)) or typed
    except ShardvizError:
        return typed


def _entered(draft: Draft, row: int, text: str) -> Draft | None:
    from shardviz.notation import Context, detect, parse_product, read_sharding

    mesh = mesh_of(draft)
    if mesh is None:
        return None
    einsums = einsums_of(draft, mesh)
    if einsums is not None and len(einsums.rows) != len(draft.specs):
        einsums = None
    if detect(text).key == "book":
        product = parse_product(text, mesh.axis_names)
        if len(product.operands) > 1 or product.result is not None:
            return enter_einsum(draft, text)
    whole = None if einsums is None else _all_specs(text, mesh, einsums)
    if whole is not None:
        return replace(draft, specs=whole)
    rank = None if einsums is None else len(einsums.rows[row].dims)
    reading = read_sharding(text, Context(mesh, rank))
    if einsums is not None:
        check_array(reading, einsums.rows[row])
    specs = list(draft.specs)
    specs[row] = spec_texts([reading.spec])[0]
    entered = replace(draft, specs=tuple(specs))
    return entered if einsums is None else _with_types(entered, einsums, row, reading)


def _all_specs(text: str, mesh: Mesh, einsums: Einsums) -> tuple[str, ...] | None:
    """The specs of all rows, if the text has them: ``XY,Y_->X_`` for ``bd,df->bf``."""
    from shardviz.notation import parse_specs

    if not any(mark in text for mark in (",", ";", "->")):
        return None
    try:
        parts = parse_specs(text, mesh.axis_names)
    except ShardvizError:
        return None
    specs: list[PartitionSpec | None] = [spec for part in parts for spec in (*part.operands, part.result)]
    counts = [len(part.operands) for part in parts]
    if counts != [len(part.operands) for part in einsums.parts]:
        return None
    for row, spec in zip(einsums.rows, specs, strict=True):
        if (row.role == "operand") if spec is None else spec.rank != len(row.dims):
            return None
    return spec_texts(list(specs))


def _with_types(draft: Draft, einsums: Einsums, row: int, reading: Reading) -> Draft:
    """The draft with the sizes and the dtype that the text says, too."""
    if reading.shape is not None:
        dims = einsums.rows[row].dims
        draft = enter_sizes(draft, sizes_text(dict(zip(dims, reading.shape, strict=True))))
    return draft if reading.dtype is None else replace(draft, dtype=reading.dtype)


def _with_mesh(draft: Draft, text: str) -> Draft:
    """The draft on the mesh that the text says, if it does and the mesh can be read.

    HLO's names need not be the user's: its text is read by places of the draft's mesh.
    """
    from shardviz.notation import detect
    from shardviz.notation.mesh import mesh_in_text

    mesh = None if detect(text).key == "gspmd" else mesh_in_text(text)
    if mesh is None:
        return draft
    entered = enter_mesh(draft, mesh)
    return draft if mesh_of(entered) is None else entered
