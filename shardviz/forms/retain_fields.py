"""The specs and sizes that stay when the einsum changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from shardviz.errors import ShardvizError
from shardviz.forms.form import ArrayRow, ProblemForm
from shardviz.forms.parsing import Einsums, Spec, ellipsis_rank, parsed, read_einsums, spec_texts
from shardviz.forms.spans import product_text
from shardviz.lazy_names import LazyImports
from shardviz.notation.numbers import parse_sizes
from shardviz.planner.problem.sizes import usual_sizes
from shardviz.sharding import PartitionSpec

with LazyImports():
    from shardviz.notation import program as programs


def enter_einsum(form: ProblemForm, text: str) -> ProblemForm:
    """Put an einsum, a chain or a product into the field `einsum`. A product's subscripts move into the rows.
    Without any, dimensions that stay keep their axes. They keep their sizes, and new dimensions have the
    defaults."""
    mesh = parsed(form).mesh
    try:
        einsums = read_einsums(text, ellipsis_rank(parsed(form).sizes), None if mesh is None else mesh.shape)
    except ShardvizError:
        return replace(form, einsum=text)
    written = einsums.written_specs
    specs = list(written) if written is not None else _carried_specs(form, einsums)
    return replace(
        form, einsum=_canonical(text, einsums), specs=spec_texts(specs), sizes=_carried_sizes(form, einsums)
    )


def with_subscripts_moved(form: ProblemForm) -> ProblemForm:
    """The form, the subscripts of a product moved into its rows if they can be read by now."""
    if "[" not in form.einsum:
        return form
    einsums = parsed(form).einsums
    return form if einsums is None or einsums.written_specs is None else enter_einsum(form, form.einsum)


def enter_sizes(form: ProblemForm, text: str) -> ProblemForm:
    """Put sizes into their field; dimensions that are left out keep theirs. An ellipsis has those given."""
    if not text.strip():
        return _with_rank(form, "")
    einsums = parsed(form).einsums
    try:
        given = parse_sizes(text)
    except ShardvizError:
        einsums = None
    if einsums is None:
        return replace(form, sizes=text)
    if einsums.program is not None:
        known = {**(parsed(form).sizes or {}), **given}
        return replace(form, sizes=text if given.keys() - {*einsums.dims} else sizes_text(known))
    rank = ellipsis_rank(given) or ellipsis_rank(parsed(form).sizes)
    dims = read_einsums(form.einsum, rank).dims if "..." in form.einsum else einsums.dims
    if not given.keys() <= {*dims}:
        return replace(form, sizes=text)
    return _with_rank(form, sizes_text(_completed(dims, {**(parsed(form).sizes or {}), **given}, given)))


def sizes_text(sizes: Mapping[str, int]) -> str:
    """The text that `parse_sizes` reads as these sizes: ``...=4x8,b=2``."""
    outer = [str(size) for name, size in sizes.items() if name.startswith("...")]
    words = [f"...={'x'.join(outer)}"] if outer else []
    return ",".join([*words, *(f"{name}={n}" for name, n in sizes.items() if not name.startswith("..."))])


def _completed(dims: Sequence[str], known: Mapping[str, int], given: Mapping[str, int]) -> dict[str, int]:
    """Sizes for all of `dims`: those known, else the defaults; of an ellipsis only those given, if any."""
    usual = usual_sizes(dims)
    outer = ellipsis_rank(dict(given))
    fitting = {
        dim: size for dim, size in known.items() if not (outer and dim.startswith("...") and dim not in given)
    }
    return {dim: fitting.get(dim, usual[dim]) for dim in dims}


def _with_rank(form: ProblemForm, sizes: str) -> ProblemForm:
    """The form with other sizes, and its specs for as many dimensions as its ellipsis then has."""
    changed = replace(form, sizes=sizes)
    if "..." not in form.einsum:
        return changed
    einsums = parsed(changed).einsums
    return changed if einsums is None else replace(changed, specs=spec_texts(_carried_specs(form, einsums)))


def _canonical(text: str, einsums: Einsums) -> str:
    """The einsums as the field has them; the text itself where that would say something else."""
    if einsums.program is not None:
        return programs.without_subscripts(text)
    layers = str(einsums.layers).replace("×", "x")
    if einsums.product is not None:
        written = product_text(einsums.product) + layers
    elif "..." in text:
        return " ".join(text.split())
    else:
        written = "; ".join(map(str, einsums.parts)) + layers
    again = read_einsums(written)
    return written if (again.parts, again.names) == (einsums.parts, einsums.names) else text


def _carried_sizes(form: ProblemForm, einsums: Einsums) -> str:
    known = parsed(form).sizes
    if known is None:
        return form.sizes
    if not any(dim in known for dim in einsums.dims):
        return ""
    if einsums.program is not None:
        # Some of its sizes follow from others, and none is written that nobody gave.
        return sizes_text({dim: size for dim, size in known.items() if dim in einsums.dims})
    return sizes_text(_completed(einsums.dims, known, {}))


def _carried_specs(form: ProblemForm, einsums: Einsums) -> list[Spec]:
    """For every new row what fits of the old row in its place: operands by order, the last result by name of
    its dimensions, and all rows of a program by name; a row that is new is whole, or open where it may be."""
    before, specs = parsed(form).einsums, parsed(form).specs
    if before is None or len(before.rows) != len(specs):
        # Nobody knows what the rows were called: those of the same rank stay.
        pairs = zip_longest(einsums.rows, specs[: len(einsums.rows)])
        return [
            spec if isinstance(spec, str) or (spec and spec.rank == len(row.dims)) else _new(row)
            for row, spec in pairs
        ]
    are_programs = before.program is not None and einsums.program is not None
    old = dict(zip(_keys(before.rows, are_programs), zip(before.rows, specs, strict=True), strict=True))
    return [
        _refitted(row, *old[key]) if key in old else _new(row)
        for key, row in zip(_keys(einsums.rows, are_programs), einsums.rows, strict=True)
    ]


def _keys(rows: Sequence[ArrayRow], by_name: bool) -> list[tuple[str, int]]:
    """The name of each row when rows of two einsums are compared."""
    keys: list[tuple[str, int]] = []
    for row in rows:
        if by_name:
            keys.append((row.name, 0))
        elif row.role == "operand":
            keys.append(("operand", sum(role == "operand" for role, _ in keys)))
        else:
            keys.append(("last", 0) if row is rows[-1] else (row.role, row.part))
    return keys


def _new(row: ArrayRow) -> PartitionSpec | None:
    return PartitionSpec.replicated(len(row.dims)) if row.role == "operand" else None


def _refitted(row: ArrayRow, old_row: ArrayRow, spec: Spec) -> Spec:
    """The old row's spec for the new one: axes stay by a dimension's name, or by place if all are new."""
    if not isinstance(spec, PartitionSpec):
        return _new(row) if spec is None or row.dims != old_row.dims else spec
    are_all_new = not {*row.dims} & {*old_row.dims}
    if row.dims == old_row.dims or (are_all_new and len(row.dims) == len(old_row.dims)):
        return spec
    axes = dict(zip(old_row.dims, spec.dims, strict=False))
    dims = [axes.pop(dim, ()) for dim in row.dims]
    return PartitionSpec(tuple(dims), spec.unreduced, devices=spec.devices)
