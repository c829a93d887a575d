"""A child process: its start and environment, its pipes, its end, in the words of what it printed; and the
folders that compilers dump into, of which nothing stays, however a process ends."""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from shardviz.compiler.messages import Channel
from shardviz.errors import CompilerError, one_line
from shardviz.targets import ProcessName

COMPILERS_CHILD = "shardviz.compiler.child.main"
PROGRAM = (
    "import sys; from importlib import import_module; sys.path.append(sys.argv[3]); "
    "import_module(sys.argv[4]).main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[5:])"
)


class ChildProcess:
    """A running child: the `main` of a module, which is given two file descriptors and some words, in a
    session of its own and with interrupts blocked. The end of what it prints is kept; or, with an `output`,
    all goes to that file descriptor. `on_end` is called from a thread when it has ended."""

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str],
        *words: str,
        on_end: Callable[[ChildProcess], None] | None = None,
        output: int | None = None,
    ) -> None:
        to_child_read, to_child_write = os.pipe()
        to_parent_read, to_parent_write = os.pipe()
        root = str(Path(__file__).parents[2])
        arguments = [str(to_child_read), str(to_parent_write), root, module, *words]
        # A child inherits the signals that the thread which starts it has blocked.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            self._popen = subprocess.Popen(
                # -P keeps the current directory off the path: a user's own random.py must not be imported.
                [sys.executable, "-P", "-c", PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if output is None else output,
                stderr=subprocess.STDOUT,
                pass_fds=(to_child_read, to_parent_write),
                start_new_session=True,
                env=environment,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            os.close(to_child_read)
            os.close(to_parent_write)
        self._channel = Channel(to_parent_read, to_child_write)
        self._log = bytearray()
        self._on_end = on_end
        self._drain = threading.Thread(target=self._keep_log, name="shardviz-child-log", daemon=True)
        if output is None:
            self._drain.start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def alive(self) -> bool:
        return self._popen.poll() is None

    def send(self, message: object) -> None:
        """`BrokenPipeError` when the child is gone."""
        self._channel.send(message)

    def receive(self, seconds: float | None = None) -> object:
        """The next message. `EOFError` when the child is gone, `TimeoutError` where none comes in time."""
        if seconds is not None and not select.select([self._channel.incoming], [], [], seconds)[0]:
            raise TimeoutError
        return self._channel.receive()

    def kill(self) -> None:
        """Kill the child and all that it started. Safe from any thread, and when it is already dead: its
        number is its own until somebody has waited for it."""
        if self._popen.returncode is None:
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
        if self._popen.stdout is not None:
            self._drain.join(timeout=1.0)
        self._channel.close()
        return how, self._log.decode(errors="replace")

    def ending(self) -> str:
        """Wait until it is gone: "was killed by SIGKILL" or "ended with status 1"."""
        code = self._popen.wait()
        if code >= 0:
            return f"ended with status {code}"
        names = {int(one): one.name for one in signal.Signals}
        return f"was killed by {names.get(-code, f'signal {-code}')}"

    def _keep_log(self) -> None:
        assert self._popen.stdout is not None
        with self._popen.stdout as pipe:
            while piece := os.read(pipe.fileno(), 65_536):
                self._log += piece
                del self._log[:-32_768]
        if self._on_end is not None:
            self._on_end(self)


def environment_for(process: ProcessName, inherited: Mapping[str, str]) -> dict[str, str]:
    if process == "real":
        return dict(inherited)
    environment = simulated_environment(inherited)
    if process != "tpu":
        return environment
    # What begins with TPU_ describes the machine at hand, but for where JAX looks for libtpu.
    kept = (name for name in environment if not name.startswith("TPU_") or name == "TPU_LIBRARY_PATH")
    return {name: environment[name] for name in kept} | {
        # Without it the TPU compiler asks the network which machine it runs on, and waits for an answer.
        "TPU_SKIP_MDS_QUERY": "1",
        # Only who drives a TPU must be alone; several may compile, beside a job of the user's too.
        "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    }


def simulated_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """For compilers: simulated CPU devices, no setting of JAX that changes answers, the user's XLA_FLAGS."""
    return simulating({name: value for name, value in inherited.items() if not name.startswith("JAX_")})


def simulating(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment with simulated devices alone, whose number follows the mesh."""
    flags = (
        flag
        for flag in environment.get("XLA_FLAGS", "").split()
        if not flag.startswith("--xla_force_host_platform_device_count")
    )
    return {**environment, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": " ".join(flags)}


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
    told = next((matches[-1] for pattern in _TELLING if (matches := pattern.findall(log))), "")
    if not told and (matches := _FUNCTION.findall(log)):
        told = f"in {matches[-1]}"
    if not told:
        lines = (line for line in reversed(log.splitlines()) if not _NOISE.match(line.strip()))
        told = re.sub(f"^{_PREFIX}", "", next(lines, ""))
    return "".join(c if c.isprintable() else "�" for c in one_line(told, 200))


DUMPS = "shardviz-dumps-"


class DumpFolders:
    """Folders for dumps, all in one temporary folder that goes when `remove_all` is called; where the process
    is killed before, it goes when another starts a compiler."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._root, self._held = "", -1

    def make(self) -> str:
        """A new folder. Raises `CompilerError` where none can be made."""
        try:
            with self._lock:
                if not self._root:
                    self._root, self._held = _held_folder()
                return tempfile.mkdtemp(dir=self._root)
        except OSError as error:
            problem = f"the compiler has no folder to write to: {error}"
            raise CompilerError(problem, "set TMPDIR to a folder that can be written") from error

    def remove(self, folder: str) -> None:
        """Remove one folder and all that is in it; what cannot be removed now is left to `remove_all`."""
        shutil.rmtree(folder, ignore_errors=True)

    def remove_all(self) -> None:
        """Remove everything. Takes no lock, for a signal handler."""
        root, self._root = self._root, ""
        # A compiler that was killed just now may still have written a file into it.
        for _ in range(10):
            if root and Path(root).exists():
                shutil.rmtree(root, ignore_errors=True)
        if root:
            os.close(self._held)


def _held_folder() -> tuple[str, int]:
    """A new folder, and the descriptor by which this process holds it as long as it lives."""
    while True:
        folder = tempfile.mkdtemp(prefix=DUMPS)
        # Between two of these steps another process may take it for a dead one's, and remove it.
        with suppress(FileNotFoundError):
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):  # a file system without locks: nobody can take it for a dead one's
                fcntl.flock(held, fcntl.LOCK_EX)
            if Path(folder).exists():
                return folder, held
            os.close(held)


def remove_unheld() -> None:
    """Remove the folders of processes that have died. Who holds one is seen by its lock, as process ids mean
    nothing to a container that has the same temporary folder."""
    with suppress(OSError):  # there is no temporary folder, or it cannot be listed
        for folder in Path(tempfile.gettempdir()).glob(f"{DUMPS}*"):
            with suppress(OSError):  # it is in use, another user's, or has just gone
                held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
                finally:
                    os.close(held)
