"""Axes of the mesh, and the specs that follow them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from shardviz.drafts.draft import Draft
from shardviz.drafts.edits.carrying import with_subscripts_moved
from shardviz.drafts.parsing import Spec, einsums_of, mesh_of, spec_texts, specs_of
from shardviz.drafts.plain_text import one_line
from shardviz.errors import ShardvizError

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

FRESH = "XYZWVUTSRQPONMLKJIHGFEDCBA"
"""Names for axes that nobody has named, in this order."""
FIRST_SIZE = 2


def add_axis(draft: Draft, name: str | None = None) -> Draft:
    """Add an axis of two devices as the minor one, named by a free letter where no name is given."""
    mesh = mesh_of(draft)
    name = None if name is None else one_line(name).strip()
    if mesh is None:
        if draft.mesh.strip():
            return draft
        return replace(draft, mesh=f"{name or fresh_axes(1, draft, mesh)[0]}={FIRST_SIZE}")
    name = name or fresh_axes(1, draft, mesh)[0]
    return _settled(replace(draft, mesh=f"{draft.mesh.rstrip(' ,')},{name}={FIRST_SIZE}"), mesh)


def rename_axis(draft: Draft, axis: str, name: str) -> Draft:
    """Give an axis another name, in the specs, too."""
    mesh = mesh_of(draft)
    if mesh is None or axis not in mesh.axis_names:
        return draft
    name = one_line(name).strip()
    shape = {name if known == axis else known: size for known, size in mesh.shape.items()}
    if len(shape) < len(mesh.axis_names):
        return replace(draft, mesh=_text(mesh, axis, f"{name}={mesh.axis_size(axis)}"))
    return _settled(replace(draft, mesh=_shape_text(shape)), mesh, {axis: name})


def resize_axis(draft: Draft, axis: str, size: int) -> Draft:
    """Give an axis another number of devices."""
    mesh = mesh_of(draft)
    if mesh is None or axis not in mesh.axis_names:
        return draft
    return replace(draft, mesh=_text(mesh, axis, f"{axis}={size}"))


def double_axis(draft: Draft, axis: str) -> Draft:
    """Grow an axis to the next power of two, unless the mesh becomes larger than any question needs."""
    from shardviz.sharding.mesh import MAX_DEVICES

    mesh = mesh_of(draft)
    if mesh is None or axis not in mesh.axis_names:
        return draft
    size = mesh.axis_size(axis)
    doubled = 1 << size.bit_length()
    return resize_axis(draft, axis, doubled) if mesh.size // size * doubled <= MAX_DEVICES else draft


def halve_axis(draft: Draft, axis: str) -> Draft:
    """Shrink an axis to the power of two before its size, at least 1."""
    mesh = mesh_of(draft)
    if mesh is None or axis not in mesh.axis_names or mesh.axis_size(axis) == 1:
        return draft
    return resize_axis(draft, axis, 1 << ((mesh.axis_size(axis) - 1).bit_length() - 1))


def remove_axis(draft: Draft, axis: str) -> Draft:
    """Take an axis out of the mesh and of all specs; the last one stays."""
    mesh = mesh_of(draft)
    if mesh is None or axis not in mesh.axis_names or len(mesh.axis_names) == 1:
        return draft
    shape = {name: size for name, size in mesh.shape.items() if name != axis}
    return _settled(replace(draft, mesh=_shape_text(shape)), mesh, {axis: None})


def move_axis(draft: Draft, axis: str, places: int) -> Draft:
    """Move an axis among the others; negative `places` make it more major."""
    mesh = mesh_of(draft)
    if mesh is None or axis not in mesh.axis_names:
        return draft
    names = [name for name in mesh.axis_names if name != axis]
    names.insert(max(0, mesh.axis_names.index(axis) + places), axis)
    return _settled(replace(draft, mesh=_shape_text({name: mesh.shape[name] for name in names})), mesh)


def enter_axis(draft: Draft, axis: str, text: str) -> Draft:
    """Rename or resize an axis, or both: ``data``, ``4`` or ``data=4``; a whole mesh replaces the mesh."""
    mesh = mesh_of(draft)
    if mesh is None or axis not in mesh.axis_names:
        return draft
    if _is_whole_mesh(text, draft, mesh):
        return replace_mesh(draft, text)
    name, equals, size = (piece.strip() for piece in one_line(text).partition("="))
    if not equals and name.isdecimal():
        name, size = axis, name
    return enter_mesh(draft, _text(mesh, axis, f"{name or axis}={size or mesh.axis_size(axis)}"))


def enter_mesh(draft: Draft, text: str) -> Draft:
    """Put text into the mesh: ``X=2,Y=4``, what JAX prints, or sizes alone, as in ``2x4``.

    The specs follow: where one name stands in the place of another, the axis is renamed, and an axis that is
    gone leaves the specs.
    """
    from shardviz.notation import parse_mesh

    before = mesh_of(draft)
    try:
        after = parse_mesh(_named(text, draft, before))
    except ShardvizError:
        return replace(draft, mesh=text)
    entered = replace(draft, mesh=str(after))
    if before is None:
        return with_subscripts_moved(entered)
    names: dict[str, str | None] = {}
    for place, name in enumerate(before.axis_names):
        if name not in after.axis_names:
            there = after.axis_names[place] if place < len(after.axis_names) else None
            names[name] = None if there in before.axis_names else there
    return _settled(entered, before, names)


def replace_mesh(draft: Draft, text: str) -> Draft:
    """Another mesh in place of the whole mesh, as `enter_mesh` reads it.

    From a dimension go the axes that do not divide it any more.
    """
    from shardviz.planner.problem import dimension_sizes
    from shardviz.sharding import PartitionSpec

    entered = enter_mesh(draft, text)
    mesh = mesh_of(entered)
    einsums = einsums_of(entered, mesh)
    if mesh is None or einsums is None or len(einsums.rows) != len(entered.specs):
        return entered
    try:
        sizes = dimension_sizes(einsums.parts, entered.sizes)
    except ShardvizError:
        return entered
    specs: list[Spec] = []
    for row, spec in zip(einsums.rows, specs_of(entered, mesh, einsums), strict=True):
        if isinstance(spec, PartitionSpec) and spec.rank == len(row.dims):
            dims = zip(row.dims, spec.dims, strict=True)
            spec = replace(spec, dims=tuple(_dividing(axes, sizes[dim], mesh) for dim, axes in dims))
        specs.append(spec)
    return replace(entered, specs=spec_texts(specs))


def fresh_axes(count: int, draft: Draft, mesh: Mesh | None) -> list[str]:
    """Names that no axis, array or dimension has: X, Y, Z, V, …, then X1, X2, …."""
    taken = () if mesh is None else mesh.axis_names
    einsums = einsums_of(draft, mesh)
    if einsums is not None:
        taken = (*taken, *(row.name for row in einsums.rows), *einsums.dims)
    names = [*FRESH, *(f"X{number}" for number in range(1, len(taken) + count + 1))]
    return [name for name in names if name not in taken][:count]


def _is_whole_mesh(text: str, draft: Draft, mesh: Mesh) -> bool:
    """Whether text that is typed for one axis says all of them: ``X=2,Y=4``, ``2x4``, what JAX prints."""
    from shardviz.notation import parse_mesh

    try:
        said = parse_mesh(_named(text, draft, mesh))
    except ShardvizError:
        return "," in text
    return "," in text or "=" not in text or len(said.axis_names) > 1


def _dividing(axes: Sequence[str], elements: int, mesh: Mesh) -> tuple[str, ...]:
    """Those of the axes over which so many elements can be split evenly."""
    kept: tuple[str, ...] = ()
    for axis in axes:
        if elements % mesh.group_size((*kept, axis)) == 0:
            kept = (*kept, axis)
    return kept


def _named(text: str, draft: Draft, mesh: Mesh | None) -> str:
    """Sizes alone get names: those of the axes that are there, then fresh ones."""
    sizes = text.replace("×", "x").strip().strip("()").split("x")
    if len(sizes) < 2 or not all(size.strip().isdecimal() for size in sizes):
        return text
    known = () if mesh is None else mesh.axis_names
    names = [*known, *fresh_axes(len(sizes), draft, mesh)]
    return ",".join(f"{name}={size.strip()}" for name, size in zip(names, sizes, strict=False))


def _settled(draft: Draft, before: Mesh, names: Mapping[str, str | None] | None = None) -> Draft:
    """The draft with the specs, which were written for the mesh `before`, under the axes' new names.

    None is the new name of an axis that is gone. Where the new mesh cannot be read, the specs stay.
    """
    if mesh_of(draft) is None:
        return draft
    old = replace(draft, mesh=str(before))
    specs = specs_of(old, mesh_of(old), einsums_of(old, before))
    renamed = spec_texts([_renamed(spec, names or {}) for spec in specs])
    return with_subscripts_moved(replace(draft, specs=renamed))


def _renamed(spec: Spec, names: Mapping[str, str | None]) -> Spec:
    from shardviz.sharding import PartitionSpec

    if not isinstance(spec, PartitionSpec):
        return spec

    def new(axes: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(name for axis in axes if (name := names.get(axis, axis)) is not None)

    return PartitionSpec(tuple(map(new, spec.dims)), new(spec.unreduced))


def _text(mesh: Mesh, axis: str, text: str) -> str:
    """The mesh with other text in the place of one axis."""
    return ",".join(text if name == axis else f"{name}={size}" for name, size in mesh.shape.items())


def _shape_text(shape: Mapping[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in shape.items())
