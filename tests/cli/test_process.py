"""The command as a process: pipes, colours, compilers that die, interrupts, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shardviz.cli.group import run

SHARDVIZ = [sys.executable, "-m", "shardviz"]
QUESTION = ["explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--sizes", "b=8,d=2048,f=8192"]
PLAIN = {
    key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLORTERM")
}


def shardviz(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SHARDVIZ, *words], capture_output=True, text=True, timeout=120, env={**PLAIN, **environ}
    )


def test_both_compilers_answer() -> None:
    """What they say: tests/compiler and tests/api/test_explain.py."""
    done = shardviz(*QUESTION, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert [each["status"] for each in document["targets"]] == ["ok", "ok"]
    assert [(each["target"], each["code"]) for each in document["differences"]] == [("cpu", "promoted_dtype")]


def test_a_mesh_too_large_for_the_cpu_leaves_it_out_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    mesh = "data=1024,model=16,x=8"
    words = ["explain", "bd,df->bf", "--mesh", mesh, "--specs", "data model, model _", "--json"]
    left_out = f"shardviz: note: cpu is skipped: the mesh {mesh} has 131,072"
    for more, note in ((["--target", "shardy"], ""), ([], left_out)):
        assert run([*words, *more]) == 0
        out, err = capsys.readouterr()
        assert err.startswith(note)
        assert bool(err) == bool(note)
        assert [each["target"] for each in json.loads(out)["targets"]] == ["shardy"]


def test_a_reader_that_leaves_early_hears_no_complaint() -> None:
    with started("layout", "8x8", "--spec", "__", "--mesh", "X=4096", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "{\n"
        process.stdout.close()
        assert process.wait(timeout=30) == 0
        assert process.stderr.read() == ""


def test_colours_in_a_pipe() -> None:
    """Of which environment gives which colours: test_output.py."""
    done = shardviz("layout", "8x8", "--spec", "XY", TERM="xterm-256color", FORCE_COLOR="1")
    assert done.returncode == 0
    assert "\x1b[" in done.stdout


def children_of(pid: int) -> list[int]:
    """Process ids of the children of a process."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [
        int(child) for path in listed.parent.parent.glob("*/children") for child in path.read_text().split()
    ]


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(true: object, limit: float = 20.0) -> None:
    assert callable(true)
    end = time.monotonic() + limit
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds children in /proc")


@contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A command at work. Where a test fails before it ends, it is killed: another would be blamed for it."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*SHARDVIZ, *words], text=True, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def asking() -> Iterator[subprocess.Popen[str]]:
    """A command that has printed its plan and waits for the compilers' process, which is stopped."""
    with started(*QUESTION, "--target", "cpu") as process:
        wait_until(lambda: children_of(process.pid))
        os.kill(children_of(process.pid)[0], signal.SIGSTOP)  # else it may have answered by then
        assert process.stdout is not None
        assert any(line.startswith("plan") for line in process.stdout)
        yield process


@needs_proc
def test_a_killed_compiler_is_one_clear_line(asking: subprocess.Popen[str]) -> None:
    (child,) = children_of(asking.pid)
    os.kill(child, signal.SIGKILL)
    out, err = asking.communicate(timeout=30)
    assert asking.returncode == 3
    first, hint = err.splitlines()
    assert first.startswith("shardviz: error: the cpu compiler was killed by SIGKILL")
    assert "SIGKILL" in first
    assert hint.startswith("hint: ")
    assert "Traceback" not in out + err
    assert "✗" in out
    assert gone(child)


@needs_proc
@pytest.mark.parametrize("planned", [False, True])
def test_an_interrupt_leaves_no_process(planned: bool) -> None:
    with started(*QUESTION, "--target", "cpu") as process:
        wait_until(lambda: children_of(process.pid))
        (child,) = children_of(process.pid)
        if planned:
            assert process.stdout is not None
            assert any(line.startswith("plan") for line in process.stdout)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "Traceback" not in out + err
        wait_until(lambda: gone(child))


def test_too_little_memory_is_said() -> None:
    program = (
        "from shardviz import cli\n"
        "def starved(_):\n"
        '    raise RuntimeError("can\'t start new thread")\n'
        "cli._open_or_run = starved\n"
        "cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines() == [
        "shardviz: error: there is not enough memory",
        "hint: end other programs, or raise this shell's limit: ulimit -v unlimited",
    ]
