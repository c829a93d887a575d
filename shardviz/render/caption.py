"""Arrays, specs, meshes and devices as coloured words: ``A[b_X, d_Y]``, ``X=2, Y=4``, ``3  X0 Y3``."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import ShardvizError, plural
from shardviz.lazy_names import LazyImports
from shardviz.notation.book import write_book
from shardviz.notation.reading import Reading
from shardviz.notation.spec_string import write_devices
from shardviz.render.lines import GAP, sentence, sentences
from shardviz.render.palette import DIM, PADDING, PARTIAL, Palette
from shardviz.render.tables import Cell, table
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray
from shardviz.sharding.axis_parts import finest_parts, in_parts
from shardviz.units import human_bytes, times

LISTED_DEVICES = 8
"""Devices of an order that are listed beside an array."""

with LazyImports():
    from shardviz.notation import notations

if TYPE_CHECKING:
    from shardviz.planner.plan import Plan


def axes_text(axes: Iterable[str], mesh: Mesh, palette: Palette, separator: str = ", ") -> Text:
    """Mesh axes, each in its colour: ``X, Y``."""
    return Text(separator).join(Text(axis, palette.axis(mesh, axis)) for axis in axes)


def array_text(array: ShardedArray, mesh: Mesh, palette: Palette) -> Text:
    """The array in the scaling book's notation, axes coloured: ``A[b_X, d_Y]``, ``Out[b, f]{U_Y}``."""
    if array.spec is None:
        return Text(f"{array.name}[{', '.join(array.dims)}]")
    return spec_text(array.name, array.dims, array.spec, mesh, palette)


def spec_text(name: str, dims: tuple[str, ...], spec: PartitionSpec, mesh: Mesh, palette: Palette) -> Text:
    """A spec over named dimensions in the scaling book's notation."""
    text = Text(write_book(name, dims, spec, mesh.axis_names))
    text.stylize("bold", 0, len(name))
    position = len(name)
    for marker, axes in (*zip(dims, spec.dims, strict=True), ("{U", spec.unreduced)):
        if not axes:
            continue
        start = text.plain.index(f"{marker}_", position) + len(marker) + 1
        position = colour_axes(text, axes, start, mesh, palette)
    return text.append(devices_text(spec.devices))


def split_text(spec: PartitionSpec, mesh: Mesh, palette: Palette) -> Text:
    """A spec string with its axes in their colours: ``tensor data``, ``(data tensor) _ {U data}``."""
    entries = [f"({' '.join(axes)})" if len(axes) > 1 else "".join(axes) or "_" for axes in spec.dims]
    entries += ["{" + " ".join(("U", *spec.unreduced)) + "}"] * bool(spec.unreduced)
    text = Text(" ".join(entries))
    colour_axes(text, (*spec.axes, *spec.unreduced), 0, mesh, palette)
    return text


def devices_text(devices: tuple[int, ...]) -> str:
    """``@3``, ``@(7 6 5 4 3 2 1 0)``: the devices of an array not on all in order, of many the first."""
    if len(devices) <= LISTED_DEVICES:
        return write_devices(devices)
    return f"{write_devices(devices[:LISTED_DEVICES])[:-1]} …)"


def colour_axes(text: Text, axes: Iterable[str], position: int, mesh: Mesh, palette: Palette) -> int:
    """Colour axes that follow one another in a text from a position on; return where the last one ends."""
    for axis in axes:
        position = text.plain.index(axis, position)
        text.stylize(palette.axis(mesh, axis), position, position + len(axis))
        position += len(axis)
    return position


def caption_cells(layout: Layout, palette: Palette) -> list[Text]:
    """The array, its dtype, its shape and a device's share of it, as the cells of one table row."""
    array = layout.array
    return [
        array_text(array, layout.mesh, palette),
        Text(array.dtype),
        Text(f"{times(array.shape)} → {times(layout.shard_shape)} per device"),
        Text(human_bytes(layout.bytes_per_device)),
        Text(f"{layout.replicas:,} copies" if layout.replicas > 1 else "not replicated"),
    ]


def coordinates(
    mesh: Mesh,
    position: int,
    palette: Palette,
    axes: Container[str] | None = None,
    split: Sequence[str] | None = None,
) -> Text:
    """``X0 Y0–3``: a position along the mesh's axes, or along `axes`. With `split`, axes and parts of axes
    that are not among these have all of their coordinates. A long name is followed by a blank."""
    coords = mesh.coords(position)
    names = finest_parts(mesh.shape, split or ())
    fixed = names if split is None else in_parts(split, names)
    words = []
    for name in names:
        if axes is None or name in axes:
            size = mesh.axis_size(name)
            where = mesh.coordinate(coords, name) if name in fixed or size == 1 else f"0–{size - 1}"
            words.append(Text(f"{name}{' ' * (len(name) > 1)}{where}", palette.axis(mesh, name)))
    return Text(" ").join(words)


def lens_text(mesh: Mesh, position: int | None, palette: Palette) -> Text:
    """The device that is marked everywhere, and where it stands: `` ▹5◃  X1 Y1``; empty where none is."""
    if position is None:
        return Text()
    device = (f"▹{mesh.device_id(position)}◃", palette.lens)
    return Text.assemble("device ", device, " ", coordinates(mesh, position, palette))


def marked_group(ids: Sequence[int], device: int, palette: Palette, separator: str = ",") -> Text:
    """``{1,▹5◃}``, of many ``{0,1,…,▹37◃,…,511}``: a group with the device that is marked everywhere."""
    members = [Text(str(id_)) for id_ in ids]
    index = ids.index(device)
    members[index] = Text(f"▹{device}◃", palette.lens)
    if len(ids) > 8:  # the first two, the one that is marked, and the last
        kept = sorted({0, 1, index, len(ids) - 1})
        gaps = [after - before > 1 for before, after in pairwise(kept)]
        pairs = zip(kept, [*gaps, False], strict=True)
        members = [text for at, gap in pairs for text in (members[at], *[Text("…")] * gap)]
    return Text.assemble("{", Text(separator).join(members), "}")


def group_along(axes: tuple[str, ...], mesh: Mesh, position: int, palette: Palette) -> Text:
    """The group over mesh axes that has the device at a position: `marked_group`."""
    ids = [*map(mesh.device_id, mesh.group_of(position, axes))]
    return marked_group(ids, mesh.device_id(position), palette)


class DeviceLabels:
    """Labels, ``3 X0 Y3``, as wide as `positions` need; without coordinates if wider than `width`."""

    def __init__(self, mesh: Mesh, positions: Sequence[int], palette: Palette, width: int) -> None:
        self._mesh, self._palette = mesh, palette
        self._digits = max((len(str(mesh.device_id(position))) for position in positions), default=0)
        places = (coordinates(mesh, position, palette).cell_len for position in positions)
        self._place = GAP + max(places, default=0)
        if self._digits + self._place > width:
            self._place = 0
        self.width = self._digits + self._place

    def of(self, position: int, is_marked: bool = False) -> Text:
        """The label of the device at a position of the mesh, with a sign behind it where it is marked."""
        label = Text(str(self._mesh.device_id(position)).rjust(self._digits))
        if self._place:
            label = Text.assemble(label, " " * GAP, coordinates(self._mesh, position, self._palette))
            label.append(" " * (self.width - label.cell_len))
        if is_marked:
            label.stylize(self._palette.lens)
            label.append("◃", self._palette.lens)
        return label


def mesh_text(mesh: Mesh, palette: Palette) -> Text:
    """``X=2, Y=4, 8 devices``, axes coloured."""
    text = Text()
    for name, size in mesh.shape.items():
        text.append(name, palette.axis(mesh, name)).append(f"={size}, ")
    return text.append(plural(mesh.size, "device"))


def notes(layout: Layout) -> list[str]:
    """Sentences that a picture needs: on partial sums, and on dimensions that do not divide."""
    said = []
    spec, mesh = layout.spec, layout.mesh
    if spec.only_device is not None and mesh.size > 1:
        said.append(f"Device {spec.only_device} alone holds {layout.array.name}.")
    if spec.unreduced:
        axes = ", ".join(spec.unreduced)
        group = mesh.group_size(spec.unreduced)
        said.append(
            f"{PARTIAL} {layout.array.name} is unreduced over {axes}: each block is the sum of"
            f" {plural(group, 'partial sum')}, one on each of the devices joined by +."
        )
    for uneven in layout.uneven:
        name = f"{layout.array.dims[uneven.dim]} of {layout.array.name}"
        axes = ", ".join(spec.dims[uneven.dim])
        padding = "one is padding" if uneven.padding == 1 else f"{uneven.padding} are padding"
        padded, held = uneven.size + uneven.padding, uneven.shard_size
        said.append(
            f"{PADDING} {name}: {uneven.size} is not divisible by the {uneven.parts} shards over {axes}."
            f" jit pads it to {padded}, {held} per device; the last {padding}."
            " jax.device_put raises IndivisibleError."
        )
    return said


def repetition(shards: int, palette: Palette) -> list[Text]:
    """A line under pictures of more `shards` than there are colours."""
    turn = len(palette.shards)
    if not palette.shown or shards <= turn:
        return []
    return [Text(f"colours repeat after {turn}; letters and device numbers do not", DIM)]


def collectives_text(plan: Plan, palette: Palette) -> Text:
    """``all_gather W X, psum Out Y``, or ``none``."""
    if not plan.collectives:
        return Text("none", "dim")
    mesh = plan.problem.mesh
    return Text(", ").join(
        Text.assemble((f"{step.op} {step.array} ", ""), axes_text(step.axes, mesh, palette, ","))
        for step in plan.collectives
    )


def translate_view(
    readings: Sequence[Reading],
    notation: notations.Notation,
    written: Sequence[Mapping[str, str | ShardvizError]],
    mesh: Mesh | None,
    width: int,
    palette: Palette,
) -> list[Text]:
    """The text of each array in all notations, the one that was read marked; why some have none; notes."""
    lines: list[Text] = []
    for reading, said in zip(readings, written, strict=True):
        if len(readings) > 1:
            lines += table([[(reading.name or "", "bold")]], width)
        rows: list[list[Cell]] = []
        lacking: list[Text] = []
        for known in notations.NOTATIONS:
            words = said[known.key]
            if isinstance(words, str):
                mark = "read" if known is notation else ""
                rows.append([known.key, (words, "bold"), (known.title, "dim"), (mark, "dim")])
            else:
                lacking += sentence(words.message, width, lead=f"– {known.key}: ", style="dim")
        lines += [*table(rows, width), *lacking, *sentences(reading.notes, width)]
    if mesh is not None:
        lines += table([[Text.assemble("mesh ", mesh_text(mesh, palette))]], width)
    return lines
