"""The compilers' process that all questions of this Python process share."""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardviz.errors import CompilerError, TargetError

if TYPE_CHECKING:
    from shardviz.compiler import CompilerRequest, Target, TargetResult, Worker
    from shardviz.planner import Problem

_lock = threading.Lock()
_workers: dict[int, Worker] = {}
"""By process id: a fork has its parent's worker in memory, but not the threads that serve it."""


def ask(
    problem: Problem, targets: Sequence[Target], timeout: float, may_refuse: bool, with_costs: bool = False
) -> tuple[TargetResult, ...]:
    """Each target's answer. Where a compiler failed, or took longer than `timeout` seconds, it says so.

    The compilers stay loaded from one question to the next, until Python ends. `may_refuse`: nobody chose
    the targets, so one that cannot hold the mesh says so as well. `with_costs` is that of `Worker.submit`.
    Raises `TargetError` for targets that cannot take the problem.
    """
    from shardviz.compiler.requests import settled
    from shardviz.compiler.target_result import without_answer

    worker = _worker()
    requests: list[CompilerRequest[TargetResult]] = []
    try:
        for target in targets:
            try:
                requests.append(worker.submit(problem, target, with_costs=with_costs))
            except TargetError as error:
                if not may_refuse:
                    raise
                requests.append(settled(without_answer(target.name, error)))
        names = (target.name for target in targets)
        return tuple(_answer(name, each, timeout) for name, each in zip(names, requests, strict=True))
    finally:
        # An error, or an interrupt, leaves questions whose answers nobody waits for.
        for each in requests:
            each.cancel()


def _answer(target: str, request: CompilerRequest[TargetResult], timeout: float) -> TargetResult:
    from shardviz.compiler.target_result import without_answer

    try:
        return request.result(min(timeout, threading.TIMEOUT_MAX))
    except CompilerError as error:
        return without_answer(target, error)
    except TimeoutError:
        doing = f" while {request.stage}" if request.stage else ""
        request.cancel()
        slow = f"{request.subject} took longer than {timeout:g} s{doing} and was stopped"
        return without_answer(target, CompilerError(slow, "give it longer with a larger timeout"))


def _worker() -> Worker:
    from shardviz.compiler import Worker

    with _lock:
        worker = _workers.get(os.getpid())
        if worker is None:
            # `ask` watches the time: one question may be given longer than another.
            worker = _workers[os.getpid()] = Worker(math.inf)
            if len(_workers) == 1:
                atexit.register(_close)
        return worker


def _close() -> None:
    """End this process's own worker, not the one of a parent that it was forked from."""
    worker = _workers.pop(os.getpid(), None)
    if worker is not None:
        worker.close()


if hasattr(os, "register_at_fork"):
    # A fork has none of the threads that could give the lock back.
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
