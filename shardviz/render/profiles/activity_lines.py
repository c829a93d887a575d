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
HEADS = ("in all", "compute", "communication", "exposed", "idle")
_PARTS: tuple[Callable[[Activity], float], ...] = (
    lambda each: each.seconds,
    lambda each: each.compute,
    lambda each: each.communication,
    lambda each: each.exposed,
    lambda each: each.idle,
)
_STEP_WORDS = "in all is from the first device's begin to the last one's end, the rest medians over devices"
_RIGHT = frozenset({1, 2, 3, 4, 5})


def device_lines(profile: Profile, width: int) -> list[Text]:
    """A row a device, and the median of all."""
    devices = profile.devices
    rows = [_row(printable(each.device), [each.activity]) for each in devices[:MOST_DEVICES]]
    if len(devices) > 1:
        rows.append(_row("median", [each.activity for each in devices]))
    lines = table([_head("device"), *rows], width, 2, _RIGHT)
    return [*lines, *_rest(len(devices) - MOST_DEVICES, "device")]


def step_lines(profile: Profile, width: int) -> list[Text]:
    """A row a step, with the median of its devices; of many steps the longest."""
    steps = profile.steps
    if len(steps) < 2:
        return []
    shown = steps
    if len(steps) > MOST_STEPS:
        longest = sorted(steps, key=lambda each: -each.seconds)[:MOST_STEPS]
        shown = tuple(sorted(longest, key=lambda each: each.number))
    head = _head("step" if profile.steps_are_marked else "run")
    rows = [_step_row(each) for each in shown]
    lines = table([head, *rows], width, 2, _RIGHT)
    words = sentence(_STEP_WORDS, width, 2, style="dim") if len(profile.devices) > 1 else []
    return [*lines, *words, *_rest(len(steps) - MOST_STEPS, "shorter step")]


def _head(name: str) -> list[Text]:
    return [Text(words, "bold") for words in (name, *HEADS)]


def _row(name: str, activities: Sequence[Activity]) -> list[Text]:
    """Medians of activities; what is exposed or idle also as a share of the whole."""
    values = [median(part(each) for each in activities) for part in _PARTS]
    cells = [Text(name, "bold"), *(Text(estimated_seconds(value)) for value in values)]
    for place in (-2, -1):
        if values[0]:
            cells[place].append(f" {percent(values[place] / values[0]):>5}", "dim")
    return cells


def _step_row(step: MeasuredStep) -> list[Text]:
    cells = _row(str(step.number), [each.activity for each in step.devices])
    cells[1] = Text(estimated_seconds(step.seconds))
    return cells


def _rest(count: int, name: str) -> list[Text]:
    return [Text(f"  and {plural(count, name)}, which --json lists", "dim")] * (count > 0)
