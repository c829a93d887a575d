"""Axes on the dimensions of one array."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.drafts.form import ProblemForm
from shardviz.drafts.parsing import parsed, spec_texts

if TYPE_CHECKING:
    from shardviz.sharding import PartitionSpec


def cycle(form: ProblemForm, row: int, dim: int) -> ProblemForm:
    """Put the next free axis on a dimension: none, then each axis that the array does not use, in order.

    A dimension over several axes becomes whole.
    """
    mesh = parsed(form).mesh
    spec = _spec(form, row)
    if mesh is None or spec is None or not 0 <= dim < spec.rank:
        return form
    here = spec.dims[dim]
    used = {*spec.axes, *spec.unreduced} - {*here}
    choices: list[tuple[str, ...]] = [(), *((axis,) for axis in mesh.axis_names if axis not in used)]
    place = choices.index(here) + 1 if here in choices else 0
    return _with_spec(form, row, _with_dim(spec, dim, choices[place % len(choices)]))


def assign(form: ProblemForm, row: int, dim: int, axis: str) -> ProblemForm:
    """Split a dimension over an axis as well, as its minor one; the axis leaves wherever the array had it."""
    mesh = parsed(form).mesh
    spec = _spec(form, row)
    if mesh is None or axis not in mesh.axis_names or spec is None or not 0 <= dim < spec.rank:
        return form
    without = _without(spec, (axis,))
    return _with_spec(form, row, _with_dim(without, dim, (*without.dims[dim], axis)))


def clear(form: ProblemForm, row: int, dim: int) -> ProblemForm:
    """Leave a dimension whole."""
    spec = _spec(form, row)
    if spec is None or not 0 <= dim < spec.rank:
        return form
    return _with_spec(form, row, _with_dim(spec, dim, ()))


def toggle_open(form: ProblemForm, row: int, chosen: PartitionSpec | None = None) -> ProblemForm:
    """Leave a result or an intermediate to the compiler, or take the decision back.

    Then it is split as `chosen`, or whole where that is None or does not fit. Operands are given to a
    program, and stay as they are.
    """
    einsums = parsed(form).einsums
    if einsums is None or not 0 <= row < len(form.specs) == len(einsums.rows):
        return form
    if einsums.rows[row].role == "operand":
        return form
    if parsed(form).specs[row] is not None:
        return _with_spec(form, row, None)
    rank = len(einsums.rows[row].dims)
    fits = chosen is not None and chosen.rank == rank and not chosen.unreduced
    return _with_spec(form, row, chosen if fits else _whole(rank))


def toggle_unreduced(form: ProblemForm, row: int, axis: str) -> ProblemForm:
    """Let devices along an axis hold partial sums of the array (``{U_Y}``), or no longer."""
    mesh = parsed(form).mesh
    spec = _spec(form, row)
    if mesh is None or axis not in mesh.axis_names or spec is None:
        return form
    without = _without(spec, (axis,))
    kept = without.unreduced if axis in spec.unreduced else (*without.unreduced, axis)
    return _with_spec(form, row, replace(without, unreduced=kept))


def cycle_unreduced(form: ProblemForm, row: int) -> ProblemForm:
    """Let devices hold partial sums of the array over the next free axis, after the last one over none."""
    mesh = parsed(form).mesh
    spec = _spec(form, row)
    if mesh is None or spec is None:
        return form
    choices: list[tuple[str, ...]] = [(), *((axis,) for axis in mesh.axis_names if axis not in spec.axes)]
    place = choices.index(spec.unreduced) + 1 if spec.unreduced in choices else 0
    return _with_spec(form, row, replace(spec, unreduced=choices[place % len(choices)]))


def _spec(form: ProblemForm, row: int) -> PartitionSpec | None:
    """The spec of a row; whole where it is open or cannot be read, None where there is no such row."""
    read = parsed(form)
    if not 0 <= row < len(read.specs):
        return None
    spec = read.specs[row]
    if spec is None or isinstance(spec, str):
        return None if read.rows is None else _whole(len(read.rows[row].dims))
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


def _with_spec(form: ProblemForm, row: int, spec: PartitionSpec | None) -> ProblemForm:
    specs = list(form.specs)
    specs[row] = spec_texts([spec])[0]
    return replace(form, specs=tuple(specs))
