"""The partitioner and the compilers, asked in processes of their own.

The files beside this one run in the process that owns the terminal and never import jax; everything in
`child/` runs in the child processes, the only place that does.

worker         the client: problems, passes, collectives and layouts, asked from any thread
requests       a request as a future, and the order in which a process takes them
worker_process, child_process  the thread that speaks with a child; the child, its environment, its end
job_watch      how processes of a job meet, and hear that one is lost
lowering, user_file  a program of the user's, lowered in its own process; the process of a file
question, messages  problems as calls to the child, and the pipes for them
reading        replies of the child → results
"""

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
