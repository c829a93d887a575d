"""The page on how good plans are has every kind of problem."""

import re
from pathlib import Path

from tests.planner.optimality import KINDS

PAGE = Path(__file__).parent.parent / "docs" / "optimality.md"
ROW = re.compile(
    r"^\| (.+?) \| \d+ of \d+ \| [\d.]+ \| \d+ \| [\d.]+ \| \d+ \| "
    r"[\d.]+ ms \| (?:\d+, then \d+ of \d+|–) \|$",
    re.MULTILINE,
)


def test_every_kind_is_on_the_page():
    assert ROW.findall(PAGE.read_text(encoding="utf-8")) == [kind.name for kind in KINDS]
