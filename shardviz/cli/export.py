"""`shardviz export`: what a command shows, as a program, a notebook, a picture, a page or a recording."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import click

from shardviz.cli.exit_code import ExitCode
from shardviz.cli.group import Command
from shardviz.errors import QuestionError, quote

if TYPE_CHECKING:
    from pathlib import Path

    from shardviz.cli.export_words import Asked

Form = Literal["python", "notebook", "svg", "html", "cast"]
FORMS = ("python", "notebook", "svg", "html", "cast")
USUAL_SPEED = 1.0
"""Rounds a second."""
EXAMPLES = (
    (
        "A program that prints the collectives of a matmul",
        "shardviz export python explain 'bd,df->bf' --specs 'XY,Y_->X_'",
    ),
    (
        "Its plan by hand: every collective in jax.shard_map",
        "shardviz export python --as plan explain 'bd,df->bf' --specs 'XY,Y_->X_'",
    ),
    (
        "A notebook for Jupyter and Colab, of a lesson",
        "shardviz export notebook lesson 11 -o lesson-11.ipynb",
    ),
    ("A picture of a layout", "shardviz export svg layout 8x16 --spec XY -o layout.svg"),
    ("A page with everything on it", "shardviz export html explain 'A[B_X, D] * W[D, F_Y]' -o plan.html"),
    (
        "A recording of a collective, for asciinema",
        "shardviz export cast step all_gather --mesh i=4 -o gather.cast",
    ),
)


@click.command(cls=Command, examples=EXAMPLES, context_settings={"ignore_unknown_options": True})
@click.argument("form", metavar="FORMAT", type=click.Choice(FORMS))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND…")
@click.option(
    "--as",
    "part",
    type=click.Choice(["problem", "plan", "rounds", "start"]),
    help="Of an einsum jit's program of the problem, the plan by hand, or its collective's rounds; of a "
    "lesson also its start.",
)
@click.option(
    "--from",
    "shared",
    metavar="STRING",
    help="A share string, in place of a command: a problem, or a lesson as it stands.",
)
@click.option("-o", "--output", metavar="FILE", help="The file to write; standard output if none, or -.")
@click.option("--force", is_flag=True, help="Write over a file that exists.")
@click.pass_context
def command(
    ctx: click.Context,
    form: Form,
    words: tuple[str, ...],
    part: Literal["problem", "plan", "rounds", "start"] | None,
    shared: str | None,
    output: str | None,
    force: bool,
) -> int:
    """Write what a COMMAND shows in a FORMAT that needs no shardviz: python, notebook, svg, html or cast.

    COMMAND is explain, step, layout or lesson with its words and options, as you would type it. Of a lesson
    it is the lesson's own program, else what its solution shows; --as start does not give that away.
    """
    from shardviz.cli.export_words import asked_in_string, asked_in_words

    output = None if output == "-" else output
    if force and output is None:
        raise QuestionError("--force is about a file, and none is named", "add --output FILE")
    if bool(words) == (shared is not None):
        raise QuestionError(
            "an export is of one thing: a command or a share string",
            "write for example: shardviz export python explain 'bd,df->bf' --specs 'XY,Y_->X_'",
        )
    path = None if output is None else _free(output, force)
    asked = asked_in_words(ctx, words, part) if shared is None else asked_in_string(shared, part)
    text = written(asked, form)
    if path is None:
        click.echo(text, nl=not text.endswith("\n"))
        return ExitCode.FINE
    from shardviz.render.exports.writing import write_file

    write_file(path, text)
    click.echo(f"{path}: {len(text.encode()):,} bytes")
    return ExitCode.FINE


def written(asked: Asked, form: Form) -> str:
    """The file's text. Raises `ShardvizError` where the subject has no such form."""
    from shardviz.render.exports.subject import JaxProgram

    subject = asked.subject
    if form == "python":
        from shardviz.render.exports.script import script

        return script(subject)
    if form == "notebook":
        from shardviz.render.exports.script import notebook

        return notebook(subject)
    if isinstance(subject.shown, JaxProgram):
        raise QuestionError(
            f"{form} is a picture, and a program of its own has none",
            "take python or notebook, or add --as problem",
        )
    width = {} if asked.width is None else {"width": asked.width}
    if form == "svg":
        from shardviz.render.exports.svg import svg

        return svg(subject, **width)
    if form == "html":
        from shardviz.render.exports.html import html

        return html(subject, **width)
    from shardviz.render.exports.cast import cast

    return cast(subject, **width, speed=asked.speed or USUAL_SPEED)


def _free(output: str, force: bool) -> Path:
    """The file to write. Raises `QuestionError` for a name that no file can have, or that one has."""
    from shardviz.render.exports.writing import target_path

    path = target_path(output)
    if os.path.lexists(path) and not force:
        raise QuestionError(f"there is a file {quote(str(path))} already", "use another name, or add --force")
    return path
