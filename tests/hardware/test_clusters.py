"""Names of TPUs and GPUs: what they mean, what is wrong with others, and that the TPU compiler agrees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product

import pytest

from shardviz.compiler.child_process import environment_for
from shardviz.errors import TargetError
from shardviz.forms.form import ProblemForm
from shardviz.hardware.chips import TPUS
from shardviz.hardware.clusters import machines_of_size
from shardviz.notation.mesh import parse_mesh
from shardviz.targets import check_mesh, parse_targets
from shardviz.targets.hardware import TopologyRequest, target_groups, topology_request

EIGHT_H100 = ("8h100", "h100x8", "h100 x 8", "8 H100s", "8*h100")


@pytest.mark.parametrize(
    ("text", "name", "devices", "asked"),
    [
        ("v5e:2x4", "v5e:2x4", 8, TopologyRequest("tpu", "v5e:2x4")),
        ("v2:2x2", "v2:2x2", 8, TopologyRequest("tpu", "v2:2x2")),
        ("v4:2x2x1", "v4:2x2x1", 4, TopologyRequest("tpu", "v4:2x2x1", (("chip_config_name", "megacore"),))),
        ("v5:2x2x2", "v5p:2x2x2", 8, TopologyRequest("tpu", "v5p:2x2x2")),
        ("7x:2x2x1", "tpu7x:2x2x1", 8, TopologyRequest("tpu", "tpu7x:2x2x1")),
        ("v7x:2x2x1", "tpu7x:2x2x1", 8, TopologyRequest("tpu", "tpu7x:2x2x1")),
        ("2*v5e:4x4", "2*v5e:4x4", 32, TopologyRequest("tpu", "v5e:4x4", (("num_slices", 2),))),
        ("1*v5e:4x4", "v5e:4x4", 16, TopologyRequest("tpu", "v5e:4x4")),
        ("v5e:04×4", "v5e:4x4", 16, TopologyRequest("tpu", "v5e:4x4")),
        ("h100:8", "h100:8", 8, TopologyRequest("cuda", "1x1x8", (("gpu", "h100"),))),
        ("h100:2x8", "h100:2x8", 16, TopologyRequest("cuda", "1x2x8", (("gpu", "h100"),))),
        ("a100:1x4", "a100:4", 4, TopologyRequest("cuda", "1x1x4", (("gpu", "a100"),))),
        ("v5p-128", "v5p:4x4x4", 64, TopologyRequest("tpu", "v5p:4x4x4")),
        ("v5e-8", "v5e:2x4", 8, TopologyRequest("tpu", "v5e:2x4")),
        ("v5litepod-256", "v5e:16x16", 256, TopologyRequest("tpu", "v5e:16x16")),
        ("v4-32", "v4:2x2x4", 16, TopologyRequest("tpu", "v4:2x2x4", (("chip_config_name", "megacore"),))),
        ("V4-8", "v4:2x2x1", 4, TopologyRequest("tpu", "v4:2x2x1", (("chip_config_name", "megacore"),))),
        ("tpu7x-8", "tpu7x:2x2x1", 8, TopologyRequest("tpu", "tpu7x:2x2x1")),
        ("v7x-128", "tpu7x:4x4x4", 128, TopologyRequest("tpu", "tpu7x:4x4x4")),
        ("v2-8", "v2:2x2", 8, TopologyRequest("tpu", "v2:2x2")),
        ("v6e-16", "v6e:4x4", 16, TopologyRequest("tpu", "v6e:4x4")),
        ("2*v5e-16", "2*v5e:4x4", 32, TopologyRequest("tpu", "v5e:4x4", (("num_slices", 2),))),
        ("8xh100", "h100:8", 8, TopologyRequest("cuda", "1x1x8", (("gpu", "h100"),))),
        ("16xH100", "h100:2x8", 16, TopologyRequest("cuda", "1x2x8", (("gpu", "h100"),))),
        *(
            (text, "v5e:2x4", 8, TopologyRequest("tpu", "v5e:2x4"))
            for text in ("v5e8", "8xv5e", "8 v5e", "tpu v5e-8")
        ),
        *((text, "h100:8", 8, TopologyRequest("cuda", "1x1x8", (("gpu", "h100"),))) for text in EIGHT_H100),
        ("8xv5p", "v5p:2x2x2", 8, TopologyRequest("tpu", "v5p:2x2x2")),
        ("b200-4", "b200:4", 4, TopologyRequest("cuda", "1x1x4", (("gpu", "b200"),))),
    ],
)
def test_what_a_name_means(text, name, devices, asked):
    (target,) = parse_targets(text)
    assert (target.name, target.max_devices, topology_request(target.machine)) == (name, devices, asked)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("v5e:0x4", "v5e has no axis of 0 at character 5 of 'v5e:0x4'", "sizes are 1 or more"),
        ("cpu,v5e:3x3", "3 chips along x do not fill whole hosts", "v5e:2x2 or v5e:4x4"),
        ("v5p:4x3x2", "3 chips along y do not fill whole hosts", "v5p:4x2x2 or v5p:4x4x2"),
        ("v5p:4x4", "v5p is a torus of 3 axes, not 2, at character 5", "write v5p:4x4x1"),
        ("v5e:2x4x1", "v5e is a torus of 2 axes, not 3", "write v5e:2x4"),
        ("v5e:8x8x8", "v5e is a torus of 2 axes, not 3", "another chip with 3 axes"),
        ("v5e:8", "v5e is a torus of 2 axes, not 1", "write v5e:2x4 for 8 chips"),
        ("8*v5e", "v5e has no size", "write v5e:2x4 for 8 chips, 8*v5e:2x4 for 8 slices"),
        ("v5p8", "'v5p8' may count chips or cores at character 1", "v5p:2x2x2 for 8 chips, or v5p-8, which"),
        ("v5p9", "no slice of v5p has 9 chips", "v5p:2x2x1"),
        ("cpu,h1008", "unknown target 'h1008' at character 5", "did you mean h100:8?"),
        ("h100-80gb", "unknown target 'h100-80gb'", "did you mean h100:8?"),
        ("2xv5e-16", "unknown target '2xv5e-16'", "did you mean v5e:2x4?"),
        ("v5e-4x8", "unknown target 'v5e-4x8'", "did you mean v5e:4x8?"),
        ("h100*8", "unknown target 'h100*8'", "did you mean h100:8?"),
        ("v5e:99998x2", "v5e:99998x2 is larger than a pod at character 5", "up to 16x16; 2*v5e:4x4 joins"),
        ("v5e:32x2", "v5e:32x2 is larger than a pod", "up to 16x16"),
        ("v5p:32x32x32", "v5p:32x32x32 is larger than a pod", "up to 8,960 chips"),
        ("v5e:2x16", "the TPU compiler has no routes for v5e:2x16 at", "use v5e:4x8"),
        ("v5e:10x12", "the TPU compiler has no routes for v5e:10x12", "use v5e:"),
        ("v5e:99999999999999999999x4", "'99999999999999999999' is too large at character 5", "v5e:2x4"),
        ("99999999999*v5e:4x4", "'99999999999' is too large at character 1", "2*v5e:2x4 for two slices"),
        ("2*", "a chip is missing at the end of '2*'", "the chips are v2, v3"),
        ("v1:2x2", "unknown chip 'v1' at", "the chips are v2, v3"),
        ("v5e:-2x4", "'-2' is not a number at character 5", "v5e:2x4"),
        ("v5e:2x", "a number is missing at the end of 'v5e:2x'", "v5e:2x4"),
        ("v5e", "v5e has no size at character 1 of 'v5e'", "v5e:2x4"),
        ("v5e:", "v5e has no size", "v5e:2x4"),
        ("0*v5e:2x2", "no slices at character 1 of '0*v5e:2x2'", "v5e:2x4 or 2*v5e:2x4"),
        ("two*v5e:2x2", "'two' is not a number at character 1", "2*v5e:2x4 for two slices"),
        ("999*v5e:16x16", "255,744 devices are more than the 32,768", "up to 128 slices of v5e:16x16"),
        ("h100:0", "h100 has no axis of 0", "sizes are 1 or more"),
        ("h100:3x8x2", "h100 takes nodes x GPUs, not 3 sizes,", "h100:2x8 for two"),
        ("h100:16", "a node holds 8 GPUs, not 16", "write h100:2x8"),
        ("h100", "h100 has no size", "h100:8 for one node"),
        ("2*h100:8", "slices are for TPUs", "h100:2x8 for two nodes"),
        ("cpu,v9:2x2", "unknown chip 'v9' at character 5 of 'cpu,v9:2x2'", "the chips are v2, v3"),
        ("v5r:2x2", "unknown chip 'v5r'", "did you mean v5"),
        ("gb20:8", "unknown chip 'gb20'", "did you mean gb200?"),
        ("cpu:8", "cpu takes no size, at character 1 of 'cpu:8'", "write cpu"),
        ("v4-7", "no slice of v4 has 7 cores at character 1 of 'v4-7'", "counts cores, 2 a chip"),
        (
            "cpu,v5e-7",
            "no slice of v5e has 7 chips at character 5",
            "write the sizes of the slice: v5e:2x4",
        ),
        ("v5e-0", "no slice of v5e has 0 chips", "v5e:2x4"),
        ("v5p-99999999", "no slice of v5p has 99,999,999 cores", "v5p:2x2x1"),
        ("v5p-9999999999", "'9999999999' is too large at character 5", "the chips are"),
        ("v5p-1", "no slice of v5p has 1 core at", "counts cores, 2 a chip"),
        ("99999xh100", "99,999 GPUs are more than the 16,384", "h100:2048x8"),
        ("12xh100", "12 H100 are not whole nodes", "h100:2x8 for two"),
        ("2*8xh100", "slices are for TPUs", "h100:2x8"),
        ("v9-8", "unknown target 'v9-8'", "hardware such as v5e:2x4"),
        ("v5e:2x4:1", "'4:1' is not a number at character 7", "v5e:2x4"),
    ],
)
def test_what_is_wrong_with_a_name(text, message, hint):
    with pytest.raises(TargetError) as caught:
        parse_targets(text)
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("name", "mesh", "message", "hints"),
    [
        (
            "v5e:2x4",
            "X=4,Y=4",
            "v5e:2x4 has 8 devices, but the mesh X=4,Y=4 has 16",
            ("v5e:4x4", "X=2,Y=4"),
        ),
        ("v2:2x2", "X=4", "v2:2x2 has 8 devices (4 chips of 2 devices), but", ("v2:1x2", "X=8")),
        ("v5p:2x2x1", "X=8", "has 4 devices, but", ("v5p:2x2x2", "X=4")),
        ("2*v5e:4x4", "X=2,Y=8", "2*v5e:4x4 has 32 devices, but", ("2*v5e:2x4", "X=4,Y=8")),
        ("h100:8", "X=3,Y=8", "h100:8 has 8 devices, but", ("h100:3x8", "X=1,Y=8")),
        ("h100:2x8", "X=8", "h100:2x8 has 16 devices, but", ("h100:8", "X=16")),
        ("v5e:2x4", "X=7", "has 8 devices, but", ("--mesh X=8",)),
        ("v5e:2x2", "X=3,Y=3", "has 4 devices, but", ("--mesh X=2,Y=2",)),
        ("2*v5e:2x2", "X=2,Y=3", "has 8 devices, but", ("--mesh",)),
    ],
)
def test_a_mesh_of_another_size_says_what_would_fit(name, mesh, message, hints):
    (target,) = parse_targets(name)
    with pytest.raises(TargetError) as caught:
        check_mesh(target, parse_mesh(mesh))
    assert message in caught.value.message
    assert all(hint in caught.value.hint for hint in hints)
    # Everything that is named does fit.
    for word in caught.value.hint.replace(",", " ", 0).split():
        if ":" in word:
            check_mesh(parse_targets(word.strip(","))[0], parse_mesh(mesh))
        elif "=" in word:
            check_mesh(target, parse_mesh(word))


def test_every_name_that_is_listed_fits_the_mesh_of_a_question_without_one():
    mesh = parse_mesh(ProblemForm.mesh)
    for group in target_groups():
        for choice in group.choices:
            check_mesh(parse_targets(choice.name)[0], mesh)


SIZES = (1, 2, 3, 4, 5, 6)
ASK = """
import json, sys
from jax.experimental import topologies
for name, options in json.load(sys.stdin):
    try:
        devices = topologies.get_topology_desc(name, platform="tpu", **options).devices
    except Exception:
        print(json.dumps(None))
    else:
        slices = {getattr(device, "slice_index", 0) for device in devices}
        print(json.dumps([len(devices), devices[0].device_kind, len(slices)]))
"""


def test_the_tpu_compiler_takes_the_same_names():
    """Every generation, sizes that fit and others, one slice and more. Sizes of 0, on which it dies, are
    refused above."""
    cases, expected = [], []
    for chip, slices in product(TPUS.values(), (1, 3)):
        for sizes in product(SIZES, repeat=chip.rank) if slices == 1 else [(1, 1, 1), (2, 3, 1), (4, 2, 3)]:
            name = f"{chip.name}:{'x'.join(map(str, sizes[: chip.rank]))}"
            options = {"num_slices": slices} if slices > 1 else {}
            try:
                (target,) = parse_targets(f"{slices}*{name}")
            except TargetError:
                expected.append(None)
            else:
                if sizes[0] == 1 or sizes[1] == 1:
                    options["chips_per_host_bounds"] = (1, 1, 1)
                if chip.name == "v4":
                    options["chip_config_name"] = "megacore"
                assert topology_request(target.machine) == TopologyRequest(
                    "tpu", name, tuple(options.items())
                )
                expected.append([target.max_devices, chip.device_kind, slices])
            cases.append((name, options))
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(cases),
        env=environment_for("tpu", os.environ),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert {
        name: found
        for (name, _), found, wanted in zip(cases, answers, expected, strict=True)
        if found != wanted
    } == {}
    assert answers.count(None) > 100


@pytest.mark.parametrize("devices", [1, 8, 12, 64, 4096, 32_768, 65_536])
def test_hardware_of_a_size_has_it(devices):
    names = [machine.name for machine in machines_of_size(devices)]
    assert all(machine.devices == devices for machine in machines_of_size(devices))
    assert len(names) == len(set(names))
    assert any(name.startswith("v5e") for name in names) == (devices in (1, 8, 12, 64))


@pytest.mark.parametrize(
    ("name", "devices", "hint"),
    [
        ("v5e", 16, "write v5e:4x4 or v5e:2x8: the mesh has 16 devices"),
        ("2*v5e", 16, "write 2*v5e:2x4 or 2*v5e:1x8: the mesh has 16 devices"),
        ("tpu7x:", 16, "write tpu7x:2x2x2 or tpu7x:2x4x1: the mesh has 16 devices"),
        ("h100", 16, "write h100:2x8: the mesh has 16 devices"),
        ("v5e", 7, "say how many chips along each axis: v5e:2x4"),
    ],
)
def test_a_chip_alone_is_offered_in_the_sizes_of_the_mesh(name, devices, hint):
    with pytest.raises(TargetError) as raised:
        parse_targets(name, devices)
    assert raised.value.hint == hint
