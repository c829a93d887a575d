"""Names after --target, and how large a mesh each can hold."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from shardviz.errors import ShardvizError, TargetError
from shardviz.sharding import Mesh
from shardviz.targets import TARGETS, check_mesh, parse_targets


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("shardy,cpu", ["shardy", "cpu"]),
        ("cpu,shardy", ["cpu", "shardy"]),
        (" Shardy , CPU ", ["shardy", "cpu"]),
        ("real", ["real"]),
        ("cpu,cpu", ["cpu"]),
        ("cpu,v2:2x2,v5e:2x4,v5p:2x2x2,h100:8", ["cpu", "v2:2x2", "v5e:2x4", "v5p:2x2x2", "h100:8"]),
        ("V5E:2X4,v5e:2x4", ["v5e:2x4"]),
        ("none", []),
    ],
)
def test_targets_in_the_order_given(text, names):
    assert [target.name for target in parse_targets(text)] == names


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "a target is missing in an empty text", "the targets are shardy, cpu, real, or none"),
        ("cpu,", "a target is missing at the end of 'cpu,'", "and hardware such as v5e:2x4 or h100:8"),
        (",cpu", "a target is missing at character 1 of ',cpu'", "the targets are shardy"),
        ("cpu,shrady", "unknown target 'shrady' at character 5 of 'cpu,shrady'", "did you mean shardy?"),
        ("cpus", "unknown target 'cpus' at character 1 of 'cpus'", "did you mean cpu?"),
        (
            "fpga",
            "unknown target 'fpga' at character 1 of 'fpga'",
            "the targets are shardy, cpu, real, or none",
        ),
        (
            "cpu,none",
            "none excludes other targets at character 5 of 'cpu,none'",
            "give none alone",
        ),
        ("gpu", "gpu is not a chip, at character 1 of 'gpu'", "name the GPU and how many: h100:8 (also a100"),
        ("cuda:8", "cuda is not a chip, at character 1", "name the GPU and how many: h100:8"),
        ("tpu", "tpu is not a chip, at character 1", "name the generation and its chips: v5e:2x4 (also v2"),
        ("cpu\x00", "unknown target 'cpu\\x00'", "did you mean cpu?"),
    ],
)
def test_a_target_that_is_none_says_where_and_what_else(text, message, hint):
    with pytest.raises(TargetError) as caught:
        parse_targets(text)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2


def test_a_long_name_is_cut_in_the_message():
    with pytest.raises(TargetError) as caught:
        parse_targets("cpu," + "x" * 10_000)
    assert len(caught.value.message) < 300


@given(st.text(max_size=60) | st.text("shardycpurealv5e:x2*h1,", max_size=30))
def test_any_text_is_targets_or_a_shardviz_error(text):
    try:
        found = parse_targets(text)
    except ShardvizError:
        return
    for target in found:
        assert parse_targets(target.name) == (target,)
        assert target.machine is not None or TARGETS[target.name] is target


@pytest.mark.parametrize(
    ("name", "mesh", "numbers", "hint"),
    [
        ("cpu", Mesh(("X", "Y"), (64, 64)), ("4,096", "2,048"), "--target shardy"),
        ("shardy", Mesh(("X", "Y"), (2**16, 2**15)), ("2,147,483,648", "2,147,483,647"), "smaller axes"),
    ],
)
def test_a_mesh_over_the_limit_names_both_numbers(name, mesh, numbers, hint):
    with pytest.raises(TargetError) as caught:
        check_mesh(TARGETS[name], mesh)
    assert all(number in caught.value.message for number in numbers)
    assert hint in caught.value.hint


@pytest.mark.parametrize(("name", "size"), [("cpu", 2048), ("shardy", 131_072), ("real", 10**6)])
def test_a_mesh_within_the_limit_passes(name, size):
    check_mesh(TARGETS[name], Mesh(("X",), (size,)))
