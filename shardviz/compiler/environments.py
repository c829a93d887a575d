"""What each child process finds in its environment: one is set up for one kind of devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.compiler.messages import LaneName

_OF_TPUS = {
    # Without it the TPU compiler asks the network which machine it runs on, and waits for an answer.
    "TPU_SKIP_MDS_QUERY": "1",
    # Only who drives a TPU must be alone; several may compile, beside a job of the user's too.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
_KEPT_OF_TPUS = ("TPU_LIBRARY_PATH",)
"""Where JAX looks for libtpu; the rest of what begins with TPU_ describes the machine at hand."""


def environment_for(lane: LaneName, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a lane's child, from the user's."""
    if lane == "real":
        return dict(inherited)
    environment = simulated_environment(inherited)
    if lane == "tpu":
        for name in list(environment):
            if name.startswith("TPU_") and name not in _KEPT_OF_TPUS:
                del environment[name]
        environment |= _OF_TPUS
    return environment


def simulated_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """For compilers alone: simulated CPU devices, and no setting of JAX that could change an answer.

    The user's XLA_FLAGS stay, without the device count, which follows the mesh that is asked about.
    """
    environment = {name: value for name, value in inherited.items() if not name.startswith("JAX_")}
    environment["JAX_PLATFORMS"] = "cpu"
    flags = [
        flag
        for flag in environment.get("XLA_FLAGS", "").split()
        if not flag.startswith("--xla_force_host_platform_device_count")
    ]
    environment["XLA_FLAGS"] = " ".join(flags)
    return environment
