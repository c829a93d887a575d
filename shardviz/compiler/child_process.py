"""The child process as its parent sees it: started, talked to, killed, and its last words kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shardviz.compiler.channel import Channel

if TYPE_CHECKING:
    from shardviz.compiler.messages import LaneName

LOG_BYTES = 32_768
"""How much of the end of what the child prints is kept."""

_NOISE = b"Refusing to write"
"""XLA says so of the binary parts of a dump to stdout (child/xla.py asks for such dumps)."""

PROGRAM = (
    "import sys; sys.path.append(sys.argv[3]); "
    "from shardviz.compiler.child.main import main; main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[4])"
)


class ChildProcess:
    """A running child. It leads its own session, so an interrupt in the terminal does not reach it."""

    def __init__(self, lane: LaneName, environment: Mapping[str, str]) -> None:
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
                    lane,
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
        """Kill the child and whatever it started. Safe from any thread, and when it is already dead."""
        if self.alive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> None:
        """Wait until it is gone, at most so long."""
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)

    def bury(self) -> tuple[str, str]:
        """Kill it if need be and wait: how it ended ("was killed by SIGKILL"), and its last words."""
        self.kill()
        code = self._popen.wait()
        self._drain.join(timeout=1.0)
        self._channel.close()
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"signal {-code}"
            return f"was killed by {name}", self.log
        return f"ended with status {code}", self.log

    @property
    def log(self) -> str:
        """The end of what the child printed."""
        lines = bytes(self._log).splitlines(keepends=True)
        return b"".join(line for line in lines if _NOISE not in line).decode(errors="replace")

    def _keep_log(self) -> None:
        assert self._popen.stdout is not None
        with self._popen.stdout as pipe:
            while piece := os.read(pipe.fileno(), 65_536):
                self._log += piece
                del self._log[:-LOG_BYTES]
