"""Options of a problem, or a table of them, as a form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from shardviz.errors import QuestionError, plural, quote
from shardviz.forms.axis_edits import enter_device_order, enter_mesh
from shardviz.forms.form import TABLE_KEYS, CollectiveFields, ProblemForm, one_line
from shardviz.forms.parsing import parsed, spec_texts
from shardviz.forms.retain_fields import enter_einsum, sizes_text
from shardviz.notation.mesh import ROW_MAJOR, parse_mesh
from shardviz.notation.numbers import parse_sizes
from shardviz.notation.program import joined_lines
from shardviz.notation.spec_string import is_named, parse_specs
from shardviz.planner.problem.dtypes import parse_dtypes
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.targets import parse_targets


def form_from_options(
    einsum: str | None = None,
    *,
    mesh: str | None = None,
    device_order: str | None = None,
    specs: str | None = None,
    sizes: str | None = None,
    dtype: str = ProblemForm.dtype,
    axis_types: Literal["auto", "explicit"] = "auto",
    targets: str = ProblemForm.targets,
    machine: str | None = None,
    **texts: Any,
) -> ProblemForm:
    """The form of the problem that `shardviz explain` would answer, with these options; `texts` are those of
    its other fields, which are checked where they are resolved.

    Without an einsum it is the usual one, split as usual where no specs are given; any other einsum without
    specs is not split. Raises `ShardvizError` as `problem_from_text` does, and for unknown targets; a machine
    is read where it is needed, since it may be a file that is not here."""
    usual = ProblemForm()
    text = usual.einsum if einsum is None else one_line(joined_lines(einsum))
    asked = parse_mesh(usual.mesh if mesh is None else mesh, device_order)
    if einsum is None and specs is None:
        *operands, result = enter_mesh(usual, str(asked)).specs
        specs = f"{','.join(operands)}->{result}"
    problem = problem_from_text(
        text, mesh=asked, specs=specs, sizes=sizes or "", dtype=dtype, axis_types=axis_types
    )
    given = parse_sizes(sizes or "")
    if not given and "..." in text and "...0" in problem.sizes:
        given = problem.sizes  # only the specs say how many dimensions there are
    form = ProblemForm(
        mesh=str(asked),
        einsum="",
        specs=(),
        sizes=sizes_text(given),
        dtype=str(parse_dtypes(dtype)),
        axis_types=axis_types,
        targets=",".join(target.name for target in parse_targets(targets, asked.size)) or "none",
        machine=one_line(machine or "").strip(),
        **{name: text for name, text in texts.items() if text is not None},
    )
    form = enter_einsum(form, text)
    if specs is not None or "[" in text:
        einsums = parsed(form).einsums
        if einsums is None or einsums.program is None:
            rows = [array.spec for array in problem.arrays]
        else:
            named = {array.name: array.spec for array in problem.arguments}
            named |= {part.result.name: part.result.spec for part in problem.parts}
            rows = [named[row.name] for row in einsums.rows]
        form = replace(form, specs=spec_texts(rows))
    return form if device_order is None else enter_device_order(form, device_order)


def form_from_table(table: Mapping[str, Any]) -> ProblemForm:
    """The form of a table in TOML: some of `TABLE_KEYS` with a text each, the others as `form_from_options`
    has them, and a ``collective`` with the fields of `CollectiveFields`, its parameters a table.

    `specs` beside an einsum in brackets are put over its subscripts. Raises `ShardvizError` for a problem
    that cannot be read; what is wrong with a collective is an error of the form."""
    given = {name: table[name] for name in TABLE_KEYS if name in table}
    is_over = "[" in given.get("einsum", "") and not is_named(given.get("specs", ""))
    specs = given.pop("specs") if is_over and "specs" in given else None
    form = form_from_options(**given)
    if specs is not None:
        mesh = parsed(form).mesh
        assert mesh is not None
        parts = parse_specs(specs, mesh.shape)
        written = spec_texts([spec for part in parts for spec in (*part.operands, part.result)])
        if len(written) != len(form.specs):
            said, arrays = plural(len(written), "spec"), plural(len(form.specs), "array")
            problem = f"{quote(specs)} has {said}, and there are {arrays}"
            raise QuestionError(problem, "write one for each array: XY,Y_->X_")
        form = replace(form, specs=written)
    if "collective" not in table:
        return form
    collective = dict(table["collective"])
    parameters = tuple(collective.pop("parameters", {}).items())
    return replace(form, collective=CollectiveFields(**collective, parameters=parameters))


def with_shardings(form: ProblemForm, mesh: Mesh, specs: Mapping[str, PartitionSpec]) -> ProblemForm:
    """The form on a mesh, with the specs of arrays by name; what `specs` lacks is open."""
    einsums = parsed(form).einsums
    rows = () if einsums is None else einsums.rows
    return replace(
        form,
        mesh=str(mesh),
        device_order=ROW_MAJOR if mesh.device_order else "",
        specs=spec_texts([specs.get(row.name) for row in rows]),
    )
