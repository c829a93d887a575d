"""One child process and the requests that wait for it, in the order in which they came."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from shardviz.compiler.child_process import ChildProcess, stderr_tail
from shardviz.compiler.messages import (
    About,
    Broken,
    LayoutOutput,
    Output,
    Progress,
    Question,
    Ready,
    Reply,
    Request,
    RunCollective,
    RunOutput,
    Versions,
)
from shardviz.compiler.pending import Cancelled, Pending
from shardviz.errors import CompilerError, ShardvizError

if TYPE_CHECKING:
    from shardviz.compiler.messages import LaneName

CANCEL_GRACE_S = 1.0
"""A cancelled request may still finish within this time: loading JAX again would take as long."""
CLOSE_GRACE_S = 2.0
"""Closing waits so long for the child to be gone."""
THREAD_GRACE_S = 0.2
"""And then so long for the thread that serves it, which may read an answer, or wait for ever: for an import
that an interrupt left unfinished."""

_UNKNOWN_FLAG = re.compile(r"unknown (?:command line )?flag", re.IGNORECASE)
_TPU_FLAGS = "LIBTPU_INIT_ARGS"


class WorkerProcess:
    """A child with one environment, a queue of requests, and the thread that serves it.

    The thread starts the child, and must be the one to do so: Linux ends the child when the thread that
    started it ends (child/main.py asks for that).
    """

    def __init__(self, name: LaneName, environment: Mapping[str, str], time_limit: float) -> None:
        self._name = name
        self._environment = environment
        self._time_limit = time_limit
        self._queue: SimpleQueue[Pending[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._process: ChildProcess | None = None
        self._current: Pending[Any] | None = None
        self._stopped_because = ""
        self._closed = False
        self._loaded = False
        self.versions: Versions = ()
        self._thread = threading.Thread(target=self._serve, name="shardviz-lane", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        process = self._process
        return process.pid if process is not None else None

    def submit(self, pending: Pending[Any]) -> None:
        self._queue.put(pending)

    def kill(self) -> None:
        """Kill the child, if there is one, without a lock."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Kill the child; every request that has no answer yet ends as `Cancelled`."""
        with self._lock:
            self._closed = True
            if self._current is not None:
                self._current.fail(Cancelled("the worker was closed"))
            process = self._process
            if process is not None:
                process.kill()
        self._queue.put(None)
        if process is not None:
            process.wait(CLOSE_GRACE_S)
        self._thread.join(THREAD_GRACE_S)

    def withdraw(self, pending: Pending[Any]) -> None:
        """Stop the work on a cancelled request, if it has begun and does not end by itself soon.

        A child that still loads JAX has not begun: it goes on, and `_converse` drops the request.
        """

        def stop() -> None:
            if self._loaded:
                self._stop(pending, "was cancelled")

        _timer(CANCEL_GRACE_S, stop)

    def _serve(self) -> None:
        with suppress(Exception):  # the first request meets the same error and reports it
            self._start()
            import_module("shardviz.compiler.reading")  # while the child loads JAX
        while (pending := self._queue.get()) is not None:
            if not pending.done():
                self._answer(pending)
        self._reap()

    def _start(self) -> ChildProcess:
        with self._lock:
            if self._closed:
                raise Cancelled("the worker was closed")
            if self._process is None:
                try:
                    self._process = ChildProcess(self._name, self._environment)
                except OSError as error:
                    raise CompilerError(f"the compiler's process cannot be started: {error}") from error
            return self._process

    def _answer(self, pending: Pending[Any]) -> None:
        limit = _timer(self._time_limit, self._stop, pending, f"took longer than {self._time_limit:g} s")
        try:
            pending.reply(self._ask(pending))
        except ShardvizError as error:
            pending.fail(error)
        except (EOFError, BrokenPipeError):
            pending.fail(self._death(pending))
        except Exception as error:
            # Whatever it is, the one who waits must hear of it, and the next request needs a sane child.
            self._reap()
            pending.fail(CompilerError(f"{pending.subject} gave no answer: {error!r}"))
        finally:
            limit.cancel()
            with self._lock:
                self._current = None

    def _ask(self, pending: Pending[Any]) -> Reply:
        was_idle = self._loaded
        try:
            return self._converse(self._begin(pending), pending)
        except (EOFError, BrokenPipeError):
            if not was_idle or pending.stage or self._stopped_because:
                raise
        # It died before it began, so this request is not to blame.
        self._reap()
        return self._converse(self._begin(pending), pending)

    def _begin(self, pending: Pending[Any]) -> ChildProcess:
        process = self._start()
        with self._lock:
            self._current, self._stopped_because = pending, ""
        return process

    def _converse(self, process: ChildProcess, pending: Pending[Any]) -> Reply:
        if not self._loaded:
            pending.progress("importing jax")
            self._load(process)
        if pending.done():
            raise Cancelled(f"the request to {pending.subject} was cancelled")
        with suppress(BrokenPipeError):  # what it said before it ended is still to be read
            process.send(pending.request)
        while True:
            match self._received(process):
                case Progress(stage):
                    pending.progress(stage)
                case Output() | RunOutput() | LayoutOutput() | About() as reply:
                    return reply
                case other:
                    raise AssertionError(f"the child sent {other!r}")

    def _load(self, process: ChildProcess) -> None:
        """Wait until the child has loaded JAX."""
        match self._received(process):
            case Ready(versions):
                self._loaded, self.versions = True, versions
            case other:
                raise AssertionError(f"the child sent {other!r}")

    def _received(self, process: ChildProcess) -> object:
        """What the child says next. Raises `CompilerError` where that is that it cannot go on."""
        message = process.receive()
        if isinstance(message, Broken):
            self._reap()
            raise CompilerError(f"jax cannot be used here: {message.reason}", message.hint)
        return message

    def _death(self, pending: Pending[Any]) -> CompilerError:
        """The error for a request whose child has died under it."""
        how, log = self._reap()
        doing = f" while {pending.stage}" if pending.stage else ""
        if self._stopped_because:
            return CompilerError(
                f"{pending.subject} {self._stopped_because}{doing} and was stopped",
                _hint_for_slow(pending.request),
                log,
            )
        flags = "XLA_FLAGS" if "XLA_FLAGS" in log else ""
        if _UNKNOWN_FLAG.search(log) and self._environment.get(_TPU_FLAGS):
            flags = flags or _TPU_FLAGS
        if flags:
            hint = f"XLA did not accept the environment variable {flags}: correct it or unset it"
        elif how.endswith("SIGKILL"):
            hint = "ask again to start it anew; if nobody killed it, the system ran out of memory"
        elif isinstance(pending.request, RunCollective):
            hint = "ask again to start it anew, or leave out the comparison with --on none"
        else:
            hint = "ask again to start it anew, or ask --target shardy"
        # Who kills from outside lets nothing be said about it.
        words = "" if how.endswith("SIGKILL") else stderr_tail(log)
        said = f": {words}" if words else ""
        return CompilerError(f"{pending.subject} {how}{doing}{said}", hint, log)

    def _reap(self) -> tuple[str, str]:
        with self._lock:
            process, self._process = self._process, None
            self._loaded, self.versions = False, ()
        return process.reap() if process is not None else ("was closed", "")

    def _stop(self, pending: Pending[Any], reason: str) -> None:
        with self._lock:
            if self._current is pending and self._process is not None:
                self._stopped_because = reason
                self._process.kill()


def _hint_for_slow(request: Request) -> str:
    longer = "give it longer with a larger --timeout"
    if isinstance(request, Question) and request.target != "shardy":
        return f"{longer}, or ask --target shardy, which compiles nothing"
    if isinstance(request, RunCollective):
        return f"{longer}, or leave out the comparison with --on none"
    return longer


def _timer(seconds: float, function: Callable[..., None], *args: object) -> threading.Timer:
    timer = threading.Timer(min(threading.TIMEOUT_MAX, seconds), function, args)
    timer.daemon = True
    timer.start()
    return timer
