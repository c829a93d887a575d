"""The reasons of collectives on a page: those with one reason are one, with the sum of what they send."""

from __future__ import annotations

import pytest

from shardviz.hlo import read_hlo
from shardviz.notation.mesh import parse_mesh
from shardviz.render.palette import PLAIN
from shardviz.render.programs.cost_lines import why_lines
from shardviz.reports.entries import Selection
from shardviz.reports.program_report import ProgramReport
from shardviz.reports.why import Reason
from tests.reports.entries import entry

MODULE = read_hlo("HloModule m, num_partitions=2\n\nENTRY main {\n}\n", parse_mesh("data=2"))
SUMS, GATHERS = Reason("contraction", "each has a part"), Reason("reshard", "two ways")
ENTRIES = (
    entry("all-reduce", sent=400, source="/me/step.py:1"),
    entry("all-reduce", sent=300, runs=4, source="/me/step.py:2"),
    entry("all-gather", sent=1500, source="/me/step.py:3"),
    entry("all-reduce", sent=200, source="/me/step.py:1"),
    entry("all-reduce", sent=700, source="/me/step.py:1", phase="backward"),
)
TOLD = (SUMS, SUMS, GATHERS, SUMS, SUMS)


def page(width: int = 80, **selection: object) -> list[str]:
    report = ProgramReport(MODULE, ENTRIES)
    lines = why_lines(report, TOLD, Selection(**selection), width, PLAIN)
    return [line.plain for line in lines][2:]


def test_those_of_one_reason_are_summed_and_counted() -> None:
    assert page() == [
        "all-reduce data  1.76 KiB in 3 collectives, step.py:1 and 1 more line",
        "  each has a part",
        "all-gather data  1.46 KiB, step.py:3",
        "  two ways",
        "bwd all-reduce data  700 B, step.py:1",
        "  each has a part",
    ]


def test_the_order_is_that_of_the_sums() -> None:
    heads = page(sort="bytes", ops=("all-gather",))
    assert heads == ["all-gather data  1.46 KiB, step.py:3", "  two ways"]
    assert page(top=1)[-1] == "and 2 more reasons"


@pytest.mark.parametrize("width", [30, 40, 60])
def test_a_narrow_page_has_what_fits(width: int) -> None:
    lines = page(width)
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("all-reduce data  1.76 KiB")
    assert ("in 3 collectives" in lines[0]) == (width == 60)
