"""A compilation pass by pass, by the worker: what comes back, and that nothing stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from shardviz.compiler import Cancelled, Worker
from shardviz.compiler.child_process import DumpFolders
from shardviz.errors import CompilerError, TargetError
from shardviz.targets import TARGETS, parse_targets

SHARDY, CPU = TARGETS["shardy"], TARGETS["cpu"]
KINDS = ["input", "propagation", "partitioner", "rewrite", "schedule"]


def folder_of(pending):
    return Path(pending.call.arguments[0].folder)


def told(collectives):
    return [(each.op, each.axes, each.dtype, each.bytes) for each in collectives]


def test_xla_for_cpu(worker, matmul):
    pending = worker.trace(matmul("XY,Y_->X_"), CPU)
    traced = pending.result()
    assert [stage.kind for stage in traced.stages] == KINDS
    _, _, partitioner, _, schedule = traced.stages
    assert (
        told(schedule.after) == told(traced.compiled.collectives) == [("all-reduce", ("Y",), "f32", 131072)]
    )
    assert told(partitioner.after) == told(traced.compiled.partitioned)
    assert not folder_of(pending).exists()


def test_shardy_alone_on_a_mesh_of_any_size(worker, matmul):
    traced = worker.trace(matmul("XY,Y_->XY", mesh="X=64,Y=32", sizes="b=64,d=64,f=64"), SHARDY).result()
    titles = {stage.pass_name: stage.title for stage in traced.stages}
    assert titles["shardy after_insert-explicit-reshards"] == "Shardy inserts an all-reduce"
    assert "became a reduce-scatter" in titles["shardy after_canonicalize"]
    assert [each.op for each in traced.stages[-1].after] == ["reduce-scatter"]


def test_the_tpu_compiler_takes_a_gather_apart(worker, matmul):
    problem = matmul("XY,_Y", sizes="b=1024,d=2048,f=8192")
    traced = worker.trace(problem, parse_targets("v5e:2x4")[0]).result()
    assert traced.compiled.status == "ok", traced.compiled.error
    partitioner = next(stage for stage in traced.stages if stage.kind == "partitioner")
    (change,) = partitioner.changes
    assert change.startswith("an all-gather over Y of 2,097,152 bytes is a collective matmul")
    said = " ".join(change for stage in traced.stages for change in stage.changes)
    assert said.count("is a collective matmul") == 1
    assert "made asynchronous" in said
    assert "moved beside 1 matmul" in said
    schedule = traced.stages[-1]
    assert [each.op for each in schedule.after] == ["collective-permute"] * 3
    assert all(each.is_async and each.axes == ("Y",) for each in schedule.after)


def test_between_slices_the_program_is_that_of_one_slice(worker, matmul):
    problem = matmul("_X,XY", sizes="b=64,d=128,f=256")
    traced = worker.trace(problem, parse_targets("2*v5e:2x2")[0]).result()
    rewrites = [stage.changes for stage in traced.stages if stage.kind == "rewrite"]
    assert [any("sent between slices" in change for change in changes) for changes in rewrites] == [True]
    assert "between other devices" not in str(rewrites)
    (last,) = traced.stages[-1].after
    assert (last.op, last.axes, last.between_slices) == ("all-reduce", ("X",), True)


def test_it_is_not_kept(worker, matmul):
    problem = matmul("X_,_Y", sizes="b=8,d=64,f=64")
    assert worker.trace(problem, SHARDY).result() is not worker.trace(problem, SHARDY).result()


def test_one_device_has_nothing_to_partition(worker, matmul):
    traced = worker.trace(matmul("__,__", mesh="X=1", sizes="b=8,d=64,f=64"), CPU).result()
    assert [(stage.kind, stage.after) for stage in traced.stages] == [("input", ()), ("schedule", ())]


def test_an_axis_of_size_one(worker, matmul):
    traced = worker.trace(matmul("XY,Y_->X_", mesh="X=1,Y=4", sizes="b=8,d=64,f=64"), CPU).result()
    assert [each.axes for each in traced.stages[-1].after] == [("Y",)]


def test_what_jax_refuses_has_no_stages(worker, matmul):
    pending = worker.trace(matmul("XY,Y_", axis_types="explicit"), CPU)
    traced = pending.result()
    assert traced.compiled.status == "error"
    assert traced.compiled.hint
    assert traced.stages == ()
    assert not folder_of(pending).exists()


def test_what_cannot_be_asked(worker, matmul, monkeypatch):
    with pytest.raises(TargetError, match="at most 2,048"):
        worker.trace(matmul("X_,_Y", mesh="X=64,Y=64", sizes="b=64,d=64,f=64"), CPU)
    monkeypatch.setattr("shardviz.targets.find_spec", lambda _: None)
    traced = worker.trace(matmul("X_,_Y"), parse_targets("h100:8")[0]).result()
    assert (traced.compiled.status, traced.stages) == ("unavailable", ())


def test_nothing_stays_behind_when_the_compiler_dies_or_the_request_is_withdrawn(matmul):
    with Worker() as own:

        def strike(stage):
            if stage == "compiling":
                os.kill(own.pids()[0], signal.SIGKILL)

        dead = own.trace(matmul("XY,Y_->X_"), CPU, strike)
        with pytest.raises(CompilerError, match="SIGKILL"):
            dead.result()
        withdrawn = own.trace(matmul("XY,Y_->X_", sizes="b=16,d=64,f=64"), CPU)
        withdrawn.cancel()
        with pytest.raises(Cancelled):
            withdrawn.result()
        assert not folder_of(dead).exists()
        root = folder_of(dead).parent
    assert not root.exists()


def test_an_interrupt_removes_what_is_there_at_once(matmul):
    own = Worker()
    try:
        pending = own.trace(matmul("XY,Y_->X_"), CPU)
        assert folder_of(pending).exists()
        own.kill()
        assert not folder_of(pending).parent.exists()
    finally:
        own.close()


def test_a_place_without_room_for_the_dumps_is_said(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
    with pytest.raises(CompilerError, match="has no folder") as raised:
        DumpFolders().make()
    assert "TMPDIR" in raised.value.hint


def test_what_a_killed_process_leaves_goes_when_a_compiler_starts(matmul, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    makes = "import sys; from shardviz.compiler.child_process import DumpFolders; own = DumpFolders()"
    makes += "; print(own.make(), flush=True); sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command, environ = [sys.executable, "-c", makes], {**os.environ, "TMPDIR": str(tmp_path)}
    with (
        subprocess.Popen(command, env=environ, **pipes) as dead,
        subprocess.Popen(command, env=environ, **pipes) as living,
    ):
        lost, held = (Path(process.stdout.readline().strip()) for process in (dead, living))
        (lost / "module_0001.jit_f.before_optimizations.txt").write_text("HloModule jit_f")
        dead.kill()
        dead.wait()
        assert lost.exists()
        with Worker() as worker:  # which dumps nothing
            worker.ask(matmul("X_,_Y"), SHARDY)
        assert {*tmp_path.iterdir()} == {held.parent}
        living.stdin.close()
