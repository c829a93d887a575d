"""Users' files and compilers with JAX loaded already: forks of one process, for which this is the script.

Each is what `ChildProcess` would start, in its folder, with its environment and in a session of its own, but
for the second that loading JAX takes. No device was asked for before the fork.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from shardviz.compiler.child_process import COMPILERS_CHILD
from shardviz.compiler.messages import end_with_parent

_MAX_BYTES = 2**20


class Fork:
    """What `ChildProcess` asks of a `subprocess.Popen`."""

    def __init__(self, pid: int, status: int, output: int | None) -> None:
        self.pid, self._status = pid, status
        self.returncode: int | None = None
        self.stdout = None if output is None else os.fdopen(output, "rb", 0)
        self._lock = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not select.select([self._status], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a fork", timeout or 0)
        with self._lock:
            if self.returncode is None:
                self.returncode = int(os.read(self._status, 16) or -signal.SIGKILL)
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    """What Python and JAX read in it as they load."""
    return {name: value for name, value in environment.items() if name.startswith(("JAX", "PYTHON"))}


class ForkServer:
    """The process that forks, which starts when it is first asked. What it is not for is started anew: those
    that use real devices or are in a job, and those in which Python or JAX would load otherwise."""

    def __init__(self) -> None:
        self._environment = dict(os.environ)
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": self._popen})
        """The module, as far as `child_process` uses it."""

    def _popen(self, words: Sequence[str], *, env: Mapping[str, str], **options: Any) -> Any:
        is_usual = _read_at_start(env) == _read_at_start(self._environment)
        *_, module, name = words
        if module != COMPILERS_CHILD or name == "real" or not is_usual:
            return subprocess.Popen(words, env=env, **options)
        with self._lock:
            control = self._control = self._control or self._started()
            output = options["stdout"]
            read, write = os.pipe() if output == subprocess.PIPE else (None, output)
            status, ended = os.pipe()
            asked = json.dumps([name, str(Path.cwd()), dict(env)]).encode()
            assert len(asked) < _MAX_BYTES
            socket.send_fds(control, [asked], [*options["pass_fds"], write, ended])
            os.close(ended)
            if read is not None:
                os.close(write)
            return Fork(int(control.recv(16)), status, read)

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        words = [sys.executable, "-P", __file__, str(theirs.fileno())]
        self._process = subprocess.Popen(words, pass_fds=[theirs.fileno()], env=self._environment)
        theirs.close()
        return ours

    def close(self) -> None:
        if self._control is not None:
            self._control.close()
            self._process.wait()


def _serve(control: socket.socket) -> None:
    """Fork for each message: a process that waits, and its child, whose number and end it tells."""
    child = import_module(COMPILERS_CHILD)
    import_module("shardviz.compiler.child.user_file")
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, descriptors, *_ = socket.recv_fds(control, _MAX_BYTES, 4)
        if not asked:
            return
        if not os.fork():
            end_with_parent()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            fork = os.fork()
            if not fork:
                os.setsid()  # before anybody knows of it, who may kill all that it starts
                control.send(str(os.getpid()).encode())
                control.close()
                name, *place = json.loads(asked)
                _become(*place, *descriptors)
                child.main(*descriptors[:2], name)
                os._exit(0)
            for descriptor in descriptors[:-1]:
                os.close(descriptor)
            code = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
            os.write(descriptors[-1], str(code).encode())
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def _become(folder: str, environment: Mapping[str, str], *descriptors: int) -> None:
    """The process that `ChildProcess` would have started."""
    *_, output, ended = descriptors
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
        os.dup2(stream, number)
    os.close(output)
    os.close(ended)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).parents[1]))
    _serve(socket.socket(fileno=int(sys.argv[1])))
