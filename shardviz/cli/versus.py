"""`shardviz explain --versus`: two shardings of the same arrays, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.cli.output import CommandOutput, print_json, working

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner import Problem


def print_comparison(first: Problem, second: Problem, placed: PlacedMesh, output: CommandOutput) -> None:
    """Print both plans with their costs, or the document."""
    from shardviz.planner import plan
    from shardviz.planner.pricing.costs import price

    with working("planning"):
        costs = [price(plan(problem, placed), placed) for problem in (first, second)]
    if output.as_json:
        from shardviz.documents.plans import VERSUS

        print_json(VERSUS.document(first=costs[0], second=costs[1]))
        return
    from shardviz.render.versus_view import versus_view

    output.show(versus_view(costs[0], costs[1], output.width, output.palette))
