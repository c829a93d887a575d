"""Links between devices, and what a schedule costs on them.

Topology      which devices are linked: `Torus` (ring, line, torus of any rank) and `Switch`
Wire          what one link can do: latency and bandwidth
Timeline      what every round of a schedule loads, and how long it takes
comparison    every algorithm for a pattern side by side
crossovers    which algorithm is the fastest, from which payload on
Placement     which chip each device of a mesh is on, and how mesh axes lie on the links
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.hardware.comparisons import Row, comparison, fastest
    from shardviz.hardware.crossover import crossovers, left_out
    from shardviz.hardware.placement import AxisRun, Place, Placement, axis_runs
    from shardviz.hardware.round_load import RoundLoad
    from shardviz.hardware.timelines import Timeline, timeline
    from shardviz.hardware.topology import Switch, Topology, Torus, topology_for
    from shardviz.hardware.wire import Wire, parse_bandwidth, parse_latency

_HOMES = {
    "AxisRun": "placement",
    "Place": "placement",
    "Placement": "placement",
    "RoundLoad": "round_load",
    "Row": "comparisons",
    "Switch": "topology",
    "Timeline": "timelines",
    "Topology": "topology",
    "Torus": "topology",
    "Wire": "wire",
    "axis_runs": "placement",
    "comparison": "comparisons",
    "crossovers": "crossover",
    "fastest": "comparisons",
    "left_out": "crossover",
    "parse_bandwidth": "wire",
    "parse_latency": "wire",
    "timeline": "timelines",
    "topology_for": "topology",
}

__all__ = [
    "AxisRun",
    "Place",
    "Placement",
    "RoundLoad",
    "Row",
    "Switch",
    "Timeline",
    "Topology",
    "Torus",
    "Wire",
    "axis_runs",
    "comparison",
    "crossovers",
    "fastest",
    "left_out",
    "parse_bandwidth",
    "parse_latency",
    "timeline",
    "topology_for",
]


def __getattr__(name: str) -> object:
    # Loaded on first use: reading a latency needs no queues.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
