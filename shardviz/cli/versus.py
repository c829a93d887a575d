"""`shardviz versus`: two shardings of the same arrays, side by side."""

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
    from shardviz.planner import Problem

EXAMPLES = (
    ("Two ways to split a matmul", "shardviz versus 'bd,df->bf' 'XY,Y_->X_' 'X_,_Y->XY'"),
    (
        "Both on TPUs",
        "shardviz versus 'bd,df->bf' 'X_,X_->X_' 'X_,_Y->XY' --machine v5e:2x4",
    ),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@click.argument("einsum")
@click.argument("specs")
@click.argument("others", metavar="OTHERS")
@options.problem(lambda command: command, without=("targets",))
@options.output
def command(
    einsum: str, specs: str, others: str, machine: str | None, output: CommandOutput, **problem: Any
) -> int:
    """Compare the plan of EINSUM split as SPECS say with the same arrays split as OTHERS: time, bytes, memory
    and collectives side by side.

    EINSUM is what shardviz explain takes.
    """
    first, second = (options.stated_problem(einsum, each, problem) for each in (specs, others))
    return print_comparison(plans.PricedProblem(first, machine), second, output)


def print_comparison(question: PricedProblem, other: Problem, output: CommandOutput) -> int:
    """Print both plans with their costs, or the document."""
    with working("planning"):
        first, second = question.versus(other)
    if output.as_json:
        print_json(documents.VERSUS.document(first=first, second=second))
    else:
        output.show(plans_compared.versus_view(first, second, output.width, output.palette))
    return ExitCode.FINE
