"""`shardviz explain --vary`: a problem's cost over sizes of a dimension or of a mesh axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner import Problem
    from shardviz.planner.sweep import Sweep
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


def sweep_of(problem: Problem, vary: str, machine: str | None, placed: Callable[[Mesh], PlacedMesh]) -> Sweep:
    """The sweep of --vary. Raises `QuestionError` for a mesh axis on a machine whose size is fixed."""
    from shardviz.notation.ranges import parse_range
    from shardviz.planner.sweep import sweep

    sizes = parse_range(vary)
    if machine and sizes.name in problem.mesh.axis_names:
        raise QuestionError(
            f"the size of {machine} is fixed, and --vary changes the size of {sizes.name}",
            "leave out --machine: each mesh axis is then a ring of v5e links",
        )
    return sweep(problem, sizes, placed)


def print_sweep(
    problem: Problem,
    vary: str,
    machine: str | None,
    placed: Callable[[Mesh], PlacedMesh],
    output: CommandOutput,
) -> None:
    """Print the chart, or the document."""
    found = sweep_of(problem, vary, machine, placed)
    if output.as_json:
        from shardviz.documents.plans import sweep_document

        print_json(sweep_document(found))
        return
    from shardviz.render.sweep_view import sweep_view

    output.show(sweep_view(found, output.width, output.palette))
