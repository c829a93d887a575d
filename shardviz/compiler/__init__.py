"""The partitioner and the compilers, asked in processes of their own: what is in `child/` runs there, and
imports jax; the files beside this one run in the process that owns the terminal, and do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.compiler.requests import Cancelled as Cancelled, CompilerRequest as CompilerRequest
    from shardviz.compiler.worker import Worker as Worker
else:
    # Loaded on first use: the child imports this package too, and has no need of the parent's side.
    __getattr__, __dir__, __all__ = lazy_names(
        __name__, {"requests": "Cancelled CompilerRequest", "worker": "Worker"}
    )
