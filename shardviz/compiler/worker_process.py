"""The thread that takes requests to a child, and the errors of those whose child has ended."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeVar

from shardviz.compiler.child_process import COMPILERS_CHILD, ChildProcess, remove_unheld, stderr_tail
from shardviz.compiler.messages import ChildBroken, Output, Versions
from shardviz.compiler.requests import Cancelled, CompilerRequest, RequestScheduler, start_timer
from shardviz.devices.job import JobAddress
from shardviz.errors import CompilerError, JobLost, ShardvizError
from shardviz.lazy_names import LazyImports
from shardviz.targets import ProcessName

with LazyImports():  # most processes are in no job
    from shardviz.compiler import job_watch


T = TypeVar("T")
CANCEL_GRACE_S = 1.0
"""A cancelled request may still finish within this time: loading JAX again would take as long."""
CLOSE_GRACE_S = 2.0
"""Closing waits so long for the child to be gone."""


class WorkerProcess:
    """A child with one environment, the requests to it, and the thread that serves it and starts it: Linux
    ends the child when that thread ends (child/main.py asks for that). With the address of a `job` the child
    joins that first: where a process of the job is lost, the child is killed, `on_job_lost` is called, from a
    thread, and every request ends as `JobLost`."""

    def __init__(
        self,
        name: ProcessName,
        environment: Mapping[str, str],
        time_limit: float,
        job: JobAddress | None = None,
        on_job_lost: Callable[[JobLost], None] | None = None,
    ) -> None:
        self._name, self._environment, self._time_limit = name, environment, time_limit
        self._address, self._on_job_lost = job, on_job_lost
        self._watch: job_watch.JobWatch | None = None
        self._job_lost: JobLost | None = None
        self._is_lost_told = False
        self.meeting: job_watch.JobStart | None = None
        self._scheduler = RequestScheduler(
            lambda request: start_timer(CANCEL_GRACE_S, self._stop, request, "was cancelled", True)
        )
        self._lock = threading.Lock()
        self._process: ChildProcess | None = None
        self._asked: CompilerRequest[Any] | None = None
        self._stopped_because = ""
        self._has_said_why = self._closed = self._loaded = False
        self.versions: Versions = ()
        self._limit: threading.Timer
        self._thread = threading.Thread(target=self._serve, name="shardviz-compiler", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The child's process id, while there is one."""
        return None if (process := self._process) is None else process.pid

    def start(self) -> None:
        """Start the child soon, so that it loads JAX while something else happens."""
        self._scheduler.add(CompilerRequest(None))

    def submit(self, request: CompilerRequest[T]) -> CompilerRequest[T]:
        """Send a request when it is due and those before it are over."""
        self._scheduler.add(request)
        return request

    def kill(self) -> None:
        """Kill the child, if there is one, without a lock."""
        if (process := self._process) is not None:
            process.kill()

    def close(self, failed: str = "") -> None:
        """Kill the child; every request that has no answer yet ends as `Cancelled`. A job is left as soon as
        all processes are done, since one whose devices vanish would end the others, or know why this one has
        `failed`. Raises `JobLost` where a process was lost, and no request has said so."""
        if self._watch is not None:
            self._watch.finish(failed)
        self._scheduler.close()
        with self._lock:
            self._closed = True
            process = self._process
            self.kill()
        if self._watch is not None:
            self._watch.close()
        if process is not None:
            process.wait(CLOSE_GRACE_S)
        # It may read an answer, or wait for ever for an import that an interrupt left unfinished.
        self._thread.join(0.2)
        if self._job_lost is not None and not failed and not self._is_lost_told:
            raise self._job_lost

    def _serve(self) -> None:
        while (request := self._scheduler.next()) is not None:
            if request.call is not None:
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
            if self._watch is not None:
                # A job is joined once: by another child it would be another job.
                raise self._job_lost or CompilerError("the job is over for this process", "start it again")
            words = (self._name, *(self._address.words if self._address is not None else ()))
            try:
                process = self._process = ChildProcess(
                    COMPILERS_CHILD, self._environment, *words, on_end=self._child_ended
                )
            except OSError as error:
                raise CompilerError(f"the compiler's process cannot be started: {error}") from error
            if self._asked is not None and self._stopped_because:  # its time was over before it was there
                process.kill()
        import_module("shardviz.compiler.reading")  # while the child loads JAX
        remove_unheld()
        return process

    def _answer(self, request: CompilerRequest[Any]) -> None:
        cached = request.cached
        try:
            known = None if cached is None else cached.load()
            request.reply(self._ask(request) if known is None else known)
        except ShardvizError as error:
            self._is_lost_told |= isinstance(error, JobLost)
            request.fail(error)
        except (EOFError, BrokenPipeError):
            request.fail(self._death(request))
        except Exception as error:
            # Whatever it is, the one who waits must hear of it, and the next request needs a sane child.
            self._reap()
            request.fail(CompilerError(f"{request.subject} gave no answer: {error!r}"))

    def _ask(self, request: CompilerRequest[Any]) -> object:
        """Send the message, and wait for the reply. A child that died before that is not to blame on it."""
        with self._lock:
            self._asked, self._stopped_because = request, ""
        self._start_limit(request)
        was_idle = self._loaded
        try:
            return self._converse(self._start(), request)
        except (EOFError, BrokenPipeError):
            if not was_idle or request.stage or self._stopped_because or self._watch is not None:
                raise
            self._reap()
            return self._converse(self._start(), request)
        finally:
            self._limit.cancel()
            with self._lock:
                self._asked = None

    def _start_limit(self, request: CompilerRequest[Any]) -> None:
        too_long = f"took longer than {self._time_limit:g} s"
        self._limit = start_timer(self._time_limit, self._stop, request, too_long)

    def _converse(self, process: ChildProcess, request: CompilerRequest[Any]) -> object:
        if not self._loaded:
            request.progress("importing jax")
            self._load(process, request)
        if request.done():
            raise Cancelled(f"the request to {request.subject} was cancelled")
        with suppress(BrokenPipeError):  # what it said before it ended is still to be read
            process.send(request.call)
        while isinstance(reply := self._received(process), str):
            request.progress(reply)
        if isinstance(reply, ShardvizError):
            self._check_others(reply.message)
            raise reply
        result = reply.result if isinstance(reply, Output) else reply
        if getattr(result, "status", "ok") != "ok":
            self._check_others(result.error)
        elif request.cached is not None:
            request.cached.save(reply, self.versions)
        return reply

    def _load(self, process: ChildProcess, request: CompilerRequest[Any]) -> None:
        """Wait until the child has loaded JAX, and has joined its job if there is one."""
        meeting, address = None, self._address
        if address is not None and address.is_given:
            meeting = self._meet(address, process, request)  # while the child loads JAX
        message = self._received(process)
        if isinstance(message, JobAddress):  # of the job that it has found itself to be in
            meeting = meeting or self._meet(message, process, request)
            process.send(meeting.coordinator)
            request.progress("joining the job")
            message = self._received(process)
        self._loaded, self.versions = True, message

    def _meet(
        self, job: JobAddress, process: ChildProcess, request: CompilerRequest[Any]
    ) -> job_watch.JobStart:
        """Wait for the other processes of the job, as long as a request may take."""
        watch = job_watch.JobWatch(job, self._time_limit, self._end_job)
        with self._lock:
            if self._closed:
                raise Cancelled("the worker was closed")
            self._watch = watch
        if not process.alive():
            self._child_ended(process)
        self._limit.cancel()
        self.meeting = meeting = watch.join(request.progress)
        self._start_limit(request)
        return meeting

    def _end_job(self, lost: JobLost) -> None:
        """A process of the job was lost: what waits for the child ends by that."""
        with self._lock:
            self._job_lost = lost
            self.kill()
        if self._on_job_lost is not None:
            self._on_job_lost(lost)

    def _child_ended(self, process: ChildProcess) -> None:
        """Tell the others of the job how the child has ended, unless they know that the job is over."""
        if (watch := self._watch) is None:
            return
        how, causes = process.ending(), job_watch.Cause
        if self._closed or self._job_lost is not None or self._has_said_why:
            return
        if self._stopped_because:
            watch.failed(f"{self._stopped_because} and was stopped", causes.FAILED)
            return
        # JAX's own watch ends a child so, where another one is gone.
        cause = causes.ABORTED if how.endswith(("SIGABRT", "status 134")) else causes.GONE
        watch.failed(f"has lost its process for JAX, which {how}", cause)

    def _check_others(self, why: str, cause: job_watch.Cause | None = None) -> None:
        """Raise `JobLost` where an error is because another process is lost, or the only one in the job."""
        if (watch := self._watch) is None:
            return
        if cause is None:
            why, cause = f"got an error: {why}", job_watch.Cause.REFUSED
        watch.failed(why, cause)
        if lost := watch.lost():
            raise lost

    def _received(self, process: ChildProcess) -> Any:
        """The child's next message. Raises `CompilerError` where it cannot go on."""
        message = process.receive()
        if not isinstance(message, ChildBroken):
            return message
        self._has_said_why = True
        self._reap()
        if message.reason:
            self._check_others(message.reason)
            raise CompilerError(f"jax cannot be used here: {message.reason}", message.hint)
        other = "was asked another question than process 0"
        self._check_others(other, job_watch.Cause.FAILED)
        raise CompilerError(f"this process {other}", "start the same command in every process")

    def _death(self, request: CompilerRequest[Any]) -> CompilerError:
        """The error for a request whose child has died under it."""
        process = self._process
        how, log = self._reap()
        if self._watch is not None:
            if process is not None:
                self._child_ended(process)
            if lost := self._watch.lost():
                self._is_lost_told = True
                return lost
        doing = f" while {request.stage}" if request.stage else ""
        shardy = ", or ask --target shardy" if request.compiles else ""
        if self._stopped_because:
            return CompilerError(
                f"{request.subject} {self._stopped_because}{doing} and was stopped",
                f"give it longer with a larger --timeout{shardy and f'{shardy}, which compiles nothing'}",
                log,
            )
        is_flag = re.search(r"unknown (?:command line )?flag", log, re.IGNORECASE)
        is_tpus = is_flag and self._environment.get("LIBTPU_INIT_ARGS")
        if flags := "XLA_FLAGS" if "XLA_FLAGS" in log else "LIBTPU_INIT_ARGS" if is_tpus else "":
            hint = f"XLA did not accept the environment variable {flags}: correct it or unset it"
        elif how.endswith("SIGKILL"):
            hint = "ask again to start it anew; if nobody killed it, the system ran out of memory"
        else:
            hint = f"ask again to start it anew{shardy}"
        # Who kills from outside lets nothing be said about it.
        words = "" if how.endswith("SIGKILL") else stderr_tail(log)
        said = f": {words}" if words else ""
        return CompilerError(f"{request.subject} {how}{doing}{said}", hint, log)

    def _reap(self) -> tuple[str, str]:
        with self._lock:
            process, self._process = self._process, None
            self._loaded, self.versions = False, ()
        return process.reap() if process is not None else ("was closed", "")

    def _stop(self, request: CompilerRequest[Any], reason: str, only_loaded: bool = False) -> None:
        """Kill the child that works on a request; with `only_loaded` not one that still loads JAX."""
        with self._lock:
            if self._asked is request and (self._loaded or not only_loaded):
                self._stopped_because = reason
                self.kill()
