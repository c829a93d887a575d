"""`shardviz machine`, `layout` and `translate`: a mesh on chips, an array on a mesh, other notations."""

from __future__ import annotations

from typing import Any

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput
from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.notations import find_notation, parse_layout, write_all, write_sharding
from shardviz.sharding import Layout

with LazyImports():
    from shardviz.cli import export
    from shardviz.documents import fields, machines
    from shardviz.forms import enter
    from shardviz.hardware import machine as hardware_machine, machine_file
    from shardviz.render import caption, machine_view
    from shardviz.render.layouts import layout_view

MAX_LISTED = 2**15


@options.command("machine")
@click.argument("name", shell_complete=options.targets)
def machine(name: str, mesh: str | None, device_order: str | None, output: CommandOutput) -> None:
    """Show the figures of a machine, with their sources, and draw its chips and links.

    NAME is hardware such as v5p:4x4x8, 2*v5e:4x4 or h100:2x8, or a TOML file such as my-cluster.toml."""
    asked = options.asked_mesh(mesh, device_order)
    hardware = machine_file.named_machine(name, asked.size if asked else 0)
    placed = None if asked is None else hardware_machine.place_mesh(hardware, asked)
    output.answer(
        lambda: machines.machine_document(hardware, asked, placed),
        lambda: machine_view.machine_view(hardware, asked, placed, *output.page, output.verbose),
        "all figures",
    )


@options.command("layout")
@click.argument("shape")
@click.pass_context
def layout(ctx: click.Context, /, devices: bool, output: CommandOutput, **_: Any) -> None:
    """Draw which slice of an array each device holds; SHAPE is such as 16384x16384."""
    drawn = _layout(ctx)
    if output.as_json and drawn.mesh.size > MAX_LISTED:
        problem = f"--json lists every device, but the mesh {drawn.mesh} has {drawn.mesh.size:,}"
        hint = f"use a mesh of up to {MAX_LISTED:,} devices, or leave out --json for a summary"
        raise QuestionError(problem, hint)
    output.answer(
        lambda: fields.KINDS["layout"].document(drawn),
        lambda: layout_view.layout_view(drawn, *output.page, devices),
    )


def _layout(ctx: click.Context) -> Layout:
    """The layout of a command's options; the text of the spec may say the dtype where they do not."""
    given = ctx.params
    dtype = given["dtype"] if options.is_given(ctx, "dtype") else None
    return parse_layout(
        given["shape"], parse_mesh(given["mesh"], given["device_order"]), given["spec"], dtype
    )


layout.exports(lambda ctx, _: export.titled(_layout(ctx)))


@options.command("translate")
@click.argument("text")
def translate(
    text: str, to: str | None, origin: str | None, mesh: str | None, rank: int | None, output: CommandOutput
) -> None:
    """Convert a sharding from any notation to another, or to all of them.

    Every array of a product, or of an einsum's specs, is converted."""
    notation, readings, context = enter.read_any(text, origin, mesh, rank)
    for reading in readings:
        if rank is not None and reading.spec.rank != rank:
            problem = f"--rank is {rank}, but {quote(text)} has an array of rank {reading.spec.rank}"
            raise QuestionError(problem, "leave out --rank: the text has it")
    written: list[dict[str, str | ShardvizError]] = [
        write_all(reading, context)
        if to is None
        else {to: write_sharding(find_notation(to), reading, context)}
        for reading in readings
    ]
    if to is not None and not output.as_json:
        for one in written:
            click.echo(one[to])
        return
    output.answer(
        lambda: machines.translate_document(text, notation.key, readings, written, context.mesh),
        lambda: caption.translate_view(readings, notation, written, context.mesh, *output.page),
    )
