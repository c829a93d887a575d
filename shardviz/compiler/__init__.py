"""Asks the partitioner and the compilers, in a process of their own.

The files beside this one run in the process that owns the terminal and never import jax; everything in
`child/` runs in the worker's child process, the only place that does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardviz.compiler.compiled import Compiled
    from shardviz.compiler.messages import About
    from shardviz.compiler.pending import Cancelled, Pending
    from shardviz.compiler.ran import Ran
    from shardviz.compiler.targets import TARGETS, Target, check_axis_types, check_mesh, parse_targets
    from shardviz.compiler.traced import Traced
    from shardviz.compiler.versions import installed_versions
    from shardviz.compiler.worker import Worker

_HOMES = {
    "About": "messages",
    "Cancelled": "pending",
    "Compiled": "compiled",
    "Pending": "pending",
    "Ran": "ran",
    "TARGETS": "targets",
    "Target": "targets",
    "Traced": "traced",
    "Worker": "worker",
    "check_axis_types": "targets",
    "check_mesh": "targets",
    "installed_versions": "versions",
    "parse_targets": "targets",
}

__all__ = [
    "TARGETS",
    "About",
    "Cancelled",
    "Compiled",
    "Pending",
    "Ran",
    "Target",
    "Traced",
    "Worker",
    "check_axis_types",
    "check_mesh",
    "installed_versions",
    "parse_targets",
]


def __getattr__(name: str) -> object:
    # Loaded on first use: the child imports this package too, and has no need of the parent's side.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
