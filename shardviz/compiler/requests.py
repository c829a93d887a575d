"""Requests to the compilers' processes, and the order in which one process takes them.

An asker, in any thread, gets a `CompilerRequest`: a future. Each `WorkerProcess` has one thread, which
takes a request at a time from its `RequestScheduler` and speaks with its child:

    asker's thread            the process's thread                    the child (child/main.py)
    Worker.submit ── add ──▶  RequestScheduler.next
                              message ──────────────────────────────▶ loads JAX, then works
                 stage, on_progress ◀── text ◀─────────────────────── "lowering", "compiling" …
                 result, callbacks  ◀── read ◀── Output … ◀────────── its reply

Of those that are due the lowest rank goes first, then the oldest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from shardviz.errors import CompilerError, ShardvizError

if TYPE_CHECKING:
    from shardviz.compiler.compile_cache import CacheEntry

T = TypeVar("T")
Turn = tuple[float, int]
"""When a request is due (`time.monotonic`), and its rank."""
AT_ONCE: Turn = (0.0, 0)
PATIENCE_S = 2.0
"""A request that was dropped may go on so long while another is due: its answer is worth having, and stopping
a compiler for good means to load JAX again."""
LOOK_S = 0.05
"""How often a request that was dropped is looked at after that."""


class Cancelled(CompilerError):
    """The request was withdrawn before it was answered."""


class CompilerRequest(Future[T]):
    """A call to a child, and a future of what `read` makes of its reply.

    `subject` is the one at work for it, for an error: "the cpu compiler"; Shardy is one that never
    `compiles`. `began` is when it was sent, None until then, and `stage` says what is being done for it now.
    `on_progress` is called with each stage, from the process's thread, `on_end` however the request ends, and
    maybe twice. Without a call the child is only started. With a `cached` place the reply is read from there
    where it is known, and kept there where it is not."""

    def __init__(
        self,
        call: object,
        read: Callable[[Any], T] = lambda reply: reply,
        subject: str = "the worker",
        on_progress: Callable[[str], None] | None = None,
        turn: Turn = AT_ONCE,
        on_end: Callable[[], None] | None = None,
        compiles: bool = False,
        cached: CacheEntry | None = None,
    ) -> None:
        super().__init__()
        self.call, self.subject, self.compiles, self.cached = call, subject, compiles, cached
        self.due, self.rank = turn
        self.began: float | None = None
        self.stage = ""
        self._dropped: float | None = None
        self.scheduler: RequestScheduler | None = None
        self._read, self._on_progress, self._on_end = read, on_progress, on_end

    def cancel(self) -> bool:
        """Withdraw the request: `result` raises `Cancelled`. False where the end is there already."""
        if not self.fail(Cancelled(f"the request to {self.subject} was cancelled")):
            return False
        if self.scheduler is not None:
            self.scheduler.withdraw(self)
        return True

    def drop(self) -> None:
        """Nobody waits for it now: it is cancelled where it has not begun, or as soon as it is in the way."""
        if self._is_current:
            self._dropped = time.monotonic()
            start_timer(PATIENCE_S, self._end_dropped)
        elif self.scheduler is not None:
            self.cancel()

    def keep(self) -> bool:
        """Go on after `drop`; False where that is too late."""
        if not self._is_current or self.done():
            return False
        self._dropped = None
        return True

    def progress(self, stage: str) -> None:
        """Note what is being done, and call `on_progress`."""
        self.stage = stage
        if self._on_progress is not None and not self.done():
            self._on_progress(stage)

    def reply(self, reply: object) -> None:
        """End the request with what the child replied. Raises what reading the reply raises."""
        if not self.done():  # what the reply to a cancelled one names may be gone
            self.settle(self._read(reply))

    def settle(self, answer: T) -> None:
        """End the request with an answer, unless it has ended: a cancelled one may still be answered."""
        if self._on_end is not None:
            self._on_end()  # before the end is known: who waits for that finds everything cleaned up
        with suppress(InvalidStateError):
            self.set_result(answer)

    def fail(self, error: ShardvizError) -> bool:
        """End the request without an answer; False where it has ended already."""
        if self._on_end is not None:
            self._on_end()
        try:
            self.set_exception(error)
        except InvalidStateError:
            return False
        return True

    @property
    def _is_current(self) -> bool:
        return self.scheduler is not None and self.scheduler.current is self

    def _end_dropped(self) -> None:
        """Cancel it once another is due, and look again until then, unless it was kept."""
        if self.scheduler is None or not self._is_current or self._dropped is None:
            return
        if time.monotonic() >= self._dropped + PATIENCE_S and self.scheduler.due():
            self.cancel()
        else:
            start_timer(LOOK_S, self._end_dropped)


def settled(answer: T) -> CompilerRequest[T]:
    """A request that is answered without a child."""
    request = CompilerRequest[T](None)
    request.settle(answer)
    return request


class RequestScheduler:
    """The requests to one process. `stop` is called with one that was cancelled while it was under way."""

    def __init__(self, stop: Callable[[CompilerRequest[Any]], object]) -> None:
        self._stop = stop
        self._waiting: list[CompilerRequest[Any]] = []
        self.current: CompilerRequest[Any] | None = None
        self._is_closed = False
        self._changed = threading.Condition()

    def add(self, request: CompilerRequest[Any]) -> None:
        """Take a request in; after `close` it ends as `Cancelled`."""
        request.scheduler = self
        with self._changed:
            if not self._is_closed:
                self._waiting.append(request)
                self._changed.notify()
                return
        request.fail(Cancelled("the worker was closed"))

    def next(self) -> CompilerRequest[Any] | None:
        """Wait for the next request that is due, and begin it; None after `close`."""
        with self._changed:
            self.current = None
            while not self._is_closed:
                if due := self.due():
                    self.current = min(due, key=lambda request: request.rank)
                    self.current.began = time.monotonic()
                    self._waiting.remove(self.current)
                    return self.current
                first = min((request.due for request in self._waiting), default=None)
                self._changed.wait(None if first is None else first - time.monotonic())
        return None

    def due(self) -> list[CompilerRequest[Any]]:
        """The requests that wait and are due, the oldest first."""
        now = time.monotonic()
        with self._changed:
            return [request for request in self._waiting if request.due <= now]

    def withdraw(self, request: CompilerRequest[Any]) -> None:
        """A request was cancelled."""
        with self._changed:
            if request in self._waiting:
                self._waiting.remove(request)
            is_current = request is self.current
        if is_current:
            self._stop(request)

    def close(self) -> None:
        """All requests that have not ended end as `Cancelled`, and `next` returns None."""
        with self._changed:
            self._is_closed = True
            ended, self._waiting = self._waiting, []
            if self.current is not None:
                ended.append(self.current)
            self._changed.notify()
        for request in ended:
            request.fail(Cancelled("the worker was closed"))


def start_timer(seconds: float, function: Callable[..., None], *args: object) -> threading.Timer:
    """Call a function after some time, from a thread that keeps no process alive."""
    timer = threading.Timer(min(threading.TIMEOUT_MAX, seconds), function, args)
    timer.daemon = True
    timer.start()
    return timer
