"""Every line of the README that a reader may type does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from shardviz.cli.entry import run
from shardviz.notation import NOTATIONS

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines() if line.startswith("shardviz ")]


@pytest.mark.parametrize("line", LINES)
def test_a_recipe_is_answered_by_the_planner(line, capsys):
    words = shlex.split(line, comments=True)[1:]
    words += {"explain": ["--target", "none"], "step": ["--on", "none"]}.get(words[0], [])
    assert run(words) == 0
    assert capsys.readouterr().out


def test_there_are_recipes_for_every_command():
    assert {line.split()[1] for line in LINES} == {"explain", "layout", "step", "translate"}


def test_the_table_of_notations_is_whole():
    assert re.findall(r"^\| `(\w+)` \|", README, re.MULTILINE) == [notation.key for notation in NOTATIONS]
