"""Who has not answered yet."""

from __future__ import annotations

from shardviz.render.programs.wait_lines import SPINNER, STILL, Wait, wait_lines

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
