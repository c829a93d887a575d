"""`shardviz info`: the versions that answers depend on."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.lazy_names import LazyImports
from shardviz.targets.installed import installed_versions, libtpu_mismatch

with LazyImports():
    from shardviz.documents import machines
    from shardviz.render import machine_view

EXAMPLES = (
    ("For people", "shardviz info"),
    ("For a bug report or a script", "shardviz info --json"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@options.output
def command(output: CommandOutput) -> None:
    """Show the versions that answers depend on; shardviz targets lists the targets."""
    versions = installed_versions()
    warning = libtpu_mismatch(versions)
    if output.as_json:
        print_json(machines.INFO.document(versions=versions, warning=warning))
        return

    output.show(machine_view.info_view(versions, warning, output.width))
