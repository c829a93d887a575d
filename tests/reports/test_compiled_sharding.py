"""Rows of a search compiled by the machine's compiler: times beside the estimates."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from shardviz.hardware.machine_file import named_machine
from shardviz.planner.search.mesh_ranking import best_meshes
from shardviz.planner.search.program_tables import PipelineStage
from shardviz.planner.search.question import question_from_text
from shardviz.planner.search.rules import parse_axes
from shardviz.reports.trials import (
    CompiledSharding,
    by_compiled_time,
    compiled_sharding,
    one_layer,
)
from shardviz.targets import parse_targets
from tests.compiler.test_costs import HAS_TPU

ROW = SimpleNamespace(time=SimpleNamespace(work=1.0, exposed=0.5, seconds=1.5))


def test_a_figure_far_from_the_estimate_is_named():
    row = CompiledSharding(ROW, seconds=2.6, work=1.1, exposed=1.5)
    assert row.differences == (("exposed communication", 0.5, 1.5),)
    assert CompiledSharding(ROW, seconds=1.5, work=1.0, exposed=0.5).differences == ()
    assert CompiledSharding(ROW, error="too large").differences == ()


def test_rows_are_ranked_by_the_schedule_and_those_without_one_come_last():
    rows = [CompiledSharding(ROW, error="no"), *(CompiledSharding(ROW, seconds=each) for each in (2.0, 1.0))]
    assert [row.seconds for row in by_compiled_time(rows)] == [1.0, 2.0, None]


@HAS_TPU
@pytest.mark.since_jax("0.10", "its libtpu leaves no schedule")
def test_the_compiler_of_a_tpu_is_asked(worker):
    question = question_from_text(
        "bd,df->bf; bf,fd->bd x 2",
        named_machine("v5e:2x4"),
        parse_axes("data=2,tensor"),
        sizes="b=2048,d=2048,f=8192",
    )
    rows = best_meshes(question).found
    (target,) = parse_targets("v5e:2x4")
    answer = worker.submit(one_layer(question, rows[0]), target, with_costs=True).result()
    row = compiled_sharding(question, rows[0], answer)
    assert row.error == ""
    assert 0.5 < row.seconds / row.found.seconds < 4
    assert row.exposed > 0
    assert row.memory_bytes > 0
    # A stage has one of the two layers, and waits for an eighth of its work.
    staged = replace(rows[0], stage=PipelineStage("pipeline", 2, 1, 8))
    assert compiled_sharding(question, staged, answer).seconds == pytest.approx(row.seconds / 2 * 1.125)
