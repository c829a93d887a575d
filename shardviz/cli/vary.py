"""`shardviz explain --vary`: a problem's cost over sizes of a dimension or of a mesh axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner import Problem
    from shardviz.sharding import Mesh


def refuse_varying(given: Mapping[str, object], ranked: bool) -> None:
    """Raise `QuestionError` for options beside --vary that are about one plan, or about many others."""
    others = {
        "a ranking": ranked,
        "--step": given["step"] is not None,
        "--hlo": given["with_hlo"],
        "--time": given["with_times"],
        "--no-layout": given["no_layout"],
    }
    for option, is_given in others.items():
        if is_given:
            hint = "give --specs 'XY,Y_->X_'" if option == "a ranking" else f"leave out {option}"
            raise QuestionError(f"--vary and {option} cannot be combined", hint)


def print_sweep(
    problem: Problem, vary: str, placed: Callable[[Mesh], PlacedMesh], output: CommandOutput
) -> None:
    """Print the chart, or the document."""
    from shardviz.notation.ranges import parse_range
    from shardviz.planner.pricing.sweep import sweep

    found = sweep(problem, parse_range(vary), placed)
    if output.as_json:
        from shardviz.documents.plans import sweep_document

        print_json(sweep_document(found))
        return
    from shardviz.render.sweep_view import sweep_view

    output.show(sweep_view(found, output.width, output.palette))
