"""The targets: their names after `--target`, how large a mesh each can hold, and the packages they need."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from shardviz.errors import TargetError, listed, most_like, place, quote

if TYPE_CHECKING:
    from shardviz.hardware.machine import Machine
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh

ProcessName = Literal["simulated", "real", "tpu", "cuda"]
"""The process that answers: JAX can be set up for one of these in a process."""

MAX_CPU_DEVICES = 2048
"""XLA's CPU client numbers the devices of its second process from 2048 (jaxlib 0.10 and 0.12)."""

UNSAFE = ("s2", "u2")
"""Types whose values XLA for CPU mixes up, or on which it dies (jaxlib 0.10 and 0.12)."""

MAX_PARTITIONS = 2**31 - 1
"""A module states its number of partitions in 32 bits (`mhlo.num_partitions`)."""


@dataclass(frozen=True)
class Target:
    """A partitioner or a compiler. `max_devices` is None where only the child can know how many there are;
    `machine` is the hardware of a TPU or GPU target, whose mesh takes all of them."""

    name: str
    description: str
    max_devices: int | None = None
    process: ProcessName = "simulated"
    machine: Machine | None = None

    @property
    def platform(self) -> str:
        """The platform of JAX for which a program is lowered; for Shardy any does."""
        return self.process if self.machine is not None else "cpu"


TARGETS = {
    target.name: target
    for target in (
        Target("shardy", "Shardy, the partitioner inside jaxlib: any mesh, no devices", MAX_PARTITIONS),
        Target("cpu", f"XLA for up to {MAX_CPU_DEVICES:,} simulated CPU devices", MAX_CPU_DEVICES),
        Target("real", "XLA for the devices that JAX finds here", process="real"),
    )
}
"""The targets without a size, by name."""

SHARDY_PASSES = {
    "propagation": "sdy-propagation-pipeline",
    "insert-explicit-reshards": "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "reshard-to-collectives": "func.func(sdy-reshard-to-collectives)",
    "canonicalize": "canonicalize",
}
"""Shardy on a module: propagation, then each change of sharding made visible, then as collectives, then the
simplest form, which joins an all-reduce and the slice of its result into `sdy.reduce_scatter`."""

EXAMPLES = "v5e:2x4 or h100:8"


def parse_targets(text: str, devices: int = 0) -> tuple[Target, ...]:
    """Read ``shardy,cpu,v5e:2x4,h100:8``: targets in the order given, each once; none for ``none``. Raises
    `TargetError` for a name that is empty or unknown, and for hardware that cannot be; for a chip without a
    size it suggests those of a mesh with so many `devices`."""
    if text.strip().lower() == "none":
        return ()
    targets = (_target(piece, text, start, devices) for piece, start in listed(text))
    return tuple({target.name: target for target in targets}.values())


def check_axis_types(problem: Problem) -> None:
    """Raise `TargetError` for a sum left pending under Auto axes, which JAX refuses for every target."""
    if problem.axis_types != "auto":
        return
    for array in (*problem.arguments, *(part.result for part in problem.parts)):
        if array.spec is not None and array.spec.unreduced:
            raise TargetError(
                f"JAX leaves no array unreduced under Auto axes, and {array.name} is unreduced over "
                f"{', '.join(array.spec.unreduced)}",
                "add --axis-types explicit, or use --target none to ask the planner alone",
            )


def check_mesh(target: Target, mesh: Mesh) -> None:
    """Raise `TargetError` when a mesh has more devices than the target can ever have, or others."""
    machine = target.machine
    if machine is not None and mesh.size != machine.devices:
        from shardviz.hardware.machine import another_size

        raise TargetError(*another_size(machine, mesh, "--target"))
    if machine is None and target.max_devices is not None and mesh.size > target.max_devices:
        smaller = target.max_devices < MAX_PARTITIONS
        raise TargetError(
            f"the mesh {mesh} has {mesh.size:,} devices but target {target.name} takes at most "
            f"{target.max_devices:,}",
            "ask --target shardy, which needs no devices" if smaller else "use smaller axes",
        )


def check_question(problem: Problem, targets: Iterable[Target]) -> None:
    """Raise `TargetError` for a problem that JAX refuses for every target, or one of these can never hold."""
    check_axis_types(problem)
    for target in targets:
        check_mesh(target, problem.mesh)


def _target(piece: str, text: str, start: int, devices: int) -> Target:
    """One target, which stands at `start` of all the text."""
    name = piece.lower()
    if name in TARGETS:
        return TARGETS[name]
    unsized = name.partition(":")[0].rpartition("*")[2].strip()
    if unsized in TARGETS:
        where = place(text, start, start + len(name))
        hint = f"write {unsized}; its devices are as many as the mesh's"
        raise TargetError(f"{unsized} takes no size, {where}", hint)
    # Only now: most questions name no hardware.
    from shardviz.hardware.chips import CHIPS, COMPILED
    from shardviz.hardware.clusters import Fault, hardware_words, parse_cluster

    try:
        machine = parse_cluster(name, devices)
    except Fault as fault:
        where = place(text, start + fault.start, start + fault.stop)
        raise TargetError(f"{fault.problem} {where}", fault.hint) from None
    if machine is None:
        raise _unknown(piece, text, start)
    if machine.chip not in COMPILED:
        where = place(text, start, start + len(name))
        hint = f"name it as the machine: --machine {machine.name}"
        raise TargetError(f"no compiler for {CHIPS[machine.chip].device_kind} is here, {where}", hint)
    words = f"XLA for {hardware_words(machine)}"
    return Target(machine.name, words, machine.devices, machine.family.process, machine)


def _unknown(piece: str, text: str, start: int) -> TargetError:
    everything = f"the targets are {', '.join(TARGETS)}, or none, and hardware such as {EXAMPLES}"
    where = place(text, start, start + max(1, len(piece)))
    if not piece:
        return TargetError(f"a target is missing {where}", everything)
    if piece.lower() == "none":
        return TargetError(f"none excludes other targets {where}", "give none alone, or leave it out")
    close = most_like(piece.lower(), TARGETS) if len(piece) <= 40 else ""
    hint = f"did you mean {close}? shardviz targets lists all" if close else everything
    return TargetError(f"unknown target {quote(piece)} {where}", hint)


PACKAGES = ("jax", "jaxlib", "libtpu", "jax-cuda12-plugin", "jax-cuda13-plugin")
"""Packages on which an answer can depend, by name in the package index."""
OLDEST_JAX = "0.8.3"
"""The oldest release on which the tests pass. The libtpu of those before knows no TPU 7x."""


def installed_versions() -> tuple[tuple[str, str], ...]:
    """(name, version) of Python, shardviz and those of `PACKAGES` that are installed."""
    from platform import python_version

    return (("python", python_version()), *versions_of("shardviz", *PACKAGES))


def versions_of(*packages: str) -> tuple[tuple[str, str], ...]:
    """(name, version) of those packages that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    installed = []
    for package in packages:
        with suppress(PackageNotFoundError):
            installed.append((package, version(package)))
    return tuple(installed)


def older_than(found: str, needed: str) -> bool:
    """Return whether a release as "0.8.0.dev1" comes before another; only its leading numbers count."""

    def numbers(version: str) -> list[int]:
        leading = re.match(r"\d+(?:\.\d+)*", version)
        return [*map(int, leading[0].split("."))] if leading else []

    return numbers(found) < numbers(needed)


def libtpu_mismatch(versions: Sequence[tuple[str, str]]) -> str:
    """The mismatch of libtpu and jax among `installed_versions`, in one sentence; "" where there is none.
    Each release of jax names the libtpu that it was built with in the metadata of its extra "tpu"."""
    from importlib.metadata import requires

    present = dict(versions)
    if not {"jax", "libtpu"} <= present.keys():
        return ""
    for requirement in requires("jax") or ():
        asked = re.match(r"libtpu ?==((?:[0-9]+\.)*)\*", requirement)
        if asked and not f"{present['libtpu']}.".startswith(asked[1]):
            return (
                f"jax {present['jax']} asks for libtpu {asked[1]}*, and {present['libtpu']} is installed: "
                "jax.profiler.trace can end the process"
            )
    return ""


def pip(*words: str) -> str:
    """A command of the pip that serves this interpreter: ``.venv/bin/python -m pip install 'jax[tpu]'``."""
    python = sys.executable or "python"
    with suppress(OSError):  # the folder one is in may be gone
        python = python.removeprefix(f"{Path.cwd()}{os.sep}")
    return shlex.join([python, "-m", "pip", *words])


class Extra(NamedTuple):
    """An extra of this package: what pip installs for it, `packages` of which one must be there, and the
    machines, with Linux, for which they exist."""

    name: str
    what: str
    requirement: str
    packages: tuple[str, ...]
    machines: tuple[str, ...]
    exists_for: str

    @property
    def command(self) -> str:
        return pip("install", self.requirement)

    @property
    def installable(self) -> bool:
        """It exists for this machine."""
        system, machine = this_machine()
        return system == "linux" and machine in self.machines

    @property
    def installed(self) -> bool:
        """It is here; nothing is loaded to find out."""
        if self.name == "tpu" and os.environ.get("TPU_LIBRARY_PATH"):
            return True
        return any(find_spec(package.replace("-", "_")) is not None for package in self.packages)


_X86 = ("x86_64", "amd64")
EXTRAS: dict[ProcessName, Extra] = {
    "tpu": Extra("tpu", "the TPU compiler, libtpu,", "jax[tpu]", ("libtpu",), _X86, "Linux on x86-64"),
    "cuda": Extra(
        *("cuda", "the GPU compiler, JAX's CUDA plugin,", "jax[cuda12]", PACKAGES[-2:]),
        machines=(*_X86, "aarch64", "arm64"),
        exists_for="Linux",
    ),
}
"""By the process that needs it."""


def this_machine() -> tuple[str, str]:
    """The system and the processor."""
    from platform import machine

    return sys.platform, machine().lower()


def check_installed(target: Target) -> None:
    """Raise `TargetError` when a target's compiler is not installed; it says what installs it."""
    extra = EXTRAS.get(target.process)
    if extra is None or extra.installed:
        return
    if not extra.installable:
        raise TargetError(
            f"{target.name} needs {extra.what} which exists for {extra.exists_for} only",
            "ask there, or ask --target shardy,cpu here",
        )
    raise TargetError(f"{target.name} needs {extra.what} which is not installed", extra.command)
