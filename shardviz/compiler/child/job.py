"""A job of several processes as JAX runs one: found, joined, and a value that all of them agree on."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import jax
from jax._src import distributed
from jax._src.clusters import ClusterEnv

from shardviz.compiler.messages import JobDevices, JobFound, Request

T = TypeVar("T")

DETECTION_S = 60
"""Kubernetes may take so long to tell where process 0 is."""
_FOREVER_S = 30 * 86_400
"""The parent watches the job (compiler/job_watch.py) and ends this process where another one is lost, sooner
than JAX would and with a reason. So JAX's own limits are never to be reached."""
_OWN_FOLDERS = ("dump_to", "costs_to", "folder")
"""Fields of requests that differ from process to process."""

_agreed = itertools.count()


@dataclass(frozen=True)
class _FoundCluster:
    coordinator: str
    processes: int
    process: int
    local_devices: Sequence[int] | None


_found: _FoundCluster | None = None


def find(coordinator: str, processes: str, process: str) -> JobFound | None:
    """The job that the three name or, where they are empty, the one in which Slurm, Open MPI, Kubernetes or
    Cloud TPU has started this process, as JAX detects it; None for a process that is alone."""
    global _found
    # With an address JAX still looks up which devices of the host are this process's.
    found = ClusterEnv.auto_detect_unset_distributed_params(
        coordinator or None,
        int(processes) if processes else None,
        int(process) if process else None,
        None,
        None,
        DETECTION_S,
    )
    if None in found[:3] or found[1] == 1:
        return None
    _found = _FoundCluster(*found)
    return JobFound(_found.coordinator, _found.processes, _found.process)


def join(coordinator: str) -> None:
    """Join the job that was found; JAX's own coordinator is at `coordinator`. All processes are there."""
    assert _found is not None
    # Its preemption service would have SIGTERM do nothing.
    jax.config.update("jax_enable_preemption_service", False)
    jax.distributed.initialize(
        coordinator,
        _found.processes,
        _found.process,
        _found.local_devices,
        cluster_detection_method="deactivate",
        heartbeat_timeout_seconds=_FOREVER_S,
        shutdown_timeout_seconds=_FOREVER_S,
    )
    jax.devices()  # comes when every process has told its own


def devices() -> JobDevices:
    """This process, and that of each device."""
    return JobDevices(jax.process_index(), tuple(device.process_index for device in jax.devices()))


def agree(value: T) -> T:
    """Process 0's value, in every process: numbers, texts, and lists and dictionaries of these.

    Every process must call it, in the same order; it waits for process 0. A process that is alone gets its
    own value.
    """
    client = distributed.global_state.client
    if client is None:
        return value
    key = f"shardviz/{next(_agreed)}"
    if jax.process_index() == 0:
        client.key_value_set(key, json.dumps(value))
        return value
    agreed: T = json.loads(client.blocking_key_value_get(key, _FOREVER_S * 1000))
    return agreed


def is_asked_alike(request: Request) -> bool:
    """Return whether process 0 is asked the same as this process."""
    own = _text(request)
    return agree(own) == own


def _text(request: Request) -> str:
    values: list[Any] = [type(request).__name__]
    for field in fields(request):
        if field.name not in _OWN_FOLDERS:
            value = getattr(request, field.name)
            values.append(sorted(value) if isinstance(value, frozenset) else value)
    return repr(values)
