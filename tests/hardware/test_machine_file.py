"""Machines from names and from TOML: every figure can be given, and what is wrong is refused at its key;
what is written reads back."""

from __future__ import annotations

import math
import os
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from shardviz.errors import QuestionError
from shardviz.hardware import chips
from shardviz.hardware.chip_torus import ChipTorus
from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.family import SwitchedNodes
from shardviz.hardware.links import LINK_FIGURES, LinkSpec
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import MachineFileError, machine_toml, named_machine, read_machine
from shardviz.hardware.measured import MeasuredTimes, Regime, links_alike
from shardviz.notation.mesh import parse_mesh

PAGE = (Path(__file__).parents[2] / "docs" / "machines.md").read_text(encoding="utf-8")


def rings(family):
    return tuple(axis.kind == "ring" for axis in family.torus)


def test_a_name_is_the_machine_of_the_cluster():
    assert named_machine(" V5P-128 ") == parse_cluster("v5p:4x4x4")


def test_a_base_keeps_what_is_not_given():
    base = named_machine("v5p:4x4x8")
    assert read_machine('base = "v5p:4x4x8"\nname = "ours"\nsource = "told"') == type(base)(
        **(vars(base) | {"name": "ours", "source": "told"})
    )


def test_every_figure_can_be_given():
    found = read_machine(
        """
        name = "ours"
        source = "measured"
        chip = "v4"
        [device]
        peak = {bf16 = "200TFLOP/s", int8 = "400 TOP/s"}
        hbm = "32GiB"
        usable_hbm = "30GiB"
        hbm_bandwidth = "1.1TB/s"
        on_chip = "32MiB"
        clock = "1.05GHz"
        [torus]
        shape = "4x2x1"
        wrap = [true, false, false]
        bandwidth = ["45GB/s", "40GB/s", "40GB/s"]
        latency = "2us"
        slices = 2
        devices_per_chip = 2
        [cores]
        bandwidth = "100GB/s"
        latency = "1us"
        [network]
        bandwidth = "5GB/s"
        latency = "4us"
        """
    )
    assert found.device == DeviceFigures(
        (("bf16", 2e14), ("s8", 4e14)), 32 * 2**30, 30 * 2**30, 1.1e12, 32 * 2**20, 1.05e9
    )
    assert (found.name, found.source, found.chip, found.devices) == ("ours", "measured", "v4", 32)
    family = found.family
    assert (family.torus_sizes, rings(family), family.slices) == ((4, 2, 1), (True, False, False), 2)
    assert [axis.link for axis in family.torus] == [LinkSpec(2e-6, rate) for rate in (4.5e10, 4e10, 4e10)]
    assert family.links["chip"] == LinkSpec(1e-6, 1e11)
    assert found.network == LinkSpec(4e-6, 5e9)


def test_another_shape_wraps_as_its_chip_does():
    smaller = read_machine('base = "v5p:4x4x8"\n[torus]\nshape = [2, 2, 2]')
    larger = read_machine('base = "v5p:2x2x2"\n[torus]\nshape = "4x4x4"')
    assert (rings(smaller.family), rings(larger.family)) == ((False,) * 3, (True,) * 3)


def test_nodes_of_another_size():
    found = read_machine('base = "b200:8"\n[node]\ndevices = 72\n[network]\nbandwidth = 5e10\nlatency = 0')
    assert (found.devices, found.family.dimensions[0].size, found.network) == (72, 72, LinkSpec(0, 5e10))


def test_the_files_of_the_page_are_read():
    texts = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert [read_machine(text).devices for text in texts] == [16, 16, 16, 8]


def test_a_link_may_be_unlimited():
    family = read_machine('base = "v5e:4x4"\n[torus]\nbandwidth = "inf"').family
    assert family.torus[0].link.bandwidth == math.inf


def test_the_page_names_every_key():
    from shardviz.hardware import machine_file as file

    tables = ("device", "torus", "cores", "node", "network", "measured")
    keys = {key for key in file.KEYS if key not in tables}
    for table, own in (
        ("device", chips.DEVICE_KEYS),
        ("torus", ChipTorus.keys),
        ("cores", LINK_FIGURES),
        ("node", SwitchedNodes.keys),
        ("network", LINK_FIGURES),
    ):
        keys |= {f"{table}.{key}" for key in own}
    rows = "\n".join(line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `"))
    named = {key for key in re.findall(r"`([\w.]+)`", rows) if not key.startswith("measured.")}
    assert named == keys


BASE = 'base = "v5e:4x4"\n'


@pytest.mark.parametrize(
    ("text", "where", "hint"),
    [
        ("[device]\nhbn = 1", "line 2: device.hbn: there is no such key", "hbm"),
        (f"{BASE}[device]\nhbm_bandwith = 1", "line 3: device.hbm_bandwith: ", "bandwidth?"),
        (f'{BASE}[torus]\nbandwidth = "45"', "torus.bandwidth: '45' has no unit of bandwidth", "45GB/s"),
        (f'{BASE}[torus]\nbandwidth = "45GBs"', "torus.bandwidth: 'GBs' is not a unit", "45GB/s"),
        (
            f"{BASE}[torus]\nbandwidth = 45",
            "line 3: torus.bandwidth: 45 is outside the range 1 MB/s",
            "45GB/s",
        ),
        (f"{BASE}[torus]\nbandwidth = {'9' * 400}", "line 3: torus.bandwidth: 999", "45GB/s"),
        (
            f'{BASE}[torus]\nbandwidth = "1e400GB/s"',
            "torus.bandwidth: 1e400GB/s is outside the range",
            "45GB/s",
        ),
        (f"{BASE}[torus]\nlatency = 5", "line 3: torus.latency: 5 is outside the range 0 to 1 s", "1us"),
        (f'{BASE}[torus]\nlatency = "-1us"', "torus.latency: -1us is outside the range 0 to 1 s", "1us"),
        (f"{BASE}[torus]\nlatency = nan", "torus.latency: nan is outside the range 0 to 1 s", "1us"),
        (f'{BASE}[torus]\nbandwidth = ["1GB/s"]', "torus.bandwidth: it has 1 value", "2, one for each axis"),
        (f'{BASE}[torus]\nshape = "4by4"', "torus.shape: '4by4' is not the shape of a torus", "4x4x8"),
        (f'{BASE}[torus]\nshape = "1000x1000"', "torus: it makes 1,000,000 devices", "32,768"),
        (
            f"{BASE}[torus]\nslices = 0",
            "line 3: torus.slices: 0 is outside the range 1 to 32,768",
            "whole number",
        ),
        (f"{BASE}[torus]\nslices = true", "torus.slices: it is a truth value, not a number", None),
        (f"{BASE}[torus]\nwrap = [true]", "torus.wrap: '[True]' is not one truth value", "[true, true]"),
        (f"{BASE}[node]\ndevices = 8", "line 2: node: v5e has a torus", "[torus]"),
        ('base = "h100:8"\n[torus]\nshape = "2x2"', "line 2: torus: h100 has nodes", "[node]"),
        (f"{BASE}[device]\npeak.bf61 = 1e14", "device.peak.bf61: unknown dtype", "bf16"),
        (
            f"{BASE}[device]\npeak.bf16 = 197",
            "device.peak.bf16: 197 is outside the range 1 GFLOP/s",
            "TFLOP/s",
        ),
        (f'{BASE}[device]\nusable_hbm = "17GiB"', "device.usable_hbm: it is more than the HBM", None),
        ('base = "v5q:4x4"', "line 1: base: unknown chip 'v5q'", "did you mean"),
        ('base = "other.toml"', "base: it is another file", "v5p:4x4x8"),
        ('base = "./other"', "base: it is another file", "v5p:4x4x8"),
        (f'{BASE}name = " "', "line 2: name: the text is empty", "leave it out"),
        (f'{BASE}chip = ""', "line 2: chip: the text is empty", "leave it out"),
        ("base = 5", "line 1: base: it is a number, not a text", None),
        ('[node]\nbandwidth = "1GB/s"', "node.devices: it is missing", "how many"),
        ("[node]\ndevices = 8", "node.bandwidth: it is missing", "45GB/s"),
        ('[node]\ndevices = 8\ncount = 2\nbandwidth = "1GB/s"', "network: it is missing", "[network]"),
        ("", "torus: it is missing", 'base = "v5p:4x4x8"'),
        ("base = ", "it is not TOML: Invalid value (at end of document)", "line"),
        ("a = " + "[" * 5000, "it is not TOML", "line"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_at_its_key(text, where, hint):
    with pytest.raises(MachineFileError) as error:
        read_machine(text)
    assert where in error.value.message
    assert error.value.message.startswith("'machine.toml'")
    assert hint is None or hint in error.value.hint


def test_a_file_at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "ours.toml").write_text('base = "v5e:2x4"')
    assert named_machine("~/ours.toml").name == "ours"
    with pytest.raises(QuestionError, match="cannot be read"):
        named_machine("~nobody-of-that-name/ours.toml")


def test_a_file_of_an_editor_that_marks_its_encoding(tmp_path):
    (tmp_path / "ours.toml").write_bytes(b'\xef\xbb\xbfbase = "v5e:4x4"\r\n[torus]\r\nwrap = true\r\n')
    assert rings(named_machine(str(tmp_path / "ours.toml")).family) == (True, True)


def test_a_file_that_cannot_be_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "long.toml").write_text("#" * 70_000)
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe4'")
    reasons = {
        "none.toml": "does not exist",
        "pipe.toml": "is not a file",
        "folder.toml": "is not a file|cannot be read",
        "long.toml": "has more than 64,000 bytes",
        "latin.toml": "is not text in UTF-8",
        "nul\0.toml": "cannot be read",
    }
    for name, reason in reasons.items():
        with pytest.raises(QuestionError, match=reason):
            named_machine(str(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("v5q:4x4", "unknown chip 'v5q' at character 1 of 'v5q:4x4'"),
        ("v5p", "v5p has no size at character 1 of 'v5p'"),
        ("cpu", "'cpu' is not a machine"),
        ("my-cluster", "'my-cluster' is not a machine"),
    ],
)
def test_names_of_no_hardware(name, message):
    with pytest.raises(QuestionError) as error:
        named_machine(name)
    assert error.value.message == message
    assert error.value.hint


WRITTEN = (
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


@pytest.mark.parametrize("name", WRITTEN)
def test_a_known_machine_is_read_back(name):
    machine = named_machine(name)
    assert read_machine(machine_toml(machine)) == machine


def test_what_was_measured_is_read_back():
    machine = named_machine("h100:2x8")
    mesh = parse_mesh("D=2,T=8")
    regimes = (Regime(4096, 12.5e-6, 2e11, 1e-6, 3e9), Regime(2**20, 0.0, 1e11))
    measured = tuple(
        MeasuredTimes(
            op,
            str(mesh),
            axes,
            regimes,
            links_alike(place_mesh(machine, mesh).levels_for(op, axes)),
            "bf16",
            0.05,
        )
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


@pytest.mark.parametrize(
    ("device", "share"),
    [("hbm_bandwidth = 3.1e12", 0.63), ("peak.bf16 = 7e14", None), ('matmuls = "b200"', None)],
)
def test_a_peak_of_its_own_does_not_keep_the_share_of_published_runs(device, share):
    assert read_machine(f'base = "h100:8"\n[device]\n{device}').reached == share


def test_links_between_each_pair_are_written_and_read():
    machine = named_machine("mi300x:2x8")
    assert read_machine(machine_toml(machine)).family.dimensions[0].direct
    assert read_machine('base = "mi300x:8"\n[node]\nbandwidth = "48GB/s"').family.dimensions[0].direct
    with pytest.raises(MachineFileError, match=r"node\.bandwidth: it is missing"):
        read_machine('base = "trn2:64"\n[node]\nlatency = "1us"')
    unpublished = read_machine('base = "trn2:64"\n[node]\ndevices = 16')
    assert read_machine(machine_toml(unpublished)) == unpublished
    assert unpublished.family.lacks_links
