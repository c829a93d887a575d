"""Command lines that go on below."""

from __future__ import annotations

import subprocess

import pytest

from shardviz.render.command_lines import command_lines

STEP = "shardviz step psum --mesh i=4 --data 3,1,4,1,5,9,2,6,5,3,5,8,9,7,1,2 --perm '(0,1), (1,0)' --untiled"


@pytest.mark.parametrize("width", [20, 40, 60, 200])
def test_a_command_in_lines_is_the_same_command_to_a_shell(width):
    lines = command_lines(STEP, width)
    assert all(len(line) <= width or len(line.strip(" \\").split(" ")) == 1 or "'" in line for line in lines)
    shells = [
        subprocess.run(
            ["sh", "-c", f"shardviz() {{ printf '%s\n' \"$@\"; }}\n{text}"], capture_output=True, check=True
        ).stdout
        for text in (STEP, "\n".join(lines))
    ]
    assert shells[0] == shells[1] != b""
    assert len(lines) == 1 or width < len(STEP)


def test_an_option_stands_beside_its_value_where_both_fit():
    assert command_lines(STEP, 40) == [
        "shardviz step psum --mesh i=4 --data \\",
        "  3,1,4,1,5,9,2,6,5,3,5,8,9,7,1,2 \\",
        "  --perm '(0,1), (1,0)' --untiled",
    ]
