"""`shardviz explain --vary`: a problem's cost over sizes of a dimension or of a mesh axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shardviz.cli.output import CommandOutput, print_json, working

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner import Problem
    from shardviz.sharding import Mesh


def print_sweep(
    problem: Problem, vary: str, placed: Callable[[Mesh], PlacedMesh], output: CommandOutput
) -> None:
    """Print the chart, or the document."""
    from shardviz.notation.numbers import parse_range
    from shardviz.planner.pricing.sweep import sweep

    sizes = parse_range(vary)
    with working("planning"):
        found = sweep(problem, sizes, placed)
    if output.as_json:
        from shardviz.documents.plans import SWEEP

        print_json(SWEEP.document(found))
        return
    from shardviz.render.sweep_view import sweep_view

    output.show(sweep_view(found, output.width, output.palette))
