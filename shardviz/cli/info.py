"""`shardviz info`: the versions that answers depend on."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand

EXAMPLES = (
    ("For people", "shardviz info"),
    ("For a bug report or a script", "shardviz info --json"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@options.as_json
@options.page
def command(as_json: bool, width: int | None, color: str) -> None:
    """Show the versions that answers depend on; shardviz targets lists the targets."""
    from shardviz.compiler.installed import installed_versions, libtpu_mismatch

    versions = installed_versions()
    warning = libtpu_mismatch(versions)
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.documents.plans import INFO

        print_json(INFO.document(versions=versions, warning=warning))
        return
    from shardviz.cli.screen import screen
    from shardviz.render.programs.target_status import info_view

    page = screen(width, color)
    page.show(info_view(versions, warning, page.width))
