"""The page on how good plans are has every kind of problem, and figures that agree."""

import re
from pathlib import Path

import pytest

from tests.planner.optimality import KINDS

PAGE = Path(__file__).parent.parent / "docs" / "optimality.md"
ROW = re.compile(
    r"^\| (.+?) \| (\d+) of (\d+) \| ([\d.]+) \| (\d+) \| ([\d.]+) \| (\d+) \| "
    r"[\d.]+ ms \| (?:\d+, then \d+ of \d+|–) \|$",
    re.MULTILINE,
)


@pytest.fixture(scope="module")
def rows():
    return {row[1]: row for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def test_every_kind_is_on_the_page(rows):
    assert list(rows) == [kind.name for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_figures_of_a_row_agree(rows, kind):
    _, fastest, count, fastest_worst, optimal, worst, true = rows[kind.name].groups()
    assert int(optimal) <= int(count)
    assert int(true) <= int(count)
    assert 1 <= float(fastest_worst) <= float(worst) or fastest != count
