"""A request on its way to a child, as the one who asked sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from shardviz.compiler.messages import AskAbout, Question, Reply, Request, RunCollective
from shardviz.errors import CompilerError, ShardvizError

T = TypeVar("T")


class Cancelled(CompilerError):
    """The request was withdrawn before it was answered."""


class Pending(Generic[T]):
    """A request and, once `done`, its end. `stage` says what is being done for it now; "" while it waits.

    `finish` turns the child's reply into the answer; `on_end` is called once, however the request ends.
    """

    def __init__(
        self,
        request: Request,
        finish: Callable[[Reply], T],
        withdraw: Callable[[Pending[T]], None],
        on_progress: Callable[[str], None] | None = None,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        self.request = request
        self.stage = ""
        self._finish = finish
        self._withdraw = withdraw
        self._on_progress = on_progress
        self._on_end = on_end
        self._settled = threading.Event()
        self._lock = threading.Lock()
        self._end: tuple[T] | ShardvizError | None = None
        self._when_done: Callable[[], None] | None = None

    @property
    def subject(self) -> str:
        """What is at work for it, for a message: "the cpu compiler"."""
        match self.request:
            case Question(target):
                return f"the {target} compiler"
            case RunCollective(target, op):
                return f"{op} on {target} devices"
        return "the worker"

    def done(self) -> bool:
        """Whether `result` returns, or raises, at once."""
        return self._settled.is_set()

    def result(self, timeout: float | None = None) -> T:
        """The answer. Raises `ShardvizError` when there is none, `TimeoutError` after `timeout` seconds."""
        if not self._settled.wait(timeout):
            raise TimeoutError(f"{self.subject} has not answered within {timeout} s")
        if isinstance(self._end, ShardvizError):
            raise self._end
        assert self._end is not None
        return self._end[0]

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the end is there: at once if it is, else from the thread that brings it."""
        with self._lock:
            if not self._settled.is_set():
                self._when_done = callback
                return
        callback()

    def cancel(self) -> None:
        """Withdraw the request: from now on `result` raises `Cancelled`, unless the end is there already."""
        self.fail(Cancelled(f"the request to {self.subject} was cancelled"))
        self._withdraw(self)

    def progress(self, stage: str) -> None:
        """Say what is being done; calls `on_progress`."""
        self.stage = stage
        if self._on_progress is not None and not self.done():
            self._on_progress(stage)

    def reply(self, reply: Reply) -> None:
        """End the request with what the child replied. Raises what reading the reply raises."""
        self.settle(self._finish(reply))

    def settle(self, answer: T) -> None:
        """End the request with an answer."""
        self._set((answer,))

    def fail(self, error: ShardvizError) -> None:
        """End the request without an answer."""
        self._set(error)

    def _set(self, end: tuple[T] | ShardvizError) -> None:
        # The first end counts: a cancelled request may still be answered.
        with self._lock:
            if self._settled.is_set():
                return
            self._end = end
            if self._on_end is not None:
                self._on_end()
            self._settled.set()
        if self._when_done is not None:
            self._when_done()


def settled(answer: T) -> Pending[T]:
    """A request that is answered without a child."""

    def nothing(_: object) -> None:
        """There is nothing to withdraw."""

    pending: Pending[T] = Pending(AskAbout(), lambda _: answer, nothing)
    pending.settle(answer)
    return pending
