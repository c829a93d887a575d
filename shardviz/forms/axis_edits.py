"""Edits of axes: of the mesh, with the specs that follow, and on the dimensions of an array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from shardviz.errors import ShardvizError
from shardviz.forms.form import ProblemForm, one_line
from shardviz.forms.parsing import Spec, parsed, spec_texts
from shardviz.forms.retain_fields import with_subscripts_moved
from shardviz.notation.mesh import ROW_MAJOR, parse_mesh
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.axis_parts import whole_axis
from shardviz.sharding.mesh import MAX_DEVICES

FRESH = "XYZWVUTSRQPONMLKJIHGFEDCBA"
"""Names for axes that nobody has named, in this order."""
FIRST_SIZE = 2


def add_axis(form: ProblemForm) -> ProblemForm:
    """Add an axis of two devices as the minor one, named by a free letter."""
    mesh = parsed(form).mesh
    (name,) = fresh_axes(1, form, mesh)
    if mesh is None:
        return form if form.mesh.strip() else replace(form, mesh=f"{name}={FIRST_SIZE}")
    return _settled(replace(form, mesh=f"{form.mesh.rstrip(' ,')},{name}={FIRST_SIZE}"), mesh)


def double_axis(form: ProblemForm, axis: str) -> ProblemForm:
    """Grow an axis to the next power of two, unless the mesh becomes larger than any question needs."""
    mesh = _mesh_with(form, axis)
    doubled = 0 if mesh is None else 1 << mesh.axis_size(axis).bit_length()
    if mesh is None or mesh.size // mesh.axis_size(axis) * doubled > MAX_DEVICES:
        return form
    return replace(form, mesh=_text({**mesh.shape, axis: doubled}))


def halve_axis(form: ProblemForm, axis: str) -> ProblemForm:
    """Shrink an axis to the power of two before its size, at least 1."""
    mesh = _mesh_with(form, axis)
    if mesh is None or mesh.axis_size(axis) == 1:
        return form
    halved = 1 << ((mesh.axis_size(axis) - 1).bit_length() - 1)
    return replace(form, mesh=_text({**mesh.shape, axis: halved}))


def remove_axis(form: ProblemForm, axis: str) -> ProblemForm:
    """Take an axis out of the mesh and of all specs; the last one stays."""
    mesh = _mesh_with(form, axis)
    if mesh is None or len(mesh.axis_names) == 1:
        return form
    shape = {name: size for name, size in mesh.shape.items() if name != axis}
    return _settled(replace(form, mesh=_text(shape)), mesh, {axis: None})


def move_axis(form: ProblemForm, axis: str, places: int) -> ProblemForm:
    """Move an axis among the others; negative `places` make it more major."""
    if (mesh := _mesh_with(form, axis)) is None:
        return form
    names = [name for name in mesh.axis_names if name != axis]
    names.insert(max(0, mesh.axis_names.index(axis) + places), axis)
    return _settled(replace(form, mesh=_text({name: mesh.shape[name] for name in names})), mesh)


def enter_axis(form: ProblemForm, axis: str, text: str) -> ProblemForm:
    """Rename or resize an axis, or both: ``data``, ``4`` or ``data=4``; a whole mesh replaces the mesh."""
    if (mesh := _mesh_with(form, axis)) is None:
        return form
    text = one_line(text)
    try:
        is_mesh = len(parse_mesh(_named(text, form, mesh)).axis_names) > 1 or "=" not in text
    except ShardvizError:
        is_mesh = False
    if is_mesh or "," in text:
        return replace_mesh(form, text)
    name, equals, size = (piece.strip() for piece in text.partition("="))
    if not equals and name.isdecimal():
        name, size = axis, name
    shape = {other: f"{other}={number}" for other, number in mesh.shape.items()}
    shape[axis] = f"{name or axis}={size or mesh.axis_size(axis)}"
    return enter_mesh(form, ",".join(shape.values()))


def enter_mesh(form: ProblemForm, text: str) -> ProblemForm:
    """Put text into the mesh: ``X=2,Y=4``, what JAX prints, or sizes alone, as in ``2x4``. The specs follow:
    where one name stands in the place of another, the axis is renamed, and an axis that is gone leaves the
    specs."""
    before = parsed(form).mesh
    try:
        after = parse_mesh(_named(text, form, before))
    except ShardvizError:
        return replace(form, mesh=text)
    entered = replace(form, mesh=str(after))
    if before is None:
        return with_subscripts_moved(entered)
    names: dict[str, str | None] = {}
    for index, name in enumerate(before.axis_names):
        if name not in after.axis_names:
            there = after.axis_names[index] if index < len(after.axis_names) else None
            names[name] = None if there in before.axis_names else there
    return _settled(entered, before, names)


def replace_mesh(form: ProblemForm, text: str) -> ProblemForm:
    """Another mesh, as `enter_mesh` reads it; axes that no longer divide a dimension leave it."""
    entered = enter_mesh(form, text)
    mesh, einsums = parsed(entered).mesh, parsed(entered).einsums
    if mesh is None or einsums is None or len(einsums.rows) != len(entered.specs):
        return entered
    try:
        sizes = einsums.elements(entered.sizes)
    except ShardvizError:
        return entered
    specs: list[Spec] = []
    for row, spec in zip(einsums.rows, parsed(entered).specs, strict=True):
        if isinstance(spec, PartitionSpec) and spec.rank == len(row.dims):
            dims = zip(row.dims, spec.dims, strict=True)
            spec = replace(spec, dims=tuple(_dividing(axes, sizes[dim], mesh) for dim, axes in dims))
        specs.append(spec)
    return replace(entered, specs=spec_texts(specs))


def enter_device_order(form: ProblemForm, text: str) -> ProblemForm:
    """Put text into the order of the devices; ids stay as they were typed where they do not fit the mesh."""
    mesh = parsed(replace(form, device_order=text)).mesh
    if text.strip().lower() == ROW_MAJOR:
        return replace(form, device_order=ROW_MAJOR)
    if mesh is None or mesh.device_order is None:
        return replace(form, device_order=text.strip())
    return replace(form, device_order=",".join(map(str, mesh.device_order)))


def fresh_axes(count: int, form: ProblemForm, mesh: Mesh | None) -> list[str]:
    """Names that no axis, array or dimension has: X, Y, Z, V, …, then X1, X2, …."""
    taken = () if mesh is None else mesh.axis_names
    einsums = parsed(form).einsums
    if einsums is not None:
        taken = (*taken, *(row.name for row in einsums.rows), *einsums.dims)
    names = [*FRESH, *(f"X{number}" for number in range(1, len(taken) + count + 1))]
    return [name for name in names if name not in taken][:count]


def cycle(form: ProblemForm, row: int, dim: int) -> ProblemForm:
    """Put the next free axis on a dimension: none, then each axis that the array does not use, in order."""
    mesh, spec = parsed(form).mesh, _spec(form, row, dim)
    if mesh is None or spec is None:
        return form
    used = {*spec.axes, *spec.unreduced} - {*spec.dims[dim]}
    return _with_dim(form, row, spec, dim, _next_axes(spec.dims[dim], mesh, used))


def assign(form: ProblemForm, row: int, dim: int, axis: str) -> ProblemForm:
    """Split a dimension over an axis as well, as its minor one; the axis leaves wherever the array had it."""
    spec = _spec(form, row, dim)
    if _mesh_with(form, axis) is None or spec is None:
        return form
    without = _without(spec, axis)
    return _with_dim(form, row, without, dim, (*without.dims[dim], axis))


def clear(form: ProblemForm, row: int, dim: int) -> ProblemForm:
    """Leave a dimension whole."""
    spec = _spec(form, row, dim)
    return form if spec is None else _with_dim(form, row, spec, dim, ())


def toggle_open(form: ProblemForm, row: int, chosen: PartitionSpec | None = None) -> ProblemForm:
    """Leave a result or an intermediate to the compiler, or take the decision back. Then it is split as
    `chosen`, or whole where that is None or does not fit. Operands are given to a program, and stay as they
    are."""
    read = parsed(form)
    if read.rows is None or not 0 <= row < len(read.rows) or read.rows[row].role == "operand":
        return form
    if read.specs[row] is not None:
        return _with_spec(form, row, None)
    rank = len(read.rows[row].dims)
    fits = chosen is not None and chosen.rank == rank and not chosen.unreduced
    return _with_spec(form, row, chosen if fits else PartitionSpec.replicated(rank))


def toggle_unreduced(form: ProblemForm, row: int, axis: str) -> ProblemForm:
    """Let devices along an axis hold partial sums of the array (``{U_Y}``), or no longer."""
    spec = _spec(form, row)
    if _mesh_with(form, axis) is None or spec is None:
        return form
    without = _without(spec, axis)
    kept = without.unreduced if axis in spec.unreduced else (*without.unreduced, axis)
    return _with_spec(form, row, replace(without, unreduced=kept))


def cycle_unreduced(form: ProblemForm, row: int) -> ProblemForm:
    """Let devices hold partial sums of the array over the next free axis, after the last one over none."""
    mesh, spec = parsed(form).mesh, _spec(form, row)
    if mesh is None or spec is None:
        return form
    return _with_spec(form, row, replace(spec, unreduced=_next_axes(spec.unreduced, mesh, spec.axes)))


def _dividing(axes: Sequence[str], elements: int, mesh: Mesh) -> tuple[str, ...]:
    kept: tuple[str, ...] = ()
    for axis in axes:
        if elements % mesh.group_size((*kept, axis)) == 0:
            kept = (*kept, axis)
    return kept


def _named(text: str, form: ProblemForm, mesh: Mesh | None) -> str:
    """Sizes alone get names: those of the axes that are there, then fresh ones."""
    sizes = text.replace("×", "x").strip().strip("()").split("x")
    if len(sizes) < 2 or not all(size.strip().isdecimal() for size in sizes):
        return text
    known = () if mesh is None else mesh.axis_names
    names = [*known, *fresh_axes(len(sizes), form, mesh)]
    return ",".join(f"{name}={size.strip()}" for name, size in zip(names, sizes, strict=False))


def _settled(form: ProblemForm, before: Mesh, names: Mapping[str, str | None] | None = None) -> ProblemForm:
    """The form with the specs, which were written for the mesh `before`, under the axes' new names. None is
    the new name of an axis that is gone. Where the new mesh cannot be read, the specs stay."""
    if parsed(form).mesh is None:
        return form
    specs = parsed(replace(form, mesh=str(before))).specs

    def new(axes: tuple[str, ...]) -> tuple[str, ...]:
        """The axes, or parts of axes, that are left, under their new names."""
        pieces = [axis.partition(":") for axis in axes]
        kept = [((names or {}).get(name, name), colon, part) for name, colon, part in pieces]
        return tuple(f"{name}{colon}{part}" for name, colon, part in kept if name is not None)

    renamed = [_with_axes(spec, new) if isinstance(spec, PartitionSpec) else spec for spec in specs]
    return with_subscripts_moved(replace(form, specs=spec_texts(renamed)))


def _with_axes(spec: PartitionSpec, new: Callable[[tuple[str, ...]], tuple[str, ...]]) -> PartitionSpec:
    return replace(spec, dims=tuple(map(new, spec.dims)), unreduced=new(spec.unreduced))


def _text(shape: Mapping[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in shape.items())


def _spec(form: ProblemForm, row: int, dim: int | None = None) -> PartitionSpec | None:
    """The spec of a row; whole where it is open or cannot be read, None where there is no such row or
    dimension. An array on one device is taken back to the mesh: an edit splits it over axes."""
    read = parsed(form)
    spec = read.specs[row] if 0 <= row < len(read.specs) else ""
    if spec is None or isinstance(spec, str):
        if read.rows is None or not 0 <= row < len(read.rows):
            return None
        spec = PartitionSpec.replicated(len(read.rows[row].dims))
    if dim is not None and not 0 <= dim < spec.rank:
        return None
    return spec if spec.only_device is None else replace(spec, devices=())


def _mesh_with(form: ProblemForm, axis: str) -> Mesh | None:
    """The form's mesh, where it has such an axis."""
    mesh = parsed(form).mesh
    return None if mesh is None or axis not in mesh.axis_names else mesh


def _next_axes(here: tuple[str, ...], mesh: Mesh, used: Iterable[str]) -> tuple[str, ...]:
    """The next in the row of no axis, then each axis that is not used; several begin it anew."""
    taken = {whole_axis(axis) for axis in used}
    choices = [(), *((axis,) for axis in mesh.axis_names if axis not in taken)]
    index = choices.index(here) + 1 if here in choices else 0
    return choices[index % len(choices)]


def _without(spec: PartitionSpec, gone: str) -> PartitionSpec:
    return _with_axes(spec, lambda axes: tuple(axis for axis in axes if whole_axis(axis) != gone))


def _with_dim(
    form: ProblemForm, row: int, spec: PartitionSpec, dim: int, axes: tuple[str, ...]
) -> ProblemForm:
    return _with_spec(form, row, replace(spec, dims=(*spec.dims[:dim], axes, *spec.dims[dim + 1 :])))


def _with_spec(form: ProblemForm, row: int, spec: PartitionSpec | None) -> ProblemForm:
    specs = list(form.specs)
    specs[row] = spec_texts([spec])[0]
    return replace(form, specs=tuple(specs))
