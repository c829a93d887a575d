"""A machine that is written is the one that is read back."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from shardviz.hardware.links import LinkSpec
from shardviz.hardware.machine_file import machine_toml, named_machine, read_machine
from shardviz.hardware.measured import MeasuredTimes, Regime
from shardviz.hardware.measured_tables import links_of_groups
from shardviz.notation import parse_mesh

NAMES = (
    "v2:2x2",
    "v3:4x4",
    "v4:4x4x4",
    "v5e:4x4",
    "v5p:4x4x8",
    "2*v6e:4x4",
    "tpu7x:2x2x2",
    "a100:8",
    "h100:2x8",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_known_machine_is_read_back(name):
    machine = named_machine(name)
    assert read_machine(machine_toml(machine)) == machine


def test_what_was_measured_is_read_back():
    machine = named_machine("h100:2x8")
    mesh = parse_mesh("D=2,T=8")
    regimes = (Regime(4096, 12.5e-6, 2e11, 1e-6, 3e9), Regime(2**20, 0.0, 1e11))
    measured = tuple(
        MeasuredTimes(op, str(mesh), axes, regimes, links_of_groups(machine, op, mesh, axes), "bf16", 0.05)
        for op in ("psum", "ppermute")
        for axes in (("D",), ("T",), ("D", "T"))
    )
    machine = replace(machine, measured=measured)
    found = read_machine(machine_toml(machine))
    assert replace(found, measured=()) == replace(machine, measured=())
    for own, other in zip(machine.measured, found.measured, strict=True):
        assert replace(own, regimes=()) == replace(other, regimes=())
        for one, read in zip(own.regimes, other.regimes, strict=True):
            assert vars(read) == pytest.approx(vars(one))


def test_texts_are_escaped_and_comments_stand_above():
    machine = replace(named_machine("a100:8"), source='he said "no\\yes"')
    machine = replace(machine, family=machine.family.with_links({"switch": LinkSpec(0.0, float("inf"))}))
    text = machine_toml(machine, "written by hand\n\nnot complete")
    assert text.startswith("# written by hand\n#\n# not complete\nname = ")
    assert tomllib.loads(text)["source"] == machine.source
    assert read_machine(text) == machine
