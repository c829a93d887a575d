"""`shardviz profile`: what ran on real devices, from the files of a profiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, ProgressLine, print_json, print_note, wait_for
from shardviz.cli.target_session import started_worker
from shardviz.errors import CompilerError, QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.units import human_bytes

with LazyImports():
    from shardviz.answers import profile as answers
    from shardviz.cli import hlo as hlo_command
    from shardviz.documents import fields
    from shardviz.hardware import machine_file
    from shardviz.profiles import trace_files
    from shardviz.render import profile_view

if TYPE_CHECKING:
    from shardviz.profiles.profile import Profile


@click.command("profile", cls=ExampleCommand)
@click.argument("path")
@options.option("--hlo", "FILE", "The program's text, if the profile does not include it.")
@options.option("--mesh", "NAME=SIZE,…", "Axes of the mesh; default: inferred from the program.")
@options.option("--device-order", "ID,…", "Device ids in the mesh's order.")
@options.field(
    "machine", help="Hardware to predict the same program on, or FILE.toml; default: no prediction."
)
@options.count("--step", "The step for the timeline.", 0)
@options.option("--device", "NAME", "The device for the timeline, such as 'TPU 3' or 3.")
@options.timeout
@options.long_output
def command(output: CommandOutput, **given: Any) -> None:
    """Show what ran on CPUs, GPUs or TPUs. PATH is a folder of jax.profiler or a *.xplane.pb.

    For each device and step: compute, communication, exposed communication and idle time. For each
    collective: time, bandwidth and the stragglers. --machine adds the predicted times below the measured
    ones.
    """
    profile = read_profile(given)
    if output.as_json:
        print_json(fields.KINDS["profile"].document(profile))
    else:
        output.show(profile_view.profile_view(profile, *output.page, output.verbose))
        output.show_more("every device and step, and what the columns are")


def read_profile(asked: Mapping[str, Any]) -> Profile:
    """The profile that a command's options ask for; raises what cannot be had of it."""
    if asked["mesh"] is None and asked["device_order"] is not None:
        raise QuestionError("--device-order needs a mesh", "add --mesh X=2,Y=4")
    mesh = None if asked["mesh"] is None else parse_mesh(asked["mesh"], asked["device_order"])
    machine = machine_file.named_machine(asked["machine"]) if asked["machine"] else None
    text = "" if asked["hlo"] is None else hlo_command.read_text(asked["hlo"])
    path = asked["path"]
    trace_files.profile_files(path)
    progress = ProgressLine()

    def show(done: int, size: int) -> None:
        progress.show(f"reading {path}: {human_bytes(done)} of {human_bytes(size)}")

    with ExitStack() as stack:
        # It loads JAX while the profile is read.
        worker = None if text else stack.enter_context(started_worker(asked["timeout"]))
        try:
            files = trace_files.read_trace(path, show)
        finally:
            progress.clear()

        def find_texts(protos: Sequence[bytes]) -> Sequence[str]:
            assert worker is not None
            try:
                return wait_for(worker.module_texts(protos), "the programs' text")
            except CompilerError as error:
                print_note(f"no program text: {error.message}")
                return [""] * len(protos)

        return answers.profile_with_texts(
            files,
            find_texts,
            hlo=text,
            mesh=mesh,
            machine=machine,
            device=asked["device"] or "",
            step=asked["step"],
        )
