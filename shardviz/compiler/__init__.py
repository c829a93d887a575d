"""The partitioner and the compilers, asked in processes of their own.

The files beside this one run in the process that owns the terminal and never import jax; everything in
`child/` runs in the child processes, the only place that does.

targets     the names after ``--target``
installed, groups  the packages that are here; the targets in groups, with the command that installs each
worker         the client: problems, passes, collectives and layouts, asked from any thread
requests       a request as a future, and the order in which a process takes them
worker_process  a child process and the thread that speaks with it
lowering, user_file  a program of the user's, lowered in its own process; the process of a file
target_program       such a program as a target has compiled it
question, messages  problems as messages to the child, and the pipes for them
reading        replies of the child → results
target_result, pass_trace  the results
dump_folders   folders for what compilers dump, removed however a process ends
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.compiler.target_result import (
        ExecutionResult as ExecutionResult,
        TargetResult as TargetResult,
    )
    from shardviz.compiler.messages import About as About
    from shardviz.compiler.requests import Cancelled as Cancelled, CompilerRequest as CompilerRequest
    from shardviz.compiler.targets import (
        TARGETS as TARGETS,
        Target as Target,
        check_axis_types as check_axis_types,
        check_devices as check_devices,
        check_mesh as check_mesh,
        parse_targets as parse_targets,
    )
    from shardviz.compiler.pass_trace import PassTrace as PassTrace
    from shardviz.compiler.installed import installed_versions as installed_versions
    from shardviz.compiler.worker import Worker as Worker
else:
    # Loaded on first use: the child imports this package too, and has no need of the parent's side.
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "target_result": "ExecutionResult TargetResult",
            "messages": "About",
            "requests": "Cancelled CompilerRequest",
            "targets": "TARGETS Target check_axis_types check_devices check_mesh parse_targets",
            "pass_trace": "PassTrace",
            "installed": "installed_versions",
            "worker": "Worker",
        },
    )
