"""Properties are tested with the same examples in the plain run, and with new ones in each slow run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
from hypothesis import given, settings, strategies

@given(strategies.integers(0, 2**60))
@settings(max_examples=5)
def test_a_property(number):
    print("example", number)

@given(strategies.booleans())
def test_a_property_that_fails(is_right):
    assert is_right

def test_a_case():
    pass
"""


def said_by(folder: Path, *words: str) -> str:
    """What pytest prints of these tests, with the settings and the conftest of this repository."""
    file = folder / "test_properties.py"
    file.write_text(TESTS, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "tests.conftest", "-vrP"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *words, str(file)], cwd=ROOT, capture_output=True, text=True
    )
    assert not done.stderr
    return done.stdout


@pytest.mark.slow
def test_examples_are_the_same_in_the_plain_run_and_others_in_each_slow_run(tmp_path):
    plain = [said_by(tmp_path) for _ in range(2)]
    slow = [said_by(tmp_path, "-m", "slow") for _ in range(2)]
    examples = [re.findall(r"^example (\d+)$", said, re.MULTILINE) for said in (*plain, *slow)]
    assert examples[0] == examples[1] != []
    assert examples[2] != examples[3]
    assert "2 passed" in plain[0]
    assert "1 passed, 1 deselected" in re.sub("1 failed, ", "", slow[0])
    assert all("@reproduce_failure(" in said for said in slow)
