"""What stands behind a file's name: too long a name, a pipe that nobody writes, a socket, a device."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

LONG = "a" * 5000
COMMANDS = [
    ["hlo", "{}"],
    ["diff", "{}", "{}"],
    ["diff", "{}:step", "{}", "--target", "cpu", "--mesh", "X=2"],
    ["profile", "{}"],
    ["program", "{}.py:step", "--mesh", "X=2"],
    ["model", "{}", "--rules", "fsdp", "--mesh", "data=2"],
    ["model", "./{}.json", "--rules", "fsdp", "--mesh", "data=2"],
    ["model", "llama-3-8b", "--rules", "{}.yaml", "--mesh", "data=2"],
    ["explain", "bd,df->bf", "--specs", "__,__", "--machine", "{}.toml", "--target", "none"],
    ["lesson", "./{}.toml"],
]


@pytest.fixture
def odd_files(tmp_path, monkeypatch):
    """A folder with a pipe without a writer, a socket and a link to a device, each under every ending."""
    # A socket's path has at most some 100 characters.
    monkeypatch.chdir(tmp_path)
    for ending in ("", ".py", ".json", ".yaml", ".toml"):
        os.mkfifo(f"pipe{ending}")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(f"socket{ending}")
        Path(f"zero{ending}").symlink_to("/dev/zero")


@pytest.mark.usefixtures("odd_files")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_one_sentence_whatever_a_name_means(words, capsys):
    from shardviz.cli.group import run

    for name in (LONG, "pipe", "socket", "zero"):
        assert run([word.replace("{}", name) for word in words]) == 2
        err = capsys.readouterr().err
        assert err.startswith("shardviz: error: ")
        assert "\nhint: " in err


def test_a_shell_s_own_pipe_is_read(tmp_path):
    program = tmp_path / "program.txt"
    program.write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[4]{0} parameter(0)\n}\n")
    words = f"'{sys.executable}' -m shardviz hlo <(cat '{program}')"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, timeout=60)
    assert "no collective" in done.stdout, done.stderr
