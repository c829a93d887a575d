"""The compilers' process that all questions of this Python process share."""

from __future__ import annotations

import atexit
import math
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from shardviz.answers.requests import TargetRequests
from shardviz.compiler import CompilerRequest, Worker
from shardviz.errors import CompilerError, ShardvizError, TargetError
from shardviz.lazy_names import LazyImports
from shardviz.reports.target_result import TargetResult, without_answer
from shardviz.targets import Target, check_question

with LazyImports():
    from shardviz.compiler import lowering
    from shardviz.reports import program_report

if TYPE_CHECKING:
    from shardviz.planner.problem import Problem
    from shardviz.reports.lowered_module import LoweredModule, ProgramChange

T = TypeVar("T")

_lock = threading.Lock()
_workers: dict[int, Worker] = {}
"""By process id: a fork has its parent's worker in memory, but not the threads that serve it."""


def ask(
    problem: Problem, targets: Sequence[Target], timeout: float, may_refuse: bool, with_costs: bool = False
) -> tuple[TargetResult, ...]:
    """Each target's answer. Where a compiler failed, or took longer than `timeout` seconds, it says so.

    The compilers stay loaded from one question to the next, until Python ends. `may_refuse`: nobody chose
    the targets, so one that cannot hold the mesh says so as well. `with_costs` is that of `Worker.submit`.
    Raises `TargetError` for targets that cannot take the problem."""
    worker = _worker()
    if not may_refuse:
        check_question(problem, targets)  # all of them, before one is asked

    def refusal_of(error: Exception) -> ShardvizError | None:
        return error if may_refuse and isinstance(error, TargetError) else None

    def submit(target: Target) -> CompilerRequest[TargetResult]:
        return worker.submit(problem, target, with_costs=with_costs)

    return _answers(submit, targets, timeout, without_answer, refusal_of)


def ask_program(
    program_for: Callable[[str], LoweredModule],
    targets: Sequence[Target],
    timeout: float,
    options: Mapping[str, Any],
    with_costs: bool = False,
    changes: Sequence[ProgramChange] = (),
) -> tuple[program_report.TargetProgram, ...]:
    """Each target's program, with options of its compiler; `program_for` lowers it for a platform of JAX, and
    `changes` are made to it before.

    Where a compiler failed, or took longer than `timeout` seconds, its answer says so. So does one of several
    targets that cannot have the program; one alone raises `TargetError`, or what JAX raises as it lowers."""
    worker = _worker()
    worker.start(*targets)  # they load JAX while it traces here

    def submit(target: Target) -> CompilerRequest[program_report.TargetProgram]:
        return worker.compile(program_for(target.platform), target, options, with_costs, changes=changes)

    def refusal_of(error: Exception) -> ShardvizError | None:
        return None if len(targets) == 1 else lowering.refusal_of(error)

    return _answers(submit, targets, timeout, program_report.without_program, refusal_of)


def module_texts(protos: Sequence[bytes], timeout: float) -> tuple[str, ...]:
    """The text of serialized modules; "" for one that XLA does not read, and for all of them where the
    compilers' process fails or takes longer than `timeout` seconds."""
    request = _worker().module_texts(protos)
    try:
        return request.result(min(timeout, threading.TIMEOUT_MAX))
    except (CompilerError, TimeoutError):
        request.cancel()
        return ("",) * len(protos)


def _answers(
    submit: Callable[[Target], CompilerRequest[T]],
    targets: Sequence[Target],
    timeout: float,
    without: Callable[[str, ShardvizError], T],
    refusal_of: Callable[[Exception], ShardvizError | None],
) -> tuple[T, ...]:
    """Ask all, and wait for each. An error of `submit` is the target's answer where it is a refusal."""

    def wait(request: CompilerRequest[T], _name: str) -> T:
        try:
            return request.result(min(timeout, threading.TIMEOUT_MAX))
        except TimeoutError:
            doing = f" while {request.stage}" if request.stage else ""
            request.cancel()
            slow = f"{request.subject} took longer than {timeout:g} s{doing} and was stopped"
            raise CompilerError(slow, "give it longer with a larger timeout") from None

    requests = TargetRequests(without, wait)
    try:
        requests.ask(targets, submit, refusal_of)
        return tuple(requests.answers())
    finally:
        # An error, or an interrupt, leaves questions whose answers nobody waits for.
        requests.cancel()


def _worker() -> Worker:
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
