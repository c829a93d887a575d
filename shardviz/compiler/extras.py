"""What a group of targets needs beyond JAX, whether it is here, and the one command that installs it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from shardviz.errors import TargetError

if TYPE_CHECKING:
    from shardviz.compiler.messages import LaneName
    from shardviz.compiler.targets import Target


@dataclass(frozen=True)
class Extra:
    """An extra of this package: `modules` of which one must be there, from `packages` of the index, and the
    (system, machine) pairs for which they exist."""

    name: str
    what: str
    modules: tuple[str, ...]
    packages: tuple[str, ...]
    systems: tuple[tuple[str, str], ...]
    exists_for: str

    @property
    def command(self) -> str:
        """What installs it."""
        return f"pip install 'shardviz[{self.name}]'"

    @property
    def installable(self) -> bool:
        """Whether it exists for this machine."""
        return this_machine() in self.systems

    @property
    def installed(self) -> bool:
        """Whether it is here; nothing is loaded for that."""
        if self.name == "tpu" and os.environ.get("TPU_LIBRARY_PATH"):
            return True
        return any(find_spec(module) is not None for module in self.modules)


EXTRAS: dict[LaneName, Extra] = {
    "tpu": Extra(
        "tpu",
        "the TPU compiler, libtpu,",
        ("libtpu",),
        ("libtpu",),
        (("linux", "x86_64"), ("linux", "amd64")),
        "Linux on x86-64",
    ),
    "cuda": Extra(
        "cuda",
        "the GPU compiler, JAX's CUDA plugin,",
        ("jax_cuda12_plugin", "jax_cuda13_plugin"),
        ("jax-cuda12-plugin", "jax-cuda13-plugin"),
        (("linux", "x86_64"), ("linux", "amd64"), ("linux", "aarch64"), ("linux", "arm64")),
        "Linux",
    ),
}
"""By the lane that needs it."""


def this_machine() -> tuple[str, str]:
    """The system and the processor."""
    from platform import machine

    return sys.platform, machine().lower()


def check_installed(target: Target) -> None:
    """Raise `TargetError` when a target's compiler is not installed; it says what installs it."""
    extra = EXTRAS.get(target.lane)
    if extra is None or extra.installed:
        return
    if not extra.installable:
        raise TargetError(
            f"{target.name} needs {extra.what} which exists for {extra.exists_for} only",
            "ask there, or ask --target shardy,cpu here",
        )
    raise TargetError(f"{target.name} needs {extra.what} which is not installed", extra.command)
