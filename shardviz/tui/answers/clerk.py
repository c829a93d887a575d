"""Who runs the errands to one of the compilers' processes: one at a time, the newest question first."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shardviz.compiler.pending import Cancelled
from shardviz.errors import CompilerError, ShardvizError

if TYPE_CHECKING:
    from shardviz.compiler import Pending, Worker
    from shardviz.tui.answers.errand import Errand

PATIENCE_S = 2.0
"""A question that is no longer on screen may go on so long while another waits: its answer is worth having,
and stopping a compiler for good means to load JAX again."""


class Clerk:
    """A thread with an agenda of errands to one process.

    A process has one request at a time, so that what is no longer asked is never in the way of what is.
    `told` is called, from the thread, whenever more is known of an errand.
    """

    def __init__(self, worker: Callable[[], Worker], told: Callable[[], object]) -> None:
        self._worker = worker
        self._told = told
        self._agenda: list[Errand[Any]] = []
        self._current: Errand[Any] | None = None
        self._closed = False
        self._changed = threading.Condition()
        threading.Thread(target=self._serve, name="shardviz-clerk", daemon=True).start()

    def take(self, errand: Errand[Any]) -> None:
        """Put an errand on the agenda."""
        with self._changed:
            self._agenda.append(errand)
            self._changed.notify()

    def keep(self, errand: Errand[Any]) -> bool:
        """Go on with an errand that was dropped; False where that is too late, or it had not begun."""
        with self._changed:
            if errand is not self._current or errand.known.state != "asked":
                return False
            errand.unwanted_since = None
            return True

    def drop(self, errand: Errand[Any]) -> None:
        """An errand is no longer wanted. What is under way may end by itself, if nobody waits for it."""
        with self._changed:
            if errand in self._agenda:
                self._agenda.remove(errand)
            errand.unwanted_since = time.monotonic()
            self._changed.notify()

    def cancel(self, errand: Errand[Any]) -> None:
        """Take an errand off the agenda, or stop it."""
        with self._changed:
            if errand in self._agenda:
                self._agenda.remove(errand)
            errand.cancelled()
            if errand is self._current and errand.pending is not None:
                errand.pending.cancel()

    def close(self) -> None:
        """End the thread; what is under way is cancelled."""
        with self._changed:
            self._closed = True
            self._agenda.clear()
            if self._current is not None and self._current.pending is not None:
                self._current.pending.cancel()
            self._changed.notify()

    def _serve(self) -> None:
        while (errand := self._next()) is not None:
            try:
                self._run(errand)
            except Cancelled:
                errand.cancelled()
            except ShardvizError as error:
                errand.known = errand.failed(error)
            except Exception as error:
                # Whatever it is, the one who waits must hear of it, and the next errand is to be run.
                errand.known = errand.failed(CompilerError(f"the answer cannot be read: {error!r}"))
            with self._changed:
                self._current = None
            self._tell()

    def _next(self) -> Errand[Any] | None:
        """The next errand, as soon as one is due; None at the end."""
        with self._changed:
            while not self._closed:
                due = self._due()
                if due:
                    self._current = min(due, key=lambda errand: errand.rank)
                    self._agenda.remove(self._current)
                    self._current.begin()
                    return self._current
                self._changed.wait(self._until_due())
        return None

    def _due(self) -> list[Errand[Any]]:
        now = time.monotonic()
        return [errand for errand in self._agenda if errand.due <= now]

    def _until_due(self) -> float | None:
        """Seconds until the next errand is due; None where there is none."""
        now = time.monotonic()
        return min((errand.due - now for errand in self._agenda), default=None)

    def _run(self, errand: Errand[Any]) -> None:
        self._tell()
        pending = errand.send(self._worker(), lambda stage: self._stage(errand, stage))
        with self._changed:
            errand.pending = pending
            if self._closed or errand.known.state == "cancelled":
                pending.cancel()
        pending.when_done(self._wake)
        self._await(errand, pending)
        errand.known = errand.answered(pending.result())
        errand.settled = True

    def _await(self, errand: Errand[Any], pending: Pending[Any]) -> None:
        with self._changed:
            while not pending.done():
                left = None
                if errand.unwanted_since is not None:
                    left = errand.unwanted_since + PATIENCE_S - time.monotonic()
                    if left <= 0 and self._due():
                        pending.cancel()
                        return
                    left = left if left > 0 else self._until_due()
                self._changed.wait(left)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def _stage(self, errand: Errand[Any], stage: str) -> None:
        errand.stage(stage)
        self._tell()

    def _tell(self) -> None:
        if not self._closed:
            self._told()
