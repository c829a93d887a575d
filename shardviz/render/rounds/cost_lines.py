"""What a collective costs, in sentences."""

from __future__ import annotations

from rich.text import Text

from shardviz.collectives import LowerBound
from shardviz.errors import plural
from shardviz.hardware import Timeline
from shardviz.render.lines import sentence
from shardviz.render.units import exact_bytes, human_bytes, rate, seconds
from shardviz.stepping.collective_run import CollectiveRun

MAX_GROUP = 4096
"""Members of a group beyond which only `--compare` looks at the other algorithms."""
OTHERS = 6
"""Algorithms to compare with in a sentence; `--compare` has all."""


def cost_lines(walk: CollectiveRun, width: int) -> list[Text]:
    """Rounds and bytes against the least possible and the other algorithms, then the time on these links."""
    schedule, timeline, bound = walk.schedule, walk.timeline, walk.bound
    if schedule.pattern.group_size == 1:
        return sentence("one device alone: nothing to send", width, lead=f"{schedule.algorithm}: ")
    words = f"{plural(schedule.rounds, 'round')}, {_sent(timeline)}. {least(bound)}."
    compared = walk.rows if schedule.pattern.group_size <= MAX_GROUP else ()
    rows = [row for row in compared if row.algorithm != schedule.algorithm and not row.reason]
    if rows:
        named = [
            f"{row.algorithm} {plural(row.rounds, 'round')}, {human_bytes(row.device_bytes)}"
            for row in rows[:OTHERS]
        ]
        more = f"; {len(rows) - OTHERS} more: --compare" if len(rows) > OTHERS else ""
        words += f" Others: {'; '.join(named)}{more}."
    lines = sentence(words, width, lead=f"{schedule.algorithm}: ")
    took = f"on a {walk.links.topology}, {link_text(walk)}"
    if timeline.waiting:
        took += f"; {plural(timeline.waiting, 'message')} must wait for a link"
    return [*lines, *sentence(took, width, lead=f"{duration(timeline.seconds, timeline.waiting)} ")]


def least(bound: LowerBound) -> str:
    """``Least: 24 bytes; 2 rounds if a device sends one message a round``."""
    if not bound.rounds:
        return "Nothing has to be sent"
    return (
        f"Least: {exact_bytes(bound.wire_bytes)}; {plural(bound.rounds, 'round')} if a device sends one "
        "message a round"
    )


def _sent(timeline: Timeline) -> str:
    """``24 bytes sent by each device``, or the most that one of them sends."""
    total = sum(count * int(load.bytes.sum()) for _, load, count in timeline.different_rounds())
    most = timeline.device_bytes
    everyone = total == most * timeline.topology.devices
    return (
        f"{exact_bytes(most)} sent by each device"
        if everyone
        else f"at most {exact_bytes(most)} sent by a device"
    )


def duration(time: float, waiting: int | None) -> str:
    """A time as `seconds`; a lower bound where nobody knows how many messages have to wait."""
    return f"{'≥ ' if waiting is None else ''}{seconds(time)}"


def link_text(walk: CollectiveRun) -> str:
    """``1 µs and 45 GB/s a v5e link, assumed``."""
    links = walk.links
    assumed = ", assumed" if links.assumed else ""
    return f"{seconds(links.wire.latency)} and {rate(links.wire.bandwidth)} {links.each}{assumed}"
