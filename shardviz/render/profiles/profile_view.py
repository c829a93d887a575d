"""The page of a profile."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

from rich.text import Text

from shardviz.errors import plural
from shardviz.profiles.profile import Profile
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.profiles.activity_lines import device_lines, step_lines
from shardviz.render.profiles.timing_lines import straggler_lines, timing_lines, wait_words
from shardviz.render.sanitize import printable
from shardviz.render.times.report import note_lines, total_lines
from shardviz.render.times.tellers import stacked_pictures, totals_table
from shardviz.units import estimated_seconds


def profile_view(profile: Profile, width: int, palette: Palette) -> list[Text]:
    """Devices, steps, collectives and stragglers, then a step as it was measured above its prediction."""
    timings = timing_lines(profile, width, palette)
    if timings:
        timings += sentence(wait_words(profile.collectives), width, 2, style="dim")
    by_step = "steps" if profile.steps_are_marked else "steps: runs of the program"
    blocks = [
        _heading(profile, width),
        _titled("devices", device_lines(profile, width)),
        _titled(by_step, step_lines(profile, width)),
        _titled("collectives", timings),
        _titled("waited for", straggler_lines(profile, width)),
        _timeline(profile, width, palette),
        [line for note in profile.notes for line in sentence(printable(note), width, lead="note: ")],
    ]
    lines = [line for block in blocks if block for line in (*block, Text())]
    return lines[:-1]


def _heading(profile: Profile, width: int) -> list[Text]:
    names = [each.device for each in profile.devices]
    devices = names[0] if len(names) == 1 else f"{len(names)} devices, {_between(names)}"
    lengths = [each.seconds for each in profile.steps]
    words = f"{plural(len(lengths), 'step')} of {estimated_seconds(median(lengths))}"
    if len(lengths) > 1:
        words += f" ({estimated_seconds(min(lengths))} to {estimated_seconds(max(lengths))})"
    hosts = ", ".join(profile.hosts[:4]) + (" …" if len(profile.hosts) > 4 else "")
    at = f", profiled on {hosts}" if hosts else ""
    lines = sentence(
        f"{words} on {printable(devices)}{printable(at)}", width, lead=f"{printable(profile.program)}: "
    )
    if profile.mesh is not None:
        lines += sentence(str(profile.mesh), width, lead="mesh ")
    return lines


def _between(names: list[str]) -> str:
    """``TPU 0 to TPU 3``, where it is all of those; else ``GPU 0 and GPU 7``, ``a TPU 0 … b TPU 3``."""
    kind, _, first = names[0].rpartition(" ")
    if names == [f"{kind} {int(first) + place}" for place in range(len(names))]:
        return f"{names[0]} to {names[-1]}"
    return " and ".join(names) if len(names) == 2 else f"{names[0]} … {names[-1]}"


def _titled(title: str, lines: list[Text]) -> list[Text]:
    return [Text(title, "bold underline"), *lines] if lines else []


def _timeline(profile: Profile, width: int, palette: Palette) -> list[Text]:
    measured, predicted = profile.timeline, profile.predicted
    lines = total_lines(measured, width, palette)
    tellers = [("measured", measured)]
    if predicted is not None:
        # What is in memory was not measured, and stands beside nothing.
        tellers.append((f"predicted on {printable(predicted.machine)}", replace(predicted, memory=None)))
        lines += [Text(), *totals_table(tellers, width)]
        if predicted.unknown:
            count = plural(len(predicted.unknown), "operation")
            words = f"the prediction is not of the whole step: the model has no estimate (?) of {count}"
            lines += sentence(words, width, 2)
    lines += stacked_pictures(tellers, width, palette)
    for _, each in tellers:
        notes = note_lines(each, width)
        lines += [Text(), *notes] if notes else []
    return lines
