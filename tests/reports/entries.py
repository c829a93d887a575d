"""Collective entries to test with, of which a test says what matters."""

from __future__ import annotations

from typing import Any

from shardviz.hlo import Collective
from shardviz.reports.entries import CollectiveEntry


def entry(
    op: str = "all-gather",
    *,
    axes: tuple[str, ...] = ("data",),
    sent: int = 100,
    runs: int | None = 1,
    source: str = "/home/me/step.py:12",
    **more: Any,
) -> CollectiveEntry:
    """One of which a device sends `sent` bytes in a run; `more` are fields of the entry."""
    shape, whole = (sent,), (2 * sent,)
    one = Collective(op, "x", axes, None, shape, whole, "u8", 2 * sent, sent, runs, source)
    return CollectiveEntry(one, **more)
