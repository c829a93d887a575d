"""Jobs of several processes: JAX's, which run what one process runs, and end together.

Each process is one of this machine with simulated devices; see `job_process.py`.
"""

from __future__ import annotations

import os
import random
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from shardviz.compiler.child_process import simulated_environment
from shardviz.compiler.job_watch import ANSWER_S, CAUSE_S

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for foreign processes by pidfd"),
]
PROGRAM = Path(__file__).with_name("job_process.py")
END_S = 60
"""Far more than the 10 s that the document states: this machine may be busy."""
FOREVER = 10**9
KILLS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)


class RunningJob:
    """The processes of a job, their children, and what they say on stderr."""

    def __init__(self, count, runs=FOREVER, limit_s=300, missing=()):
        with socket.create_server(("localhost", 0)) as unused:
            at = f"localhost:{unused.getsockname()[1]}"
        environment = simulated_environment(os.environ) | {"JAX_NUM_CPU_DEVICES": "2"}
        self.said = {}
        self.listeners = []
        self.heard = threading.Condition()
        self.processes = {
            number: subprocess.Popen(
                [sys.executable, PROGRAM, at, str(count), str(number), str(limit_s), str(runs)],
                env=environment,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(count)
            if number not in missing
        }
        for number, process in self.processes.items():
            self.said[number] = []
            self.listeners.append(threading.Thread(target=self._listen, args=(number, process.stderr)))
            self.listeners[-1].start()
        self.wait_for("pids")
        self.children = {number: int(self.lines(number, "pids")[0].split()[1]) for number in self.processes}
        self.ends = [os.pidfd_open(pid) for pid in self.children.values()]

    def _listen(self, number, stderr):
        with stderr:
            for line in stderr:
                with self.heard:
                    self.said[number].append(line.strip())
                    self.heard.notify_all()

    def lines(self, number, start):
        return [line for line in self.said[number] if line.startswith(start)]

    def wait_for(self, start):
        """Until every process has said such a line."""
        with self.heard:
            found = self.heard.wait_for(
                lambda: all(self.lines(number, start) for number in self.processes), timeout=120
            )
        assert found, self.said

    def codes(self):
        """The exit codes, once all have ended, with their children."""
        found = {number: process.wait(END_S) for number, process in self.processes.items()}
        for end in self.ends:
            assert select.select([end], [], [], END_S)[0], "a child is left"
            os.close(end)
        for listener in self.listeners:
            listener.join()
        return found

    def errors(self):
        """The sentences of all processes, each once."""
        return {line for number in self.said for line in self.lines(number, "shardviz: error:")}

    def error(self):
        """The one sentence that all who say something say."""
        assert len(self.errors()) == 1, self.said
        return min(self.errors())


@pytest.fixture
def running_job():
    jobs = []

    def start(*words, **more):
        jobs.append(RunningJob(*words, **more))
        return jobs[-1]

    yield start
    for job in jobs:
        for process in job.processes.values():
            process.kill()
            process.wait()
        for listener in job.listeners:
            listener.join()


@pytest.mark.parametrize("count", [2, 4])
def test_a_job_gets_the_sums_of_all_devices(count, running_job):
    job = running_job(count, runs=3)
    assert set(job.codes().values()) == {0}
    assert job.errors() == set()


@pytest.mark.parametrize("seed", range(6))
def test_a_kill_ends_all_and_is_told_once(seed, running_job):
    choice = random.Random(seed)
    count = choice.choice([2, 3])
    victim, number = choice.randrange(count), choice.choice(KILLS)
    job = running_job(count)
    job.wait_for("ran")
    threading.Event().wait(choice.random())
    is_child = seed % 2 == 1
    os.kill(job.children[victim] if is_child else job.processes[victim].pid, number)
    codes = job.codes()
    assert codes.pop(victim) == (3 if is_child else -number)
    assert set(codes.values()) == {3}
    assert re.fullmatch(rf"shardviz: error: process {victim} of {count} on \S+ .+", job.error())
    assert (f"was killed by {number.name}" in job.error()) == is_child


def test_a_loss_is_told_once_where_the_process_that_decides_on_it_stands_still(running_job):
    job = running_job(2)
    job.wait_for("ran")
    job.processes[0].send_signal(signal.SIGSTOP)
    os.kill(job.children[0], signal.SIGKILL)
    threading.Event().wait(ANSWER_S + CAUSE_S + 2)
    job.processes[0].send_signal(signal.SIGCONT)
    assert set(job.codes().values()) == {3}
    assert "was killed by SIGKILL" in job.error()


def test_a_process_that_never_comes_is_named(running_job):
    job = running_job(3, limit_s=5, missing=(1,))
    assert set(job.codes().values()) == {3}
    assert job.errors() == {"shardviz: error: process 1 of 3 did not join within 5 s"}
