"""The process that makes plans which take long.

A thread that plans would hold the interpreter lock, so that each key waits for it, and could not be stopped.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from shardviz.errors import CompilerError, ShardvizError
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.compiler import child_process, messages
    from shardviz.compiler.child import main as child_main
    from shardviz.planner.pricing import costs

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.plan import Plan
    from shardviz.planner.pricing.costs import PlanCost

T = TypeVar("T")

PLANNERS_CHILD = __name__


class PlanningProcess:
    """Calls one function at a time, in the order of `submit`; the process starts with the first. To cancel
    the future of a call stops it, also where it has begun."""

    def __init__(self) -> None:
        self._calls: dict[Future[Any], tuple[float, Callable[..., object], tuple[object, ...]]] = {}
        """The calls that wait: when each is due, its function and the arguments."""
        self._current: Future[Any] | None = None
        self._child: child_process.ChildProcess | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        # Linux ends the child when the thread that started it ends: one thread serves them all.
        self._thread = threading.Thread(target=self._serve, name="shardviz-planning", daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., T], *arguments: object, pause_s: float = 0.0) -> Future[T]:
        """Call a function of a module, after a pause in seconds. Function, arguments and result are
        pickled."""
        call: Future[T] = Future()
        with self._changed:
            self._calls[call] = time.monotonic() + pause_s, function, arguments
            self._changed.notify()
        call.add_done_callback(self._withdraw)
        return call

    def kill(self) -> None:
        """Kill the process for a signal handler: without a lock, and nothing is waited for."""
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify()
            self.kill()

    def _withdraw(self, call: Future[Any]) -> None:
        with self._changed:
            if call.cancelled() and self._calls.pop(call, None) is None and call is self._current:
                self.kill()

    def _next(self) -> tuple[Future[Any], object] | None:
        """Wait for the next call that is due, and for what is sent for it; None after `close`."""
        with self._changed:
            self._current = None
            while not self._is_closed:
                now = time.monotonic()
                for call, (due, *asked) in self._calls.items():
                    if due <= now:
                        del self._calls[call]
                        self._current = call
                        return call, tuple(asked)
                self._changed.wait(min((due - now for due, *_ in self._calls.values()), default=None))
        return None

    def _serve(self) -> None:
        while (found := self._next()) is not None:
            call, asked = found
            try:
                answer = self._answer(call, asked)
            except (EOFError, OSError):
                answer = self._death()
            with suppress(InvalidStateError):  # it was cancelled
                if isinstance(answer, ShardvizError):
                    call.set_exception(answer)
                else:
                    call.set_result(answer)
        self._death()

    def _answer(self, call: Future[Any], asked: object) -> object:
        with self._changed:
            if call.cancelled() or self._is_closed:
                return None
            if self._child is None or not self._child.alive():
                self._child = child_process.ChildProcess(PLANNERS_CHILD, os.environ)
            child = self._child
        child.send(asked)
        return child.receive()

    def _death(self) -> ShardvizError:
        """The error of a call whose process has ended, which nobody hears of where that was cancelled."""
        with self._changed:
            child, self._child = self._child, None
        how, log = child.reap() if child is not None else ("was closed", "")
        said = f": {words}" if (words := child_process.stderr_tail(log)) else ""
        problem = f"the planner's process {how}{said}"
        return CompilerError(problem, "enter the problem again", log)


def main(read_fd: int, write_fd: int) -> None:
    """Serve the parent over two file descriptors: a function and its arguments go in, what it returns or the
    `ShardvizError` that it raises comes out. Any other error ends the process, with a traceback."""
    child_main.end_with_parent()
    channel = messages.Channel(read_fd, write_fd)
    while True:
        try:
            call: Any = channel.receive()
        except EOFError:
            return
        function, arguments = call
        answer: object
        try:
            answer = function(*arguments)
        except ShardvizError as error:
            answer = error
        channel.send(answer)


def priced(plan: Plan, placed: PlacedMesh) -> PlanCost:
    """The cost of a plan, with its alternatives, which it keeps once they were asked for."""
    cost = costs.price(plan, placed)
    _ = cost.alternatives
    return cost
