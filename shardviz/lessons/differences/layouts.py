"""Who holds which part of an array, device by device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from shardviz.errors import plural
from shardviz.lessons.measures.holding import bounds_by_device, sums_by_device
from shardviz.sharding import Layout, PartitionSpec, ShardedArray

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

T = TypeVar("T")


def layout_difference(
    array: ShardedArray, mesh: Mesh, wanted: PartitionSpec, wanted_mesh: Mesh, verb: str = "wants"
) -> str | None:
    """Where an array on a mesh is not what it would be under another spec, on another mesh of the same
    devices: the first device, by its number, that holds other elements or another partial sum.

    None where all hold the same, however that is written. Raises `QuestionError` for more devices than can be
    compared, and for a spec that does not fit the array.
    """
    if mesh.size != wanted_mesh.size:
        return f"the mesh has {plural(mesh.size, 'device')}; the goal {verb} {wanted_mesh.size:,}"
    layouts = Layout(array, mesh), Layout(array.with_spec(wanted), wanted_mesh)
    found: list[tuple[int, str]] = []
    for dim in range(array.rank):
        held, want = (bounds_by_device(layout, dim) for layout in layouts)
        device = _first(held, want)
        if device is not None:
            (start, stop), (want_start, want_stop) = held[device], want[device]
            what = f"{_dim_words(array, dim)} {start}:{stop} of {array.name}"
            found.append((device, f"holds {what}; the goal {verb} {want_start}:{want_stop}"))
    sums, want_sums = map(sums_by_device, layouts)
    device = _first(sums, want_sums)
    if device is not None:
        said, asked = _sum_words(sums[device], want_sums[device])
        found.append((device, f"holds {said} of {array.name}; the goal {verb} {asked}"))
    if not found:
        return None
    # Of several at one device, that of the first dimension.
    number, words = min(found, key=lambda each: each[0])
    return f"device {number:,} {words}"


def _first(held: Sequence[T], wanted: Sequence[T]) -> int | None:
    """The first place at which two lists differ."""
    if held == wanted:
        return None
    return next(place for place, pair in enumerate(zip(held, wanted, strict=True)) if pair[0] != pair[1])


def _sum_words(held: int, wanted: int) -> tuple[str, str]:
    if held and wanted:
        return "a partial sum", "another one"
    return ("a partial sum", "the whole sum") if held else ("the whole sum", "a partial one")


def _dim_words(array: ShardedArray, dim: int) -> str:
    if array.rank == 1:
        return "elements"
    return ("rows", "columns")[dim] if array.rank == 2 else array.dims[dim]
