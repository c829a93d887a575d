"""The three text forms of replica groups, against NumPy, and what their ids mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.errors import NotationError
from shardviz.hlo.replica_groups import (
    MAX_IRREGULAR,
    ReplicaGroups,
    axis_groups,
    device_ids,
    group_axes,
    pair_axes,
    parse_pairs,
    parse_replica_groups,
)
from shardviz.hlo.text.instruction import parse_instruction
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis


def expand(text: str, devices: int = 8) -> list[list[int]]:
    return [list(group) for group in parse_replica_groups(text, devices).expand()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", [[0, 1, 2, 3, 4, 5, 6, 7]]),
        ("{{0,1},{2,3}}", [[0, 1], [2, 3]]),
        ("{{0, 1}, {2, 3}}", [[0, 1], [2, 3]]),
        ("{{3,1},{2,0}}", [[3, 1], [2, 0]]),
        ("{{0},{1,2}}", [[0], [1, 2]]),
        ("[2,4]<=[8]", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("[2,4]<=[4,2]T(1,0)", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("[4,2]<=[2,4]T(1,0)", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("[1,8]<=[2,2,2]T(2,1,0)", [[0, 4, 2, 6, 1, 5, 3, 7]]),
        ("[3,4]<=[2,6]T(1,0)", [[0, 6, 1, 7], [2, 8, 3, 9], [4, 10, 5, 11]]),
        ("mesh['axis_0'=2,'axis_1'=4] {'axis_1'}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("mesh['axis_0'=2,'axis_1'=4] {'axis_0'}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("mesh['a'=2,'b'=4] {'b','a'}", [[0, 4, 1, 5, 2, 6, 3, 7]]),
        ("mesh[a=1,b=2,c=4] {b}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("mesh['a'=2,'b'=4] {'b':(1)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
        ("mesh['a'=2,'b'=4] {'b':(2)2}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("mesh['a'=2,'b'=4], device_ids=([4,2]T(1,0)) {'b'}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("mesh['a'=2,'b'=2], device_ids=(3,1,0,2) {'b'}", [[3, 1], [0, 2]]),
        ("mesh['a'=2,'b'=2] device_ids=[3,1,0,2] {'a'}", [[3, 0], [1, 2]]),
        ("mesh['a'=2] {}", [[0], [1]]),
        ("mesh['my axis'=2,'b'=4] {'my axis'}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
        ("mesh['a]}'=2,'b=,:'=4] {'a]}','b=,:':(1)2}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ('mesh["a"=2,"b"=4] {"b"}', [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("mesh['a'=2,'b'=4] {'1'}", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("mesh['a'=2,'b'=4] {'1':(2)2,'0'}", [[0, 4, 1, 5], [2, 6, 3, 7]]),
        ("mesh['1'=2,'0'=4] {'1'}", [[0, 4], [1, 5], [2, 6], [3, 7]]),
    ],
)
def test_forms(text, expected):
    assert expand(text) == expected


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.randoms(), st.data())
def test_an_iota_is_what_numpy_makes_of_it(dims, random, data):
    order = list(range(len(dims)))
    random.shuffle(order)
    total = math.prod(dims)
    count = data.draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
    text = f"[{count},{total // count}]<=[{','.join(map(str, dims))}]T({','.join(map(str, order))})"
    expected = np.arange(total).reshape(dims).transpose(order).reshape(count, -1)
    assert expand(text) == expected.tolist()


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.randoms(), st.booleans())
def test_mesh_axes_are_what_numpy_makes_of_them(dims, random, iota):
    names = [f"'n{i}'" for i in range(len(dims))]
    used = random.sample(range(len(dims)), random.randint(0, len(dims)))
    others = [i for i in range(len(dims)) if i not in used]
    total = math.prod(dims)
    if iota:
        order = np.arange(total).reshape(dims).transpose().reshape(-1)
        perm = ",".join(map(str, reversed(range(len(dims)))))
        ids = f"[{','.join(map(str, dims))}]T({perm})"
    else:
        order = np.array(random.sample(range(total), total))
        ids = ",".join(map(str, order))
    axes = ",".join(f"{name}={size}" for name, size in zip(names, dims, strict=True))
    text = f"mesh[{axes}], device_ids=({ids}) {{{','.join(names[i] for i in used)}}}"
    size = math.prod(dims[i] for i in used)
    expected = order.reshape(dims).transpose([*others, *used]).reshape(-1, size)
    assert expand(text) == expected.tolist()


def test_a_million_devices_stay_a_few_numbers():
    groups = parse_replica_groups("[65536,16]<=[16,65536]T(1,0)", 2**20)
    assert (groups.count, groups.size, groups.lists) == (65536, 16, None)
    assert groups.inner == ((16, 65536),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[2,4]<=[9]", "2 groups of 4 are not the 9 ids of the iota"),
        ("[2,4]<=[2,4]T(0,0)", "T(0,0) is not a permutation of the 2 dimensions"),
        ("[8]<=[8]", "an iota of groups has the shape [groups,size]"),
        ("[99999999,99999999]<=[8]", "more devices than any program has"),
        ("mesh['a'=2] {'b'}", "these are not replica groups"),
        ("mesh['a'=2] {'1'}", "these are not replica groups"),
        ("mesh['a'=4] {'a':(3)2}", "axis a of size 4 has no part (3)2"),
        ("mesh['a'=4] {'a','a'}", "the axes of a group overlap"),
        ("mesh['a'=4], device_ids=(0,0,1,2) {'a'}", "device_ids are not a permutation of 4 devices"),
        ("{{0,1},{2,x}}", "these are not replica groups"),
        ("{{0,1}", "these are not replica groups"),
        ("{{" + "9" * 5000 + "}}", "these are not replica groups"),
        ("nonsense", "these are not replica groups"),
    ],
)
def test_wrong_groups(text, message):
    with pytest.raises(NotationError) as raised:
        parse_replica_groups(text, 8)
    assert raised.value.message.startswith(message)


@pytest.mark.parametrize("read", [lambda text: parse_replica_groups(text, 8), parse_pairs])
def test_more_numbers_than_are_read_one_by_one_are_not_made_into_numbers(read, monkeypatch):
    text = f"{{{','.join(f'{{{i},{i + 1}}}' for i in range(0, 2 * MAX_IRREGULAR, 2))}}}"
    monkeypatch.setattr("shardviz.hlo.replica_groups.re.split", None)
    with pytest.raises(NotationError) as raised:
        read(text)
    assert raised.value.message == (
        "524,288 device numbers are more than the 262,144 that are read one by one, "
        "at character 1 of '{{0,1},{2,3},{4,5},{6,7},{…'"
    )


def test_pairs():
    assert parse_pairs("{{0,1},{1,0}}") == ((0, 1), (1, 0))
    with pytest.raises(NotationError, match="pairs of a source and a target"):
        parse_pairs("{{0,1,2}}")


@pytest.mark.parametrize(
    "groups",
    [
        "{}",
        "{ }",
        "{{0,1},{2,3}}",
        "[2,4]<=[4,2]T(1,0)",
        "mesh['a'=2,'b'=4] {'b'}",
        "mesh['a ]'=2,'}'=4], device_ids=([4,2]T(1,0)) {'}'}",
    ],
)
def test_where_groups_end(groups):
    line = f'%a = f32[8] all-gather(%x), replica_groups={groups}, dimensions={{0}}, metadata={{op_name="x"}}'
    instruction = parse_instruction(line)
    assert instruction is not None
    assert instruction.attributes == {"replica_groups": groups, "dimensions": "0", "op_name": "x"}


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    ("channel", "use_global", "text", "expected"),
    [
        # 2 replicas of 3 partitions: device = replica * 3 + partition
        (True, True, "[3,2]<=[6]", [[0, 1], [2, 3], [4, 5]]),
        (False, False, "[1,2]<=[2]", [[0, 3], [1, 4], [2, 5]]),
        (False, None, "[1,2]<=[2]", [[0, 3], [1, 4], [2, 5]]),
        (True, None, "[1,3]<=[3]", [[0, 1, 2], [3, 4, 5]]),
        (True, False, "[1,2]<=[2]", [[0, 1, 2, 3, 4, 5]]),
        (True, False, "[2,1]<=[2]", [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_what_the_ids_mean(listed, channel, use_global, text, expected):
    groups = parse_replica_groups(text, 6)
    if listed:
        groups = ReplicaGroups(lists=groups.expand())
    found = groups.on_devices(2, 3, channel=channel, use_global=use_global).expand()
    assert sorted(map(list, found)) == expected


XY = Mesh(("X", "Y"), (2, 4))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.randoms(), st.booleans())
def test_axes_are_found_in_the_order_of_the_ids(sizes, random, listed):
    mesh = Mesh(tuple("ABCD"[: len(sizes)]), tuple(sizes))
    axes = tuple(random.sample(mesh.axis_names, random.randint(0, len(sizes))))
    groups = axis_groups([SubAxis(name, 1, mesh.axis_size(name)) for name in axes], mesh.shape)
    lists = mesh.replica_groups(axes)
    assert set(groups.expand()) == set(lists)
    found = group_axes(ReplicaGroups(lists=lists) if listed else groups, mesh)
    assert found == tuple(name for name in axes if mesh.axis_size(name) > 1)


@pytest.mark.parametrize(
    ("text", "axes"),
    [
        ("{{0,1,2,3},{4,5,6,7}}", ("Y",)),
        ("{{4,5,6,7},{0,1,2,3}}", ("Y",)),
        ("{{0,4},{1,5},{2,6},{3,7}}", ("X",)),
        ("{{0,1,2,3,4,5,6,7}}", ("X", "Y")),
        ("{{0,4,1,5,2,6,3,7}}", ("Y", "X")),
        ("{{0,1},{2,3},{4,5},{6,7}}", ("Y:(2)2",)),
        ("{{0,2},{1,3},{4,6},{5,7}}", ("Y:(1)2",)),
        ("{{0,2,4,6},{1,3,5,7}}", ("X", "Y:(1)2")),
        ("{{0,1,3,2},{4,5,7,6}}", ("Y",)),
        ("{{0},{1},{2},{3},{4},{5},{6},{7}}", ()),
        ("{{0,1,2},{3,4,5},{6,7}}", ()),
        ("{{0,3},{1,2},{4,7},{5,6}}", ()),
        ("{{0,1},{2,3}}", ()),
        ("{{0,1,2,3},{4,5,6,8}}", ()),
        ("[2,4]<=[8]", ("Y",)),
        ("mesh['Y'=2,'X'=4] {'X'}", ("Y",)),
        ("mesh['axis_0'=1,'axis_1'=2,'axis_2'=4] {'axis_1'}", ("X",)),
    ],
)
def test_text_to_axes(text, axes):
    assert group_axes(parse_replica_groups(text, 8), XY) == axes


def test_axes_of_size_one_do_not_show():
    mesh = Mesh(("A", "one", "B"), (2, 1, 4))
    assert group_axes(parse_replica_groups("[1,8]<=[8]", 8), mesh) == ("A", "B")


def test_sizes_that_cross_axes_follow_none():
    assert group_axes(parse_replica_groups("[6,2]<=[12]", 12), Mesh(("A", "B"), (4, 3))) == ()


@pytest.mark.parametrize(
    ("pairs", "axes"),
    [
        (((0, 1), (1, 2), (2, 3), (3, 0)), ("Y",)),
        (((0, 4), (4, 0)), ("X",)),
        (((0, 5), (1, 1)), ("X", "Y")),
        (((0, 0), (3, 3)), ()),
        (((0, 8),), ()),
        ((), ()),
    ],
)
def test_pairs_to_axes(pairs, axes):
    assert pair_axes(pairs, XY) == axes


def test_positions_become_device_ids():
    mesh = Mesh(("X",), (4,), (2, 0, 3, 1))
    assert device_ids(((0, 1), (2, 3)), mesh) == ((2, 0), (3, 1))
    assert device_ids(((0, 1), (2, 3)), None) == ((0, 1), (2, 3))
