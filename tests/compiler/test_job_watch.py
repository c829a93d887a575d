"""Processes of a job meet and hear of losses: here each is a thread with a connection of its own."""

from __future__ import annotations

import json
import math
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from shardviz.compiler import job_watch
from shardviz.compiler.job_watch import Cause, JobWatch, named_processes
from shardviz.compiler.messages import ChildBroken
from shardviz.compiler.worker_process import WorkerProcess
from shardviz.devices.job import JobAddress
from shardviz.errors import CompilerError, JobLost

HOST = socket.gethostname()


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch):
    for name, seconds in {"BEAT_S": 0.2, "CAUSE_S": 0.2, "ANSWER_S": 0.5, "RETRY_S": 0.02}.items():
        monkeypatch.setattr(job_watch, name, seconds)


class Processes:
    """So many processes of one job; `lost` has what each has heard."""

    def __init__(self, count, limit_s=20.0):
        with socket.create_server(("localhost", 0)) as unused:
            self.port = unused.getsockname()[1]
        self.lost = {}
        self.heard = threading.Condition()
        self.progress = [[] for _ in range(count)]
        self.watches = [
            JobWatch(JobAddress(f"localhost:{self.port}", count, process), limit_s, self._hear(process))
            for process in range(count)
        ]

    def _hear(self, process):
        def hear(error):
            with self.heard:
                self.lost[process] = error
                self.heard.notify_all()

        return hear

    def join(self, *which):
        """What the join of each gave: a meeting, or an error."""
        which = which or range(len(self.watches))
        with ThreadPoolExecutor(len(which)) as pool:
            pending = [pool.submit(self.watches[each].join, self.progress[each].append) for each in which]
            return [each.exception() or each.result() for each in pending]

    def words(self, *which):
        """What these have heard of a loss, which must be one sentence."""
        with self.heard:
            assert self.heard.wait_for(lambda: {*which} <= self.lost.keys(), timeout=20)
        (words,) = {self.lost[each].message for each in which}
        return words

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for watch in self.watches:
            watch.close()


def test_all_meet_and_leave_together():
    with Processes(3) as job:
        first, *others = job.join()
        assert first.hosts == (HOST,) * 3
        assert others == [first] * 2
        host, port = first.coordinator.split(":")
        assert host == "localhost"
        assert int(port) != job.port
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(JobWatch.finish, job.watches))
        assert job.lost == {}


def test_one_that_leaves_waits_for_the_others():
    with Processes(2) as job, ThreadPoolExecutor(2) as pool:
        job.join()
        early = pool.submit(job.watches[1].finish)
        with pytest.raises(TimeoutError):
            early.result(0.5)
        pool.submit(job.watches[0].finish).result(20)
        early.result(20)


def test_one_that_never_comes_is_named():
    with Processes(4, limit_s=1.0) as job:
        errors = job.join(0, 1, 3)
        assert {type(error) for error in errors} == {JobLost}
        assert {error.message for error in errors} == {"process 2 of 4 did not join within 1 s"}
        assert "waiting for process 2 of 4" in job.progress[0]


def test_a_coordinator_that_never_comes_is_named():
    with Processes(2, limit_s=0.5) as job:
        (error,) = job.join(1)
        assert isinstance(error, CompilerError)
        assert "process 0 of 2 was not reached at localhost:" in error.message


@pytest.mark.parametrize("process", [1, 2])
def test_one_whose_connection_ends_is_lost(process):
    with Processes(3) as job:
        job.join()
        job.watches[process]._connection.socket.shutdown(socket.SHUT_RDWR)
        left = 3 - process
        assert job.words(0, left) == f"process {process} of 3 on {HOST} is gone"
        assert job.lost[left].is_told
        assert not job.lost[0].is_told


def test_without_process_0_everyone_tells_it():
    with Processes(3) as job:
        job.join()
        hub = job.watches[0]._hub
        for member in hub._members.values():
            member.socket.shutdown(socket.SHUT_RDWR)
        assert job.words(1, 2) == f"process 0 of 3 on {HOST} is gone, and it led the job"
        assert not job.lost[1].is_told


def test_the_best_cause_is_told():
    with Processes(3) as job:
        job.join()
        job.watches[0].failed("got an error: Gloo failed", Cause.REFUSED)
        job.watches[1].failed("has lost its process for JAX, which was killed by SIGABRT", Cause.ABORTED)
        job.watches[2].failed("has lost its process for JAX, which was killed by SIGKILL", Cause.GONE)
        words = f"process 2 of 3 on {HOST} has lost its process for JAX, which was killed by SIGKILL"
        assert job.words(0, 1, 2) == words
        assert job.watches[1].lost().message == words


def test_a_child_that_breaks_since_another_is_lost_says_that():
    """A value that all agree on cannot be had from a process 0 that is gone."""
    with Processes(2) as job:
        job.join()
        broken = WorkerProcess("real", {}, math.inf)
        broken._watch = job.watches[1]
        job.watches[0].failed("has lost its process for JAX, which was killed by SIGKILL", Cause.GONE)
        with pytest.raises(JobLost, match=r"process 0 of 2 on .* was killed by SIGKILL"):
            broken._received(SimpleNamespace(receive=lambda: ChildBroken("UNAVAILABLE: connection reset")))
        broken.close()


def test_an_error_that_all_get_ends_no_job():
    with Processes(2) as job:
        job.join()
        for watch in job.watches:
            watch.failed("got an error: refused", Cause.REFUSED)
        assert [watch.lost() for watch in job.watches] == [None, None]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(JobWatch.finish, job.watches))
        assert job.lost == {}


def test_an_error_that_one_gets_ends_the_job():
    with Processes(2) as job:
        job.join()
        job.watches[1].failed("got an error: out of memory", Cause.REFUSED)
        assert job.words(0, 1) == f"process 1 of 2 on {HOST} got an error: out of memory"


def test_one_that_fails_while_others_are_missing_is_told_to_those_too():
    with Processes(3) as job, ThreadPoolExecutor(2) as pool:
        job.watches[1].failed("has lost its process for JAX", Cause.GONE)
        first = pool.submit(job.join, 0, 1)
        assert {error.message for error in first.result(20)} == {
            f"process 1 of 3 on {HOST} has lost its process for JAX"
        }
        assert [type(error) for error in job.join(2)] == [JobLost]


def test_a_number_that_is_given_twice():
    with Processes(3) as job:
        job.watches[2].process = 1
        assert {str(error) for error in job.join()} == {
            f"process 1 of 3 was started twice, on {HOST} and on {HOST}"
        }


def test_two_sizes_of_one_job():
    with Processes(2) as job:
        job.watches[1].processes = 5
        assert {str(error) for error in job.join()} == {
            "process 1 of 2 was started in a job of 5, and process 0 in one of 2"
        }


def test_a_port_that_is_taken_is_refused():
    with Processes(2) as job, socket.create_server(("localhost", job.port)):
        (error,) = job.join(0)
        assert error.message == f"process 0 cannot listen at localhost:{job.port}: Address already in use"


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"\xff\xfe\n", b"[]\n", b'{"lost": 1}\n', b"x" * 200_000, b""],
)
def test_strangers_are_not_listened_to(said):
    with Processes(2) as job, ThreadPoolExecutor(1) as pool:
        first = pool.submit(job.join, 0)
        while not job.progress[0]:
            pass
        with socket.create_connection(("localhost", job.port)) as stranger:
            stranger.sendall(said)
        job.join(1)
        assert first.result(20)[0].hosts == (HOST,) * 2
        assert job.lost == {}


def test_a_silent_host_is_lost(monkeypatch):
    monkeypatch.setattr(job_watch, "SILENT_BEATS", 2)
    with Processes(1) as job:
        job.watches[0].processes = 2
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(job.join, 0)
            while not job.progress[0]:
                pass
            with socket.create_connection(("localhost", job.port)) as silent:
                hello = {"hello": 1, "processes": 2, "host": "far"}
                silent.sendall(json.dumps(hello).encode() + b"\n")
                first.result(20)
                assert job.words(0) == "process 1 of 2 on far has not answered for 0.4 s"


def test_processes_by_name():
    assert named_processes((2,)) == "process 2"
    assert named_processes((2, 3, 5)) == "processes 2, 3 and 5"
    assert named_processes(tuple(range(9))) == "processes 0, 1, 2, 3, 4, 5, 6, 7 and others"
