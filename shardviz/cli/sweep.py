"""`shardviz sweep`: a problem's cost over sizes of a dimension or of a mesh axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json, working
from shardviz.cli.process import ExitCode
from shardviz.forms.form import SPECS
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.answers import plans
    from shardviz.documents import plans as documents
    from shardviz.render import sweep_view

if TYPE_CHECKING:
    from shardviz.answers.plans import PricedProblem

EXAMPLES = (
    (
        "Compute and communication over a range of batch sizes, and where they cross",
        "shardviz sweep 'bd,df->bf' b=1Ki:1Mi --specs 'X_,X_->X_'",
    ),
    ("In powers of four", "shardviz sweep 'bd,df->bf' b=1Ki:1Mi:4 --specs 'X_,X_->X_'"),
    ("On TPUs", "shardviz sweep 'bd,df->bf' d=1Ki:64Ki --specs 'X_,X_' --machine v5e:2x4"),
    (
        "Over the devices of a mesh axis",
        "shardviz sweep 'bd,df->bf' X=2:64 --mesh X=2 --specs 'X_,X_->X_'",
    ),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@options.program("einsum")
@click.argument("over", metavar="NAME=FIRST:LAST")
@options.problem(options.of_field(SPECS), without=("targets",))
@options.output
def command(
    einsum: str, over: str, specs: str | None, machine: str | None, output: CommandOutput, **problem: Any
) -> int:
    """Chart compute and communication of EINSUM over sizes of a dimension or of a mesh axis.

    Sizes go from FIRST to LAST in powers of two; b=1Ki:1Mi:4 in powers of four. The plan is made anew for
    each. EINSUM is what shardviz explain takes.
    """
    question = plans.PricedProblem(options.stated_problem(einsum, specs, problem), machine)
    return print_sweep(question, over, output)


def print_sweep(question: PricedProblem, over: str, output: CommandOutput) -> int:
    """Print the chart, or the document."""
    with working("planning"):
        found = question.sweep(over)
    if output.as_json:
        print_json(documents.SWEEP.document(found))
    else:
        output.show(sweep_view.sweep_view(found, output.width, output.palette))
    return ExitCode.FINE
