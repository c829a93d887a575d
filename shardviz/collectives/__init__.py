"""The meaning of each collective, the schedules that carry it out, and the simulator that runs them.

Operation  what JAX calls it, with JAX's parameters: how shards are cut into chunks
Pattern    which member of a group starts with which chunk, and which ends with it
Schedule   rounds of sends by which an algorithm carries out a pattern
Frames     a schedule run on numbers: who holds what after every round
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.collectives.algorithms import (
        ALGORITHMS as ALGORITHMS,
        schedule_for as schedule_for,
        schedules_for as schedules_for,
    )
    from shardviz.collectives.frames import Frame as Frame, Frames as Frames, Piece as Piece
    from shardviz.collectives.operation import Operation as Operation
    from shardviz.collectives.operations import OPERATIONS as OPERATIONS
    from shardviz.collectives.pattern import (
        LowerBound as LowerBound,
        Pattern as Pattern,
        lower_bound as lower_bound,
    )
    from shardviz.collectives.schedule import Phase as Phase, Schedule as Schedule, Sends as Sends
    from shardviz.collectives.trace import trace_of as trace_of
else:
    # Loaded on first use: a table of algorithms needs no simulator.
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "algorithms": "ALGORITHMS schedule_for schedules_for",
            "frames": "Frame Frames Piece",
            "operation": "Operation",
            "operations": "OPERATIONS",
            "pattern": "LowerBound Pattern lower_bound",
            "schedule": "Phase Schedule Sends",
            "trace": "trace_of",
        },
    )
