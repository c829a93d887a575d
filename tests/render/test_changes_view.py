"""The page of a diff."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.render.programs.changes_view import changes_view
from shardviz.reports.changes import ReportSummary, SummaryLine, report_changes

GATHER = SummaryLine("all-gather", ("data",), "forward", "w", "bf16[64]→[256]", 4, 512, 384, 0, True)
LOOP = replace(GATHER, runs=None)


def page(before, after):
    found = report_changes(*(ReportSummary((("data", 4),), "", (line,)) for line in (before, after)))
    return "\n".join(line.plain.rstrip() for line in changes_view(found, (), 100))


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (
            GATHER,
            replace(GATHER, runs=1, in_loop=False, bytes=2048, wire_bytes=1536, shape="bf16[256]→[1024]"),
            "≠ out of a loop: all-gather over data"
            "  bf16[64]→[256] to bf16[256]→[1024], ×4 to ×1, 1.5 KiB sent",
        ),
        (
            GATHER,
            replace(GATHER, runs=8),
            "↑ more runs: all-gather over data  bf16[64]→[256], ×4 to ×8, 1.5 KiB to 3 KiB sent",
        ),
        (
            GATHER,
            LOOP,
            "≠ other runs: all-gather over data\n"
            "  bf16[64]→[256], ×4 before, in a loop of unknown length now, 384 B sent per run",
        ),
        (
            LOOP,
            replace(LOOP, bytes=1024, wire_bytes=768),
            "↑ grown: all-gather over data\n"
            "  bf16[64]→[256], in a loop of unknown length, 384 B to 768 B sent per run",
        ),
        (
            GATHER,
            replace(GATHER, overlapped=1),
            "↓ more overlapped: all-gather over data"
            "  bf16[64]→[256], work beside 0 of 4 runs before, 1 of 4 now",
        ),
    ],
)
def test_a_change_has_its_figures(before, after, line):
    assert line in page(before, after)


def test_what_is_not_counted_is_said():
    assert "sent outside of unknown loops  1.5 KiB    0 B" in page(GATHER, LOOP)
    assert "unknown" not in page(GATHER, GATHER)


def test_another_place_is_not_the_same_line():
    told = page(GATHER, replace(GATHER, place="v"))
    assert (
        "no collective changes: 1 line of the summary is the same, 1 of them except the source line" in told
    )
