"""The time of an operation by the device's own clock, from a profile of its loop."""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax

_COLLECTIVE = re.compile(
    r"^\s*(?:ROOT )?%?([\w.\-]+) = [^\n]*? "
    r"(?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(-start|-done)?\(",
    re.MULTILINE,
)
_DEVICE = re.compile(r"/device:(?:TPU|GPU):\d+")
_TPU_NAME = re.compile(r"%?([\w.\-]+)")
Span = tuple[float, float]
"""Begin and end, in nanoseconds."""


def device_seconds(run: Callable[[], object], text: str) -> tuple[float, ...]:
    """Seconds of each pass of a run of the program with that text; nothing where no profile tells them, as
    where the platform hides the instructions' names, or the profiler does not work here."""
    try:
        with tempfile.TemporaryDirectory(prefix="shardviz-") as folder:
            with jax.profiler.trace(folder):
                run()
            (file,) = Path(folder).rglob("*.xplane.pb")
            return passes(jax.profiler.ProfileData.from_file(str(file)), text)
    except Exception:  # what a profiler raises depends on the platform; there is the wall's clock
        return ()


def passes(profile: Any, text: str) -> tuple[float, ...]:
    """Seconds of each pass: of the collective, or without one of what took longest of all.

    A pass of a collective lasts from when the last device has come to it until the last one is done: before
    that a device waits.
    """
    names = [found[1] for found in _COLLECTIVE.finditer(text)]
    by_device: list[list[Span]] = []
    for plane in profile.planes:
        if _DEVICE.fullmatch(plane.name):
            spans: dict[str, list[Span]] = defaultdict(list)
            for name, span in _events(plane):
                spans[name].append(span)
            own = [name for name in names if name in spans]
            if not names and spans:
                own = [max(spans, key=lambda name: sum(end - begin for begin, end in spans[name]))]
            if own:
                by_device.append(_joined([spans[name] for name in own]))
    if not by_device or len({len(spans) for spans in by_device}) > 1:
        return ()
    return tuple(
        (max(end for _, end in each) - max(begin for begin, _ in each)) / 1e9
        for each in zip(*by_device, strict=True)
    )


def _joined(spans: list[list[Span]]) -> list[Span]:
    """Start and end of an asynchronous one as one; of several equal parts of a pass the whole."""
    if len({len(each) for each in spans}) > 1:
        return []
    return [
        (min(begin for begin, _ in each), max(end for _, end in each)) for each in zip(*spans, strict=True)
    ]


def _events(plane: Any) -> Iterator[tuple[str, Span]]:
    """The instructions that ran on a device: on a TPU the line of them, on a GPU those of its streams."""
    for line in plane.lines:
        for event in line.events if line.name == "XLA Ops" or line.name.startswith("Stream") else ():
            name = dict(event.stats).get("hlo_op") if line.name.startswith("Stream") else None
            found = _TPU_NAME.match(event.name)
            if name is None and line.name == "XLA Ops" and found is not None:
                name = found[1]
            if name is not None:
                yield str(name), (event.start_ns, event.start_ns + event.duration_ns)
