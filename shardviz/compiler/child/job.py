"""A job of several processes as JAX runs one: found, joined, and a value that all of them agree on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import jax
from jax._src import distributed
from jax._src.clusters import ClusterEnv

from shardviz.compiler.messages import ChildCall
from shardviz.devices.job import JobAddress

T = TypeVar("T")
_FOREVER_S = 30 * 86_400
"""The parent watches the job (compiler/job_watch.py) and ends this process where another one is lost, sooner
than JAX would and with a reason. So JAX's own limits are never to be reached."""
_agreed = itertools.count()
FoundJob = tuple[JobAddress, Sequence[int] | None]
"""The job of this process, and which devices of its host are its own."""


def find(coordinator: str, processes: str, process: str) -> FoundJob | None:
    """The job that the three name or, where they are empty, the one in which Slurm, Open MPI, Kubernetes or
    Cloud TPU has started this process, as JAX detects it; None for a process that is alone."""
    # With an address JAX still looks up which devices of the host are this process's.
    *address, local_devices = ClusterEnv.auto_detect_unset_distributed_params(
        coordinator or None,
        int(processes) if processes else None,
        int(process) if process else None,
        None,
        None,
        60,  # seconds: Kubernetes may take so long to tell where process 0 is
    )
    return None if None in address or address[1] == 1 else (JobAddress(*address), local_devices)


def join(found: FoundJob, coordinator: str) -> None:
    """Join the job that was found; JAX's own coordinator is at `coordinator`. All processes are there."""
    address, local_devices = found
    # Its preemption service would have SIGTERM do nothing.
    jax.config.update("jax_enable_preemption_service", False)
    jax.distributed.initialize(
        coordinator,
        address.processes,
        address.process,
        local_devices,
        cluster_detection_method="deactivate",
        heartbeat_timeout_seconds=_FOREVER_S,
        shutdown_timeout_seconds=_FOREVER_S,
    )
    jax.devices()  # comes when every process has told its own


def devices(_report: Callable[[str], None], _asked: str) -> tuple[int, tuple[int, ...]]:
    """This process, and that of each device in the order of `jax.devices()`. What is asked next is compared
    with what the other processes are asked."""
    return jax.process_index(), tuple(device.process_index for device in jax.devices())


def agree(value: T) -> T:
    """Process 0's value, as JSON has it, in every process, each of which must call it in the same order; a
    process that is alone gets its own."""
    client = distributed.global_state.client
    if client is None:
        return value
    key = f"shardviz/{next(_agreed)}"
    if jax.process_index() == 0:
        client.key_value_set(key, json.dumps(value))
        return value
    agreed: T = json.loads(client.blocking_key_value_get(key, _FOREVER_S * 1000))
    return agreed


def is_asked_alike(call: ChildCall) -> bool:
    """Return whether process 0 is asked the same, to the last number of an array, but for the folder."""

    def comparable(argument: Any) -> Any:
        if hasattr(argument, "folder"):
            return replace(argument, folder="")
        return argument.tobytes() if hasattr(argument, "tobytes") else argument

    own = repr(replace(call, arguments=tuple(map(comparable, call.arguments))))
    return agree(own) == own
