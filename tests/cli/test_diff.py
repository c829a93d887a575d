"""`shardviz diff`: texts, folders, saved summaries and functions, at 80 and 40 columns and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardviz.cli.group import run
from shardviz.documents.summaries import save_summary
from shardviz.reports.changes import summary
from shardviz.reports.program_report import program_report

PROGRAMS = Path(__file__).parent.parent / "benchmarks" / "programs"
OLD, NEW = str(PROGRAMS / "four_layers.txt"), str(PROGRAMS / "four_layers_async.txt")
V4 = ("--machine", "v4:2x2x1")
STEP = """
import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P


def step(mesh, repeats=1, spec=P("data", "model")):
    def body(x, _):
        whole = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", None)))
        return jax.lax.with_sharding_constraint(jnp.tanh(whole * 2), NamedSharding(mesh, spec)), None

    def f(x):
        return body(x, None)[0] if repeats == 1 else jax.lax.scan(body, x, length=repeats)[0]

    return f, jax.ShapeDtypeStruct((64, 512), jnp.float32, sharding=NamedSharding(mesh, spec))


def once(mesh):
    return step(mesh)


def looped(mesh):
    return step(mesh, 6)
"""


def answer(capsys, *words, code=0):
    assert run(["diff", *words]) == code
    return capsys.readouterr()


def test_a_page(capsys):
    out = answer(capsys, OLD, NEW, *V4, "--width", "40").out
    assert max(map(len, out.splitlines())) <= 40
    assert "more overlapped: all-gather over axis" in " ".join(out.split())
    words = " ".join(out.split())
    assert "work beside 0 of 4 runs before, 3 of 4 now" in words
    assert "weights[*], measured_programs.py:86" in words


def test_limits(capsys):
    limits = ("--fail-on", "new-collective,bytes+0%,seconds+0%,memory+1GiB")
    answer(capsys, OLD, NEW, *V4, *limits)
    out = answer(capsys, NEW, OLD, *V4, *limits, code=1).out
    assert "less overlapped: all-gather over axis" in out
    assert "✗ seconds rise from 38.7 ms to 52.2 ms, 34.9 % more: the limit is seconds+0%\n" in out
    assert "✗ bytes" not in out


def test_json(capsys):
    found = json.loads(answer(capsys, NEW, OLD, *V4, "--fail-on", "seconds+1%", "--json", code=1).out)
    assert found["kind"] == "diff"
    (change,) = found["changes"]
    assert change["kind"] == "less overlapped"
    assert (change["before"]["overlapped"], change["after"]["overlapped"]) == (3, 0)
    assert [each["limit"] for each in found["broken_limits"]] == ["seconds+1%"]
    assert found["before"]["seconds"] < found["after"]["seconds"]


def test_a_saved_summary_and_its_program_are_the_same(capsys, tmp_path):
    saved = tmp_path / "old.json"
    save_summary(summary(program_report(Path(OLD).read_text(encoding="utf-8"), infer=True)), saved)
    assert "no collective changes" in answer(capsys, str(saved), OLD).out
    assert "no collective changes" in answer(capsys, OLD, str(saved)).out
    err = answer(capsys, str(saved), str(saved), *V4, code=2).err
    assert "both programs were saved with their own machine" in err
    saved.write_text(saved.read_text(encoding="utf-8")[:200], encoding="utf-8")
    assert "old.json': line " in answer(capsys, OLD, str(saved), code=2).err


def test_folders_of_dumps(capsys, tmp_path):
    for folder, second in (("old", "gather_first"), ("new", "down_projection")):
        (tmp_path / folder).mkdir()
        for number, name in enumerate(("four_layers", second)):
            file = tmp_path / folder / f"module_000{number}.jit_{'fg'[number]}.cpu_after_optimizations.txt"
            file.write_bytes((PROGRAMS / f"{name}.txt").read_bytes())
    out = answer(capsys, str(tmp_path / "old"), str(tmp_path / "new")).out
    assert "removed: all-gather" in out
    assert "jit_g: " in out
    assert "jit_f" not in out


def test_functions(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step.py").write_text(STEP, encoding="utf-8")
    once, looped = "step.py:once", "step.py:looped"
    on = ("--mesh", "data=2,model=4", "--target", "cpu", "--width", "80")
    out = answer(capsys, once, looped, *on, "--fail-on", "new-collective").out
    assert "into a loop: all-gather over model" in out
    assert "×1 to ×6" in out
    # In the loop it has no place; its line is told below the current folder.
    assert "\n    step.py:" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-", "-"), "standard input holds only one program"),
        ((OLD, "nowhere.txt"), "file 'nowhere.txt' does not exist"),
        ((OLD, NEW, "--fail-on", "bites+5%"), "there is no limit 'bites'"),
        (
            (OLD, NEW, "--fail-on", "seconds+5%"),
            "'seconds+5%' limits seconds, which OLD does not have",
        ),
        ((OLD, NEW, "--target", "cpu"), "--target needs a function, and neither program is one"),
        ((OLD, "step.py:f", "--target", "cpu"), "a function needs a mesh"),
        ((OLD, "step.py:f", "--mesh", "X=8"), "a function needs a target"),
        (
            (OLD, "step.py:f", "--mesh", "X=8", "--target", "cpu,v5e:2x4"),
            "2 targets for 1 function",
        ),
        ((OLD, "step.py:f", "--mesh", "X=4", "--target", "cpu"), "file 'step.py' does not exist"),
    ],
)
def test_a_wrong_question(capsys, words, message):
    err = answer(capsys, *words, code=2).err
    assert message in err
    assert "hint: " in err
