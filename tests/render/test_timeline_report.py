"""The page about a timeline: nothing of it is lost at any width, and what matters most comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.cli.streams import STAND_INS
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.times.gantt import Gantt, memory_lines, most_bytes
from shardviz.render.times.live_memory import misfit_lines
from shardviz.render.times.report import timeline_view
from shardviz.render.times.timeline_rows import TimelineRows, TimeWindow
from shardviz.timeline.program_timeline import MemoryReport
from tests.render.timelines import LAYER, MS, timed


def parts(timeline=LAYER):
    """The words of the rows of a narrow page, by the first of them."""
    lines = [line.split() for line in page(timeline, 79).split("│")[0].splitlines()]
    return {words[0]: words[1:] for words in lines if words}


def page(timeline=LAYER, width=100, verbose=True):
    return "\n".join(line.plain for line in timeline_view(timeline, width, PLAIN, verbose))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("palette", [PLAIN, TRUECOLOR])
def test_every_width_tells_all(width, palette) -> None:
    lines = timeline_view(LAYER, width, palette, verbose=True)
    assert all(line.cell_len <= width for line in lines)
    assert {c for line in lines for c in line.plain if not c.isascii()} <= set(STAND_INS)
    words = " ".join(" ".join(line.plain for line in lines).split())
    for said in (
        "108 ms",
        "61 %",
        "16 ms",
        "largest savings",
        "(net.py:12)",
        "13 GiB of 15.8",
    ):
        assert said in words
    assert "custom-call.7: not in the total" in words


def test_the_parts_are_those_of_the_timeline() -> None:
    rows = parts()
    assert rows["compute"][:2] == ["90", "ms"]
    assert rows["compute"][-2:] == ["83", "%"]
    assert rows["Y"][:4] == ["48", "ms", "16", "ms"]
    hidden = page(replace(LAYER, exposed_seconds=()), width=79)
    assert hidden.count("hidden") == 2


def test_the_lanes_of_a_wide_chart_have_their_times_and_the_critical_path_is_one_of_them() -> None:
    lines = page(verbose=False).splitlines()
    assert len(lines) <= 40
    assert lines[0].startswith("jit_layer on v4:2x2x1: 108 ms, 61 % of its peak FLOP/s")
    assert "  all-gather.1 is exposed for 8 ms: nothing runs beside it" in lines[:3]
    rows = {line.split()[0]: line for line in lines if line}
    assert rows["busy"].split()[:2] == ["busy", "exposed"]
    assert rows["compute"].split()[1:3] == ["90", "ms"]
    assert rows["X"].split()[1:5] == ["60", "ms", "2", "ms"]
    assert rows["Y"].split()[1:5] == ["48", "ms", "16", "ms"]
    path = rows["critical"]
    first, *others = [path.rindex(name) for name in ("all-gather.1", "█matmul██", "matmul fusion.3")]
    assert [first, *others] == sorted([first, *others])
    assert first == rows["Y"].index("all-gather.1")
    # What is one lane's alone needs no line of its own.
    assert "critical" not in page(replace(LAYER, critical_path=(2, 4, 6, 9)), verbose=False)


def test_what_does_not_fit_is_said_first() -> None:
    memory = replace(LAYER.memory, limit_bytes=12 * 2**30)
    lines = page(replace(LAYER, memory=memory)).splitlines()
    assert lines[0].startswith("✗ does not fit: 13 GiB needed, 12 GiB allowed: 1 GiB too much")
    assert "bf16[4096,16384] 1 GiB" in " ".join(lines[:3])
    assert "does not fit" not in page()


def test_a_long_path_lists_its_longest_operations_in_order() -> None:
    path = tuple(range(len(LAYER.ops))) * 3
    lines = page(replace(LAYER, critical_path=path)).split("critical path\n")[1].split("\n\n")[0]
    assert "shorter operations" in lines
    assert len(lines.splitlines()) < len(path)


def test_an_answer_without_operations_or_memory_is_a_page() -> None:
    nothing = replace(
        LAYER,
        ops=(),
        spans=(),
        memory=None,
        critical_path=(),
        savings=(),
        seconds=0.0,
        drawn_seconds=0.0,
        compute_seconds=0.0,
        utilisation=None,
    )
    assert "jit_layer on v4:2x2x1: 0 s" in page(nothing)


def test_the_curve_has_the_most_of_each_column() -> None:
    points = LAYER.memory.curve
    for start in range(36):
        for length in (0.3, 1, 5, 40):
            first, end = start * MS, (start + length) * MS
            live = [
                size
                for i, (time, size) in enumerate(points)
                if time < end and (*points, (1, 0))[i + 1][0] > first
            ]
            assert most_bytes(LAYER.memory, first, end) == max(live)


def test_the_peak_is_marked_in_its_column() -> None:
    rows = TimelineRows(LAYER)
    for width in (40, 80, 200):
        window = TimeWindow.whole(LAYER.drawn_seconds)
        chart = Gantt(rows, width, PLAIN, window)
        lines = memory_lines(chart)
        at = lines[0].plain.index("▼")
        assert at == chart.column_of(LAYER.memory.peak_at)
        tall = max(
            range(chart.left, width),
            key=lambda x: sum(each.plain[x : x + 1] in set("▁▂▃▄▅▆▇█") for each in lines),
        )
        assert abs(tall - at) <= 1
        later = Gantt(rows, width, PLAIN, window.zoom(0.1, 0.9))
        assert "▼" not in memory_lines(later)[0].plain
        assert "←" in memory_lines(later)[0].plain


def test_the_estimates_are_of_branches_that_run() -> None:
    branch = replace(LAYER.ops[2], runs=0, estimate="roofline", seconds=7 * MS)
    assert "7 ms by a roofline" in page(replace(LAYER, ops=(*LAYER.ops, replace(branch, runs=None))))
    assert "by a roofline" not in page(replace(LAYER, ops=(*LAYER.ops, branch)))


def test_a_lane_of_unknown_times_has_no_zero() -> None:
    unknown = tuple(replace(op, seconds=None) if op.lane == 2 else op for op in LAYER.ops)
    found = replace(
        LAYER, ops=unknown, communication_seconds=(("X", 0.0), ("Y", 48 * MS)), exposed_seconds=()
    )
    rows = parts(found)
    assert rows["X"] == ["?", "?"]
    assert rows["Y"] == ["48", "ms", "hidden"]
    nothing = replace(
        found, ops=unknown[5:6], compute_seconds=0.0, communication_seconds=(), savings=(), critical_path=()
    )
    assert parts(nothing)["compute"] == ["?"]


def test_a_path_of_very_many_operations_lists_some() -> None:
    many = replace(LAYER, critical_path=(2,) * 2000)
    assert page(many).count("fusion.1") > 10
    assert "and 1,988 shorter operations" in page(many)


def test_a_bar_is_as_long_with_colours_as_without() -> None:
    """What follows its name is blanks in its colour."""
    psum = timed("psum", "all-reduce", 3, 0, 36, exposed=36 * MS, bound="Y")
    timeline = replace(LAYER, ops=(psum,), spans=(), critical_path=(), savings=())
    plain, coloured = (
        next(line for line in timeline_view(timeline, 100, palette) if "psum" in line.plain)
        for palette in (PLAIN, TRUECOLOR)
    )
    assert plain.cell_len == coloured.cell_len > 90


def test_no_memory_has_no_bar() -> None:
    none = MemoryReport("estimate", 0, 0, 0, 0, 0, 2**30)
    empty = replace(LAYER, ops=(), spans=(), savings=(), critical_path=(), unknown=(), notes=(), memory=none)
    assert page(empty).splitlines()[-1].startswith("peak memory: 0 B of 1 GiB")


@pytest.mark.parametrize(
    ("peak", "allocated", "said"),
    [
        (12 * 2**30, 0.38, "? fits only if the compiler allocates at most 31 % more, of up to 38 %"),
        (11 * 2**30, 0.38, ""),
        (12 * 2**30, 0.0, ""),
    ],
)
def test_an_estimate_that_may_not_fit_says_so(peak, allocated, said):
    """The last is the compiler's own account."""
    memory = MemoryReport("estimate", 0, 0, 0, 0, peak, round(15.75 * 2**30), allocated=allocated)
    assert " ".join(line.plain for line in misfit_lines(memory, 100)).strip() == said
