"""The page on how good plans are has every kind of problem, and none says wrongly that it is optimal."""

import re
from pathlib import Path

import pytest

from tests.planner.optimality import KINDS

PAGE = Path(__file__).parent.parent / "docs" / "optimality.md"
ROW = re.compile(
    r"^\| (.+?) \| (\d+) of (\d+) \| (\d+) \| ([\d.]+) \| [\d.]+ ms \| (?:(\d+) of \d+|–) \|$", re.MULTILINE
)


@pytest.fixture(scope="module")
def rows():
    return {row[1]: row for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


def test_every_kind_is_on_the_page(rows):
    assert list(rows) == [kind.name for kind in KINDS]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_is_said_to_be_optimal_is(rows, kind):
    _, optimal, count, claimed, worst, beaten = rows[kind.name].groups()
    assert int(claimed) <= int(optimal) <= int(count)
    assert (float(worst) == 1.0) == (optimal == count)
    assert not int(beaten or 0)
