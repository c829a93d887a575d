"""The mesh that the groups of a module are made for."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from shardviz.hlo import read, read_hlo
from shardviz.hlo.device_numbers import mesh_of_groups
from shardviz.hlo.replica_groups import ReplicaGroups, axis_groups
from shardviz.render.palette import PLAIN
from shardviz.render.programs.program_view import hlo_view
from shardviz.reports.program_report import report_of
from shardviz.sharding import Mesh
from shardviz.sharding.axis_parts import SubAxis

HEADER = "HloModule m, num_partitions={devices}{more}\n\nENTRY %main (p: f32[8]) -> f32[8] {{\n"


def module(*lines: str, devices: int = 8, more: str = "") -> str:
    body = "".join(f"  %c.{i} = f32[8] {line}, channel_id={i + 1}\n" for i, line in enumerate(lines))
    return HEADER.format(devices=devices, more=more) + body + "}\n"


def reduce(groups: str) -> str:
    return f"all-reduce(%p), replica_groups={groups}, use_global_device_ids=true"


def permute(pairs: str) -> str:
    return f"collective-permute(%p), source_target_pairs={pairs}"


RINGS = "{{0,1},{1,2},{2,3},{3,0},{4,5},{5,6},{6,7},{7,4}}"


@pytest.mark.parametrize(
    ("lines", "devices", "mesh"),
    [
        ([], 8, None),
        ([], 1, None),
        ([reduce("{{0}}")], 1, None),
        ([reduce("[1,8]<=[8]")], 8, "axis_0=8"),
        ([reduce("{}")], 8, "axis_0=8"),
        ([reduce("[2,4]<=[8]")], 8, "axis_0=2,axis_1=4"),
        ([reduce("{{0,4},{1,5},{2,6},{3,7}}")], 8, "axis_0=2,axis_1=4"),
        ([reduce("[4,2]<=[2,4]T(1,0)"), reduce("{{0,1,2,3},{4,5,6,7}}")], 8, "axis_0=2,axis_1=4"),
        ([reduce("[2,4]<=[8]"), reduce("[4,2]<=[4,2]")], 8, "axis_0=2,axis_1=2,axis_2=2"),
        ([reduce("[2,4]<=[2,2,2]T(1,0,2)")], 8, "axis_0=2,axis_1=2,axis_2=2"),
        ([reduce("[4,2]<=[8]"), reduce("[2,3]<=[6]")], 8, None),
        ([reduce("[2,3]<=[6]"), reduce("[3,2]<=[6]")], 6, None),
        ([reduce("{{0,3},{1,2},{4,5},{6,7}}")], 8, None),
        ([reduce("{{0,1}}")], 8, None),
        ([reduce("{{0},{1},{2},{3},{4},{5},{6},{7}}")], 8, None),
        ([permute(RINGS)], 8, "axis_0=2,axis_1=4"),
        ([permute("{{0,1},{1,2},{4,5},{5,6}}")], 8, "axis_0=8"),
        ([permute("{{0,7},{1,6},{2,5},{3,4}}")], 8, "axis_0=8"),
        ([reduce("[3,2]<=[6]"), permute("{{0,1},{1,2},{2,0},{3,4},{4,5},{5,3}}")], 6, "axis_0=3,axis_1=2"),
        ([reduce("mesh['axis_0'=2,'axis_1'=4,'axis_2'=1] {'axis_0','axis_1'}")], 8, "axis_0=2,axis_1=4"),
        ([reduce("mesh['axis_0'=2,'axis_1'=2] {'axis_1'}"), reduce("[2,2]<=[4]")], 4, "axis_0=2,axis_1=2"),
        ([reduce("mesh['axis_0'=8] {'axis_0'}"), reduce("[4,2]<=[8]")], 8, "axis_0=4,axis_1=2"),
        ([reduce("mesh[data=2,model=4] {data}")], 8, "data=2,model=4"),
        ([reduce("mesh[data=2,model=4] {data}"), reduce("[4,2]<=[8]")], 8, "data=2,model=4"),
        ([reduce("mesh[data=4,model=2] {data}"), reduce("[2,3]<=[6]")], 8, None),
        ([reduce("mesh[data=8],device_ids=([2,4]T(1,0)) {data}")], 8, "data=8"),
        ([reduce("[1024,1024]<=[1048576]")], 1048576, "axis_0=1024,axis_1=1024"),
    ],
)  # fmt: skip
def test_inferred_meshes(lines, devices, mesh):
    found = read_hlo(module(*lines, devices=devices), infer=True)
    assert str(found.mesh) == str(mesh)
    assert read_hlo(module(*lines, devices=devices)).mesh is None


def test_axes_are_those_of_the_inferred_mesh():
    text = module(reduce("[2,4]<=[8]"), reduce("[4,2]<=[2,4]T(1,0)"), reduce("[1,8]<=[8]"), permute(RINGS))
    found = read(text, infer=True)
    assert found.mesh == Mesh(("axis_0", "axis_1"), (2, 4))
    assert found == read_hlo(text, found.mesh)
    assert [one.axes for one in found.collectives] == [
        ("axis_1",),
        ("axis_0",),
        ("axis_0", "axis_1"),
        ("axis_1",),
    ]


def test_a_mesh_in_the_header_gives_the_names():
    more = ', frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["X"=2, "Y"=4]>}}'
    found = read(module(reduce("[4,2]<=[2,4]T(1,0)"), reduce("[4,2]<=[8]"), more=more), infer=True)
    assert found.mesh == Mesh(("X", "Y"), (2, 4))
    assert [one.axes for one in found.collectives] == [("X",), ("Y:(2)2",)]


def test_stablehlo_without_a_mesh():
    text = """module @m attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<32xf32> {
    %0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> : (tensor<8xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
}
"""  # noqa: E501 - a compiler's line cannot be broken
    found = read(text, infer=True)
    assert found.mesh == Mesh(("axis_0", "axis_1"), (2, 4))
    assert [one.axes for one in found.collectives] == [("axis_1",)]
    assert read(text).mesh is None


def test_a_given_mesh_is_kept():
    mesh = Mesh(("X", "Y"), (4, 2))
    found = read_hlo(module(reduce("[2,4]<=[8]")), mesh, infer=True)
    assert found.mesh == mesh


@given(st.lists(st.integers(2, 4), min_size=1, max_size=5), st.data())
def test_groups_along_axes_of_a_mesh_give_that_mesh_back(sizes, data):
    """Where every border between axes is the edge of a group; whether groups are loops or lists."""
    shape = {f"axis_{i}": size for i, size in enumerate(sizes)}
    names = data.draw(st.permutations(list(shape)))
    groups = []
    for name in names:
        found = axis_groups([SubAxis(name, 1, shape[name])], shape)
        groups.append(data.draw(st.sampled_from([found, ReplicaGroups(lists=found.expand())])))
    assert mesh_of_groups(math.prod(sizes), groups) == Mesh(tuple(shape), tuple(sizes))


def test_a_mesh_in_a_sharding_gives_the_names():
    """As JAX 0.12 prints a program before its partitioner, and without a number of partitions."""
    body = "  %a = f32[8] parameter(0), sharding={mesh['X'=2,'Y'=4], [{'X'}]}\n}\n"
    for header in (
        HEADER.format(devices=8, more=""),
        HEADER.format(devices=8, more="").replace(", num_partitions=8", ""),
    ):
        assert read(header + body, infer=True).mesh == Mesh(("X", "Y"), (2, 4))
    for damage in ("'Y'=0", "'Y'=99999999999999999999", "'X'=4", "Y"):
        assert (
            read(HEADER.format(devices=8, more="") + body.replace("'Y'=4", damage), infer=True).mesh is None
        )


ORDER = (3, 1, 4, 0, 5, 7, 2, 6)
LISTED = f"mesh['x'=2,'y'=4], device_ids=({','.join(map(str, ORDER))})"
TURNED = "mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0))"
SHARDY_MESH = 'mesh = #sdy.mesh<["x"=2, "y"=4], device_ids=[3, 1, 4, 0, 5, 7, 2, 6]>'


@pytest.mark.parametrize("named", [None, Mesh(("x", "y"), (2, 4))])
@pytest.mark.parametrize(
    ("lines", "order", "axes"),
    [
        ([reduce(f"{LISTED} {{'y'}}")], ORDER, ["y"]),
        ([reduce(f"{TURNED} {{'y'}}")], (0, 2, 4, 6, 1, 3, 5, 7), ["y"]),
        ([reduce(f"{TURNED} {{'y':(2)2,'x'}}")], (0, 2, 4, 6, 1, 3, 5, 7), ["y:(2)2", "x"]),
        ([reduce(f"{TURNED} {{'y'}}"), reduce("{{0,2,4,6},{1,3,5,7}}"), reduce("[4,2]<=[8]"),
          permute("{{0,2},{2,4},{4,6},{6,0},{1,3},{3,5},{5,7},{7,1}}")],
         (0, 2, 4, 6, 1, 3, 5, 7), ["y", "y", "x", "y"]),
        ([reduce(f"{LISTED} {{'x'}}"), permute("{{3,1},{1,4},{4,0}}")], ORDER, ["x", "y"]),
    ],
)  # fmt: skip
def test_a_mesh_that_is_written_with_its_devices_keeps_its_axes(lines, order, axes, named):
    text = module(*lines)
    found = read_hlo(text, named, infer=named is None)
    assert found.mesh == Mesh(("x", "y"), (2, 4), order)
    assert [axis for each in found.collectives for axis in each.axes] == axes
    # The numbers stay XLA's own.
    assert [each.groups for each in found.collectives] == [each.groups for each in read_hlo(text).collectives]


def test_a_mesh_in_the_header_may_have_its_devices_in_an_order():
    more = f", frontend_attributes={{xla.sdy.meshes={{{SHARDY_MESH}}}}}"
    text = module(reduce("{{3,1,4,0},{5,7,2,6}}"), more=more)
    found = read_hlo(text, infer=True)
    assert (str(found.mesh), found.collectives[0].axes) == ("x=2,y=4", ("y",))


def test_an_order_that_is_given_is_that_of_the_devices():
    mesh = Mesh(("x", "y"), (2, 4), ORDER)
    found = read_hlo(module(reduce(f"{TURNED} {{'y'}}")), mesh)
    assert (found.mesh, found.collectives[0].axes) == (mesh, ("x", "y:(1)2"))


@pytest.mark.parametrize("named", [None, Mesh(("x", "y"), (2, 4))])
def test_where_two_orders_stand_axes_are_those_that_groups_name(named):
    """Neither explains the groups of the other; the lists and the pairs are of neither for certain."""
    other = "mesh['x'=2,'y'=4], device_ids=(4,0,7,1,2,6,3,5)"
    lines = [reduce(f"{LISTED} {{'x'}}"), reduce(f"{other} {{'y'}}"), reduce(f"{other} {{'y':(2)2,'0'}}")]
    lines += [reduce("[2,4]<=[8]"), permute(RINGS)]
    found = read_hlo(module(*lines), named, infer=named is None)
    assert (found.mesh, found.mesh_orders, found.unread) == (Mesh(("x", "y"), (2, 4)), 2, ())
    assert [each.axes for each in found.collectives] == [("x",), ("y",), ("y:(2)2", "x"), (), ()]
    assert [each.groups for each in found.collectives] == [
        each.groups for each in read_hlo(module(*lines)).collectives
    ]
    text = "\n".join(line.plain for line in hlo_view(report_of(found), named, 200, PLAIN))
    assert "the text has 2 device orders of this mesh" in text
    assert "axes are shown only where" in text


def test_meshes_of_two_orders_are_told_by_their_devices():
    lines = [reduce("mesh['x'=2,'y'=4] {'y'}"), reduce(f"{TURNED} {{'y'}}")]
    for named, infer in ((None, True), (Mesh(("x", "y"), (2, 4)), False)):
        found = read_hlo(module(*lines), named, infer=infer)
        assert found.mesh == Mesh(("x", "y"), (2, 4))
        assert [each.axes for each in found.collectives] == [("y",), ("x", "y:(1)2")]


@pytest.mark.parametrize("order", ["", ", device_ids=(3,1,2,0,7,5,4,6)"])
def test_names_with_spaces_are_joined_by_underscores(order):
    found = read_hlo(module(reduce(f"mesh['batch dim'=2,'model'=4]{order} {{'batch dim'}}")), infer=True)
    assert found.mesh.shape == {"batch_dim": 2, "model": 4}
    assert [each.axes for each in found.collectives] == [("batch_dim",)]


def test_a_mesh_without_axes_is_not_the_programs():
    """JAX writes one for the device of a callback."""
    header = (
        "HloModule m, frontend_attributes={xla.sdy.meshes={maximal_mesh_0 = #sdy.mesh<[], device_ids=[0]>}}\n"
    )
    text = header + "\nENTRY %main (p: f32[8]) -> f32[8] {\n  ROOT %r = f32[8] negate(f32[8] %p)\n}\n"
    assert read_hlo(text, infer=True).mesh is None
