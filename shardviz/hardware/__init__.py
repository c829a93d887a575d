"""Links between devices, and what a schedule costs on them.

Topology      the links between devices: `Torus` (ring, line, torus of any rank), `Switch`, `Hierarchy`
LinkSpec      latency and bandwidth of one link
Timeline      the load of every round of a schedule, and how long it takes
comparison    every algorithm for a pattern side by side
crossovers    the fastest algorithm, from which payload on
Placement     the chip of each device of a mesh, and how mesh axes lie on the links
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.hardware.comparisons import (
        AlgorithmRow as AlgorithmRow,
        comparison as comparison,
        crossovers as crossovers,
        fastest as fastest,
        left_out as left_out,
    )
    from shardviz.hardware.links import (
        LinkSpec as LinkSpec,
        parse_bandwidth as parse_bandwidth,
        parse_latency as parse_latency,
    )
    from shardviz.hardware.placement import (
        AxisRun as AxisRun,
        DeviceCoords as DeviceCoords,
        Placement as Placement,
        axis_runs as axis_runs,
    )
    from shardviz.hardware.timelines import Timeline as Timeline, timeline as timeline
    from shardviz.hardware.topology import (
        Switch as Switch,
        Topology as Topology,
        Torus as Torus,
        topology_for as topology_for,
    )
else:
    # Loaded on first use: reading a latency needs no queues.
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "comparisons": "AlgorithmRow comparison crossovers fastest left_out",
            "links": "LinkSpec parse_bandwidth parse_latency",
            "placement": "AxisRun DeviceCoords Placement axis_runs",
            "timelines": "Timeline timeline",
            "topology": "Switch Topology Torus topology_for",
        },
    )
