"""`shardviz profile`: what ran on real devices, from the files of a profiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, print_note, wait_for, working
from shardviz.cli.target_session import started_worker
from shardviz.errors import CompilerError
from shardviz.lazy_names import LazyImports
from shardviz.units import human_bytes

with LazyImports():
    from shardviz.cli import export, hlo as hlo_command
    from shardviz.documents import fields
    from shardviz.hardware import machine_file
    from shardviz.profiles import profile as profiles, trace_files
    from shardviz.render import profile_view


@options.command("profile")
@click.argument("path")
def command(output: CommandOutput, **given: Any) -> None:
    """Show what ran on CPUs, GPUs or TPUs. PATH is a folder of jax.profiler or a *.xplane.pb.

    For each device and step: compute, communication, exposed communication and idle time. For each
    collective: time, bandwidth and the stragglers. --machine adds the predicted times below the measured
    ones."""
    profile = _profile(given)
    output.answer(
        lambda: fields.KINDS["profile"].document(profile),
        lambda: profile_view.profile_view(profile, *output.page, output.verbose),
        "every device and step, and what the columns are",
    )


@command.exports
def _timelines(ctx: click.Context, _part: str | None) -> export.Subject:
    return export.times_of(*_profile(ctx.params).timelines)


def _profile(asked: Mapping[str, Any]) -> profiles.Profile:
    """The profile that a command's options ask for; raises what cannot be had of it."""
    mesh = options.asked_mesh(asked["mesh"], asked["device_order"])
    machine = machine_file.named_machine(asked["machine"]) if asked["machine"] else None
    text = "" if asked["hlo"] is None else hlo_command.read_text(asked["hlo"])
    path = asked["path"]
    trace_files.profile_files(path)
    done, size = 0, 0

    def note(now: int, most: int) -> None:
        nonlocal done, size
        done, size = now, most

    # JAX loads while the profile is read.
    with nullcontext() if text else started_worker(asked["timeout"]) as worker:
        with working(lambda: f"reading {path}: {human_bytes(done)} of {human_bytes(size)}"):
            files = trace_files.read_trace(path, note)

        def find_texts(protos: Sequence[bytes]) -> Sequence[str]:
            assert worker is not None
            try:
                return wait_for(worker.module_texts(protos), "the programs' text")
            except CompilerError as error:
                print_note(f"no program text: {error.message}")
                return [""] * len(protos)

        return profiles.profile_with_texts(
            files,
            find_texts,
            hlo=text,
            mesh=mesh,
            machine=machine,
            device=asked["device"] or "",
            step=asked["step"],
        )
