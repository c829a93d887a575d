"""Times in Python: of a plan, of a target's program, of any text, with the pictures that commands write."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import shardviz
from shardviz.errors import QuestionError

PROGRAM = Path(__file__).parent.parent / "benchmarks" / "programs" / "four_layers.txt"


def test_a_text_is_timed_on_a_machine() -> None:
    report = shardviz.read_hlo(PROGRAM.read_text(encoding="utf-8")).timeline("v4:2x2x1")
    assert report.seconds == report.timeline.seconds > 0
    assert report.scheduler is None
    assert "all-gather.1" in repr(report)
    assert "v4:2x2x1" in repr(report)
    assert report.document()["kind"] == "timeline"
    assert "<pre" in report._repr_mimebundle_()["text/html"]
    ElementTree.fromstring(report.svg())
    assert json.loads(report.trace())["traceEvents"]
    assert report.html().startswith("<!doctype html>")


def test_a_named_machine_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "v4:2x2x1"\n[torus]\nbandwidth = "90GB/s"\n', encoding="utf-8")
    report = shardviz.read_hlo(PROGRAM.read_text(encoding="utf-8"))
    assert report.timeline(path).seconds < report.timeline("v4:2x2x1").seconds


def test_a_plan_has_times_and_a_target_without_figures_has_none() -> None:
    answer = shardviz.explain("bd,df->bf", specs="XY,Y_->X_", target="none")
    report = answer.timeline()
    assert [op.op for op in report.timeline.ops] == ["einsum", "psum"]
    assert report.memory is not None
    assert report.memory.peak_bytes == answer.cost.peak_bytes
    with pytest.raises(QuestionError, match="v5e:2x4 was not asked"):
        answer.timeline("v5e:2x4")
    sharded = shardviz.explain("bd,df->bf", specs="XY,Y_->X_", target="shardy")
    with pytest.raises(QuestionError, match="shardy divides a program and does not compile it"):
        sharded.timeline("shardy")


def test_what_is_not_compiled_has_no_times() -> None:
    text = """\
module @m {
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    return %a : tensor<4xf32>
  }
}
"""
    with pytest.raises(QuestionError, match="this is not compiled yet"):
        shardviz.read_hlo(text).timeline()
    with pytest.raises(QuestionError, match="'7' is not a machine"):
        shardviz.read_hlo(PROGRAM.read_text(encoding="utf-8")).timeline(7)  # type: ignore[arg-type]
