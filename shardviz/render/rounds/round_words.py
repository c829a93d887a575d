"""One round in words: who sends what to whom, and how much that is."""

from __future__ import annotations

from shardviz.render.rounds.empty_chunks import carried
from shardviz.render.rounds.sends_line import sends_line
from shardviz.render.units import human_bytes
from shardviz.stepping.collective_run import CollectiveRun


def round_words(walk: CollectiveRun, number: int) -> str:
    """``each sends 1 chunk to the next, 4 B``: the bytes are the most that one device sends."""
    sends = carried(walk, walk.schedule.round(number))
    words = sends_line(sends, walk.schedule.pattern, walk.operation.axes)
    if not len(sends):
        return words
    load = walk.timeline[number - 1]
    senders = len(set(sends.src.tolist()))
    most = "" if load.bytes == load.device_bytes * senders else "at most "
    return f"{words}, {most}{human_bytes(load.device_bytes)}"
