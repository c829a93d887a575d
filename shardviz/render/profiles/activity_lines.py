"""Tables of what devices did: compute, communication, what of it is exposed, idle time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median

from rich.text import Text

from shardviz.errors import plural
from shardviz.profiles.device_operations import Activity
from shardviz.profiles.profile import MeasuredStep, Profile
from shardviz.render.lines import columns, sentence, table
from shardviz.render.sanitize import printable
from shardviz.render.times.report import percent
from shardviz.units import estimated_seconds

MOST_DEVICES, MOST_STEPS = 16, 12
"""Rows of a table; what is more, --json lists."""
_PARTS: dict[str, Callable[[Activity], float]] = {
    "in all": lambda each: each.seconds,
    "compute": lambda each: each.compute,
    "communication": lambda each: each.communication,
    "exposed": lambda each: each.exposed,
    "copies": lambda each: each.exposed_copies,
    "idle": lambda each: each.idle,
}
_SHARES = ("exposed", "copies", "idle")
"""What is given as a share of the whole, too: with compute they add up to it."""
_COPY_WORDS = (
    "copies is the time in which data move only within a device's memory, or between it and the host, and "
    "nothing is computed or communicated"
)
_STEP_WORDS = "in all: first device start to last device end; all else, shares too: medians over devices"
_RIGHT = frozenset({1, 2, 3, 4, 5, 6})


def device_lines(profile: Profile, width: int) -> list[Text]:
    """A row a device, and the median of all."""
    devices = profile.devices
    rows = [_row(printable(each.device), [each.activity]) for each in devices[:MOST_DEVICES]]
    if len(devices) > 1:
        rows.append(_row("median", [each.activity for each in devices]))
    lines = _rows("device", rows, profile, width)
    words = sentence(_COPY_WORDS, width, 2, style="dim") if _has_copies(profile) else []
    return [*lines, *_rest(len(devices) - MOST_DEVICES, "device"), *words]


def step_lines(profile: Profile, width: int) -> list[Text]:
    """A row a step, with the median of its devices; of many steps the longest."""
    steps = profile.steps
    if len(steps) < 2:
        return []
    shown = steps
    if len(steps) > MOST_STEPS:
        longest = sorted(steps, key=lambda each: -each.seconds)[:MOST_STEPS]
        shown = tuple(sorted(longest, key=lambda each: each.number))
    lines = _rows("step" if profile.steps_are_marked else "run", map(_step_row, shown), profile, width)
    words = sentence(_STEP_WORDS, width, 2, style="dim") if len(profile.devices) > 1 else []
    return [*lines, *words, *_rest(len(steps) - MOST_STEPS, "shorter step")]


def _has_copies(profile: Profile) -> bool:
    return any(each.activity.copies for each in profile.devices)


def _rows(name: str, rows: Iterable[dict[str, Text]], profile: Profile, width: int) -> list[Text]:
    """A table, with a column of copies where a device has any; then narrow pages are without communication,
    of which what is exposed stays."""
    rows = [{part: Text(part or name, "bold") for part in ("", *_PARTS)}, *rows]
    kept = [part for part in rows[0] if part != "copies" or _has_copies(profile)]
    found = columns([[row[part] for part in kept] for row in rows], width, 2, _RIGHT)
    if found is not None:
        return found
    narrow = [part for part in kept if part != "communication" or not _has_copies(profile)]
    return table([[row[part] for part in narrow] for row in rows], width, 2, _RIGHT)


def _row(name: str, activities: Sequence[Activity]) -> dict[str, Text]:
    """Medians of activities by their columns, "" the name's."""
    values = {part: median(value(each) for each in activities) for part, value in _PARTS.items()}
    cells = {"": Text(name, "bold")}
    for part, value in values.items():
        cells[part] = Text(estimated_seconds(value))
        if part in _SHARES and values["in all"]:
            cells[part].append(f" {percent(value / values['in all']):>5}", "dim")
    return cells


def _step_row(step: MeasuredStep) -> dict[str, Text]:
    cells = _row(str(step.number), [each.activity for each in step.devices])
    return {**cells, "in all": Text(estimated_seconds(step.seconds))}


def _rest(count: int, name: str) -> list[Text]:
    return [Text(f"  and {plural(count, name)}, which --json lists", "dim")] * (count > 0)
