"""Tables of what devices did: compute, communication, what of it is exposed, idle time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from rich.text import Text

from shardviz.errors import plural
from shardviz.profiles.device_operations import Activity
from shardviz.profiles.profile import MeasuredStep, Profile
from shardviz.render.lines import sentence, table
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
_STEP_WORDS = "in all is from the first device's begin to the last one's end, the rest medians over devices"
_RIGHT = frozenset({1, 2, 3, 4, 5, 6})


def device_lines(profile: Profile, width: int) -> list[Text]:
    """A row a device, and the median of all."""
    devices, parts = profile.devices, _parts(profile)
    rows = [_row(printable(each.device), [each.activity], parts) for each in devices[:MOST_DEVICES]]
    if len(devices) > 1:
        rows.append(_row("median", [each.activity for each in devices], parts))
    lines = table([_head("device", parts), *rows], width, 2, _RIGHT)
    words = sentence(_COPY_WORDS, width, 2, style="dim") if "copies" in parts else []
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
    parts = _parts(profile)
    head = _head("step" if profile.steps_are_marked else "run", parts)
    rows = [_step_row(each, parts) for each in shown]
    lines = table([head, *rows], width, 2, _RIGHT)
    words = sentence(_STEP_WORDS, width, 2, style="dim") if len(profile.devices) > 1 else []
    return [*lines, *words, *_rest(len(steps) - MOST_STEPS, "shorter step")]


def _parts(profile: Profile) -> list[str]:
    """The columns: there is one of copies where a device has any."""
    has_copies = any(each.activity.copies for each in profile.devices)
    return [name for name in _PARTS if name != "copies" or has_copies]


def _head(name: str, parts: Sequence[str]) -> list[Text]:
    return [Text(words, "bold") for words in (name, *parts)]


def _row(name: str, activities: Sequence[Activity], parts: Sequence[str]) -> list[Text]:
    """Medians of activities."""
    values = {part: median(_PARTS[part](each) for each in activities) for part in parts}
    cells = [Text(name, "bold")]
    for part, value in values.items():
        cells.append(Text(estimated_seconds(value)))
        if part in _SHARES and values["in all"]:
            cells[-1].append(f" {percent(value / values['in all']):>5}", "dim")
    return cells


def _step_row(step: MeasuredStep, parts: Sequence[str]) -> list[Text]:
    cells = _row(str(step.number), [each.activity for each in step.devices], parts)
    cells[1] = Text(estimated_seconds(step.seconds))
    return cells


def _rest(count: int, name: str) -> list[Text]:
    return [Text(f"  and {plural(count, name)}, which --json lists", "dim")] * (count > 0)
