"""Axes on the dimensions of one array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.drafts.draft import Draft
from shardviz.drafts.parsing import einsums_of, mesh_of, spec_texts, specs_of

if TYPE_CHECKING:
    from shardviz.sharding import Mesh, PartitionSpec


def cycle(draft: Draft, row: int, dim: int) -> Draft:
    """Put the next free axis on a dimension: none, then each axis that the array does not use, in order.

    A dimension over several axes becomes whole.
    """
    mesh = mesh_of(draft)
    spec = _spec(draft, row, mesh)
    if mesh is None or spec is None or not 0 <= dim < spec.rank:
        return draft
    here = spec.dims[dim]
    used = {*spec.axes, *spec.unreduced} - {*here}
    choices: list[tuple[str, ...]] = [(), *((axis,) for axis in mesh.axis_names if axis not in used)]
    place = choices.index(here) + 1 if here in choices else 0
    return _with_spec(draft, row, _with_dim(spec, dim, choices[place % len(choices)]))


def assign(draft: Draft, row: int, dim: int, axis: str) -> Draft:
    """Split a dimension over an axis as well, as its minor one; the axis leaves wherever the array had it."""
    mesh = mesh_of(draft)
    spec = _spec(draft, row, mesh)
    if mesh is None or axis not in mesh.axis_names or spec is None or not 0 <= dim < spec.rank:
        return draft
    without = _without(spec, (axis,))
    return _with_spec(draft, row, _with_dim(without, dim, (*without.dims[dim], axis)))


def clear(draft: Draft, row: int, dim: int) -> Draft:
    """Leave a dimension whole."""
    spec = _spec(draft, row, mesh_of(draft))
    if spec is None or not 0 <= dim < spec.rank:
        return draft
    return _with_spec(draft, row, _with_dim(spec, dim, ()))


def toggle_open(draft: Draft, row: int, chosen: PartitionSpec | None = None) -> Draft:
    """Leave a result or an intermediate to the compiler, or take the decision back.

    Then it is split as `chosen`, or whole where that is None or does not fit. Operands are given to a
    program, and stay as they are.
    """
    mesh = mesh_of(draft)
    einsums = einsums_of(draft, mesh)
    if einsums is None or not 0 <= row < len(draft.specs) == len(einsums.rows):
        return draft
    if einsums.rows[row].role == "operand":
        return draft
    if specs_of(draft, mesh, einsums)[row] is not None:
        return _with_spec(draft, row, None)
    rank = len(einsums.rows[row].dims)
    fits = chosen is not None and chosen.rank == rank and not chosen.unreduced
    return _with_spec(draft, row, chosen if fits else _whole(rank))


def toggle_unreduced(draft: Draft, row: int, axis: str) -> Draft:
    """Let devices along an axis hold partial sums of the array (``{U_Y}``), or no longer."""
    mesh = mesh_of(draft)
    spec = _spec(draft, row, mesh)
    if mesh is None or axis not in mesh.axis_names or spec is None:
        return draft
    without = _without(spec, (axis,))
    kept = without.unreduced if axis in spec.unreduced else (*without.unreduced, axis)
    return _with_spec(draft, row, replace(without, unreduced=kept))


def cycle_unreduced(draft: Draft, row: int) -> Draft:
    """Let devices hold partial sums of the array over the next free axis, after the last one over none."""
    mesh = mesh_of(draft)
    spec = _spec(draft, row, mesh)
    if mesh is None or spec is None:
        return draft
    choices: list[tuple[str, ...]] = [(), *((axis,) for axis in mesh.axis_names if axis not in spec.axes)]
    place = choices.index(spec.unreduced) + 1 if spec.unreduced in choices else 0
    return _with_spec(draft, row, replace(spec, unreduced=choices[place % len(choices)]))


def _spec(draft: Draft, row: int, mesh: Mesh | None) -> PartitionSpec | None:
    """The spec of a row; whole where it is open or cannot be read, None where there is no such row."""
    einsums = einsums_of(draft, mesh)
    specs = specs_of(draft, mesh, einsums)
    if not 0 <= row < len(specs):
        return None
    spec = specs[row]
    if spec is None or isinstance(spec, str):
        known = einsums is not None and len(einsums.rows) == len(specs)
        return _whole(len(einsums.rows[row].dims)) if einsums is not None and known else None
    return spec


def _whole(rank: int) -> PartitionSpec:
    from shardviz.sharding import PartitionSpec

    return PartitionSpec.replicated(rank)


def _without(spec: PartitionSpec, axes: Iterable[str]) -> PartitionSpec:
    gone = {*axes}
    dims = tuple(tuple(axis for axis in dim if axis not in gone) for dim in spec.dims)
    return replace(spec, dims=dims, unreduced=tuple(axis for axis in spec.unreduced if axis not in gone))


def _with_dim(spec: PartitionSpec, dim: int, axes: tuple[str, ...]) -> PartitionSpec:
    return replace(spec, dims=(*spec.dims[:dim], axes, *spec.dims[dim + 1 :]))


def _with_spec(draft: Draft, row: int, spec: PartitionSpec | None) -> Draft:
    specs = list(draft.specs)
    specs[row] = spec_texts([spec])[0]
    return replace(draft, specs=tuple(specs))
