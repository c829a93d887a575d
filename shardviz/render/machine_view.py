"""A machine: its figures with their source, where a mesh's axes lie on it, and its picture: planes of a torus
(x to the right, y down, a plane for each z) or nodes around switches, links in their axis's colour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from rich.style import Style
from rich.text import Text

from shardviz.errors import plural
from shardviz.hardware.chips import CHIPS, COMPILED
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.family import Family
from shardviz.hardware.gpu_times import MATMULS, NCCL, ways_over
from shardviz.hardware.links import Dimension, LinkLevel
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.hardware.measured import COLLECTIVES
from shardviz.hardware.placement import AXES
from shardviz.render.lines import GLUE, sentence, sentences, shelve, visible
from shardviz.render.measurements import percent, regime_cells
from shardviz.render.palette import DIM, Palette
from shardviz.render.tables import Cell, columns, table
from shardviz.sharding import Mesh
from shardviz.targets import pip
from shardviz.targets.hardware import TargetGroup
from shardviz.units import flops, human_bytes, rate, seconds


def machine_view(
    machine: Machine,
    mesh: Mesh | None,
    placed: PlacedMesh | None,
    width: int,
    palette: Palette,
    verbose: bool = False,
) -> list[Text]:
    """A machine, and a mesh's axes on it; when `verbose`, also on-chip memory, clock and host link."""
    lines = sentence(machine.family.size_words(), width, lead=f"{machine.name}  ")
    lines += [Text(), Text("one device", "bold"), *_device_lines(machine, width, verbose)]
    lines += [Text(), Text("links, one way", "bold"), *_link_lines(machine, width), Text()]
    lines += machine_picture(machine, mesh, placed, width, palette)
    if mesh is not None and placed is not None:
        order = "in the given order" if mesh.device_order else "as placed by jax.make_mesh"
        lines += [Text(), *sentence(f"{mesh}, {order}", width, lead="mesh  ")]
        lines += _axis_lines(mesh, placed, width, palette)
    lines += _matmul_lines(machine, width)
    for one in machine.family.dimensions:
        if one.nccl and one.kind == "switch" and one.size > 1:
            lines += _nccl_lines(one, width)
    if machine.chip in CHIPS and machine.chip not in COMPILED:
        words = f"No compiler for {CHIPS[machine.chip].device_kind} is here. "
        if "switch" in machine.family.links:
            words += "Plans, HLO texts and profiles have times, collectives by formula."
        else:
            words += f"{machine.family.link_name} has no published bandwidth: "
            words += "collectives need one in a machine file."
        lines += [Text(), *sentence(words, width)]
    if machine.measured:
        rows: list[Sequence[Cell]] = []
        for times in machine.measured:
            for number, cells in enumerate(map(regime_cells, times.regimes)):
                is_first = not number
                named = [times.op, times.over] if is_first else ["", ""]
                rows.append([*named, *cells, percent(times.noise) * is_first])
        lines += [Text(), Text("measured, instead of formulas", "bold")]
        heads = ("", "over", ">from", ">latency", ">bandwidth", ">noise")
        lines += table(rows, width, 2, heads, style="dim")
        lines += _point_lines(machine, width)
    return [*lines, Text(), *sentence(machine.source, width, lead="figures: ", style="dim")]


FIGURES = ("bf16", "HBM", "its bandwidth", "link one way", "network")


def figures_table(machines: Sequence[Machine], width: int) -> list[Text]:
    """The most important figures of one device of each; a sentence each where a table is too wide."""
    rows = [[machine.chip, *_figures(machine)] for machine in machines]
    texts = columns(rows, width, 2, ("one device", *FIGURES), style="dim")
    if texts is not None:
        return texts
    named = ((chip, map(" ".join, zip(FIGURES, cells, strict=True))) for chip, *cells in rows)
    return [line for chip, cells in named for line in sentence(", ".join(cells), width, 2, f"{chip}: ")]


def machine_words(machine: Machine) -> Text:
    """Its name and size, and a line for each of the most important figures of one device."""
    figures = zip(FIGURES, _figures(machine), strict=True)
    lines = [Text(f"{name:<15}", "dim").append(figure, "not dim") for name, figure in figures]
    head = Text.assemble((machine.name, "bold"), f"  {machine.family.size_words()}")
    return Text("\n").join([head, *lines])


def _figures(machine: Machine) -> tuple[str, ...]:
    device, unknown = machine.device, f"not {machine.lacking}"
    peak = device.flops_per_second("bf16")
    link = next((one.link for one in machine.family.dimensions), None)
    return (
        unknown if peak is None else flops(peak, True),
        unknown if device.hbm_bytes is None else memory_words(device.hbm_bytes),
        unknown if device.hbm_bandwidth is None else rate(device.hbm_bandwidth),
        unknown if link is None else rate(link.bandwidth),
        unknown if machine.network is None else rate(machine.network.bandwidth),
    )


def _device_lines(machine: Machine, width: int, verbose: bool) -> list[Text]:
    device, unknown = machine.device, f"not {machine.lacking}"
    peaks: dict[float, list[str]] = {}
    for dtype, peak in device.peak:
        peaks.setdefault(peak, []).append(dtype)
    said = [f"{flops(peak, True)} in {', '.join(dtypes)}" for peak, dtypes in peaks.items()] or [unknown]
    usable = "" if device.usable_bytes is None else f", {memory_words(device.usable_bytes)} for a program"
    rows = [("" if number else "peak", words) for number, words in enumerate(said)]
    held = unknown if device.hbm_bytes is None else f"{memory_words(device.hbm_bytes)}{usable}"
    bandwidth = unknown if device.hbm_bandwidth is None else rate(device.hbm_bandwidth)
    rows.append(("HBM", f"{held}, {bandwidth}"))
    if verbose:
        on_chip, clock = device.on_chip_bytes, device.clock
        rows += [
            (machine.family.on_chip_name, unknown if on_chip is None else human_bytes(on_chip)),
            ("clock", unknown if clock is None else f"{clock / 1e9:.4g} GHz"),
            ("host", unknown if device.host is None else f"{rate(device.host)} each way"),
        ]
        rows += [("launch", f"{seconds(device.launch)} per kernel")] if device.launch else []
    return table([[(name, "dim"), words] for name, words in rows], width, 2)


def memory_words(size: int) -> str:
    """``80 GB`` as data sheets have it where that is exact, else ``15.75 GiB``."""
    if size % 10**9 == 0:
        return f"{size // 10**9:,} GB"
    return f"{size / 2**30:.4g} GiB" if size >= 2**30 else human_bytes(size)


def _link_lines(machine: Machine, width: int) -> list[Text]:
    rows: list[list[Cell]] = []
    for one in machine.family.dimensions:
        is_joined = one.size > 1 or one.is_torus or one.kind == "switch"
        if not is_joined or (one.link is None and one.size == 1):
            continue
        is_plain = one.kind == "network" or (one.kind == "line" and one.size == 1)
        kind = "each pair" if one.direct else "" if is_plain else one.kind
        name = "network" if one.kind == "network" else one.label
        members = {"ring": "chip", "line": "chip", "switch": "device", "chip": "device"}
        size = plural(one.size, members.get(one.kind, one.name))
        figures = [rate(one.link.bandwidth), f"{seconds(one.link.latency)} per hop"] if one.link else []
        rows.append([(name, "bold"), size, kind, *(figures or [f"not {machine.lacking}", ""])])
    return table(rows, width, 2)


def _matmul_lines(machine: Machine, width: int) -> list[Text]:
    like = machine.device.matmuls
    rows: list[list[Cell]] = [
        [dtype, seconds(time.start), f"{time.share:.0%}", rate(time.bandwidth)]
        for dtype, time in MATMULS.get(like, {}).items()
    ]
    heads = ("", ">start", ">of the peak", ">on the chip")
    return _fitted("matmuls", "cuBLAS", like, heads, rows, width)


def _nccl_lines(node: Dimension, width: int) -> list[Text]:
    """NCCL's lines over a node, of which the quickest holds."""
    rows: list[list[Cell]] = []
    for op in NCCL[node.nccl]:
        for place, (start, share) in enumerate(ways_over(node.nccl, op, node.size)):
            rows.append(["" if place else op, seconds(start), f"{share:.0%}"])
    heads = ("", ">start", ">of the links")
    lines = _fitted(f"collectives over {node.size}", "NCCL", node.nccl, heads, rows, width)
    between = "The lines pass between the times, of which small ones vary by 40% from run to run. "
    between += "The [[measured]] points of a machine file hold exactly."
    return [*lines, *sentence(between, width, 2, style="dim")]


def _fitted(
    what: str, library: str, like: str, heads: Sequence[str], rows: list[list[Cell]], width: int
) -> list[Text]:
    if not rows:
        return []
    source = "openxla/xla, xla/service/gpu/model"
    head = sentence(f"{what}, fitted to {library} on {like.upper()} ({source})", width, style="bold")
    return [Text(), *head, *table(rows, width, 2, heads, style="dim")]


def _point_lines(machine: Machine, width: int) -> list[Text]:
    rows: list[list[Cell]] = []
    for times in machine.measured:
        without = [replace(times, points=())] if times.regimes else []
        for size, measured in times.points:
            fit = collective_time(COLLECTIVES[times.op], size, times.links, measured=without)
            is_first = size == times.points[0].size
            named = [times.op, times.over] if is_first else ["", ""]
            rows.append([*named, human_bytes(size), seconds(measured), seconds(fit.seconds)])
    heads = ("", "over", ">size", ">measured", ">by lines or formula")
    if not rows:
        return []
    hold = "Between points, times are interpolated; beyond them the lines hold, or the formula."
    levelled = [
        f"{human_bytes(point.size)} of {times.op} took longer than a larger size and takes that one's time."
        for times in machine.measured
        for point, taken in zip(times.points, times.rising, strict=True)
        if taken != point
    ]
    return [*table(rows, width, 2, heads, style="dim"), *sentences([hold, *levelled], width, 2, style="dim")]


def _axis_lines(mesh: Mesh, placed: PlacedMesh, width: int, palette: Palette) -> list[Text]:
    rows: list[list[Cell]] = []
    shares = False
    for axis, size in mesh.shape.items():
        levels = placed.published_levels((axis,))
        family = placed.machine.family
        unknown = f"{size} through {family.link_name}, no bandwidth published"
        words = ", ".join(map(level_words, levels)) or (unknown if size > 1 else "one device")
        rows.append([(f"{axis}={size}", palette.axis(mesh, axis)), words])
        kinds = {level.kind for level in levels}
        shares |= bool(kinds & {"ring", "line"}) and "chip" not in kinds
    lines = table(rows, width, 2)
    cores = placed.machine.family.devices_per_chip
    if shares and cores > 1:
        words = f"{cores} devices per chip share its links: a group with one of them gets 1/{cores} of each"
        lines += sentence(words, width, 2, style="dim")
    return lines


def level_words(level: LinkLevel) -> str:
    """``ring of 4 along x at 90 GB/s``, ``8 through NVLink``, ``2 slices``."""
    bandwidth = rate(level.spec.bandwidth)
    if level.kind in ("ring", "line"):
        apart = f", {level.hops} hops apart" if level.hops > 1 else ""
        shared = f" that {level.messages} messages share" if level.messages > 1 else ""
        return f"{level.kind} of {level.size} along {level.name}{apart} at {bandwidth}{shared}"
    if level.kind == "chip":
        return f"{level.size} on a chip"
    if level.direct:
        return f"{level.size} through {level.name}, each pair at {bandwidth}"
    return f"{level.size} over {level.name} at {bandwidth} each"


MAX_ROWS, MAX_PLANES, MAX_NODES = 8, 4, 4
ACROSS, LINK, WRAP, DOWN, DOWN_WRAP = "─", "──", "┄┄", "│", "┆"
MORE, MORE_DOWN = "…", "⋮"


def machine_picture(
    machine: Machine, mesh: Mesh | None, placed: PlacedMesh | None, width: int, palette: Palette
) -> list[Text]:
    """A machine whose devices have their ids, or where they are `placed` their coordinates."""
    labels, family = _Labels(machine, mesh, placed, palette), machine.family
    if family.torus:
        lines = _torus(family, labels, width)
    else:
        node, nodes = family.dimensions
        drawn = [_node(node, labels, number, width) for number in visible(nodes.size, MAX_NODES)]
        lines = shelve(drawn, width)
        if nodes.size > 1 and nodes.link is not None:
            speed = rate(nodes.link.bandwidth)
            words = f"{plural(nodes.size, 'node')}, joined by a network of {speed} per device"
            lines += [Text(), *sentence(words, width, 2, style=labels.link("network"))]
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
            for level in placed.published_levels((axis,)):
                users[level.name].append(style)
        self._along = {name: styles[0] for name, styles in users.items() if len(styles) == 1}

    def link(self, name: str) -> Style:
        return self._along.get(name, DIM)

    def chip(self, number: int) -> Text:
        cores = self._machine.family.devices_per_chip
        labels = []
        for id_ in range(number * cores, (number + 1) * cores):
            label = Text(str(id_))
            if self._mesh is not None and self._positions:
                places = zip(self._mesh.coords(self._positions[id_]), self._styles, strict=True)
                label = Text.assemble((",", DIM)).join(Text(str(place), style) for place, style in places)
            labels.append(label)
        return Text.assemble(("·", DIM)).join(labels)


def _torus(family: Family, labels: _Labels, width: int) -> list[Text]:
    *axes, _, slices = family.dimensions
    missing = len(AXES) - len(axes)
    sizes = (*family.torus_sizes, *(1,) * missing)
    wrap = (*(axis.kind == "ring" for axis in axes), *(False,) * missing)
    blocks = []
    for plane in visible(sizes[2], MAX_PLANES):
        closes = f" {WRAP} z 0" if wrap[2] and plane == sizes[2] - 1 else ""
        title = Text(f"  {MORE if plane is None else f'z {plane}{closes}'}", labels.link("z"))
        grid = [] if plane is None else _plane(labels, sizes, wrap, plane, width)
        blocks.append([title, *grid] if sizes[2] > 1 else grid)
    # ``x →  y ↓``, each in the colour of the mesh axis along it.
    ways = [
        Text(f"{name} {way}", labels.link(name)) for name, way in zip(AXES[: len(axes)], "→↓", strict=False)
    ]
    lines = [Text("  ").append_text(Text("  ").join(ways)), *shelve(blocks, width)]
    if slices.size > 1 and slices.link is not None:
        others = "slice 1 is the same" if slices.size == 2 else f"slices 1 to {slices.size - 1} are the same"
        words = f"slice 0; {others}, over a network of {rate(slices.link.bandwidth)} per device"
        lines += [Text(), *sentence(words, width, 2, style="dim")]
    return lines


def _plane(
    labels: _Labels, sizes: tuple[int, ...], wrap: tuple[bool, ...], plane: int, width: int
) -> list[Text]:

    def number(x: int, y: int) -> int:
        return (plane * sizes[1] + y) * sizes[0] + x

    rows = visible(sizes[1], MAX_ROWS, MAX_ROWS)
    wide = max(labels.chip(number(x, y)).cell_len for x in (0, sizes[0] - 1) for y in (0, sizes[1] - 1))
    pitch = wide + len(LINK)
    edge = len(WRAP) if wrap[0] else 0
    fitting = max((width - 2 - 2 * edge + len(LINK)) // pitch, 3)
    columns = visible(sizes[0], fitting, fitting)
    along_x, along_y = labels.link("x"), labels.link("y")
    margin = " " * (2 + edge)

    def vertical(sign: str) -> Text:
        cells = [Text((sign if x is not None else " ").center(wide), along_y) for x in columns]
        line = Text(margin).append_text(Text(" " * len(LINK)).join(cells))
        line.rstrip()
        return line

    lines = [vertical(DOWN_WRAP)] if wrap[1] else []
    for index, y in enumerate(rows):
        if y is None:
            continue
        if index:
            lines.append(vertical(MORE_DOWN if rows[index - 1] is None else DOWN))
        line = Text("  ").append(WRAP if wrap[0] else "", along_x)
        joined = [wrap[0], *(None not in pair for pair in pairwise(columns)), wrap[0]]
        for column, (x, before, after) in enumerate(zip(columns, joined, joined[1:], strict=False)):
            line.append((LINK if before else " " * len(LINK)) if column else "", along_x)
            label = Text(MORE) if x is None else labels.chip(number(x, y))
            left = (wide - label.cell_len) // 2
            line.append((ACROSS if before else " ") * left, along_x).append_text(label)
            line.append((ACROSS if after else " ") * (wide - label.cell_len - left), along_x)
        line.append(WRAP if wrap[0] else "", along_x)
        line.rstrip()
        lines.append(line)
    return [*lines, vertical(DOWN_WRAP)] if wrap[1] else lines


def _node(node: Dimension, labels: _Labels, number: int | None, width: int) -> list[Text]:
    if number is None:
        return [Text(f"  {MORE}")]
    first = number * node.size
    wide = max(labels.chip(first + index).cell_len for index in (0, node.size - 1))
    fitting = max((width - 2) // (wide + 2), 3)
    devices = visible(node.size, fitting, fitting)
    cells = [Text(MORE) if device is None else labels.chip(first + device) for device in devices]
    for cell in cells:
        cell.align("center", wide)
    row = Text("  ").append_text(Text("  ").join(cells))
    row.rstrip()
    middle, style = (wide - 1) // 2, labels.link(node.label)
    bar = ("─" * (wide + 1)).join(["└", *"┴" * (len(devices) - 2), "┘"]) if len(devices) > 1 else DOWN
    joined = Text(" " * (2 + middle)).append(bar, style)
    bandwidth = rate(node.link.bandwidth) if node.link else ""
    switch = Text(f"  {node.label} {bandwidth}{' per pair' * node.direct}".rstrip(), style)
    return [Text(f"  node {number}", "bold"), row, joined, switch]


def info_view(
    versions: Sequence[tuple[str, str]], warning: str, cache: tuple[str, int, int], width: int
) -> list[Text]:
    """`versions`: (name, version); a `warning` on them; `cache`: a folder, its programs and its bytes."""
    folder, programs, size = cache
    cure = f"{pip('install', '-U', 'jax[tpu]')} installs the required version."
    warned = [Text(), *sentence(f"{warning}. {cure}", width, style="bold")] if warning else []
    elsewhere = "shardviz targets lists the targets and how to install missing ones."
    kept = f"{plural(programs, 'program')}, {human_bytes(size)}, in {folder}"
    return [
        *table(versions, width),
        *warned,
        Text(),
        *sentence(kept, width, lead="compiled and kept: "),
        *sentence(elsewhere, width, style="dim"),
    ]


def targets_view(groups: Sequence[TargetGroup], width: int, verbose: bool = False) -> list[Text]:
    """A heading for every group, its targets and its names; when `verbose`, the figures of each chip."""
    lines: list[Text] = []
    for group in groups:
        versions = ", ".join(f"{name} {version}" for name, version in group.versions)
        command = f": {group.command.replace(' ', GLUE)}" if group.command else ""
        said = f"{group.missing}{command}" if group.missing else f"ready  {versions}".rstrip()
        lines += [Text()] * bool(lines) + sentence(said, width, 0, f"{group.title}  ")
        lines += table([[choice.name, choice.what] for choice in group.choices], width, 2)
        lines += sentence(group.takes, width, 2, style="dim")
        machines = [choice.machine for choice in group.choices if choice.machine is not None]
        if machines and verbose:
            lines += [Text(), *figures_table(machines, width)]
    return lines
