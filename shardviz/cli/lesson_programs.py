"""Runs the programs of lessons as a learner would run them: each in a process and in a folder of its own."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from shardviz.cli import lesson_runner as script
from shardviz.compiler.last_words import last_words

TIME_LIMIT_S = 60.0
LAST_BYTES = 32_768
"""How much of the end of what a program prints is read."""


class Programs:
    """Programs that run now, one after the other. Leaving the context ends the one that does, and removes
    what they wrote."""

    def __init__(self, environment: Mapping[str, str], time_limit: float = TIME_LIMIT_S) -> None:
        self._environment = environment
        self._time_limit = time_limit
        self._folder = tempfile.mkdtemp(prefix="shardviz-")
        self._pool = ThreadPoolExecutor(1)
        self._runner: subprocess.Popen[str] | None = None
        self._is_over = False

    def __enter__(self) -> Programs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, program: str) -> Future[str]:
        """Run a program after those before it; the result is why it failed, empty where it did not."""
        return self._pool.submit(self._run, program)

    def close(self) -> None:
        """End what runs, and wait for its end."""
        self.kill()
        self._pool.shutdown(cancel_futures=True)
        self._reap()
        shutil.rmtree(self._folder, ignore_errors=True)

    def kill(self) -> None:
        """End what runs, with all that it started; for a signal handler too: nothing is waited for."""
        self._is_over = True
        if self._runner is not None:
            _end(self._runner)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str) -> str:
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        path = folder / "program.py"
        path.write_text(program, encoding="utf-8")
        runner = self._runner = self._runner or self._begin()
        if self._is_over:
            _end(runner)
        assert runner.stdin is not None
        assert runner.stdout is not None
        with suppress(BrokenPipeError):
            print(path, file=runner.stdin, flush=True)
        if not select.select([runner.stdout], [], [], self._time_limit)[0]:
            self._reap()
            return f"it was stopped after {self._time_limit:g} s"
        code = runner.stdout.readline().strip()
        if not code:
            self._reap()
            return "it ended the process that runs it"
        printed = (folder / "out").stat().st_size + (folder / "err").stat().st_size
        if printed >= script.MAX_BYTES:
            return f"it prints more than {script.MAX_BYTES:,} bytes"
        if code != "0":
            words = last_words(_last_of(folder / "err"))
            return f"it ended with {code}{f': {words}' if words else ''}"
        return "" if _last_of(folder / "out").strip() else "it prints nothing"

    def _begin(self) -> subprocess.Popen[str]:
        # A session of its own, so that whatever a program starts can be ended with it. -P keeps the folder of
        # the script off the path: a program must not import what lies there.
        return subprocess.Popen(
            [sys.executable, "-P", script.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._folder,
            env=self._environment,
            start_new_session=True,
        )

    def _reap(self) -> None:
        """End the runner with all that it runs; the next program gets another one."""
        if self._runner is not None:
            _end(self._runner)
            self._runner.communicate()
            self._runner = None


def _last_of(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LAST_BYTES))
        return file.read().decode(errors="replace")


def _end(process: subprocess.Popen[str]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
