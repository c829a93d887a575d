"""What each collective means, the schedules that carry it out, and the simulator that runs them.

Operation  what JAX calls it, with JAX's parameters: how shards are cut into chunks
Pattern    which member of a group starts with which chunk, and which ends with it
Schedule   rounds of sends by which an algorithm carries out a pattern
Frames     a schedule run on numbers: who holds what after every round
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.collectives.algorithms import ALGORITHMS, schedule_for, schedules_for
    from shardviz.collectives.frames import Frame, Frames, Piece
    from shardviz.collectives.operation import Cuts, Operation
    from shardviz.collectives.operations import OPERATIONS
    from shardviz.collectives.optimum import LowerBound, lower_bound
    from shardviz.collectives.pattern import Pattern
    from shardviz.collectives.schedule import Phase, Schedule, Sends
    from shardviz.collectives.trace import Trace

_HOMES = {
    "ALGORITHMS": "algorithms",
    "Cuts": "operation",
    "Frame": "frames",
    "Frames": "frames",
    "LowerBound": "optimum",
    "OPERATIONS": "operations",
    "Operation": "operation",
    "Pattern": "pattern",
    "Phase": "schedule",
    "Piece": "frames",
    "Schedule": "schedule",
    "Sends": "schedule",
    "Trace": "trace",
    "lower_bound": "optimum",
    "schedule_for": "algorithms",
    "schedules_for": "algorithms",
}

__all__ = [
    "ALGORITHMS",
    "OPERATIONS",
    "Cuts",
    "Frame",
    "Frames",
    "LowerBound",
    "Operation",
    "Pattern",
    "Phase",
    "Piece",
    "Schedule",
    "Sends",
    "Trace",
    "lower_bound",
    "schedule_for",
    "schedules_for",
]


def __getattr__(name: str) -> object:
    # Loaded on first use: a table of algorithms needs no simulator.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
