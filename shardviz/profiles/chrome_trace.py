"""Profiles in the form that Chrome and Perfetto show: ``.trace.json.gz``, which JAX writes beside its own.

The format is the JSON object of the "Trace Event Format": names of processes (planes) and threads (lines),
and complete events ("X") in microseconds, of which XLA writes all arguments as texts. It is read event by
event, so that its size does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import IO, Any

from shardviz.profiles.trace_event import STATS, TraceEvent, is_read

CHUNK = 1 << 20
MAX_EVENT = 1 << 24
"""Characters of one event at most."""
PICO_IN_MICRO = 1_000_000
_NUMBERS = frozenset(
    ("program_id", "run_id", "device_ordinal", "step_num", "flops", "bytes_accessed", "_p", "_c")
)
_TOLD = STATS | {"long_name"}


def chrome_events(file: IO[str], on_progress: Callable[[], None]) -> Iterator[TraceEvent]:
    """The events of a trace that say something of devices. Raises `ValueError` for what is not such a trace,
    or breaks off."""
    processes: dict[str, str] = {}
    threads: dict[tuple[str, str], str] = {}
    for each in _objects(file, on_progress):
        kind, process, thread = each.get("ph"), str(each.get("pid")), str(each.get("tid"))
        given = each.get("args")
        told = given if isinstance(given, dict) else {}
        if kind == "M":
            if each.get("name") == "process_name":
                processes[process] = str(told.get("name", ""))
            elif each.get("name") == "thread_name":
                threads[process, thread] = str(told.get("name", ""))
        elif kind == "X":
            plane, line = processes.get(process, ""), threads.get((process, thread), "")
            if not is_read(plane, line):
                continue
            stats = {name: _value(name, told[name]) for name in told.keys() & _TOLD}
            if not stats and plane.startswith("/host:"):
                continue
            start = round(_number(each.get("ts")) * PICO_IN_MICRO)
            end = start + max(round(_number(each.get("dur", 0)) * PICO_IN_MICRO), 0)
            yield TraceEvent(plane, line, str(each.get("name", "")), start, end, stats)


def _number(value: object) -> float:
    if isinstance(value, int | float):
        return value
    raise ValueError("an event without a time")


def _value(name: str, value: object) -> str | int | float:
    if name in _NUMBERS:
        try:
            return int(str(value))
        except ValueError:
            return str(value)
    return str(value)


def _objects(file: IO[str], on_progress: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """The elements of the list of events, one after the other."""
    decode = json.JSONDecoder().raw_decode
    text, at = file.read(CHUNK), 0
    start = text.find('"traceEvents"')
    if not text.lstrip().startswith(("{", "[")) or (text.lstrip().startswith("{") and start < 0):
        raise ValueError("it has no traceEvents")
    at = text.index("[", max(start, 0)) + 1
    while True:
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        if at < len(text) and text[at] == "]":
            return
        try:
            found, after = decode(text, at)
        except json.JSONDecodeError as error:
            more = file.read(CHUNK) if len(text) - at < MAX_EVENT else ""
            if not more:
                raise ValueError("it breaks off") from error
            on_progress()
            text, at = text[at:] + more, 0
            continue
        at = after
        if isinstance(found, dict):
            yield found
