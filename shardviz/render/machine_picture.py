"""Chips and links as a picture: planes of a torus, and nodes of GPUs around their switches. x goes to the
right, y down, and each z is a plane of its own. Dots lead off the page where an axis closes to a ring. A link
has the colour of the mesh axis that lies along it. Of what is too large, the first and the last are drawn."""

from __future__ import annotations

from collections import defaultdict

from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.hardware.family import Family
from shardviz.hardware.links import Dimension
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.hardware.placement import AXES
from shardviz.render.lines import sentence, shelve
from shardviz.render.palette import DIM, Palette
from shardviz.sharding import Mesh
from shardviz.units import rate

MAX_ROWS, MAX_PLANES, MAX_NODES = 8, 4, 4
ACROSS, LINK, WRAP, DOWN, DOWN_WRAP = "─", "──", "┄┄", "│", "┆"
MORE, MORE_DOWN = "…", "⋮"

Shown = list[int | None]
"""The places that are drawn along an axis; None for those that are left out."""


def machine_picture(
    machine: Machine, mesh: Mesh | None, placed: PlacedMesh | None, width: int, palette: Palette
) -> list[Text]:
    """The picture of a machine. Devices have their ids, or where they are `placed` their coordinates in the
    mesh."""
    labels = _Labels(machine, mesh, placed, palette)
    draw = _torus if machine.family.torus else _nodes
    lines = draw(machine.family, labels, width)
    for line in lines:
        # Three chips with coordinates in a large mesh may be wider than a narrow page.
        line.truncate(width, overflow="ellipsis")
    return lines


class _Labels:
    def __init__(
        self, machine: Machine, mesh: Mesh | None, placed: PlacedMesh | None, palette: Palette
    ) -> None:
        self._machine, self._mesh = machine, mesh
        self._styles: list[Style] = []
        self._along: dict[str, Style] = {}
        self._positions: dict[int, int] = {}
        if mesh is None or placed is None or placed.placement is None:
            return
        self._styles = [palette.axis(mesh, axis) for axis in mesh.axis_names]
        self._positions = {id_: position for position, id_ in enumerate(placed.placement.ids)}
        users: defaultdict[str, list[Style]] = defaultdict(list)
        for axis, style in zip(mesh.axis_names, self._styles, strict=True):
            for level in placed.group_levels((axis,)):
                users[level.name].append(style)
        self._along = {name: styles[0] for name, styles in users.items() if len(styles) == 1}

    def link(self, name: str) -> Style:
        """The style of the links along a physical axis."""
        return self._along.get(name, DIM)

    def chip(self, number: int) -> Text:
        """The label of a chip: its devices."""
        each = self._machine.family.devices_per_chip
        return Text.assemble(("·", DIM)).join(self._device(number * each + core) for core in range(each))

    def _device(self, id_: int) -> Text:
        if self._mesh is None or not self._positions:
            return Text(str(id_))
        rest, numbers = self._positions[id_], []
        for size in reversed(self._mesh.axis_sizes):
            rest, number = divmod(rest, size)
            numbers.append(number)
        parts = [Text(str(n), style) for n, style in zip(reversed(numbers), self._styles, strict=True)]
        return Text.assemble((",", DIM)).join(parts)


def _torus(family: Family, labels: _Labels, width: int) -> list[Text]:
    *axes, _, slices = family.dimensions
    missing = len(AXES) - len(axes)
    sizes = (*family.torus_sizes, *(1,) * missing)
    wrap = (*(axis.kind == "ring" for axis in axes), *(False,) * missing)
    planes = _shown(sizes[2], MAX_PLANES)
    if not missing and sizes[2] > MAX_PLANES:
        planes = [0, 1, None, sizes[2] - 1]
    blocks = []
    for plane in planes:
        title = Text()
        if sizes[2] > 1:
            name = f"z {plane}" if plane is not None else MORE
            title = Text(
                f"  {name}{f' {WRAP} z 0' if wrap[2] and plane == sizes[2] - 1 else ''}", labels.link("z")
            )
        if plane is None:
            blocks.append([title])
            continue
        grid = _plane(labels, sizes, wrap, plane, width)
        blocks.append([title, *grid] if title.plain else grid)
    lines = [_directions(labels, len(axes)), *shelve(blocks, width)]
    if slices.size > 1 and slices.link is not None:
        others = "slice 1 is the same" if slices.size == 2 else f"slices 1 to {slices.size - 1} are the same"
        words = f"slice 0; {others}, over a network of {rate(slices.link.bandwidth)} a device"
        lines += [Text(), *sentence(words, width, 2, style="dim")]
    return lines


def _directions(labels: _Labels, rank: int) -> Text:
    """``x →  y ↓``, each in the colour of the mesh axis along it."""
    ways = zip(AXES[:rank], "→↓", strict=False)
    words = [Text(f"{name} {way}", labels.link(name)) for name, way in ways]
    return Text("  ").append_text(Text("  ").join(words))


def _plane(
    labels: _Labels, sizes: tuple[int, ...], wrap: tuple[bool, ...], plane: int, width: int
) -> list[Text]:

    def number(x: int, y: int) -> int:
        return (plane * sizes[1] + y) * sizes[0] + x

    rows = _shown(sizes[1], MAX_ROWS)
    wide = max(labels.chip(number(x, y)).cell_len for x in (0, sizes[0] - 1) for y in (0, sizes[1] - 1))
    pitch = wide + len(LINK)
    edge = len(WRAP) if wrap[0] else 0
    columns = _shown(sizes[0], max((width - 2 - 2 * edge + len(LINK)) // pitch, 3))
    along_x, along_y = labels.link("x"), labels.link("y")
    margin = " " * (2 + edge)

    def vertical(sign: str) -> Text:
        cells = [Text((sign if x is not None else " ").center(wide), along_y) for x in columns]
        line = Text(margin).append_text(Text(" " * len(LINK)).join(cells))
        line.rstrip()
        return line

    lines = [vertical(DOWN_WRAP)] if wrap[1] else []
    for place, y in enumerate(rows):
        if y is None:
            continue
        if place:
            lines.append(vertical(MORE_DOWN if rows[place - 1] is None else DOWN))
        line = Text("  ").append(WRAP if wrap[0] else "", along_x)
        for column, x in enumerate(columns):
            before = column > 0 and x is not None and columns[column - 1] is not None
            after = column + 1 < len(columns) and x is not None and columns[column + 1] is not None
            line.append((LINK if before else " " * len(LINK)) if column else "", along_x)
            label = Text(MORE) if x is None else labels.chip(number(x, y))
            left = (wide - label.cell_len) // 2
            leaves = wrap[0] and column == 0, wrap[0] and column + 1 == len(columns)
            line.append((ACROSS if before or leaves[0] else " ") * left, along_x).append_text(label)
            line.append((ACROSS if after or leaves[1] else " ") * (wide - label.cell_len - left), along_x)
        line.append(WRAP if wrap[0] else "", along_x)
        line.rstrip()
        lines.append(line)
    return [*lines, vertical(DOWN_WRAP)] if wrap[1] else lines


def _centred(label: Text, width: int) -> Text:
    left = (width - label.cell_len) // 2
    right = width - label.cell_len - left
    return Text(" " * left).append_text(label).append(" " * right)


def _nodes(family: Family, labels: _Labels, width: int) -> list[Text]:
    node, nodes = family.dimensions
    count = nodes.size
    shown = [0, 1, None, count - 1] if count > MAX_NODES else list(range(count))
    lines = shelve([_node(node, labels, number, width) for number in shown], width)
    if count > 1 and nodes.link is not None:
        words = f"{plural(count, 'node')}, joined by a network of {rate(nodes.link.bandwidth)} a device"
        lines += [Text(), *sentence(words, width, 2, style=labels.link("network"))]
    return lines


def _node(node: Dimension, labels: _Labels, number: int | None, width: int) -> list[Text]:
    if number is None:
        return [Text(f"  {MORE}")]
    first = number * node.size
    wide = max(labels.chip(first + place).cell_len for place in (0, node.size - 1))
    fitting = max((width - 2) // (wide + 2), 3)
    devices = _shown(node.size, fitting)
    cells = [Text(MORE) if place is None else labels.chip(first + place) for place in devices]
    padded = [_centred(cell, wide) for cell in cells]
    row = Text("  ").append_text(Text("  ").join(padded))
    row.rstrip()
    level = node.level(node.size)
    middle, style = (wide - 1) // 2, labels.link(level.name)
    pitch = wide + 2
    bar = ["─"] * ((len(devices) - 1) * pitch + 1)
    for place in range(len(devices)):
        bar[place * pitch] = "┴"
    bar[0], bar[-1] = "└", "┘"
    joined = Text(" " * (2 + middle)).append("".join(bar) if len(devices) > 1 else DOWN, style)
    switch = Text(f"  {level.name} {rate(level.spec.bandwidth)}", style)
    return [Text(f"  node {number}", "bold"), row, joined, switch]


def _shown(size: int, most: int) -> Shown:
    if size <= most:
        return list(range(size))
    return [*range(max(most - 2, 1)), None, size - 1]
