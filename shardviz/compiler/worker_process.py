"""A child process, the thread that takes the requests to it, and the reasons why it ended."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shardviz.compiler.messages import (
    Channel,
    ChildBroken,
    ChildReady,
    CompileModule,
    JobFound,
    JoinJob,
    OtherRequest,
    Output,
    Question,
    Reply,
    Request,
    RunCollective,
    StageReport,
    TimeLoop,
    Versions,
)
from shardviz.compiler.requests import Cancelled, CompilerRequest, RequestScheduler, start_timer
from shardviz.errors import CompilerError, JobLost, ShardvizError

if TYPE_CHECKING:
    from shardviz.compiler.job_watch import JobStart, JobWatch
    from shardviz.devices.job import JobAddress
    from shardviz.targets import ProcessName


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

    With the address of a `job` the child joins that first, and neither outlives it: where a process of the
    job is lost, the child is killed, `on_job_lost` is called, from a thread, and every request ends as
    `JobLost`.
    """

    def __init__(
        self,
        name: ProcessName,
        environment: Mapping[str, str],
        time_limit: float,
        job: JobAddress | None = None,
        on_job_lost: Callable[[JobLost], None] | None = None,
    ) -> None:
        self._name = name
        self._environment = environment
        self._time_limit = time_limit
        self._address = job
        self._on_job_lost = on_job_lost
        self._watch: JobWatch | None = None
        self._job_lost: JobLost | None = None
        self._is_lost_told = False
        self.meeting: JobStart | None = None
        self._scheduler = RequestScheduler(self._stop_soon)
        self._lock = threading.Lock()
        self._process: ChildProcess | None = None
        self._asked: CompilerRequest[Any] | None = None
        self._stopped_because = ""
        self._has_said_why = False
        self._closed = False
        self._loaded = False
        self.versions: Versions = ()
        self._limit: threading.Timer
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

    def close(self, failed: str = "") -> None:
        """Kill the child; every request that has no answer yet ends as `Cancelled`.

        In a job that waits until all processes are done, since one whose devices vanish would end the others;
        or, where this one has `failed`, for that reason, until the others know. Raises `JobLost` where a
        process was lost, and no request has said so.
        """
        if self._watch is not None:
            self._watch.finish(failed)
        self._scheduler.close()
        with self._lock:
            self._closed = True
            process = self._process
            if process is not None:
                process.kill()
        if self._watch is not None:
            self._watch.close()
        if process is not None:
            process.wait(CLOSE_GRACE_S)
        self._thread.join(THREAD_GRACE_S)
        if self._job_lost is not None and not failed and not self._is_lost_told:
            raise self._job_lost

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
            if self._watch is not None:
                # A job is joined once: by another child it would be another job.
                raise self._job_lost or CompilerError("the job is over for this process", "start it again")
            words: tuple[str, ...] = (self._name,)
            if self._address is not None:
                words += self._address.words
            try:
                process = self._process = ChildProcess(
                    COMPILERS_CHILD, self._environment, *words, on_end=self._child_ended
                )
            except OSError as error:
                raise CompilerError(f"the compiler's process cannot be started: {error}") from error
        import_module("shardviz.compiler.reading")  # while the child loads JAX
        from shardviz.compiler.dump_folders import remove_unheld

        remove_unheld()
        return process

    def _answer(self, request: CompilerRequest[Any]) -> None:
        try:
            request.reply(self._ask(request))
        except ShardvizError as error:
            self._is_lost_told |= isinstance(error, JobLost)
            request.fail(error)
        except (EOFError, BrokenPipeError):
            request.fail(self._death(request))
        except Exception as error:
            # Whatever it is, the one who waits must hear of it, and the next request needs a sane child.
            self._reap()
            request.fail(CompilerError(f"{request.subject} gave no answer: {error!r}"))

    def _ask(self, request: CompilerRequest[Any]) -> Reply:
        """Send the message, and wait for the reply. A child that died before that is not to blame on it."""
        self._start_limit(request)
        was_idle = self._loaded
        with self._lock:
            self._asked, self._stopped_because = request, ""
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

    def _converse(self, process: ChildProcess, request: CompilerRequest[Any]) -> Reply:
        if not self._loaded:
            request.progress("importing jax")
            self._load(process, request)
        if request.done():
            raise Cancelled(f"the request to {request.subject} was cancelled")
        with suppress(BrokenPipeError):  # what it said before it ended is still to be read
            process.send(request.message)
        while True:
            match self._received(process):
                case StageReport(stage):
                    request.progress(stage)
                case ShardvizError() as error:
                    self._check_others(error.message)
                    raise error
                case reply if isinstance(reply, Reply):
                    result = reply.result if isinstance(reply, Output) else reply
                    if getattr(result, "status", "ok") != "ok":
                        self._check_others(getattr(result, "error", ""))
                    return reply
                case other:
                    raise AssertionError(f"the child sent {other!r}")

    def _load(self, process: ChildProcess, request: CompilerRequest[Any]) -> None:
        """Wait until the child has loaded JAX, and has joined its job if there is one."""
        meeting, address = None, self._address
        if address is not None and address.is_given:
            meeting = self._meet(address, process, request)  # while the child loads JAX
        message = self._received(process)
        if isinstance(message, JobFound):
            from shardviz.devices.job import JobAddress

            found = JobAddress(message.coordinator, message.processes, message.process)
            meeting = meeting or self._meet(found, process, request)
            process.send(JoinJob(meeting.coordinator))
            request.progress("joining the job")
            message = self._received(process)
        match message:
            case ChildReady(versions):
                self._loaded, self.versions = True, versions
            case other:
                raise AssertionError(f"the child sent {other!r}")

    def _meet(self, job: JobAddress, process: ChildProcess, request: CompilerRequest[Any]) -> JobStart:
        """Wait for the other processes of the job, as long as a request may take."""
        from shardviz.compiler.job_watch import JobWatch

        watch = JobWatch(job, self._time_limit, self._end_job)
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
            if self._process is not None:
                self._process.kill()
        if self._on_job_lost is not None:
            self._on_job_lost(lost)

    def _child_ended(self, process: ChildProcess) -> None:
        """Tell the others of the job, from the thread that reads what the child prints."""
        if self._watch is not None:
            self._tell_end(process.ending())

    def _tell_end(self, how: str) -> None:
        """Tell the others of the job how the child has ended, unless they know that the job is over."""
        from shardviz.compiler.job_watch import Cause

        watch = self._watch
        if watch is None or self._closed or self._job_lost is not None or self._has_said_why:
            return
        why = self._stopped_because
        if why:
            watch.failed(f"{why} and was stopped", Cause.FAILED)
            return
        # JAX's own watch ends a child so, where another one is gone.
        cause = Cause.ABORTED if how.endswith(("SIGABRT", "status 134")) else Cause.GONE
        watch.failed(f"has lost its process for JAX, which {how}", cause)

    def _check_others(self, error: str) -> None:
        """Raise `JobLost` where an error is because another process is lost, or the only one in the job."""
        if self._watch is None:
            return
        from shardviz.compiler.job_watch import Cause

        self._watch.failed(f"got an error: {error}", Cause.REFUSED)
        if lost := self._watch.lost():
            raise lost

    def _received(self, process: ChildProcess) -> object:
        """The child's next message. Raises `CompilerError` where it cannot go on."""
        message = process.receive()
        if isinstance(message, ChildBroken | OtherRequest):
            self._has_said_why = True
            self._reap()
        if isinstance(message, ChildBroken):
            self._check_others(message.reason)
            raise CompilerError(f"jax cannot be used here: {message.reason}", message.hint)
        if isinstance(message, OtherRequest):
            raise self._other_request()
        return message

    def _other_request(self) -> CompilerError:
        """Tell the others that this process is asked something else than process 0; the error of that."""
        from shardviz.compiler.job_watch import Cause

        assert self._watch is not None
        self._watch.failed("is asked something else than process 0", Cause.FAILED)
        return self._watch.lost() or CompilerError(
            "this process is asked something else than process 0", "start the same command in every process"
        )

    def _death(self, request: CompilerRequest[Any]) -> CompilerError:
        """The error for a request whose child has died under it."""
        how, log = self._reap()
        if self._watch is not None:
            self._tell_end(how)
            if lost := self._watch.lost():
                self._is_lost_told = True
                return lost
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
        elif isinstance(request.message, RunCollective | TimeLoop):
            hint = "ask again to start it anew"
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
    if isinstance(message, Question | CompileModule) and message.target != "shardy":
        return f"{longer}, or ask --target shardy, which compiles nothing"
    return longer


LOG_BYTES = 32_768
"""How much of the end of what the child prints is kept."""

_DUMP_NOISE = b"Refusing to write"
"""XLA says so of the binary parts of a dump to stdout (child/xla.py asks for such dumps)."""

PROGRAM = (
    "import sys; from importlib import import_module; sys.path.append(sys.argv[3]); "
    "import_module(sys.argv[4]).main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[5:])"
)
COMPILERS_CHILD = "shardviz.compiler.child.main"


class ChildProcess:
    """A running child. It leads its own session, so an interrupt in the terminal does not reach it."""

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str],
        *words: str,
        on_end: Callable[[ChildProcess], None] | None = None,
    ) -> None:
        """Start it in the `main` of a module, which is given two file descriptors and these words.

        `on_end` is called from a thread when the child has ended, however it has.
        """
        to_child_read, to_child_write = os.pipe()
        to_parent_read, to_parent_write = os.pipe()
        root = str(Path(__file__).parents[2])
        try:
            # -P keeps the current directory off the path: a user's own random.py must not be imported.
            self._popen = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-c",
                    PROGRAM,
                    str(to_child_read),
                    str(to_parent_write),
                    root,
                    module,
                    *words,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(to_child_read, to_parent_write),
                start_new_session=True,
                env=environment,
            )
        finally:
            os.close(to_child_read)
            os.close(to_parent_write)
        self._channel = Channel(to_parent_read, to_child_write)
        self._log = bytearray()
        self._on_end = on_end
        self._drain = threading.Thread(target=self._keep_log, name="shardviz-child-log", daemon=True)
        self._drain.start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def alive(self) -> bool:
        return self._popen.poll() is None

    def send(self, message: object) -> None:
        """`BrokenPipeError` when the child is gone."""
        self._channel.send(message)

    def receive(self) -> object:
        """`EOFError` when the child is gone."""
        return self._channel.receive()

    def kill(self) -> None:
        """Kill the child and all that it started. Safe from any thread, and when it is already dead."""
        if self.alive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> None:
        """Wait until it is gone, at most so long."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)

    def reap(self) -> tuple[str, str]:
        """Kill it if need be and wait: how it ended ("was killed by SIGKILL"), and what it printed last."""
        self.kill()
        how = self.ending()
        self._drain.join(timeout=1.0)
        self._channel.close()
        return how, self.log

    def ending(self) -> str:
        """Wait until it is gone: "was killed by SIGKILL" or "ended with status 1"."""
        code = self._popen.wait()
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            return f"was killed by {name}"
        return f"ended with status {code}"

    @property
    def log(self) -> str:
        """The end of what the child printed."""
        lines = bytes(self._log).splitlines(keepends=True)
        return b"".join(line for line in lines if _DUMP_NOISE not in line).decode(errors="replace")

    def _keep_log(self) -> None:
        assert self._popen.stdout is not None
        with self._popen.stdout as pipe:
            while piece := os.read(pipe.fileno(), 65_536):
                self._log += piece
                del self._log[:-LOG_BYTES]
        if self._on_end is not None:
            self._on_end(self)


_OF_TPUS = {
    # Without it the TPU compiler asks the network which machine it runs on, and waits for an answer.
    "TPU_SKIP_MDS_QUERY": "1",
    # Only who drives a TPU must be alone; several may compile, beside a job of the user's too.
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
_KEPT_OF_TPUS = ("TPU_LIBRARY_PATH",)
"""Where JAX looks for libtpu; the rest of what begins with TPU_ describes the machine at hand."""


def environment_for(process: ProcessName, inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a child, from the user's."""
    if process == "real":
        return dict(inherited)
    environment = simulated_environment(inherited)
    if process == "tpu":
        for name in list(environment):
            if name.startswith("TPU_") and name not in _KEPT_OF_TPUS:
                del environment[name]
        environment |= _OF_TPUS
    return environment


def simulated_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """For compilers alone: simulated CPU devices, and no setting of JAX that could change an answer.

    The user's XLA_FLAGS stay, without the device count, which follows the mesh that is asked about.
    """
    environment = {name: value for name, value in inherited.items() if not name.startswith("JAX_")}
    environment["JAX_PLATFORMS"] = "cpu"
    flags = [
        flag
        for flag in environment.get("XLA_FLAGS", "").split()
        if not flag.startswith("--xla_force_host_platform_device_count")
    ]
    environment["XLA_FLAGS"] = " ".join(flags)
    return environment


MAX_WORDS = 200

_PREFIX = r"(?:\w\d{4} [\d:.]{8,20} ++\d++ )?(?:[\w/.-]{1,80}:\d++\] )?(?:RAW: )?"
"""What C++ puts before a line that it logs: time, thread, source."""
_TELLING = (
    re.compile(r"^F\d{4} [^\]\n]{1,200}\] *+([^\n]++)", re.MULTILINE),
    re.compile(r"((?:Check failed|RET_CHECK failure|Unknown flag|Assertion)[^\n]++)"),
    re.compile(r"^ *what\(\): *+([^\n]++)", re.MULTILINE),
    re.compile(r"^((?:[A-Za-z_]\w{0,40}\.){0,4}[A-Z]\w{0,40}(?:Error|Exception): [^\n]++)", re.MULTILINE),
)
"""Lines that give the reason, the best first."""
_FUNCTION = re.compile(r"^PC: @ +\S++ +\S++ +(?!\(unknown\))([\w:~<>{}()]{3,120})$", re.MULTILINE)
"""Where the processor stood, from a stack trace."""
_NOISE = re.compile(
    rf"^{_PREFIX}(?:$|WARNING: |Failed to find host bounds|INVALID_ARGUMENT: Error: unexpected worker|"
    r"=== Source Location|learning/|https://symbolize|\*\*\* |@ |PC: @|Remote crash data|Skipping coredump|"
    r"Coroner |Sending fingerprint|Cannot send fingerprint|Dumping core|Raising signal|Fatal Python error|"
    r"Current thread|Thread 0x|Extension modules|File \"|Refusing to write|Could not create directory)"
)
"""What libtpu prints on any machine without a TPU, and around a stack trace."""


def stderr_tail(log: str) -> str:
    """The line that explains a death; "" where none does."""
    for pattern in _TELLING:
        if found := pattern.findall(log):
            return _short(found[-1])
    if found := _FUNCTION.findall(log):
        return f"in {_short(found[-1])}"
    for line in reversed(log.splitlines()):
        if not _NOISE.match(line.strip()):
            return _short(re.sub(f"^{_PREFIX}", "", line))
    return ""


def _short(words: str) -> str:
    words = "".join(c if c.isprintable() else "�" for c in " ".join(words.split()))
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 1]}…"
