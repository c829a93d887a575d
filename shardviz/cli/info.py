"""`shardviz info`: the versions that answers depend on."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.targets.installed import installed_versions, libtpu_mismatch

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
        from shardviz.documents.machines import INFO

        print_json(INFO.document(versions=versions, warning=warning))
        return
    from shardviz.render.programs.target_status import info_view

    output.show(info_view(versions, warning, output.width))
