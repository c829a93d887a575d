"""`shardviz translate`: convert a sharding between notations."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.forms.form import ProblemForm
from shardviz.lazy_names import LazyImports
from shardviz.notation import find_notation, write_all
from shardviz.notation.notations import write_sharding

with LazyImports():
    from shardviz.documents import meshes
    from shardviz.forms import enter
    from shardviz.render import caption


@click.command("translate", cls=ExampleCommand)
@click.argument("text")
@click.option("--to", metavar="NOTATION", help="Print that notation alone, such as book or gspmd.")
@click.option("--from", "origin", metavar="NOTATION", help="The notation of TEXT, where several fit.")
@click.option(
    "--mesh",
    metavar="NAME=SIZE,…",
    help=f"Axes of the mesh; default: TEXT's own, or {ProblemForm.mesh} if that has TEXT's axes.",
)
@click.option(
    "--rank",
    type=options.Count(0),
    metavar="N",
    help="The number of dimensions, where TEXT does not say it, as in '{replicated}'.",
)
@options.output
def command(
    text: str, to: str | None, origin: str | None, mesh: str | None, rank: int | None, output: CommandOutput
) -> None:
    """Translate a sharding from any notation into one other, or into all of them.

    In a product, or in the specs of an einsum, every array is translated.
    """
    notation, readings, context = enter.read_any(text, origin, mesh, rank)
    for reading in readings:
        if rank is not None and reading.spec.rank != rank:
            raise QuestionError(
                f"--rank is {rank}, but {quote(text)} has an array of rank {reading.spec.rank}",
                "leave out --rank: the text says it",
            )
    written: list[dict[str, str | ShardvizError]] = []
    for reading in readings:
        if to is not None:
            written.append({to: write_sharding(find_notation(to), reading, context)})
        else:
            written.append(write_all(reading, context))
    if output.as_json:
        print_json(meshes.translate_document(text, notation.key, readings, written, context.mesh))
    elif to is not None:
        for one in written:
            click.echo(one[to])
    else:
        output.show(caption.translate_view(readings, notation, written, context.mesh, *output.page))
