"""`shardviz targets`: the targets, those that can answer here, and how to install the others."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand

EXAMPLES = (
    ("Every target, and the command that installs what is missing", "shardviz targets"),
    ("For a script", "shardviz targets --json"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@options.as_json
@options.page
def command(as_json: bool, width: int | None, color: str) -> None:
    """List what --target takes: JAX alone, TPUs and GPUs that need not be here, and what each needs."""
    from shardviz.compiler.groups import target_groups

    groups = target_groups()
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.documents.plans import TARGETS

        print_json(TARGETS.document(groups=groups))
        return
    from shardviz.cli.screen import screen
    from shardviz.render.programs.target_status import targets_view

    page = screen(width, color)
    page.show(targets_view(groups, page.width))
