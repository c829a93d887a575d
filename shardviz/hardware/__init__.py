"""Links between devices, and what a schedule costs on them.

Topology      which devices are linked: `Torus` (ring, line, torus of any rank) and `Switch`
Wire          what one link can do: latency and bandwidth
Timeline      what every round of a schedule loads, and how long it takes
comparison    every algorithm for a pattern side by side
crossovers    which algorithm is the fastest, from which payload on
Placement     which chip each device of a mesh is on, and how mesh axes lie on the links
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.hardware.comparisons import Row as Row, comparison as comparison, fastest as fastest
    from shardviz.hardware.crossover import crossovers as crossovers, left_out as left_out
    from shardviz.hardware.placement import (
        AxisRun as AxisRun,
        Place as Place,
        Placement as Placement,
        axis_runs as axis_runs,
    )
    from shardviz.hardware.round_load import RoundLoad as RoundLoad
    from shardviz.hardware.timelines import Timeline as Timeline, timeline as timeline
    from shardviz.hardware.topology import (
        Switch as Switch,
        Topology as Topology,
        Torus as Torus,
        topology_for as topology_for,
    )
    from shardviz.hardware.wire import (
        Wire as Wire,
        parse_bandwidth as parse_bandwidth,
        parse_latency as parse_latency,
    )
else:
    # Loaded on first use: reading a latency needs no queues.
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "comparisons": "Row comparison fastest",
            "crossover": "crossovers left_out",
            "placement": "AxisRun Place Placement axis_runs",
            "round_load": "RoundLoad",
            "timelines": "Timeline timeline",
            "topology": "Switch Topology Torus topology_for",
            "wire": "Wire parse_bandwidth parse_latency",
        },
    )
