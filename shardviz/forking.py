"""Imports that a fork waits for: it has only one of the process's threads, so the lock of an import that
another thread had begun would stay locked in it."""

from __future__ import annotations

import os
from importlib import _bootstrap, import_module


def _finish_imports() -> None:
    """Wait until no other thread stands in the import of a module of ours."""
    waited_for: set[str] = set()
    while names := _being_imported() - waited_for:
        for name in names:
            import_module(name)
        waited_for |= names


def _being_imported() -> set[str]:
    # Python's own, and the one place that says so; a copy, as other threads change it.
    return {name for name in [*getattr(_bootstrap, "_module_locks", ())] if name.startswith("shardviz.")}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_finish_imports)
