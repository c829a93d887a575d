"""`shardviz checkpoint`: the arrays of an Orbax checkpoint, and what restoring them elsewhere reads."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import canonical_dtype

with LazyImports():
    from shardviz.documents import fields
    from shardviz.models import checkpoint, rule_files
    from shardviz.render import checkpoint_view


@click.command("checkpoint", cls=ExampleCommand)
@click.argument("folder")
@options.field("mesh", default=None, help="The mesh to restore on; default: the one it was saved on.")
@options.device_order
@options.option("--rules", "NAMES|FILE", "Sharding rules to restore by; default: the saved specs.")
@options.field("dtype", default=None, help="Dtype of the arrays of which no file says it.")
@options.long_output
def command(
    folder: str,
    mesh: str | None,
    device_order: str | None,
    rules: str | None,
    dtype: str | None,
    output: CommandOutput,
) -> None:
    """List the arrays of a checkpoint of Orbax: shape, dtype, saved spec and bytes per device.

    FOLDER has _METADATA, or steps that do; the newest step is read. With --mesh or --rules: what each device
    needs when it is restored so, what it held of that when it was saved, and the bytes of the stored pieces
    that it reads. Saved axes that the mesh lacks are left out. No weights are read.
    """
    if mesh is None and device_order is not None:
        raise QuestionError("--device-order needs a mesh", "add --mesh X=2,Y=4")
    found = checkpoint.read_checkpoint(folder, canonical_dtype(dtype) if dtype else "")
    asked = found.mesh or checkpoint.ONE if mesh is None else parse_mesh(mesh, device_order)
    named = None if rules is None else rule_files.named_rules(rules, asked)
    restore = checkpoint.restored(found, asked, named)
    if output.as_json:
        print_json(fields.KINDS["checkpoint"].document(restore, found, found.model))
        return
    output.show(checkpoint_view.checkpoint_lines(restore, *output.page, output.verbose))
    if len(restore.arrays) > checkpoint_view.MOST:
        output.show_more("every array")
