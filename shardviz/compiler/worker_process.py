"""One child process, and the thread that takes the requests to it and speaks with it."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from shardviz.compiler.child_process import ChildProcess, stderr_tail
from shardviz.compiler.messages import (
    About,
    ChildBroken,
    ChildReady,
    LayoutOutput,
    Output,
    Question,
    Reply,
    Request,
    RunCollective,
    RunOutput,
    StageReport,
    Versions,
)
from shardviz.compiler.requests import Cancelled, CompilerRequest, RequestScheduler, start_timer
from shardviz.errors import CompilerError, ShardvizError

if TYPE_CHECKING:
    from shardviz.compiler.messages import ProcessName

T = TypeVar("T")

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
    """A child with one environment, the requests to it, and the thread that serves it.

    The child starts with `start` or the first request. The thread starts it, and must be the one to do so:
    Linux ends the child when the thread that started it ends (child/main.py asks for that).
    """

    def __init__(self, name: ProcessName, environment: Mapping[str, str], time_limit: float) -> None:
        self._name = name
        self._environment = environment
        self._time_limit = time_limit
        self._scheduler = RequestScheduler(self._stop_soon)
        self._lock = threading.Lock()
        self._process: ChildProcess | None = None
        self._asked: CompilerRequest[Any] | None = None
        self._stopped_because = ""
        self._closed = False
        self._loaded = False
        self.versions: Versions = ()
        self._thread = threading.Thread(target=self._serve, name="shardviz-compiler", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        process = self._process
        return process.pid if process is not None else None

    def start(self) -> None:
        """Start the child soon, so that it loads JAX while something else happens."""
        self._scheduler.add(CompilerRequest(None, lambda _: None))

    def submit(self, request: CompilerRequest[T]) -> CompilerRequest[T]:
        """Send a request when it is due and those before it are over."""
        self._scheduler.add(request)
        return request

    def kill(self) -> None:
        """Kill the child, if there is one, without a lock."""
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """Kill the child; every request that has no answer yet ends as `Cancelled`."""
        self._scheduler.close()
        with self._lock:
            self._closed = True
            process = self._process
            if process is not None:
                process.kill()
        if process is not None:
            process.wait(CLOSE_GRACE_S)
        self._thread.join(THREAD_GRACE_S)

    def _stop_soon(self, request: CompilerRequest[Any]) -> None:
        """Stop the work on a cancelled request, if it does not end by itself soon.

        A child that still loads JAX has not begun: it goes on, and `_converse` drops the request.
        """

        def stop() -> None:
            if self._loaded:
                self._stop(request, "was cancelled")

        start_timer(CANCEL_GRACE_S, stop)

    def _serve(self) -> None:
        while (request := self._scheduler.next()) is not None:
            if request.message is not None:
                self._answer(request)
                continue
            with suppress(Exception):  # the first request meets the same error and reports it
                self._start()
        self._reap()

    def _start(self) -> ChildProcess:
        with self._lock:
            if self._closed:
                raise Cancelled("the worker was closed")
            if self._process is not None:
                return self._process
            try:
                process = self._process = ChildProcess(self._name, self._environment)
            except OSError as error:
                raise CompilerError(f"the compiler's process cannot be started: {error}") from error
        import_module("shardviz.compiler.reading")  # while the child loads JAX
        return process

    def _answer(self, request: CompilerRequest[Any]) -> None:
        try:
            request.reply(self._ask(request))
        except ShardvizError as error:
            request.fail(error)
        except (EOFError, BrokenPipeError):
            request.fail(self._death(request))
        except Exception as error:
            # Whatever it is, the one who waits must hear of it, and the next request needs a sane child.
            self._reap()
            request.fail(CompilerError(f"{request.subject} gave no answer: {error!r}"))

    def _ask(self, request: CompilerRequest[Any]) -> Reply:
        """Send the message, and wait for the reply. A child that died before that is not to blame on it."""
        limit = start_timer(self._time_limit, self._stop, request, f"took longer than {self._time_limit:g} s")
        was_idle = self._loaded
        with self._lock:
            self._asked, self._stopped_because = request, ""
        try:
            return self._converse(self._start(), request)
        except (EOFError, BrokenPipeError):
            if not was_idle or request.stage or self._stopped_because:
                raise
            self._reap()
            return self._converse(self._start(), request)
        finally:
            limit.cancel()
            with self._lock:
                self._asked = None

    def _converse(self, process: ChildProcess, request: CompilerRequest[Any]) -> Reply:
        if not self._loaded:
            request.progress("importing jax")
            self._load(process)
        if request.done():
            raise Cancelled(f"the request to {request.subject} was cancelled")
        with suppress(BrokenPipeError):  # what it said before it ended is still to be read
            process.send(request.message)
        while True:
            match self._received(process):
                case StageReport(stage):
                    request.progress(stage)
                case Output() | RunOutput() | LayoutOutput() | About() as reply:
                    return reply
                case other:
                    raise AssertionError(f"the child sent {other!r}")

    def _load(self, process: ChildProcess) -> None:
        """Wait until the child has loaded JAX."""
        match self._received(process):
            case ChildReady(versions):
                self._loaded, self.versions = True, versions
            case other:
                raise AssertionError(f"the child sent {other!r}")

    def _received(self, process: ChildProcess) -> object:
        """What the child says next. Raises `CompilerError` where that is that it cannot go on."""
        message = process.receive()
        if isinstance(message, ChildBroken):
            self._reap()
            raise CompilerError(f"jax cannot be used here: {message.reason}", message.hint)
        return message

    def _death(self, request: CompilerRequest[Any]) -> CompilerError:
        """The error for a request whose child has died under it."""
        how, log = self._reap()
        doing = f" while {request.stage}" if request.stage else ""
        if self._stopped_because:
            return CompilerError(
                f"{request.subject} {self._stopped_because}{doing} and was stopped",
                _hint_for_slow(request.message),
                log,
            )
        flags = "XLA_FLAGS" if "XLA_FLAGS" in log else ""
        if _UNKNOWN_FLAG.search(log) and self._environment.get(_TPU_FLAGS):
            flags = flags or _TPU_FLAGS
        if flags:
            hint = f"XLA did not accept the environment variable {flags}: correct it or unset it"
        elif how.endswith("SIGKILL"):
            hint = "ask again to start it anew; if nobody killed it, the system ran out of memory"
        elif isinstance(request.message, RunCollective):
            hint = "ask again to start it anew, or leave out the comparison with --on none"
        else:
            hint = "ask again to start it anew, or ask --target shardy"
        # Who kills from outside lets nothing be said about it.
        words = "" if how.endswith("SIGKILL") else stderr_tail(log)
        said = f": {words}" if words else ""
        return CompilerError(f"{request.subject} {how}{doing}{said}", hint, log)

    def _reap(self) -> tuple[str, str]:
        with self._lock:
            process, self._process = self._process, None
            self._loaded, self.versions = False, ()
        return process.reap() if process is not None else ("was closed", "")

    def _stop(self, request: CompilerRequest[Any], reason: str) -> None:
        with self._lock:
            if self._asked is request and self._process is not None:
                self._stopped_because = reason
                self._process.kill()


def _hint_for_slow(message: Request | None) -> str:
    longer = "give it longer with a larger --timeout"
    if isinstance(message, Question) and message.target != "shardy":
        return f"{longer}, or ask --target shardy, which compiles nothing"
    if isinstance(message, RunCollective):
        return f"{longer}, or leave out the comparison with --on none"
    return longer
