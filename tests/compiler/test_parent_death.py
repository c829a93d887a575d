"""However the process that asks ends, its child ends too."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for foreign processes by pidfd")

PARENT = """
import os, signal, sys
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # libtpu ignores it in a process of tests that has loaded it
from shardviz.compiler import Worker
from shardviz.targets import TARGETS
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.reading import problem_from_text

worker = Worker()
problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="XY,Y_->X_", sizes="")

def tell(stage):
    if stage == "compiling":
        (pid,) = worker.pids()
        {at_compile}
        print(pid, flush=True)

worker.submit(problem, TARGETS["cpu"], tell)
{then}
"""
STOP_THE_CHILD = "os.kill(pid, signal.SIGSTOP)"
WAIT = "sys.stdin.read()"


def child_of(code):
    """A process that runs the code, and its child's pidfd, taken when the child compiles."""
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    return parent, os.pidfd_open(int(parent.stdout.readline()))


def ends(pidfd, within_s=20):
    """Whether the process ends in time; a pidfd is readable from then on."""
    try:
        return bool(select.select([pidfd], [], [], within_s)[0])
    finally:
        os.close(pidfd)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    "at_compile",
    [
        "pass",
        pytest.param(
            STOP_THE_CHILD,
            marks=pytest.mark.skipif(
                sys.platform != "linux", reason="only Linux kills a child that cannot run"
            ),
        ),
    ],
)
def test_the_child_dies_with_a_parent_that_is_killed_in_mid_compile(how, at_compile):
    parent, child = child_of(PARENT.format(at_compile=at_compile, then=WAIT))
    with parent:
        parent.send_signal(how)
        assert parent.wait(20) == -how
        assert ends(child)


def test_the_child_dies_with_a_parent_that_forgets_to_close():
    parent, child = child_of(PARENT.format(at_compile="pass", then=WAIT))
    with parent:
        assert parent.stdin is not None
        parent.stdin.close()
        assert parent.wait(20) == 0
        assert ends(child)


def test_the_child_ends_when_the_pipe_is_closed():
    """Where no system call ties the child to its parent, the end of the pipe does."""
    requests, ours = os.pipe()
    theirs, replies = os.pipe()
    code = (
        "import sys; from shardviz.compiler.child.main import main; "
        "main(int(sys.argv[1]), int(sys.argv[2]), 'simulated')"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(requests), str(replies)], pass_fds=(requests, replies)
    )
    os.close(requests)
    os.close(replies)
    os.close(ours)
    assert child.wait(20) == 0
    os.close(theirs)
