"""Ctrl-C at any moment: exit code 130 within a second, not a word, and no process left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

EXPLAIN = ["explain", "bd,df->bf", "--specs", "XY,Y_->X_"]
READY = "import shardviz.cli.process as i; i.end_when_interrupted(); print(flush=True)"
PROGRAM = f"{READY}; from shardviz.cli import main; main()"
"""The command, which says when it is as far as to answer an interrupt."""
SLOW = "import time; time.sleep(60)"
TRIES = 4
"""A busy machine may let a process wait; one that waits by itself does so each time."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="finds processes in /proc")


def marked(mark: str) -> list[int]:
    """Processes whose environment has the mark, but for dead ones."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def interrupt(delay: float, times: int, mark: str) -> tuple[int, str, float]:
    """Exit code, stderr and seconds until the end of a command interrupted so long after it can be."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *EXPLAIN],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A JAX that loads for ever: every delay meets a command at work.
        env={**os.environ, "MARK": mark, "PYTHONPATH": os.environ["SLOW_JAX"]},
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "\n"
            time.sleep(delay)
            started = time.monotonic()
            for _ in range(times):
                process.send_signal(signal.SIGINT)
                time.sleep(0.002)
            _, said = process.communicate(timeout=20)
            return process.returncode, said, time.monotonic() - started
        finally:
            process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("delay", [0, 0.05, 0.12, 0.3, 1.2])
def test_an_interrupt_at_any_moment(
    delay: float, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jax.py").write_text(SLOW)
    monkeypatch.setenv("SLOW_JAX", str(tmp_path))
    mark = f"test-{uuid.uuid4()}"
    for _ in range(TRIES):
        code, said, seconds = interrupt(delay, times, mark)
        assert (code, said) == (130, "")
        if seconds < 1:
            break
    assert seconds < 1
    end = time.monotonic() + 20
    while marked(mark):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGHUP, 129)])
def test_other_ends_clean_up_as_well(number: signal.Signals, code: int) -> None:
    program = (
        "import signal, shardviz.cli.process as i; i.end_when_interrupted();"
        f"i.on_signal(lambda: print('cleaned', flush=True)); signal.raise_signal({int(number)})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (code, "cleaned\n")


def test_where_interrupts_are_ignored_they_stay_so() -> None:
    program = (
        "import signal, shardviz.cli.process as i; signal.signal(signal.SIGINT, signal.SIG_IGN);"
        "i.end_when_interrupted(); signal.raise_signal(signal.SIGINT); print('on')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "on\n")


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGHUP", 129)])
def test_the_first_interrupt_leaves_time_to_keep_what_there_is(name: str, code: int) -> None:
    """A terminal that closes is one, too."""
    program = (
        "import signal, shardviz.cli.process as i; i.end_when_interrupted()\n"
        "with i.first_interrupt() as interrupted:\n"
        f"    signal.raise_signal(signal.{name})\n"
        "    print(interrupted())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, f"{code}\n")


@pytest.mark.parametrize(("together_s", "code"), [(3600, 0), (0, 143)])
def test_signals_that_come_together_are_one(together_s: float, code: int) -> None:
    """A launcher passes on the interrupt that the terminal has sent to all; a later one ends the process."""
    program = (
        f"import signal, time, shardviz.cli.process as i; i.ONE_INTERRUPT_S = {together_s}\n"
        "with i.first_interrupt() as interrupted:\n"
        "    signal.raise_signal(signal.SIGINT)\n"
        "    time.sleep(0.01)\n"
        "    signal.raise_signal(signal.SIGTERM)\n"
        "    print(interrupted())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (code, "" if code else "130\n")
