"""Text into any field, in any notation, which may say more than the field; a whole command line replaces the
whole problem."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from shardviz.errors import NotationError, QuestionError, ShardvizError
from shardviz.forms.axis_edits import enter_device_order, enter_mesh, replace_mesh
from shardviz.forms.command_line import form_from_line, with_collective_from_line
from shardviz.forms.form import OPEN, ArrayRow, CollectiveFields, ProblemForm, one_line
from shardviz.forms.parsing import Einsums, check_array, looks_like_command, parsed, reader_errors, spec_texts
from shardviz.forms.retain_fields import enter_einsum, enter_sizes, sizes_text
from shardviz.lazy_names import LazyImports
from shardviz.notation.book import parse_product
from shardviz.notation.mesh import mesh_in_text, parse_mesh, spec_alone
from shardviz.notation.program import joined_lines
from shardviz.notation.reading import Context, Reading
from shardviz.notation.spec_string import is_named, parse_named_specs, parse_specs
from shardviz.planner.problem.dtypes import parse_dtypes
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.targets import parse_targets

with LazyImports():
    from shardviz.hardware import clusters
    from shardviz.notation import notations


def enter(form: ProblemForm, field: str, text: str) -> ProblemForm:
    """Put text into a field, named as `FieldError.field` names it.

    What can be read is put into its usual form: a spec into a spec string, a dtype under its short name. What
    cannot stays as it is, but on one line and without characters that no terminal shows: line breaks of a
    program become ``;``, and its comments go. A command line that begins with ``shardviz``, ``explain``,
    ``tui`` or ``step`` replaces the whole form from any field.

    A field without a reader of its own takes the text. Raises `TypeError` for a field that no form has."""
    if field == "einsum" and "\n" in text.strip() and not looks_like_command(text):
        text = joined_lines(text) or text
    text = one_line(text)
    name, _, number = field.partition(".")
    entered = partial(_enter_sharding, row=int(number)) if name == "specs" else _ENTERED.get(name)
    # Where it cannot be read it stays in the field, whose fault says what is wrong with it.
    with suppress(ShardvizError), reader_errors():
        if looks_like_command(text):
            return form_from_line(text, form)
        if entered is not None and (updated := entered(form, text=text)) is not None:
            return updated
    return _typed(form, field, text)


def _typed(form: ProblemForm, field: str, text: str) -> ProblemForm:
    name, _, number = field.partition(".")
    if name == "specs":
        row = int(number)
        return replace(form, specs=(*form.specs[:row], text, *form.specs[row + 1 :]))
    if name == "collective":
        return replace(form, collective=CollectiveFields(text))
    values: dict[str, Any] = {name: text}
    return replace(form, **values)


def _enter_einsum(form: ProblemForm, text: str) -> ProblemForm | None:
    entered = enter_einsum(form, joined_lines(text))
    return None if parsed(entered).einsums is None else entered


def _enter_machine(form: ProblemForm, text: str) -> ProblemForm:
    name = text.strip()
    named = clusters.cluster_named(name) if name and not name.endswith(".toml") else None
    return replace(form, machine=name if named is None else named.name)


_ENTERED: dict[str, Callable[..., ProblemForm | None]] = {
    "mesh": replace_mesh,
    "einsum": _enter_einsum,
    "sizes": enter_sizes,
    "dtype": lambda form, text: replace(form, dtype=str(parse_dtypes(text))),
    "axis_types": lambda form, text: replace(
        form, axis_types=lowered if (lowered := text.strip().lower()) in ("auto", "explicit") else text
    ),
    "device_order": enter_device_order,
    "targets": lambda form, text: replace(
        form, targets=",".join(target.name for target in parse_targets(text)) or "none"
    ),
    "machine": _enter_machine,
    "collective": lambda form, text: (
        with_collective_from_line(text, form) if text.strip() else replace(form, collective=None)
    ),
}


def _enter_sharding(form: ProblemForm, row: int, text: str) -> ProblemForm | None:
    """Put text into the spec of a row.

    Specs of all arrays (``XY,Y_->X_``) fill all rows, a product (``A[B_X, D] * W[D, F]``) takes the place of
    the einsum. The mesh of a ``NamedSharding(…)`` or of Shardy's text, the sizes and the dtype of a
    `jax.typeof` are taken over. Text that cannot be read, or is that of another array, changes nothing else.
    """
    if text.strip() == OPEN:
        return _typed(form, f"specs.{row}", OPEN)
    # HLO's names need not be the user's: its text is read by places of the form's mesh.
    own = None if notations.detect(text).key == "gspmd" else mesh_in_text(text)
    if own is not None and parsed(entered := enter_mesh(form, own)).mesh is not None:
        form = entered
    text, mesh = spec_alone(text), parsed(form).mesh
    if mesh is None:
        return None
    einsums = parsed(form).einsums
    if einsums is not None and len(einsums.rows) != len(form.specs):
        einsums = None
    if einsums is not None:
        text = _in_brackets(text, einsums.rows[row], mesh)
    if notations.detect(text).key == "book":
        product = parse_product(text, mesh.shape)
        if len(product.operands) > 1 or product.result is not None:
            return enter_einsum(form, text)
    whole = None if einsums is None else _all_specs(text, form, mesh, einsums)
    if whole is not None:
        return replace(form, specs=whole)
    rank = None if einsums is None else len(einsums.rows[row].dims)
    reading = notations.read_sharding(text, Context(mesh, rank))
    if einsums is not None:
        check_array(reading, einsums.rows[row])
    entered = _typed(form, f"specs.{row}", *spec_texts([reading.spec]))
    if einsums is None:
        return entered
    if reading.shape is not None:
        sizes = dict(zip(einsums.rows[row].dims, reading.shape, strict=True))
        entered = enter_sizes(entered, sizes_text(sizes))
    return entered if reading.dtype is None else replace(entered, dtype=reading.dtype)


def _in_brackets(text: str, row: ArrayRow, mesh: Mesh) -> str:
    """``A[b_X, d_Y]{U_Z}`` for ``b_X d_Y {U_Z}``, as a form shows a spec; any other text as it is."""
    words, count = text.split(), len(row.dims)
    dims = zip(words, row.dims, strict=False)
    is_shown = len(words) >= count > 0 and all(
        word == dim or word.startswith(f"{dim}_") for word, dim in dims
    )
    if not is_shown or {*words} & {*mesh.axis_names} or any(word[:3] != "{U_" for word in words[count:]):
        return text
    return f"{row.name}[{', '.join(words[:count])}]{''.join(words[count:])}"


def _all_specs(text: str, form: ProblemForm, mesh: Mesh, einsums: Einsums) -> tuple[str, ...] | None:
    """The specs of all rows, if the text has them: ``XY,Y_->X_`` for ``bd,df->bf``, or some by name."""
    if is_named(text):
        named = parse_named_specs(text, mesh.shape, {row.name: len(row.dims) for row in einsums.rows})
        rows = zip(einsums.rows, form.specs, strict=True)
        return tuple(spec_texts([named[row.name]])[0] if row.name in named else own for row, own in rows)
    if einsums.program is not None or not any(mark in text for mark in (",", ";", "->")):
        return None
    try:
        parts = parse_specs(text, mesh.shape)
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


def read_any(
    text: str, origin: str | None = None, mesh: str | None = None, rank: int | None = None
) -> tuple[notations.Notation, tuple[Reading, ...], Context]:
    """Read against the mesh, or that of the text; against the usual one if there is none and it fits, else
    against none. `origin` is the key of the notation where several fit, `rank` the number of dimensions.

    Raises `NotationError` for a text that is in no notation, and `QuestionError` for another mesh than its
    own."""
    notation = notations.find_notation(origin) if origin else notations.detect(spec_alone(text))
    own = mesh_in_text(text)
    given = own if mesh is None else mesh
    asked = parse_mesh(ProblemForm.mesh if given is None else given)
    context = Context(asked, rank)
    if own is not None and spec_alone(text) != text and parse_mesh(own).shape != asked.shape:
        raise QuestionError(f"the text is on the mesh {parse_mesh(own)}, not {asked}", "leave out --mesh")
    text = spec_alone(text)
    try:
        return notation, notations.read_arrays(text, context, notation), context
    except ShardvizError as error:
        if given is not None:
            raise
        unfit = error
    try:
        without = Context(rank=rank)
        return notation, notations.read_arrays(text, without, notation), without
    except NotationError:
        raise
    except ShardvizError:
        # Without any mesh the complaint would be that there is none.
        raise unfit from None
