"""The page of a profile: what each device did, step by step, the collectives as they ran, who was waited for,
and a step as it was measured above its prediction."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress
from statistics import median

from rich.text import Text

from shardviz.errors import plural
from shardviz.profiles.collective_timing import CollectiveTiming
from shardviz.profiles.device_operations import DeviceActivity
from shardviz.profiles.profile import Profile
from shardviz.render.caption import axes_text
from shardviz.render.lines import sentence, sentences
from shardviz.render.palette import Palette
from shardviz.render.tables import Cell, giving_way, rest_line, table
from shardviz.render.times.gantt import FIGURED, stacked_pictures
from shardviz.render.times.report import note_lines, total_lines, totals_table
from shardviz.units import human_bytes, measured_rate, percent, seconds

MOST_DEVICES, MOST_STEPS = 16, 12
"""Rows of a table; what is more, --json lists."""
MOST, FEW = 20, 5
"""Collectives that are listed in full, and on a short page; --json has all."""
_FILE = re.compile(r".*/([^/]+:\d+)")
_PARTS: dict[str, Callable[[DeviceActivity], float]] = {
    "total": lambda activity: activity.seconds,
    "compute": lambda activity: activity.compute,
    "communication": lambda activity: activity.communication,
    "exposed": lambda activity: activity.exposed,
    "copies": lambda activity: activity.exposed_copies,
    "idle": lambda activity: activity.idle,
}
_SHARES = ("exposed", "copies", "idle")
"""What is given as a share of the whole, too: with compute they add up to it."""


def profile_view(profile: Profile, width: int, palette: Palette, verbose: bool = False) -> list[Text]:
    """The steps, the median device and the worst straggler; the collectives; a step as it was measured above
    its prediction. `verbose` has all devices, steps and stragglers."""
    by_step = "steps" if profile.steps_are_marked else "steps: runs of the program"
    timings = _titled("collectives", _timing_lines(profile, width, palette, verbose))
    if verbose:
        devices = profile.devices
        rows = [_activity_cells(device.device, [device]) for device in devices[:MOST_DEVICES]]
        rows += [_activity_cells("median", devices)] * (len(devices) > 1)
        lines = _activity_table("device", rows, profile, width)
        lines += rest_line(len(devices) - MOST_DEVICES, "device", 2, ELSEWHERE)
        if _has_copies(profile):
            words = "copies: time in which data only moves within device memory or to and from the host"
            lines += sentence(words, width, 2, style="dim")
        tables = [
            _titled("devices", lines),
            _titled(by_step, _step_lines(profile, width)),
            timings,
            _titled("waited for", _straggler_lines(profile, width)),
        ]
    else:
        values = {part: median(map(value, profile.devices)) for part, value in _PARTS.items()}
        whole = values["total"]
        parts = [
            f"{part} {seconds(values[part])}" + f" ({percent(values[part] / (whole or 1))})" * bool(whole)
            for part in ("compute", "exposed", *["copies"] * _has_copies(profile), "idle")
        ]
        lead = "median device: " if len(profile.devices) > 1 else ""
        middle = sentence(f"{', '.join(parts)} of {seconds(whole)}", width, 2, lead)
        tables = [[*middle, *_straggler_lines(profile, width, 1)], timings]
    blocks = [
        _heading(profile, width),
        *tables,
        _timeline(profile, width, palette),
        sentences(profile.notes, width, lead="note: "),
    ]
    lines = [line for block in blocks if block for line in (*block, Text())]
    return lines[:-1]


def _heading(profile: Profile, width: int) -> list[Text]:
    names = [device.device for device in profile.devices]
    # ``TPU 0 to TPU 3``, where it is all of those; else ``GPU 0 and GPU 7``, ``a TPU 0 … b TPU 3``.
    kind, _, first = names[0].rpartition(" ")
    is_row = names == [f"{kind} {int(first) + index}" for index in range(len(names))]
    ends = f" {'to' if is_row else 'and' if len(names) == 2 else '…'} ".join((names[0], names[-1]))
    devices = names[0] if len(names) == 1 else f"{len(names)} devices, {ends}"
    lengths = [step.seconds for step in profile.steps]
    words = f"{plural(len(lengths), 'step')} of {seconds(median(lengths))}"
    limits = dict.fromkeys(map(seconds, (min(lengths), max(lengths))))
    words += f" ({' to '.join(limits)})" if len(limits) > 1 else ""
    hosts = ", ".join(profile.hosts[:4]) + (" …" if len(profile.hosts) > 4 else "")
    at = f", profiled on {hosts}" if hosts else ""
    lines = sentence(f"{words} on {devices}{at}", width, lead=f"{profile.program}: ")
    return lines + ([] if profile.mesh is None else sentence(str(profile.mesh), width, lead="mesh "))


def _titled(title: str, lines: list[Text]) -> list[Text]:
    return [Text(title, "bold underline"), *lines] if lines else []


def _timeline(profile: Profile, width: int, palette: Palette) -> list[Text]:
    measured, predicted = profile.timeline, profile.predicted
    lines = total_lines(measured, width, palette, with_parts=width < FIGURED)
    tellers = [("measured", measured)]
    if predicted is not None:
        # What is in memory was not measured, and stands beside nothing.
        tellers.append((f"predicted on {predicted.machine}", replace(predicted, memory=None)))
        lines += [Text(), *totals_table(tellers, width)]
        if predicted.unknown:
            count = plural(len(predicted.unknown), "operation")
            words = f"the prediction is incomplete: no estimate (?) for {count}"
            lines += sentence(words, width, 2)
    lines += stacked_pictures(tellers, width, palette)
    for _, timeline in tellers:
        notes = note_lines(timeline, width)
        lines += [Text(), *notes] if notes else []
    return lines


def _step_lines(profile: Profile, width: int) -> list[Text]:
    steps = profile.steps
    if len(steps) < 2:
        return []
    longest = sorted(steps, key=lambda step: -step.seconds)[:MOST_STEPS]
    rows = []
    for step in sorted(longest, key=lambda step: step.number):
        name, _, *rest = _activity_cells(str(step.number), step.devices)
        rows.append([name, seconds(step.seconds), *rest])
    lines = _activity_table("step" if profile.steps_are_marked else "run", rows, profile, width)
    if len(profile.devices) > 1:
        words = "total: first device start to last device end; all else, shares too: medians over devices"
        lines += sentence(words, width, 2, style="dim")
    return [*lines, *rest_line(len(steps) - MOST_STEPS, "shorter step", 2, ELSEWHERE)]


def _has_copies(profile: Profile) -> bool:
    return any(device.copies for device in profile.devices)


def _activity_table(name: str, rows: Sequence[Sequence[Cell]], profile: Profile, width: int) -> list[Text]:
    """A table, with a column of copies where a device has any; then narrow pages are without communication,
    of which what is exposed stays."""
    shown = [part != "copies" or _has_copies(profile) for part in _PARTS]
    head = [name, *(f">{part}" for part in compress(_PARTS, shown))]
    rows = [[row[0], *compress(row[1:], shown)] for row in rows]
    return table(rows, width, 2, head, [["communication"]] if all(shown) else ())


def _activity_cells(name: str, activities: Sequence[DeviceActivity]) -> list[Cell]:
    values = {part: median(value(activity) for activity in activities) for part, value in _PARTS.items()}
    cells: list[Cell] = [(name, "bold")]
    for part, value in values.items():
        cell = Text(seconds(value))
        if part in _SHARES and values["total"]:
            cell.append(f" {percent(value / values['total']):>5}", "dim")
        cells.append(cell)
    return cells


ELSEWHERE = ", which --json lists"


def _timing_lines(profile: Profile, width: int, palette: Palette, verbose: bool) -> list[Text]:
    """A row a collective, those first for which devices wait longest; if `verbose`, what the columns mean."""
    shown = profile.collectives[: MOST if verbose else FEW]
    if not shown:
        return []
    rows = [_timing_cells(timing, profile, palette) for timing in shown]
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    told = [name.replace(">", " ") if name.startswith(">") else "" for name in names]
    without = giving_way("min to max", "source", "algbw", "runs", "bytes")
    lines = table([[row[name] for name in names] for row in rows], width, 2, names, without, told)
    lines += rest_line(len(profile.collectives) - len(shown), "collective", 2, ELSEWHERE)
    if not verbose:
        return lines
    words = "time: from the last device's start to the last device's end; waited: the time before"
    if any(timing.waited is None for timing in profile.collectives):
        words += (
            "; ? if devices of a group are missing from the profile: time then includes the wait for them"
        )
    elif any(timing.waited for timing in profile.collectives):
        words += ", for the last device"
    if any(timing.groups > 1 for timing in profile.collectives):
        words = f"runs × groups of devices; {words}"
    return [*lines, *sentence(words, width, 2, style="dim")]


def _timing_cells(timing: CollectiveTiming, profile: Profile, palette: Palette) -> dict[str, Text]:
    collective, mesh = timing.collective, profile.mesh
    # The steps are those of the profile's main program: of another one its name is told.
    other = f" in {timing.module}" if timing.module not in ("", profile.program) else ""
    label = timing.name if timing.op in timing.name else f"{timing.op} {timing.name}"
    axes = Text() if mesh is None or not timing.axes else axes_text(timing.axes, mesh, palette)
    predicted = Text()
    if timing.predicted is not None:
        times = timing.seconds / timing.predicted if timing.predicted else 0.0
        ratio = f" × {times:,.0f}" if times >= 9.5 else f" × {times:.2g}" if times else ""
        predicted = Text.assemble(seconds(timing.predicted), (ratio, "dim"))
    runs = Text(f"{timing.runs:,}")
    if timing.groups > 1 and timing.runs % timing.groups == 0:
        # Of groups that ran unequally often all runs are told.
        runs = Text.assemble(f"{timing.runs // timing.groups:,}", (f" × {timing.groups:,}", "dim"))
    return {
        "collective": Text.assemble((label, "bold"), (other, "dim")),
        "axes": axes,
        ">bytes": Text("" if collective is None else human_bytes(collective.bytes)),
        ">runs": runs,
        ">time": Text(seconds(timing.seconds), "bold"),
        ">min to max": Text(f"{seconds(timing.least)} to {seconds(timing.most)}"),
        ">algbw": Text(measured_rate(timing.algbw) if timing.algbw else ""),
        ">busbw": Text(measured_rate(timing.busbw) if timing.busbw else ""),
        ">predicted": predicted,
        ">waited": Text("?", "bold") if timing.waited is None else Text(seconds(timing.waited)),
        ">exposed": Text(seconds(timing.exposed)),
        "source": Text("" if collective is None else _FILE.sub(r"\1", collective.source), "dim"),
    }


def _straggler_lines(profile: Profile, width: int, most: int = 5) -> list[Text]:
    """The devices for which others waited, and where; the worst first."""
    lines = []
    for straggler in profile.stragglers[:most]:
        share = percent(straggler.times / straggler.runs)
        words = (
            f"was last in {straggler.times:,} of {plural(straggler.runs, 'run')} ({share}) "
            f"of {straggler.collective}; others waited {seconds(straggler.seconds)}"
        )
        lines += sentence(words, width, 2, f"{straggler.device} ")
    return lines
