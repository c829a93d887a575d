"""`shardviz.explain` and `shardviz.rank` give what the command gives."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any, cast

import jax
import numpy as np
import pytest

import shardviz
from shardviz.cli.group import run
from shardviz.compiler import Worker
from shardviz.errors import QuestionError, TargetError

EINSUM = "bd,df->bf"
SIZES = {"b": 8, "d": 2048, "f": 8192}
WORDS = ("explain", EINSUM, "--specs", "XY,Y_->X_", "--sizes", "b=8,d=2048,f=8192")


@pytest.fixture(scope="module")
def explanation() -> shardviz.Explanation:
    return shardviz.explain(EINSUM, mesh="X=2,Y=4", specs="XY,Y_->X_", sizes=SIZES)


def command(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run((*WORDS, *words)) == 0
    return capsys.readouterr().out


def timeless(text: str) -> str:
    """The text without times, and with the width of their column."""
    return re.sub(r" *[\d.]+ m?s\b", " 0 s", text)


def test_it_shows_what_the_command_shows(explanation, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    *printed, _ = timeless(command(capsys, "--width", "90")).splitlines()
    *shown, last = timeless(repr(explanation)).splitlines()
    assert shown == printed
    assert last == "Times assume v5e at peak, each axis a ring."
    assert str(explanation) == repr(explanation)


def test_no_optimizer_is_none():
    options: dict[str, Any] = {"mesh": "X=2", "specs": "X_,__->X_", "target": "none", "backward": True}
    steps = [shardviz.explain(EINSUM, optimizer=each, **options) for each in (None, "none")]
    assert steps[0].plan == steps[1].plan


def test_it_holds_the_objects(explanation):
    assert [step.op for step in explanation.plan.steps] == ["einsum", "psum"]
    assert [(each.op, each.axes) for each in explanation.target("shardy").collectives] == [
        ("all-reduce", ("Y",))
    ]
    assert [each.code for each in explanation.differences] == ["promoted_dtype"]
    with pytest.raises(QuestionError, match="v5e:2x4 was not asked"):
        explanation.target("v5e:2x4")


def test_a_mesh_is_text_or_an_object():
    def asked(mesh: Any, **options: Any) -> Any:
        return shardviz.explain(EINSUM, mesh=mesh, specs="XY,Y_", target="none", **options).problem.mesh

    devices = np.array(jax.devices())
    order = (7, 6, 5, 4, 3, 2, 1, 0)
    backwards = shardviz.Mesh(("X", "Y"), (2, 4), order)
    assert asked({"X": 2, "Y": 4}) == asked("X=2,Y=4")
    assert asked("X=2,Y=4") == asked(shardviz.Mesh(("X", "Y"), (2, 4)))
    assert asked(jax.sharding.Mesh(devices.reshape(2, 4), ("X", "Y"))) == asked("X=2,Y=4")
    assert asked(jax.sharding.AbstractMesh((2, 4), ("X", "Y"))) == asked("X=2,Y=4")
    assert asked(jax.sharding.Mesh(devices[::-1].reshape(2, 4), ("X", "Y"))) == backwards
    assert (
        asked("X=2,Y=4", device_order=order) == asked("X=2,Y=4", device_order="7,6,5,4,3,2,1,0") == backwards
    )
    # Devices 4 to 7 are numbered from 0, as those of a slice are.
    assert asked(jax.sharding.Mesh(devices[7:3:-1].reshape(2, 2), ("X", "Y"))).device_order == (3, 2, 1, 0)


def test_sizes_are_text_or_numbers():
    def sizes(given: Any) -> Any:
        problem = shardviz.explain(EINSUM, specs="XY,Y_", sizes=given, target="none").problem
        return [array.shape for array in problem.arguments]

    assert sizes(SIZES) == sizes("b=8,d=2048,f=8192") == sizes({"f": np.int64(8192), "b": 8, "d": 2048})
    assert sizes(None) == [(1024, 2048), (2048, 8192)]


def test_targets_are_text_or_a_list():
    from shardviz.api.arguments import target_text

    assert target_text(["cpu", "v5e:2x4"]) == target_text(("cpu", "v5e:2x4")) == "cpu,v5e:2x4"
    assert target_text([]) == "none"
    for wrong in (5, [5], None):
        with pytest.raises(shardviz.ShardvizError) as caught:
            shardviz.explain(EINSUM, specs="XY,Y_", target=cast("Any", wrong))
        assert "is not a target" in caught.value.message
        assert "a list of such names" in caught.value.hint


@pytest.mark.usefixtures("explanation")
def test_the_compilers_stay_loaded():
    from shardviz.api.shared_worker import _worker

    before = _worker()
    shardviz.explain(EINSUM, specs="XY,Y_->X_", sizes="b=16,d=64,f=64", target="shardy")
    assert _worker() is before
    before.start()  # one that was closed would refuse


def test_a_slow_compiler_is_stopped_and_says_so():
    found = shardviz.explain(EINSUM, specs="XY,Y_->X_", sizes="b=16,d=64,f=32", target="cpu", timeout=1e-4)
    (compiled,) = found.compiled
    assert compiled.status == "error"
    assert re.fullmatch(
        r"the cpu compiler took longer than 0\.0001 s( while .*)? and was stopped", compiled.error
    )
    assert compiled.hint == "give it longer with a larger timeout"
    assert f"✗ {compiled.error}" in repr(found)


def test_a_default_target_that_cannot_hold_the_mesh_says_so():
    found = shardviz.explain(EINSUM, mesh="X=64,Y=64", specs="XY,Y_->X_")
    assert [each.status for each in found.compiled] == ["ok", "unavailable"]
    with pytest.raises(TargetError, match="4,096 devices"):
        shardviz.explain(EINSUM, mesh="X=64,Y=64", specs="XY,Y_->X_", target="cpu")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the arrays have no specs"),
        ({"einsum": None}, "'None' is not an einsum"),
        ({"specs": "XY,Y_", "mesh": 8}, "'8' is not a mesh"),
        ({"specs": "XY,Y_", "device_order": [0, 1]}, "the device order names 2 devices"),
        ({"specs": "XY,Y_", "sizes": {"b": "many"}}, "many"),
        ({"specs": "XY,Y_", "timeout": 0}, "timeout=0 is not a time"),
        ({"specs": "XY,Y_", "timeout": float("nan")}, "timeout=nan is not a time"),
        ({"specs": "XY,Y_", "target": "cpo"}, "unknown target 'cpo'"),
    ],
)
def test_bad_questions(options, message):
    with pytest.raises(QuestionError, match=re.escape(message)) as raised:
        shardviz.explain(**{"einsum": EINSUM} | options)
    assert raised.value.hint


def test_all_targets_are_checked_before_one_is_asked(monkeypatch, capsys):
    asked: list[object] = []
    monkeypatch.setattr(Worker, "submit", lambda *of, **_: asked.append(of))
    with pytest.raises(TargetError, match="v5e:4x4 has 16 devices, but the mesh X=2,Y=4 has 8"):
        shardviz.explain(EINSUM, mesh="X=2,Y=4", specs="XY,Y_->X_", target="shardy,v5e:4x4")
    assert run((*WORDS, "--target", "shardy,v5e:4x4")) == 2
    assert "v5e:4x4 has 16 devices" in capsys.readouterr().err
    assert asked == []


def test_a_ranking(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    found = shardviz.rank(EINSUM, mesh="X=8")
    assert run(("explain", EINSUM, "--mesh", "X=8", "--specs", "--width", "100")) == 0
    page, _, more = capsys.readouterr().out.rstrip("\n").rpartition("\n")
    assert repr(found) == page
    assert more == "-v shows all that was assumed."
    assert found.candidates[0].plan.wire_bytes == 0
    assert found.document()["candidates"][0]["best"] is True


FORKS = """
import os, sys, threading, time
import {loaded}

class Slow:
    def find_spec(self, name, path, target=None):
        if name == "{slow}":
            started.set()
            time.sleep(0.5)

def load():
    import shardviz
    shardviz.explain
    from shardviz.compiler.question import question_for

started = threading.Event()
sys.meta_path.insert(0, Slow())
threading.Thread(target=load).start()
started.wait()
fork = os.fork()
load()
if fork:
    print(os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]))
os._exit(0)
"""
"""A process, forked while a thread imports a module."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_while_another_thread_imports_what_asking_needs():
    program = FORKS.format(loaded="shardviz", slow="shardviz.api.shared_worker")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout == "0\n", done.stderr


def test_the_machine_is_a_name_a_file_or_an_object(tmp_path):
    from shardviz.hardware.machine_file import named_machine

    path = tmp_path / "ours.toml"
    path.write_text('base = "v5e:2x4"\n[torus]\nbandwidth = "30GB/s"')

    def priced(machine):
        found = shardviz.explain(EINSUM, specs="XY,Y_", target="none", machine=machine)
        return found.cost.machine.name

    assert priced("v5litepod-8") == "v5e:2x4"
    assert priced(path) == priced(str(path)) == "ours"
    assert priced(named_machine("h100:8")) == "h100:8"
    assert priced(None) == "v5e"
    assert shardviz.rank(EINSUM, mesh="X=8", machine=path).candidates[0].cost.machine.name == "ours"
    with pytest.raises(QuestionError, match="a node holds 8 GPUs, not 16"):
        priced("h100:16")
    with pytest.raises(QuestionError, match="'5' is not a machine"):
        priced(5)


def test_costs():
    cost = shardviz.explain(EINSUM, specs="XY,Y_->X_", target="none").cost
    assert cost.machine.assumed
    assert cost.serial_seconds > cost.overlapped_seconds > 0
    placed = shardviz.explain(EINSUM, specs="XY,Y_->X_", target="none", machine="v5p:2x2x2").cost
    assert (placed.machine.name, placed.machine.assumed) == ("v5p:2x2x2", False)
    assert placed.serial_seconds < cost.serial_seconds


def test_costs_over_sizes():
    found = shardviz.vary(EINSUM, "b=1Ki:1Mi", specs="X_,X_->X_")
    assert [crossing.size for crossing in found.sweep.crossings] == [4378]
    assert "compute takes longer from b = 4,378" in repr(found)
    with pytest.raises(shardviz.ShardvizError, match="the arrays have no specs"):
        shardviz.vary(EINSUM, "b=1Ki:1Mi")
