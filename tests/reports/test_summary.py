"""Summaries of compiled programs do not depend on numbers of instructions, lines of files, or their order."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from shardviz.hardware.machine_file import named_machine
from shardviz.reports.changes import report_changes, summary, together
from shardviz.reports.program_report import program_report

PROGRAMS = Path(__file__).parent.parent / "benchmarks" / "programs"
MACHINES = {
    "four_layers": "v4:2x2x1",
    "four_layers_async": "v4:2x2x1",
    "down_projection": "v5e:2x4",
    "gather_first": "v5e:2x4",
    "collective_matmul_async": "v5e:2x4",
}
V4 = named_machine("v4:2x2x1")


def text_of(name):
    return (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")


@cache
def summary_of(text, machine=V4):
    return summary(program_report(text, machine, infer=True))


def renumbered(text):
    """Other numbers in the names of all instructions."""
    return re.sub(
        r"(%[a-z][a-z_-]*)(\.\d+)?\b", lambda name: f"{name[1]}.{int((name[2] or '.0')[1:]) * 7 + 3}", text
    )


def moved(text):
    """Other lines of the same file."""
    return re.sub(r"line=(\d+)", lambda match: f"line={int(match[1]) + 40}", text)


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("changed", [renumbered, moved])
def test_numbers_and_lines_make_no_difference(name, changed):
    text = text_of(name)
    assert changed(text) != text
    machine = named_machine(MACHINES[name])
    assert summary_of(changed(text), machine) == summary_of(text, machine)


def test_what_is_begun_earlier_is_overlapped_and_nothing_else():
    found = report_changes(summary_of(text_of("four_layers")), summary_of(text_of("four_layers_async")))
    (change,) = found.changes
    assert (change.kind, change.before.overlapped, change.after.overlapped) == ("more overlapped", 0, 3)
    assert change.after.runs == 4
    assert found.after.seconds < found.before.seconds
    back = report_changes(found.after, found.before)
    assert [each.kind for each in back.changes] == ["less overlapped"]


def test_the_line_of_the_source_is_told_and_not_compared():
    one, other = (summary_of(text_of("four_layers")), summary_of(moved(text_of("four_layers"))))
    assert one.lines[0].source.endswith("measured_programs.py:86")
    assert other.lines[0].source.endswith("measured_programs.py:126")
    assert one == other


def test_several_programs_together():
    one, other = summary_of(text_of("four_layers")), summary_of(text_of("four_layers_async"))
    both = together({"jit_a": one, "jit_b": other})
    assert both.wire_bytes == one.wire_bytes + other.wire_bytes
    assert both.seconds == pytest.approx(one.seconds + other.seconds)
    assert both.memory == max(one.memory, other.memory)
    assert {line.place.partition(":")[0] for line in both.lines} == {"jit_a", "jit_b"}
    assert together({"jit_a": one}) == one


def test_without_a_machine_there_are_no_seconds():
    found = summary_of(text_of("four_layers"), None)
    assert (found.machine, found.seconds, found.memory) == ("", None, None)
    assert found.lines == summary_of(text_of("four_layers")).lines
