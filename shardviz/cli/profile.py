"""`shardviz profile`: what ran on real devices, from the files of a profiler."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, ProgressLine, print_json, print_note, wait_for
from shardviz.cli.streams import no_terminal
from shardviz.cli.target_session import started_worker
from shardviz.errors import CompilerError, QuestionError
from shardviz.forms.form import PROBLEM_FIELDS
from shardviz.lazy_names import LazyImports
from shardviz.notation import parse_mesh
from shardviz.units import human_bytes

with LazyImports():
    from shardviz.answers import profile as answers
    from shardviz.cli import hlo as hlo_command
    from shardviz.cli import open_app
    from shardviz.documents import profiles
    from shardviz.hardware import machine_file
    from shardviz.profiles import trace_files
    from shardviz.render import profile_view
    from shardviz.tui.time import timelines

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.profiles.profile import Profile
    from shardviz.sharding import Mesh

EXAMPLES = (
    ("The newest profile in a folder of jax.profiler", "shardviz profile traces"),
    ("With the names of the mesh's axes", "shardviz profile traces --mesh data=2,model=4"),
    ("Beside what a machine should take", "shardviz profile traces --machine v5e:2x4"),
    ("Another step, on another device", "shardviz profile traces --step 1 --device 'CPU 3'"),
)


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@click.argument("path")
@click.option("--hlo", metavar="FILE", help="The program's text, where the profile does not bring it along.")
@click.option("--mesh", metavar="NAME=SIZE,…", help="Axes of the mesh; default: inferred from the program.")
@click.option("--device-order", metavar="ID,…", help="Device ids in the mesh's order.")
@options.of_field(
    PROBLEM_FIELDS["machine"],
    help="Hardware to predict the same program on, or FILE.toml; default: nothing is predicted.",
    shell_complete=options.targets,
)
@click.option("--step", type=options.Count(0), metavar="N", help="The step that the timeline shows.")
@click.option("--device", metavar="NAME", help="The device that the timeline shows, such as 'TPU 3' or 3.")
@click.option("--tui", is_flag=True, help="Open the timeline in the application, to zoom and to follow.")
@options.timeout
@options.output
def command(
    path: str,
    hlo: str | None,
    mesh: str | None,
    device_order: str | None,
    machine: str | None,
    step: int | None,
    device: str | None,
    tui: bool,
    timeout: float,
    output: CommandOutput,
) -> None:
    """Show what ran on CPUs, GPUs or TPUs: PATH is a folder of jax.profiler, a *.xplane.pb or a
    *.trace.json.gz.

    For each device and step: compute, communication, the part of it beside which nothing is computed, and
    idle time; for each collective its time and its bandwidth; the devices for which others waited. With
    --machine what is predicted of the same program stands below what was measured.
    """
    if tui and output.as_json:
        raise QuestionError("--tui and --json cannot be combined", "leave out one of them")
    if tui and (reason := no_terminal()):
        raise QuestionError(f"--tui opens the application: {reason}", "leave out --tui")
    profile = read_profile(path, hlo, mesh, device_order, machine, step, device, timeout)
    if tui:
        chosen = {
            "--hlo": hlo,
            "--mesh": mesh,
            "--device-order": device_order,
            "--machine": machine,
            "--step": step,
            "--device": device,
        }
        words = [word for each, value in chosen.items() if value is not None for word in (each, str(value))]
        shown = shlex.join(["shardviz", "profile", path, *words])
        open_app.open_app(screen="time", profile=timelines.OpenedProfile(profile, shown))
    if output.as_json:
        print_json(profiles.PROFILE.document(profile))
    else:
        output.show(profile_view.profile_view(profile, output.width, output.palette))


def read_profile(
    path: str,
    hlo: str | None,
    mesh: str | None,
    device_order: str | None,
    machine: str | None,
    step: int | None,
    device: str | None,
    timeout: float,
) -> Profile:
    """The profile that the options ask for; raises what cannot be had of it."""
    if mesh is None and device_order is not None:
        raise QuestionError("--device-order is the order of a mesh's devices", "add --mesh X=2,Y=4")
    given: Mesh | None = None if mesh is None else parse_mesh(mesh, device_order)
    named: Machine | None = machine_file.named_machine(machine) if machine else None
    text = "" if hlo is None else hlo_command.read_text(hlo)
    trace_files.profile_files(path)
    progress = ProgressLine()

    def show(done: int, size: int) -> None:
        progress.show(f"reading {path}: {human_bytes(done)} of {human_bytes(size)}")

    with ExitStack() as stack:
        # It loads JAX while the profile is read.
        worker = None if text else stack.enter_context(started_worker(timeout))
        try:
            files = trace_files.read_trace(path, show)
        finally:
            progress.clear()

        def find_texts(protos: Sequence[bytes]) -> Sequence[str]:
            assert worker is not None
            try:
                return wait_for(worker.module_texts(protos), "the programs' text")
            except CompilerError as error:
                print_note(f"the text of the programs cannot be had: {error.message}")
                return [""] * len(protos)

        return answers.profile_with_texts(
            files, find_texts, hlo=text, mesh=given, machine=named, device=device or "", step=step
        )
