"""Versions of installed packages, and the extras that a target needs; none of them is imported."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from shardviz.errors import TargetError

if TYPE_CHECKING:
    from shardviz.targets import ProcessName, Target

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

    found = []
    for package in packages:
        with suppress(PackageNotFoundError):
            found.append((package, version(package)))
    return tuple(found)


def older_than(found: str, needed: str) -> bool:
    """Return whether a release as "0.8.0.dev1" comes before another; only its leading numbers count."""
    return _numbers(found) < _numbers(needed)


def libtpu_mismatch(versions: Sequence[tuple[str, str]]) -> str:
    """The mismatch of libtpu and jax, in one sentence; "" where nothing is, or one of them is not here.

    `versions` are those of `installed_versions`.

    Each release of jax names the libtpu that it was built with in the metadata of its extra "tpu". JAX loads
    any that is installed in every process that takes a profile, and another one can end that process.
    """
    from importlib.metadata import requires

    found = dict(versions)
    if not {"jax", "libtpu"} <= found.keys():
        return ""
    for requirement in requires("jax") or ():
        asked = re.match(r"libtpu ?==((?:[0-9]+\.)*)\*", requirement)
        if asked and not f"{found['libtpu']}.".startswith(asked[1]):
            return (
                f"jax {found['jax']} asks for libtpu {asked[1]}*, and {found['libtpu']} is installed: "
                "jax.profiler.trace can end the process"
            )
    return ""


def _numbers(version: str) -> tuple[int, ...]:
    leading = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, leading[0].split("."))) if leading else ()


@dataclass(frozen=True)
class Extra:
    """An extra of this package: `packages` of the index of which one must be there, and the machines, with
    Linux, for which they exist."""

    name: str
    what: str
    packages: tuple[str, ...]
    machines: tuple[str, ...]
    exists_for: str

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install 'shardviz[{self.name}]'"

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
_CUDA = ("jax-cuda12-plugin", "jax-cuda13-plugin")
EXTRAS: dict[ProcessName, Extra] = {
    "tpu": Extra("tpu", "the TPU compiler, libtpu,", ("libtpu",), _X86, "Linux on x86-64"),
    "cuda": Extra(
        "cuda", "the GPU compiler, JAX's CUDA plugin,", _CUDA, (*_X86, "aarch64", "arm64"), "Linux"
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
