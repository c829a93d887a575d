"""A saved report as a page: the figures of the whole, the most bytes first, nothing that is not known."""

from __future__ import annotations

import pytest

from shardviz.render.programs.changes_view import MAX_LINES, summary_view
from shardviz.reports.changes import ReportSummary, SummaryLine


def line(op="all-reduce", runs=1, wire_bytes=1024, place="layer", overlapped=0):
    return SummaryLine(op, ("X",), "forward", place, "f32[8]", runs, 2048, wire_bytes, overlapped)


def page(*lines, width=100, **figures):
    return [
        each.plain for each in summary_view(ReportSummary((("X", 4),), "v5e:2x2", lines, **figures), width)
    ]


def test_the_figures_of_the_whole_come_first_and_the_most_bytes_next():
    text = page(line("all-gather"), line(runs=3, overlapped=2), seconds=0.0123, memory=2**30)
    assert text[:2] == [
        "mesh X=4, machine v5e:2x2",
        "4 KiB sent per device  12.3 ms total  1 GiB of peak memory",
    ]
    assert text[5:] == [
        "all-reduce over X  f32[8], ×3, 3 KiB sent, work beside 2 of 3 runs",
        "    layer",
        "all-gather over X  f32[8], ×1, 1 KiB sent",
        "    layer",
    ]


def test_a_loop_of_unknown_length_is_not_in_the_sum():
    text = "\n".join(page(line(runs=None)))
    assert "0 B sent outside of unknown loops" in text
    assert "in a loop of unknown length, 1 KiB sent per run" in text


@pytest.mark.parametrize("width", [40, 120])
def test_it_fits_and_ends(width):
    text = page(*[line(place=f"layer {number}") for number in range(MAX_LINES + 3)], width=width)
    assert max(map(len, text)) <= width
    assert text[-1] == "… and 3 more lines"
    assert page()[-1] == "no collective: nothing is sent"
