"""`shardviz schema`: the JSON Schema of each kind of document that ``--json`` prints."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import print_json
from shardviz.documents.kinds import KINDS, schema_of

EXAMPLES = (
    ("Every kind of document, and a command that prints it", "shardviz schema"),
    ("The schema of an explanation, for a validator", "shardviz schema explain"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@click.argument("kind", required=False, type=click.Choice([*KINDS]), metavar="[KIND]")
@options.plain
@click.pass_context
def command(ctx: click.Context, kind: str | None) -> None:
    """Print the schema of a KIND of document, in JSON Schema 2020-12; without KIND list the kinds."""
    if kind is not None:
        print_json(schema_of(kind))
        return
    kinds = ctx.make_formatter()
    kinds.write_dl([(name, f"{each.summary} (shardviz {each.printed_by})") for name, each in KINDS.items()])
    click.echo(kinds.getvalue(), nl=False)
