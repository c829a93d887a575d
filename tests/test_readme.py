"""Every line of the README that a reader may type does what it says."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from shardviz.cli.entry import run
from shardviz.cli.group import COMMANDS
from shardviz.drafts.reading import read
from shardviz.drafts.share import from_string
from shardviz.notation import NOTATIONS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
LINES = [line for block in BLOCKS for line in block.splitlines() if line.startswith("shardviz ")]


QUICKLY = {"explain": ["--target", "none"], "passes": ["--target", "shardy"], "step": ["--on", "none"]}
"""Who answers here; the real compilers are asked in the tests of their rooms."""
THEIRS = re.compile(r" --hlo\b| --diff \d")
"""What only they can show."""


@pytest.mark.usefixtures("server_that_ends")
@pytest.mark.parametrize("line", LINES)
def test_a_recipe_is_answered(line, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    words = shlex.split(THEIRS.sub("", line), comments=True)[1:]
    assert run([*words, *QUICKLY.get(words[0], [])]) == 0
    assert capsys.readouterr().out


def test_the_shared_string_is_a_problem_without_faults():
    assert read(from_string(re.search(r"--from (shardviz1-\S+)", README)[1]).draft).faults == ()


def test_the_python_code_runs(tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert blocks
    (tmp_path / "session.py").write_text("\n".join(blocks), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    words = [sys.executable, "-W", "error", "session.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "all-reduce over Y" in done.stdout


def test_there_are_recipes_for_every_command():
    assert {line.split()[1] for line in LINES} == set(COMMANDS) - {"info"}


def test_the_table_of_notations_is_whole():
    section = README.split("## Notations")[1]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == [notation.key for notation in NOTATIONS]
