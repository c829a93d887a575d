"""`shardviz profile` and the pictures of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shardviz.cli.group import run
from tests.profiles.traces import TPU_TEXT, tpu_plane, xspace

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def tpu(tmp_path: Path) -> list[str]:
    """The words for a profile of four TPUs and its text."""
    planes = {f"/device:TPU:{number}": tpu_plane(late=5.0 * number) for number in range(4)}
    (tmp_path / "vm.xplane.pb").write_bytes(xspace(planes))
    (tmp_path / "step.txt").write_text(TPU_TEXT, encoding="utf-8")
    return [str(tmp_path), "--hlo", str(tmp_path / "step.txt"), "--mesh", "data=4"]


def test_a_folder_with_its_own_program(profiled_folder: Path, capsys: Capture) -> None:
    assert run(["profile", str(profiled_folder), "--mesh", "X=2,Y=4", "--width", "100", "-v"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("jit_step: 2 steps of ")
    assert "mesh X=2,Y=4" in out
    assert max(map(len, out.splitlines())) <= 100
    for words in ("devices", "CPU 7", "median", "collectives", "all-reduce.4  Y", "waited for", "measured"):
        assert words in out


def test_the_document(tpu: list[str], capsys: Capture) -> None:
    assert run(["profile", *tpu, "--machine", "v5e:2x2", "--step", "1", "--device", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["program"], found["drawn_step"], found["timeline"]["machine"]) == ("jit_step", 1, "TPU 3")
    assert found["timeline"]["idle_seconds"] == pytest.approx(30e-6)
    assert {op["estimate"] for op in found["timeline"]["ops"]} == {"measured"}
    assert found["predicted"]["machine"] == "v5e:2x2"
    assert found["predicted"]["idle_seconds"] == 0


@pytest.mark.parametrize("width", [40, 120])
def test_every_width_has_the_figures(width: int, tpu: list[str], capsys: Capture) -> None:
    assert run(["profile", *tpu, "--machine", "v5e:2x2", "--width", str(width)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    for words in ("all-reduce.3", "15 µs", "6.55 GB/s", "22.5 µs"):
        assert words in out


@pytest.mark.parametrize("form", ["svg", "trace"])
def test_what_was_measured_stands_above_the_prediction(form: str, tpu: list[str], capsys: Capture) -> None:
    assert run(["export", form, "profile", *tpu, "--machine", "v5e:2x2"]) == 0
    out = capsys.readouterr().out
    assert 0 < out.index("on TPU 0") < out.index("on v5e:2x2")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "file 'nowhere' does not exist"),
        (["{}", "--hlo", "nowhere.txt"], "file 'nowhere.txt' does not exist"),
        (["{}", "--device-order", "0,1"], "--device-order needs a mesh"),
        (["{}", "--machine", "v99"], "v99"),
        (["{}", "--step", "12"], "the profile has no step 12"),
    ],
)
def test_what_cannot_be_answered(words: list[str], said: str, tpu: list[str], capsys: Capture) -> None:
    assert run(["profile", *(word.format(tpu[0]) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "hint: " in err
    assert "Traceback" not in err
