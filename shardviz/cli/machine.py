"""`shardviz machine`: a machine's figures, its picture, and where a mesh lies on it."""

from __future__ import annotations

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json
from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.notation import parse_mesh

with LazyImports():
    from shardviz.documents import machines
    from shardviz.hardware import machine as hardware_machine
    from shardviz.hardware import machine_file
    from shardviz.render import machine_view as render_machine_view


@click.command("machine", cls=ExampleCommand)
@click.argument("name", shell_complete=options.targets)
@options.field("mesh", default=None, help="A mesh to place on it; default: none.")
@options.device_order
@options.output
def command(name: str, mesh: str | None, device_order: str | None, output: CommandOutput) -> None:
    """Show the figures of a machine, with their sources, and draw its chips and links.

    NAME is hardware such as v5p:4x4x8, 2*v5e:4x4 or h100:2x8, or a TOML file such as my-cluster.toml.
    """
    if mesh is None and device_order is not None:
        raise QuestionError("--device-order is the order of a mesh, and there is none", "add --mesh X=4,Y=8")
    machine = machine_file.named_machine(name)
    asked = None if mesh is None else parse_mesh(mesh, device_order)
    placed = None if asked is None else hardware_machine.place_mesh(machine, asked)
    if output.as_json:
        print_json(machines.machine_document(machine, asked, placed))
        return

    output.show(render_machine_view.machine_view(machine, asked, placed, *output.page))
