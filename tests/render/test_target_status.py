"""The lines above a program: targets, the list of stages."""

from __future__ import annotations

import pytest

from shardviz.hlo.dumps import PassStage
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.palette import PLAIN
from shardviz.render.programs.passes_view import stage_list
from shardviz.render.programs.target_answers import SPINNER, STILL, TargetTab, Wait, target_strip, wait_lines

TABS = (
    TargetTab("shardy", "✓", "12 ms"),
    TargetTab("cpu", "⠋", "1.2 s"),
    TargetTab("v5e:2x4", "·", "waiting"),
)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, "  shardy ✓ 12 ms  ❯ cpu ⠋ 1.2 s    v5e:2x4 · waiting"),
        (45, "  shardy ✓  ❯ cpu ⠋ 1.2 s    v5e:2x4 ·"),
        (32, "  shardy ✓  ❯ cpu ⠋    v5e:2x4 ·"),
        (31, "2/3 ❯ cpu ⠋ 1.2 s"),
        (12, "2/3 ❯ cpu ⠋…"),
    ],
)
def test_as_many_words_as_fit(width, shown):
    assert target_strip(TABS, 1, width).plain == shown


KINDS = ("input", "propagation", "partitioner", "rewrite", "rewrite", "schedule")


def test_one_stage_is_shown_in_full():
    problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="XY,Y_->X_")
    stages = [PassStage(kind, f"{kind} of [{{U_Y}}] {'x' * 60}", f"pass of {kind}", (), ()) for kind in KINDS]
    lines, chosen = stage_list(stages, 2, problem, 50, PLAIN)
    shown = [line.plain for line in lines]
    assert max(map(len, shown)) <= 50
    assert shown[0].startswith(" 1  input of [{U_Y}] xxx")
    assert shown[0].endswith("…")
    assert shown[chosen.start].startswith(" 3  partitioner of [{U_Y}]")
    assert "pass of partitioner" in "\n".join(shown[chosen.start : chosen.stop])
    assert len(lines) == 5 + len(chosen)


WAITS = [Wait("cpu", "compiling", 1.24), Wait("v5e:2x4", "waits", None)]


def test_who_is_asked_turns_and_tells_the_time():
    lines = [line.plain for line in wait_lines(WAITS, 60, True)]
    assert lines == [f"{SPINNER[2]} cpu      compiling  1.2 s", "· v5e:2x4  waits"]
    signs = {
        wait_lines([Wait("cpu", "compiling", tenth / 10 + 0.05)], 60, True)[0].plain[0] for tenth in range(10)
    }
    assert signs == set(SPINNER)


def test_nothing_turns_where_nothing_may_move():
    assert wait_lines(WAITS, 60, False)[0].plain.startswith(f"{STILL} cpu")


def test_narrow_pages_have_lines_that_fit():
    lines = wait_lines([Wait("2*v5e:4x4", "describing the hardware", 12.0)], 24, True)
    assert max(line.cell_len for line in lines) <= 24
