"""`shardviz rank`: all ways to split a problem's arrays over a mesh, by the time of their plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json, working
from shardviz.cli.process import ExitCode
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.answers import plans
    from shardviz.documents import plans as documents
    from shardviz.render import plans_compared

if TYPE_CHECKING:
    from shardviz.answers.plans import PricedProblem

EXAMPLES = (
    ("Every sharding worth considering", "shardviz rank 'bd,df->bf' --mesh X=2,Y=4"),
    ("Only those in which the batch is split", "shardviz rank 'bd,df->bf' --specs 'X_,?->X_'"),
    (
        "By the times of TPUs, the fastest five",
        "shardviz rank 'bd,df->bf' --mesh X=2,Y=4 --machine v5e:2x4 --limit 5",
    ),
)
limit = click.option(
    "--limit", type=options.Count(1), metavar="N", default=20, show_default=True, help="Lines of a ranking."
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@options.program("einsum")
@options.problem(
    click.option(
        "--specs",
        metavar="SPECS",
        help="How arrays are split; of an operand or a dimension that is ? all ways are ranked.",
    ),
    without=("targets", "backward", "remat", "optimizer"),
)
@limit
@options.output
def command(
    einsum: str, specs: str | None, machine: str | None, limit: int, output: CommandOutput, **problem: Any
) -> int:
    """Rank all ways to split the arrays of EINSUM over a mesh: time, bytes sent, memory, collectives.

    The planner alone answers. EINSUM is what shardviz explain takes.
    """
    question = plans.PricedProblem(options.stated_problem(einsum, specs, problem, ranked=True), machine)
    return print_ranking(question, output, limit)


def print_ranking(question: PricedProblem, output: CommandOutput, limit: int) -> int:
    """Print so many lines, or the document of all."""
    with working("ranking all shardings"):
        candidates = question.ranking()
    if output.as_json:
        print_json(documents.ranking_document(candidates))
    else:
        output.show(
            plans_compared.ranking_view(question.problem, candidates, output.width, output.palette, limit)
        )
    return ExitCode.FINE
