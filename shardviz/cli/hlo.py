"""`shardviz hlo`: the collectives in any compiled program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.messages import print_note
from shardviz.cli.process import ExitCode
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from shardviz.cli.screen import Screen
    from shardviz.hlo import HloModule, ShardyModule
    from shardviz.hlo.listing import Listing
    from shardviz.sharding import Mesh

MAX_NOTES = 5
"""Notes on text that cannot be read; `--json` has all of them."""
LINES_AT_ONCE = 500
HINT = "save all of compiled.as_text() again, as it is"
EXAMPLES = (
    ("What a compiled program sends, from a file", "shardviz hlo step.txt"),
    ("With the names of its mesh's axes", "shardviz hlo step.txt --mesh data=2,model=4"),
    ("The program itself, what overlaps at the left", "shardviz hlo step.txt --picture"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@click.argument("file")
@click.option(
    "--mesh", metavar="NAME=SIZE,…", help="Axes of the mesh; found in the program's groups where not given."
)
@click.option("--device-order", metavar="ID,…", help="Device ids in the mesh's order, to show groups with.")
@click.option("--picture", is_flag=True, help="Show the program in its order instead.")
@options.as_json
@options.page
def command(
    file: str,
    mesh: str | None,
    device_order: str | None,
    picture: bool,
    as_json: bool,
    width: int | None,
    color: str,
) -> ExitCode:
    """Show which collectives the program in FILE has: how many, how large, along which axes, from which line.

    FILE holds HLO, StableHLO or Shardy text, as compiled.as_text() or XLA's dumps have it; - reads standard
    input, and gzip is unpacked. Counts go through loops. What cannot be read is told, and makes it exit 2.
    """
    from shardviz.cli.program_text import read_text

    if picture and as_json:
        raise QuestionError("--picture and --json cannot be combined", "leave out one of them")
    if mesh is None and device_order is not None:
        raise QuestionError("--device-order is the order of a mesh's devices", "add --mesh X=2,Y=4")
    from shardviz.cli.screen import screen
    from shardviz.notation import parse_mesh

    given = None if mesh is None else parse_mesh(mesh, device_order)
    text = read_text(file)
    if picture:
        from shardviz.hlo.listing import list_hlo
        from shardviz.hlo.mlir.shardy import is_mlir
        from shardviz.hlo.module import is_hlo

        if is_mlir(text) and not is_hlo(text):
            raise QuestionError(
                "--picture draws a compiled program, and this is not compiled yet",
                "leave out --picture, or give HLO: lowered.compile().as_text()",
            )
        listing = list_hlo(text, given, infer=True)
        code = _note(listing.module)
        _draw(listing, given, screen(width, color))
        return code
    from shardviz.hlo import read

    module = read(text, given, infer=True)
    del text
    code = _note(module)
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.documents.programs import hlo_document

        print_json(hlo_document(module, given))
        return code
    from shardviz.render.programs.hlo_view import hlo_view

    page = screen(width, color)
    page.show(hlo_view(module, given, page.width, page.palette))
    return code


def _draw(listing: Listing, given: Mesh | None, page: Screen) -> None:
    """The program, some lines after the other, so that a reader who has seen enough need not wait."""
    from rich.text import Text

    from shardviz.render.programs.hlo_picture import HloPicture
    from shardviz.render.programs.hlo_view import module_lines

    page.show([*module_lines(listing.module, given, page.width, page.palette), Text()])
    picture = HloPicture(listing, page.width, page.palette)
    count = len(listing.lines)
    for start in range(0, count, LINES_AT_ONCE):
        page.show([picture.line(number) for number in range(start, min(start + LINES_AT_ONCE, count))])


def _note(module: HloModule | ShardyModule) -> ExitCode:
    """Tell what of the text could not be read. Raises `QuestionError` where no collective can be."""
    unread = module.unread
    if module.unread_collectives and not module.collectives:
        raise QuestionError(unread[0], HINT)
    for words in unread[:MAX_NOTES]:
        print_note(f"{words}")
    if len(unread) > MAX_NOTES:
        print_note(f"and {len(unread) - MAX_NOTES} more, which --json lists")
    if not unread:
        return ExitCode.FINE
    click.echo(f"hint: {HINT}", err=True)
    return ExitCode.QUESTION
