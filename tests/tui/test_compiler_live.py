"""The compiler screen with the compilers themselves; libtpu is in the `test` extra, so it must be there."""

from __future__ import annotations

import pytest

from shardviz.forms.form import ProblemForm
from shardviz.targets import EXTRAS
from tests.tui.conftest import drive, text_of, until

SIZES = "b=8,d=128,f=256"


def play(script, worker, targets):
    async def session(pilot):
        pilot.app.pane.box.view.focus()
        await script(pilot)

    drive(session, draft=ProblemForm(targets=targets, sizes=SIZES), screen="compiler", worker=worker)


def has(pilot, *words):
    def holds():
        text = text_of(pilot.app)
        return all(word in text for word in words)

    return holds


def test_cpu_and_shardy(worker):
    async def script(pilot):
        await until(pilot, has(pilot, "cpu ✓", "ENTRY main", "all-reduce over Y", "▸"))
        await pilot.press("left")
        await until(pilot, has(pilot, "the passes of cpu", "the final schedule: an all-reduce"))
        await pilot.press("left", "d")
        await until(pilot, has(pilot, "all-reduce over Y: bf16 became f32", "@@"))
        await pilot.press("N")
        await until(pilot, has(pilot, "❯ shardy ✓", '= sdy.all_reduce {"Y"}', "over Y"))
        await pilot.press("left", "left", "left")
        await until(pilot, has(pilot, "the passes of shardy", "argument", "XY"))

    play(script, worker, "shardy,cpu")


@pytest.mark.skipif(not EXTRAS["tpu"].installable, reason="libtpu is for Linux on x86-64")
def test_a_tpu_that_is_not_here(worker):
    async def script(pilot):
        await until(pilot, lambda: pilot.app.state.queries.answers)
        await pilot.press("r")
        await until(
            pilot, has(pilot, "❯ v5e:2x4 ✓", "ENTRY main", "all-reduce over Y", "devices {0,1,2,3} {7,6,5,4}")
        )
        await pilot.press("f")
        await until(pilot, has(pilot, "all of the text", "{1,0:T("))
        await pilot.press("f", "left")
        await until(pilot, has(pilot, "the passes of v5e:2x4", "the final schedule"))

    play(script, worker, "v5e:2x4")


FUNCTION = """
import jax
from jax.sharding import NamedSharding, PartitionSpec as P

def step(mesh):
    print("this must not land on the screen")
    x = jax.ShapeDtypeStruct((8, 8), "float32", sharding=NamedSharding(mesh, P("X")))
    return (lambda x: x.sum()), x

def wrong(mesh):
    raise ValueError("no such thing")

def slow(mesh):
    while True: ...
"""


def test_a_function_of_a_file_opens_and_one_that_fails_says_where(worker, tmp_path, monkeypatch, capfd):
    (tmp_path / "f.py").write_text(FUNCTION)
    monkeypatch.chdir(tmp_path)

    async def script(pilot):
        app = pilot.app
        await pilot.press("o", *"f.py:wrong", "enter")
        await until(pilot, has(pilot, "error: f.py:11: ValueError: no such thing"))
        await pilot.press("enter", "ctrl+u", *"program f.py:slow --mesh X=2 --target cpu", "enter")
        await until(pilot, has(pilot, "running …"))
        await pilot.press("escape")
        await app.workers.wait_for_complete()
        await pilot.press("o", "ctrl+u", *"f.py:step --mesh X=2 --target cpu", "enter")
        await until(pilot, has(pilot, "cpu  compiled in", "all-reduce X", "esc close"))
        await pilot.press("y")
        assert app.clipboard == "shardviz program f.py:step --mesh X=2 --target cpu"

    drive(script, draft=ProblemForm(targets="none"), screen="plan", worker=worker)
    assert "must not land" not in "".join(capfd.readouterr())
