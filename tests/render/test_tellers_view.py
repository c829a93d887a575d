"""Two tellers of one program: their totals, their charts on one scale."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.errors import QuestionError
from shardviz.render.palette import PLAIN
from shardviz.render.times.report import target_times_view, times_view, totals_table
from shardviz.reports.program_report import TargetTimes, TimesAnswer
from tests.render.timelines import LAYER, MS

SLOWER = replace(
    LAYER,
    ops=tuple(replace(op, start=2 * op.start, end=2 * op.end) for op in LAYER.ops),
    spans=(),
    seconds=216 * MS,
    drawn_seconds=72 * MS,
    memory=None,
    savings=(),
)


def page(times: TargetTimes, width: int = 100) -> list[str]:
    lines = times_view(times, width, PLAIN)
    assert all(line.cell_len <= width for line in lines)
    return [line.plain for line in lines]


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_both_totals_are_told(width: int) -> None:
    words = " ".join(" ".join(page(TargetTimes(LAYER, SLOWER), width)).split())
    assert "216 ms" in words
    assert "108 ms" in words


def test_the_charts_have_one_scale() -> None:
    lines = page(TargetTimes(LAYER, SLOWER), 130)
    ticks = [line for line in lines if "│10 ms" in line]
    assert len(ticks) == 2
    assert ticks[0] == ticks[1]
    first, second = (line for line in lines if line.startswith("compute") and "matmul" in line)
    begins = first.index("matmul"), second.index("matmul")
    left = ticks[0].index("│0")
    assert begins[1] - left == pytest.approx(2 * (begins[0] - left), abs=2)


def test_memory_ends_with_its_program() -> None:
    lines = page(TargetTimes(LAYER, SLOWER))
    foot = lines[lines.index("by the compiler's scheduler") - 2]
    left = next(line for line in lines if "│10 ms" in line).index("│0")
    assert len(foot) - left == pytest.approx((100 - left) / 2, abs=1)


def test_one_teller_says_why_there_is_no_second() -> None:
    lines = page(TargetTimes(LAYER, note="nothing was simulated"))
    assert lines[-1] == "note: nothing was simulated"
    assert "by the model" not in lines


def test_a_target_without_times_has_a_reason_and_its_memory() -> None:
    memory = replace(LAYER.memory, limit_bytes=12 * 2**30)
    answer = TimesAnswer("v5e:2x4", error=QuestionError("nothing was compiled", "take less"), memory=memory)
    lines = [line.plain for line in target_times_view(answer, 100, PLAIN)]
    assert lines[:3] == ["", "no times: nothing was compiled", "  take less"]
    assert lines[3].startswith("✗ does not fit: 13 GiB needed, 12 GiB allowed")
    (mark,) = (line for line in lines if "↑ 12 GiB allowed" in line)
    bar = next(line for line in lines if line.startswith("  █"))
    assert mark.index("↑") - 2 == pytest.approx((len(bar) - 2) * 12 / 13, abs=1)


@pytest.mark.parametrize("width", [40, 100])
def test_compute_that_nobody_can_estimate_is_not_told_as_0(width: int) -> None:
    compute = tuple(replace(op, seconds=None) if op.lane == 0 else op for op in LAYER.ops)
    unknown = replace(LAYER, ops=compute, compute_seconds=0.0)
    words = " ".join(
        line.plain for line in totals_table([("measured", LAYER), ("predicted", unknown)], width)
    )
    assert " ? " in words
    assert "0 s" not in words
