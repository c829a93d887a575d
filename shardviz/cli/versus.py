"""`shardviz explain --versus`: two shardings of the same arrays, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner import Problem


def refuse_comparing(given: Mapping[str, object], ranked: bool) -> None:
    """Raise `QuestionError` for options beside --versus that are about one plan, or about many."""
    others = {
        "a ranking": ranked,
        "--vary": given["vary"] is not None,
        "--step": given["step"] is not None,
        "--hlo": given["with_hlo"],
        "--time": given["with_times"],
        "--no-layout": given["no_layout"],
    }
    for option, is_given in others.items():
        if is_given:
            hint = "give --specs 'XY,Y_->X_'" if option == "a ranking" else f"leave out {option}"
            raise QuestionError(f"--versus and {option} cannot be combined", hint)


def print_comparison(first: Problem, second: Problem, placed: PlacedMesh, output: CommandOutput) -> None:
    """Print both plans with their costs, or the document."""
    from shardviz.planner import plan
    from shardviz.planner.pricing.costs import price

    costs = [price(plan(problem, placed), placed) for problem in (first, second)]
    if output.as_json:
        from shardviz.documents.plans import versus_document

        print_json(versus_document(*costs))
        return
    from shardviz.render.versus_view import versus_view

    output.show(versus_view(costs[0], costs[1], output.width, output.palette))
