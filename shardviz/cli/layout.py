"""`shardviz layout`: the slice of an array on every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.notation import parse_layout, parse_mesh

with LazyImports():
    from shardviz.documents import meshes
    from shardviz.render.layouts import layout_view

if TYPE_CHECKING:
    from shardviz.sharding import Layout

MAX_LISTED = 2**15


@click.command("layout", cls=ExampleCommand)
@click.argument("shape")
@options.mesh
@options.device_order
@click.option(
    "--spec", required=True, help="How it is split, in any notation: 'X _', \"P('X', None)\", 'A[I_X, J]'."
)
@options.dtype
@click.option(
    "--style",
    type=click.Choice(["shardviz", "jax"]),
    default="shardviz",
    help="jax: the picture that JAX itself prints.",
)
@click.option(
    "--device-kind",
    type=click.Choice(["CPU", "GPU", "TPU"], case_sensitive=False),
    default="CPU",
    show_default=True,
    help="With --style jax: the word before the device numbers.",
)
@click.option("--devices", is_flag=True, help="Also list every device with its slices.")
@options.output
@click.pass_context
def command(
    ctx: click.Context, /, style: str, device_kind: str, devices: bool, output: CommandOutput, **_: Any
) -> None:
    """Draw which slice of an array of SHAPE, such as 16384x16384, every device of a mesh holds."""
    layout = asked_layout(ctx)
    if output.as_json:
        if layout.mesh.size > MAX_LISTED:
            raise QuestionError(
                f"--json lists every device, and the mesh {layout.mesh} has {layout.mesh.size:,}",
                f"use a mesh of up to {MAX_LISTED:,} devices, or leave out --json for a summary",
            )
        print_json(meshes.LAYOUT.document(layout))
    elif style == "jax":
        columns = output.columns or min(output.width, layout_view.MAX_WIDTH)
        click.echo(layout_view.jax_style(layout, device_kind, columns), nl=False)
    else:
        output.show(layout_view.layout_view(layout, *output.page, devices))


def asked_layout(ctx: click.Context) -> Layout:
    """The layout of a command's options; the text of the spec may say the dtype where they do not."""
    given = ctx.params
    dtype = given["dtype"] if options.is_given(ctx, "dtype") else None
    return parse_layout(
        given["shape"], parse_mesh(given["mesh"], given["device_order"]), given["spec"], dtype
    )
