"""Calls of functions in another process, which may take seconds and can be stopped at any time.

A thread that plans would hold the interpreter lock, so that each key waits for it, and could not be stopped.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any, TypeVar

from shardviz.compiler.child_process import ChildProcess, stderr_tail
from shardviz.errors import CompilerError, ShardvizError

T = TypeVar("T")

PLANNERS_CHILD = "shardviz.tui.planning.child"


class PlanningCall(Future[T]):
    """A future of what a function returns. To cancel it stops the function, also where that has begun."""

    def __init__(
        self,
        withdraw: Callable[[PlanningCall[Any]], None],
        function: Callable[..., T],
        arguments: tuple[object, ...],
        due: float,
    ) -> None:
        super().__init__()
        self.function, self.arguments, self.due = function, arguments, due
        self._withdraw = withdraw

    def cancel(self) -> bool:
        """Withdraw the call; False where its end is there already."""
        if not super().cancel():
            return False
        self._withdraw(self)
        return True


class PlanningProcess:
    """Calls one function at a time, in the order of `submit`; the process starts with the first."""

    def __init__(self) -> None:
        self._calls: list[PlanningCall[Any]] = []
        self._current: PlanningCall[Any] | None = None
        self._child: ChildProcess | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        # Linux ends the child when the thread that started it ends: one thread serves them all.
        self._thread = threading.Thread(target=self._serve, name="shardviz-planning", daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., T], *arguments: object, pause_s: float = 0.0) -> PlanningCall[T]:
        """Call a function of a module, after a pause in seconds. Function, arguments and result are
        pickled."""
        call = PlanningCall(self._withdraw, function, arguments, time.monotonic() + pause_s)
        with self._changed:
            self._calls.append(call)
            self._changed.notify()
        return call

    def kill(self) -> None:
        """Kill the process for a signal handler: without a lock, and nothing is waited for."""
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """Kill the process; what is called has no result."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
            self.kill()

    def _withdraw(self, call: PlanningCall[Any]) -> None:
        with self._changed:
            if call in self._calls:
                self._calls.remove(call)
            elif call is self._current:
                self.kill()

    def _next(self) -> PlanningCall[Any] | None:
        """Wait for the next call that is due; None after `close`."""
        with self._changed:
            self._current = None
            while not self._is_closed:
                now = time.monotonic()
                self._current = next((call for call in self._calls if call.due <= now), None)
                if self._current is not None:
                    self._calls.remove(self._current)
                    return self._current
                self._changed.wait(min((call.due - now for call in self._calls), default=None))
        return None

    def _serve(self) -> None:
        while (call := self._next()) is not None:
            try:
                answer = self._answer(call)
            except (EOFError, OSError):
                answer = self._death()
            with suppress(InvalidStateError):  # it was cancelled
                if isinstance(answer, ShardvizError):
                    call.set_exception(answer)
                else:
                    call.set_result(answer)
        self._death()

    def _answer(self, call: PlanningCall[Any]) -> object:
        with self._changed:
            if call.cancelled() or self._is_closed:
                return None
            if self._child is None or not self._child.alive():
                self._child = ChildProcess(PLANNERS_CHILD, os.environ)
            child = self._child
        child.send((call.function, call.arguments))
        return child.receive()

    def _death(self) -> ShardvizError:
        """The error of a call whose process has ended, which nobody hears of where that was cancelled."""
        with self._changed:
            child, self._child = self._child, None
        how, log = child.reap() if child is not None else ("was closed", "")
        said = f": {words}" if (words := stderr_tail(log)) else ""
        return CompilerError(
            f"the planner's process {how}{said}", "enter the problem again to plan it anew", log
        )
