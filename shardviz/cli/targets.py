"""`shardviz targets`: the targets, those that can answer here, and how to install the others."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.lazy_names import LazyImports
from shardviz.targets.hardware import target_groups

with LazyImports():
    from shardviz.documents import machines
    from shardviz.render import machine_view

EXAMPLES = (
    ("Every target, and the command that installs what is missing", "shardviz targets"),
    ("For a script", "shardviz targets --json"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@options.output
def command(output: CommandOutput) -> None:
    """List the values of --target, and what each needs. The TPUs and GPUs need not be here."""
    groups = target_groups()
    if output.as_json:
        print_json(machines.TARGETS.document(groups=groups))
        return

    output.show(machine_view.targets_view(groups, output.width))
