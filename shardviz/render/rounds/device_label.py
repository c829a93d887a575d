"""A device before its row: its number, and its place in the mesh as ``X0 Y3``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from shardviz.render.palette import Palette
from shardviz.sharding import Mesh


def coordinates(mesh: Mesh, position: int, palette: Palette, axes: Iterable[str] | None = None) -> Text:
    """Where a position stands along the mesh's axes, or along some of them: ``X0 Y3``."""
    place = dict(zip(mesh.axis_names, mesh.coords(position), strict=True))
    shown = mesh.axis_names if axes is None else axes
    return Text(" ").join(Text(f"{axis}{place[axis]}", palette.axis(mesh, axis)) for axis in shown)


def device_labels(mesh: Mesh, positions: Sequence[int], palette: Palette, width: int) -> list[Text]:
    """Equally wide labels of devices; without their coordinates where those take more than `width`."""
    ids = [str(mesh.device_id(position)) for position in positions]
    digits = max(map(len, ids), default=0)
    places = [coordinates(mesh, position, palette) for position in positions]
    widest = max((place.cell_len for place in places), default=0)
    if digits + 2 + widest > width:
        return [Text(number.rjust(digits)) for number in ids]
    return [
        Text.assemble(number.rjust(digits), "  ", place, " " * (widest - place.cell_len))
        for number, place in zip(ids, places, strict=True)
    ]
