"""`shardviz layout`: the slice of an array on every device."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.notation import parse_layout, parse_mesh

MAX_LISTED = 2**15
with LazyImports():
    from shardviz.documents import meshes
    from shardviz.render.layouts import layout_view

EXAMPLES = (
    ("Columns over four devices", "shardviz layout 16384x16384 --mesh axis=4 --spec '_ axis'"),
    ("Exactly as JAX draws it", "shardviz layout 8x16 --spec XY --style jax --device-kind TPU"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
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
    ctx: click.Context,
    shape: str,
    mesh: str,
    device_order: str | None,
    spec: str,
    dtype: str,
    style: str,
    device_kind: str,
    devices: bool,
    output: CommandOutput,
) -> None:
    """Draw which slice of an array of SHAPE, such as 16384x16384, every device of a mesh holds."""
    chosen = options.is_given(ctx, "dtype")
    layout = parse_layout(shape, parse_mesh(mesh, device_order), spec, dtype if chosen else None)
    if output.as_json:
        if layout.mesh.size > MAX_LISTED:
            raise QuestionError(
                f"--json lists every device, and the mesh {layout.mesh} has {layout.mesh.size:,}",
                f"use a mesh of up to {MAX_LISTED:,} devices, or leave out --json for a summary",
            )
        print_json(meshes.LAYOUT.document(layout))
    elif style == "jax":
        click.echo(
            layout_view.jax_style(
                layout, device_kind, output.columns or min(output.width, layout_view.MAX_WIDTH)
            ),
            nl=False,
        )
    else:
        output.show(layout_view.layout_view(layout, output.width, output.palette, devices))
