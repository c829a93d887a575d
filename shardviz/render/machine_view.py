"""A machine: its figures with their source, its picture, and where each axis of a mesh lies on it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.hardware.links import LinkLevel, LinkSpec
from shardviz.hardware.machine import Machine, PlacedMesh
from shardviz.render.lines import columns, sentence, table
from shardviz.render.machine_picture import machine_picture
from shardviz.render.measurements import regime_cells
from shardviz.render.palette import Palette
from shardviz.sharding import Mesh
from shardviz.units import flops, human_bytes, rate, seconds


def machine_view(
    machine: Machine, mesh: Mesh | None, placed: PlacedMesh | None, width: int, palette: Palette
) -> list[Text]:
    """All of a machine; with a mesh also where its axes lie. `placed` is None where no mesh was given."""
    lines = sentence(machine.family.size_words(), width, lead=f"{machine.name}  ")
    lines += [Text(), Text("one device", "bold"), *_device_lines(machine, width)]
    lines += [Text(), Text("links, one way", "bold"), *_link_lines(machine, width), Text()]
    lines += machine_picture(machine, mesh, placed, width, palette)
    if mesh is not None and placed is not None:
        order = "in the order that is given" if mesh.device_order else "where jax.make_mesh places it"
        lines += [Text(), *sentence(f"{mesh}, {order}", width, lead="mesh  ")]
        lines += _axis_lines(mesh, placed, width, palette)
    if machine.measured:
        lines += [
            Text(),
            Text("measured, in the place of formulas", "bold"),
            *_measured_lines(machine, width),
        ]
    return [*lines, Text(), *sentence(machine.source, width, lead="figures: ", style="dim")]


FIGURES = ("bf16", "HBM", "its bandwidth", "link one way", "network")


def figures_table(machines: Sequence[Machine], width: int) -> list[Text]:
    """The most important figures of one device of each; a sentence each where a table is too wide."""
    heads = [Text(head, "dim") for head in ("one device", *FIGURES)]
    rows = [[machine.chip, *_figures(machine)] for machine in machines]
    found = columns([heads, *([Text(cell) for cell in row] for row in rows)], width, 2)
    if found is not None:
        return found
    return [
        line
        for chip, *cells in rows
        for line in sentence(
            ", ".join(map(" ".join, zip(FIGURES, cells, strict=True))), width, 2, f"{chip}: "
        )
    ]


def machine_words(machine: Machine) -> Text:
    """Its name and size, and a line for each of the most important figures of one device."""
    figures = zip(FIGURES, _figures(machine), strict=True)
    lines = [Text(f"{name:<15}", "dim").append(figure, "not dim") for name, figure in figures]
    head = Text.assemble((machine.name, "bold"), f"  {machine.family.size_words()}")
    return Text("\n").join([head, *lines])


def _figures(machine: Machine) -> tuple[str, ...]:
    device, unknown = machine.device, f"not {machine.lacking}"
    peak = device.flops_per_second("bf16")
    link = machine.family.usual_link
    return (
        unknown if peak is None else flops(peak, True),
        unknown if device.hbm_bytes is None else memory_words(device.hbm_bytes),
        unknown if device.hbm_bandwidth is None else rate(device.hbm_bandwidth),
        rate(link.bandwidth),
        unknown if machine.network is None else rate(machine.network.bandwidth),
    )


def _device_lines(machine: Machine, width: int) -> list[Text]:
    device, unknown = machine.device, f"not {machine.lacking}"
    peaks: dict[float, list[str]] = {}
    for dtype, peak in device.peak:
        peaks.setdefault(peak, []).append(dtype)
    said = [f"{flops(peak, True)} in {', '.join(dtypes)}" for peak, dtypes in peaks.items()] or [unknown]
    usable = "" if device.usable_bytes is None else f", {memory_words(device.usable_bytes)} for a program"
    rows = [("" if number else "peak", words) for number, words in enumerate(said)]
    rows += [
        ("HBM", unknown if device.hbm_bytes is None else f"{memory_words(device.hbm_bytes)}{usable}"),
        ("", unknown if device.hbm_bandwidth is None else rate(device.hbm_bandwidth)),
        (
            machine.family.on_chip_name,
            unknown if device.on_chip_bytes is None else human_bytes(device.on_chip_bytes),
        ),
        ("clock", unknown if device.clock is None else f"{device.clock / 1e9:.4g} GHz"),
    ]
    return table([[Text(name, "dim"), Text(words)] for name, words in rows], width, 2)


def memory_words(size: int) -> str:
    """``80 GB`` as data sheets have it where that is exact, else ``15.75 GiB``."""
    if size % 10**9 == 0:
        return f"{size // 10**9:,} GB"
    return f"{size / 2**30:.4g} GiB" if size >= 2**30 else human_bytes(size)


MEMBERS = {"ring": "chip", "line": "chip", "switch": "device", "chip": "device"}
"""The members of a dimension by the kind of its links; the network's are slices or nodes."""


def _link_lines(machine: Machine, width: int) -> list[Text]:
    rows = []
    for one in machine.family.dimensions:
        is_joined = one.size > 1 or one.is_torus or one.kind == "switch"
        if one.link is None or not is_joined:
            continue
        name, kind = ("network", "") if one.kind == "network" else (one.label, one.kind)
        if one.kind == "line" and one.size == 1:
            kind = ""
        rows.append([name, plural(one.size, MEMBERS.get(one.kind, one.name)), kind, *_link(one.link)])
    cells = [[Text(name, "bold"), *map(Text, rest)] for name, *rest in rows]
    return table(cells, width, 2)


def _link(link: LinkSpec) -> tuple[str, str]:
    return rate(link.bandwidth), f"{seconds(link.latency)} a hop"


def _measured_lines(machine: Machine, width: int) -> list[Text]:
    heads = ("", "over", "from", "latency", "bandwidth", "noise")
    rows = [[Text(head, "dim") for head in heads]]
    for each in machine.measured:
        over = f"{','.join(each.axes)} of {each.mesh}"
        for number, regime in enumerate(each.regimes):
            name = ("", "") if number else (each.op, over)
            told = () if number else ("–" if each.noise is None else f"{each.noise:.0%}",)
            rows.append([*map(Text, (*name, *regime_cells(regime), *told))])
    return table(rows, width, 2, frozenset({2, 3, 4, 5}))


def _axis_lines(mesh: Mesh, placed: PlacedMesh, width: int, palette: Palette) -> list[Text]:
    rows, shares = [], False
    for axis, size in mesh.shape.items():
        levels = placed.group_levels((axis,))
        words = ", ".join(map(level_words, levels)) or "one device"
        rows.append([Text(f"{axis}={size}", palette.axis(mesh, axis)), Text(words)])
        kinds = {level.kind for level in levels}
        shares |= bool(kinds & {"ring", "line"}) and "chip" not in kinds
    lines = table(rows, width, 2)
    each = placed.machine.family.devices_per_chip
    if shares and each > 1:
        words = f"{each} devices of a chip share its links: a group with one of them has 1/{each} of each"
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
    return f"{level.size} over {level.name} at {bandwidth} each"
