"""Completion in bash, zsh and fish: the scripts load, and complete commands, options, targets, algorithms."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shardviz.cli.group import COMMANDS, run
from shardviz.cli.process import COMPLETION

SHELLS = ("bash", "zsh", "fish")
LINES = [
    ("shardviz tr", ["translate"]),
    ("shardviz explain --spe", ["--specs"]),
    ("shardviz step psum --topo", ["--topology"]),
    ("shardviz explain 'bd,df->bf' --axis-types ex", ["explicit"]),
    ("shardviz explain 'bd,df->bf' --target v5", ["v5e:2x4", "v5p:2x2x2"]),
    ("shardviz explain 'bd,df->bf' --target shardy,c", ["shardy,cpu"]),
    ("shardviz passes 'bd,df->bf' --target h2", ["h200:8"]),
    ("shardviz tui --target re", ["real"]),
    ("shardviz step psum --algorithm bi", ["bidirectional-ring", "binomial-tree"]),
    ("shardviz explain 'bd,df->bf' --step 2 --algorithm torus-", ["torus-split"]),
    ("shardviz explain 'bd,df->bf' --limit none --round x --algorithm bru", ["bruck"]),
]
"""A command line before the key is pressed, and what its last word may become."""


def asked(monkeypatch: pytest.MonkeyPatch, shell: str, line: str) -> None:
    words = line.split(" ")
    monkeypatch.setenv(COMPLETION, f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))


def completions(shell: str, out: str) -> list[str]:
    """The values in an answer, as the shell's script takes them apart."""
    if shell == "zsh":
        return [value.replace(r"\:", ":") for value in out.splitlines()[1::3]]
    return [line.partition(",")[2].partition("\t")[0] for line in out.splitlines()]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_last_word_is_completed(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for line, expected in LINES:
        asked(monkeypatch, shell, line)
        assert run() == 0
        assert completions(shell, capsys.readouterr().out) == expected, line


@pytest.mark.parametrize("line", ["shardviz ", "shardviz nonsense ", "shardviz --version "])
def test_commands_are_offered_whatever_stands_before(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(monkeypatch, "bash", line)
    assert run() == 0
    out, err = capsys.readouterr()
    assert completions("bash", out) == list(COMMANDS)
    assert err == ""


def test_an_empty_instruction_is_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As click has it."""
    monkeypatch.setenv(COMPLETION, "")
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("shardviz ")


@pytest.mark.parametrize(
    ("instruction", "words"),
    [
        ("csh_source", "COMPLETE is 'csh_source', not a completion request"),
        ("bash_sauce", "COMPLETE is 'bash_sauce', not a completion request"),
        ("bash_complete", "bash_complete reads the command line in COMP_WORDS and COMP_CWORD"),
    ],
)
def test_what_no_shell_asks(
    instruction: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(COMPLETION, instruction)
    assert run() == 2
    message, hint = capsys.readouterr().err.splitlines()
    assert words in message
    assert hint.startswith("hint: ")


IN_SHELLS = {
    "bash": """
        COMP_WORDS=(shardviz explain 'bd' --target shardy,v5e : 2) COMP_CWORD=6
        _shardviz_completion shardviz; [ "${COMPREPLY[*]}" = 2x4 ] || echo "${COMPREPLY[@]}"
        COMP_WORDS=(shardviz explain 'bd' --target v5e : 2x4 --algorithm bru) COMP_CWORD=8 COMPREPLY=()
        _shardviz_completion shardviz; [ "${COMPREPLY[*]}" = bruck ] || echo "${COMPREPLY[@]}"
        COMP_WORDS=(shardviz explain 'bd' --target shardy,c) COMP_CWORD=4 COMPREPLY=()
        _shardviz_completion shardviz; echo "${COMPREPLY[@]}"
        COMP_WORDS=(shardviz expl) COMP_CWORD=1 COMPREPLY=()
        _shardviz_completion shardviz; echo "${COMPREPLY[@]}"
    """,
    # zsh draws what it completes into an editor; here its two ways to offer something are looked at.
    "zsh": """
        _describe() { print -l -- ${(P)3} }
        compadd() { print -l -- ${(P)5} }
        words=(shardviz explain bd --target shardy,c) CURRENT=5
        _shardviz_completion | cut -d: -f1
        words=(shardviz expl) CURRENT=2
        _shardviz_completion | cut -d: -f1
    """,
    "fish": """
        complete -C 'shardviz explain bd --target shardy,c' | cut -f1
        complete -C 'shardviz expl' | cut -f1
    """,
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_loads_its_script_and_completes(shell: str, tmp_path: Path) -> None:
    """As a user's shell does: the script comes from the command, and asks it again."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    program = tmp_path / "shardviz"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m shardviz "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    source = subprocess.run(
        ["shardviz"], env={**environment, COMPLETION: f"{shell}_source"}, capture_output=True, text=True
    )
    assert (source.returncode, source.stderr) == (0, "")
    before = "compdef() { : }\n" if shell == "zsh" else ""
    script = f"{before}{source.stdout}\n{IN_SHELLS[shell]}"
    done = subprocess.run([shell, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert done.stdout.split() == ["shardy,cpu", "explain"]
