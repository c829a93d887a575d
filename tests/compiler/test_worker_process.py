"""The processes behind TPU and GPU targets: their environments, what is missing, and how they die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

import shardviz
from shardviz.cli.group import run
from shardviz.compiler import Worker, worker_process
from shardviz.compiler.child_process import environment_for, stderr_tail
from shardviz.compiler.messages import ChildCall
from shardviz.compiler.question import question_for
from shardviz.compiler.requests import CompilerRequest
from shardviz.compiler.worker_process import WorkerProcess
from shardviz.errors import CompilerError
from shardviz.targets import TARGETS, parse_targets, pip
from shardviz.targets.hardware import TopologyRequest
from shardviz.tui.compiler_queries import CompilerQueries

(V5E,) = parse_targets("v5e:2x4")
(H100,) = parse_targets("h100:8")
INHERITED = {"JAX_PLATFORMS": "tpu", "TPU_TOPOLOGY": "4x4", "TPU_LIBRARY_PATH": "/lib.so", "HOME": "/root"}


def test_the_environment_of_a_child():
    assert environment_for("real", INHERITED) == INHERITED
    tpu = environment_for("tpu", INHERITED)
    assert (tpu["JAX_PLATFORMS"], tpu["HOME"]) == ("cpu", "/root")
    assert "TPU_TOPOLOGY" not in tpu
    assert tpu["TPU_LIBRARY_PATH"] == "/lib.so"
    assert tpu["TPU_SKIP_MDS_QUERY"] == tpu["ALLOW_MULTIPLE_LIBTPU_LOAD"] == "1"
    assert environment_for("cuda", INHERITED)["JAX_PLATFORMS"] == "cpu"


@pytest.fixture
def without_extras(monkeypatch):
    """As on a machine where only jax is installed."""
    monkeypatch.setattr("shardviz.targets.find_spec", lambda _: None)
    monkeypatch.delenv("TPU_LIBRARY_PATH", raising=False)
    monkeypatch.setattr("shardviz.targets.this_machine", lambda: ("linux", "x86_64"))


@pytest.mark.usefixtures("without_extras")
@pytest.mark.parametrize(
    ("target", "error", "hint"),
    [
        (V5E, "v5e:2x4 needs the TPU compiler, libtpu, which is not installed", "jax[tpu]"),
        (H100, "h100:8 needs the GPU compiler, JAX's CUDA plugin, which is not installed", "jax[cuda12]"),
    ],
)
@pytest.mark.usefixtures("own_compilers")
def test_a_missing_extra_says_what_installs_it(matmul, target, error, hint):
    with Worker() as worker:
        worker.start(target)
        answer = worker.ask(matmul("XY,Y_->X_"), target)
        assert (answer.status, answer.error) == ("unavailable", error)
        assert answer.hint == pip("install", hint)
        assert worker.pids() == ()


@pytest.mark.usefixtures("without_extras")
@pytest.mark.usefixtures("own_compilers")
def test_where_an_extra_does_not_exist(matmul, monkeypatch):
    monkeypatch.setattr("shardviz.targets.this_machine", lambda: ("darwin", "arm64"))
    with Worker() as worker:
        answer = worker.ask(matmul("XY,Y_->X_"), V5E)
    assert answer.error.endswith("libtpu, which exists for Linux on x86-64 only")
    assert "pip" not in answer.hint


@pytest.mark.usefixtures("without_extras")
def test_a_missing_extra_is_a_wrong_question(capsys):
    words = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--target", "h100:8")
    assert run(words) == 2
    error = capsys.readouterr().err
    assert "which is not installed" in error
    assert f"hint: {pip('install', 'jax[cuda12]')}" in error


@pytest.mark.since_jax("0.11", "its libtpu refuses such an axis, and lives")
def test_a_compiler_that_dies_leaves_its_signal_and_last_words(matmul):
    """On an axis of 0, which no name leads to, libtpu divides by zero."""
    question = question_for(matmul("XY,Y_->X_"), V5E)
    topology = TopologyRequest("tpu", "v5e:0x4")
    question = replace(question, mesh=replace(question.mesh, topology=topology))
    process = WorkerProcess("tpu", environment_for("tpu", os.environ), 60.0)
    try:
        pending = process.submit(CompilerRequest(ChildCall("answer.answer", (question,)), repr, "v5e:0x4"))
        with pytest.raises(CompilerError) as caught:
            pending.result(60)
    finally:
        process.close()
    assert caught.value.message == (
        "v5e:0x4 was killed by SIGFPE while describing the hardware: in pjrt::GetTpuTopologyDescription()"
    )
    assert "SIGFPE" in caught.value.log


@pytest.mark.usefixtures("own_compilers")
def test_a_flag_that_libtpu_does_not_know_is_whose_variable_it_is(matmul, monkeypatch):
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--bogus_flag=1")
    with Worker() as worker, pytest.raises(CompilerError) as caught:
        worker.ask(matmul("XY,Y_->X_"), V5E)
    assert "bogus_flag" in caught.value.message
    assert "LIBTPU_INIT_ARGS: correct it or unset it" in caught.value.hint


@pytest.mark.usefixtures("own_compilers")
def test_a_tpu_compiler_over_the_time_limit_is_stopped(capsys):
    words = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--target", "v5e:2x4", "--timeout", "0.05")
    assert run(words) == 3
    error = capsys.readouterr().err
    assert "the v5e:2x4 compiler took longer than 0.05 s while importing jax and was stopped" in error


@pytest.mark.usefixtures("own_compilers")
def test_a_time_limit_that_is_over_before_the_process_is_there_counts(matmul, monkeypatch):
    start = WorkerProcess._start

    def late(process):
        process._stop(process._asked, "took longer than 1 s")
        return start(process)

    monkeypatch.setattr(WorkerProcess, "_start", late)
    process = WorkerProcess("simulated", {**os.environ}, 60)
    question = question_for(matmul("XY,Y_->X_"), TARGETS["cpu"])
    try:
        pending = process.submit(CompilerRequest(ChildCall("answer.answer", (question,)), repr, "it"))
        with pytest.raises(CompilerError, match="took longer than 1 s while importing jax and was stopped"):
            pending.result(60)
    finally:
        process.close()


LOAD = """
from jax.experimental import topologies
print(len(topologies.get_topology_desc("v5e:2x4", platform="tpu").devices), flush=True)
input()
"""


def test_another_process_may_use_libtpu_at_the_same_time(worker, matmul):
    """Whoever loads libtpu without a word about others wants to be alone, and holds a lock."""
    mine = {**os.environ, "JAX_PLATFORMS": "cpu", "TPU_SKIP_MDS_QUERY": "1"}
    mine.pop("ALLOW_MULTIPLE_LIBTPU_LOAD", None)
    with subprocess.Popen(
        [sys.executable, "-c", LOAD], env=mine, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True
    ) as other:
        other.stdout.readline()
        answer = worker.ask(matmul("X_,_Y->XY", sizes="b=8,d=128,f=128"), V5E)
        assert (answer.status, answer.error) == ("ok", "")
        other.communicate("\n")


def test_children_work_at_the_same_time(worker, matmul):
    problem = matmul("XY,Y_->X_", sizes="b=8,d=256,f=256")
    asked = [worker.submit(problem, target) for target in (TARGETS["cpu"], V5E)]
    assert [pending.result().status for pending in asked] == ["ok", "ok"]
    assert len(worker.pids()) >= 2


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", ""),
        ("\n\n  \n", ""),
        ("WARNING: Logging before InitGoogle() is written to STDERR\n", ""),
        (
            "F1121 13:31:30.887276   25098 xla.cc:12] Check failed: a == b (1 vs. 2) \n*** Check\n    @ 0x1",
            "Check failed: a == b (1 vs. 2)",
        ),
        ("terminate called after throwing\n  what():  std::bad_alloc\n", "std::bad_alloc"),
        (
            "Traceback (most recent call last):\n  File \"x\"\nKeyError: 'x'\nRefusing to write y\n",
            "KeyError: 'x'",
        ),
        ("I0000 00:00:1.5   77 common_lib.cc:906] the chip melted\n", "the chip melted"),
        ("*** SIGSEGV received by PID 7\nPC: @     0x7f12  (unknown)  (unknown)\n", ""),
        ("bad\x1b[31mred\n", "bad�[31mred"),
        ("x" * 10_000, "x" * 199 + "…"),
    ],
)
def test_stderr_tail(log, words):
    assert stderr_tail(log) == words


def test_every_surface_of_the_tests_asks_one_process(worker, matmul, monkeypatch, capsys):
    """Each would load JAX for itself."""
    worker.ask(matmul("XY,Y_->X_"), TARGETS["shardy"])
    monkeypatch.setattr(worker_process, "ChildProcess", None)
    assert run(["explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--target", "shardy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"][0]["status"] == "ok"
    asked = shardviz.explain("bd,df->bf", specs="XY,Y_->X_", target="shardy")
    assert asked.document()["targets"][0]["status"] == "ok"
    assert CompilerQueries(print).worker.ask(matmul("X_,_Y->XY"), TARGETS["shardy"]).status == "ok"
