"""`shardviz translate`: convert a sharding between notations."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import NotationError, QuestionError, ShardvizError, quote
from shardviz.forms.form import ProblemForm
from shardviz.notation import (
    Context,
    Notation,
    Reading,
    detect,
    find_notation,
    parse_mesh,
    read_arrays,
    write_all,
)
from shardviz.notation.mesh import mesh_in_text, spec_alone
from shardviz.notation.notations import write_sharding

EXAMPLES = (
    ("In every notation", "shardviz translate \"P('X', None)\""),
    ("Every array of a product", "shardviz translate 'A[I_X, J] * B[J, K_Y]' --to jax"),
    ("From HLO to the scaling book", "shardviz translate '{devices=[2,4]<=[8]}' --mesh X=2,Y=4 --to book"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
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
    text: str,
    to: str | None,
    origin: str | None,
    mesh: str | None,
    rank: int | None,
    output: CommandOutput,
) -> None:
    """Translate a sharding from any notation into one other, or into all of them.

    In a product, or in the specs of an einsum, every array is translated.
    """
    notation = find_notation(origin) if origin else detect(spec_alone(text))
    readings, context = _read(text, notation, mesh, rank)
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
        from shardviz.documents.plans import translate_document

        print_json(translate_document(text, notation.key, readings, written, context.mesh))
    elif to is not None:
        for one in written:
            click.echo(one[to])
    else:
        from shardviz.render.translate_view import translate_view

        output.show(translate_view(readings, notation, written, context.mesh, output.width, output.palette))


def _read(
    text: str, notation: Notation, mesh: str | None, rank: int | None
) -> tuple[tuple[Reading, ...], Context]:
    """Read against the mesh, or that of the text; against the usual one if there is none and it fits, else
    against none."""
    own = mesh_in_text(text)
    given = own if mesh is None else mesh
    asked = parse_mesh(ProblemForm.mesh if given is None else given)
    context = Context(asked, rank)
    if own is not None and spec_alone(text) != text and parse_mesh(own).shape != asked.shape:
        raise QuestionError(f"the text is on the mesh {parse_mesh(own)}, not {asked}", "leave out --mesh")
    text = spec_alone(text)
    try:
        return read_arrays(text, context, notation), context
    except ShardvizError as error:
        if given is not None:
            raise
        unfit = error
    try:
        without = Context(rank=rank)
        return read_arrays(text, without, notation), without
    except NotationError:
        raise
    except ShardvizError:
        # Without any mesh the complaint would be that there is none.
        raise unfit from None
