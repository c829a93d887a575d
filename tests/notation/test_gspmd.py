import itertools

import pytest

from shardviz.errors import NotationError, QuestionError
from shardviz.notation.gspmd import read_gspmd, write_gspmd
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.reading import Context, Reading
from shardviz.notation.spec_string import parse_specs, write_spec
from shardviz.sharding import Mesh, PartitionSpec

XY = parse_mesh("X=2,Y=4")


def spec(text, mesh=XY):
    return parse_specs(text, mesh.shape)[0].operands[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{devices=[2,4]<=[8]}", "XY"),
        ("{devices=[4,2]<=[2,4]T(1,0)}", "YX"),
        ("{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}", "Y_"),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", "X_"),
        ("{devices=[8,1]<=[8]}", "(XY)_"),
        ("{devices=[8,1]<=[2,4]T(1,0)}", "(YX)_"),
        ("{devices=[2,1,4]<=[8] last_tile_dims={unreduced}}", "X_{U_Y}"),
        ("{devices=[1,1,4,2]<=[2,4]T(1,0) last_tile_dims={unreduced, replicated}}", "__{U_Y}"),
        ("{devices=[1,1,4,2]<=[2,4]T(1,0) last_tile_dims={unreduced, unreduced}}", "__{U_XY}"),
        ("{devices=[4,2]0,4,1,5,2,6,3,7}", "YX"),
        ("{devices=[2,1,4]3,1,2,0,4,7,6,5 last_tile_dim_replicate}", "X_"),
        ("{devices=[2,1,4]3,1,2,0,4,7,6,5 last_tile_dims={unreduced}}", "X_{U_Y}"),
        ('{devices=[2,4]<=[8] metadata={op_name="a{b}"}}', "XY"),
        ("{devices=[2,4]<=[8] shard_as 1}", "XY"),
        ("{mesh['a'=2,'b'=4], [{'a'}, {'b'}]}", "XY"),
        ("{@mesh<a=2,b=4>, [{b}, {}]}", "Y_"),
        ("{mesh['b'=8], [{'b':(1)2}, {'b':(2)4}]}", "XY"),
        ("{mesh['a'=2,'b'=4], [{'b'}, {}], unreduced={'a'}}", "Y_{U_X}"),
        ("{mesh['a'=4,'b'=2], device_ids=([2,4]T(1,0)), [{'a'}, {'b'}]}", "YX"),
        ("{mesh['a'=4,'b'=2], device_ids=(0,4,1,5,2,6,3,7), [{'a'}, {'b'}]}", "YX"),
    ],
)
def test_reads(text, expected):
    assert read_gspmd(text, Context(XY)) == Reading(spec(expected))
    assert read_gspmd(text, Context(XY, rank=2)) == Reading(spec(expected))


@pytest.mark.parametrize(
    ("text", "rank", "expected"),
    [
        ("{replicated}", 2, "__"),
        ("{replicated}", 0, "()"),
        ("{unreduced}", 1, "_{U_XY}"),
        ("{mesh['a'=8], replicated}", 2, "__"),
        ("{mesh[], replicated}", 2, "__"),
        ("{mesh['a'=8], unreduced}", 2, "__{U_XY}"),
    ],
)
def test_reads_with_a_rank(text, rank, expected):
    assert read_gspmd(text, Context(XY, rank)) == Reading(spec(expected))
    with pytest.raises(NotationError, match="the number of dimensions is missing"):
        read_gspmd(text, Context(XY))


def test_open_dimensions_are_noted():
    reading = read_gspmd("{mesh['a'=2,'b'=4], [{'a', ?}, {?}]}", Context(XY))
    assert reading.spec == spec("X_")
    assert reading.notes == (
        "dimension 0 is open: the compiler may split it further",
        "dimension 1 is open: the compiler may split it further",
    )


def test_numbers_are_places_in_the_mesh():
    shuffled = Mesh(("X", "Y"), (2, 4), (3, 1, 4, 0, 5, 7, 2, 6))
    assert read_gspmd("{devices=[2,4]<=[8]}", Context(shuffled)).spec == spec("XY")
    assert write_gspmd(Reading(spec("YX")), Context(shuffled)) == "{devices=[4,2]<=[2,4]T(1,0)}"


def test_a_huge_mesh_costs_nothing():
    mesh = Mesh(("A", "B", "C"), (2**13, 2**13, 2**13))
    context = Context(mesh)
    written = write_gspmd(Reading(PartitionSpec((("C",), ("A",)))), context)
    assert written == "{devices=[8192,8192,8192]<=[67108864,8192]T(1,0) last_tile_dim_replicate}"
    assert read_gspmd(written, context).spec == PartitionSpec((("C",), ("A",)))


def all_specs(mesh, rank):
    """Every spec of one rank without unreduced axes."""
    for order in itertools.permutations(mesh.axis_names):
        for homes in itertools.product(range(rank + 1), repeat=len(order)):
            yield PartitionSpec(
                tuple(
                    tuple(a for a, home in zip(order, homes, strict=True) if home == d) for d in range(rank)
                )
            )


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("{devices=[2,4]0,1,2,3,4,5,7,6}", "XY@(0 1 2 3 4 5 7 6)"),
        ("{devices=[2,1,4]0,1,2,4,3,5,6,7 last_tile_dim_replicate}", "X_@(0 1 2 4 3 5 6 7)"),
        ("{mesh['a'=2,'b'=4], device_ids=(0,1,2,3,4,5,7,6), [{'a'}, {'b'}]}", "XY@(0 1 2 3 4 5 7 6)"),
        ("{maximal device=3}", "__@3"),
    ],
)
def test_devices_that_follow_no_axes_are_named(text, spec):
    reading = read_gspmd(text, Context(XY, rank=2))
    assert write_spec(reading.spec) == spec
    assert read_gspmd(write_gspmd(reading, Context(XY)), Context(XY, rank=2)).spec == reading.spec


@pytest.mark.parametrize("position", [0, 3])
def test_a_device_of_hlo_is_a_place_in_the_mesh(position):
    mesh = Mesh(("X",), (4,), (2, 3, 1, 0))
    reading = read_gspmd(f"{{maximal device={position}}}", Context(mesh, rank=1))
    assert reading.spec.devices == (mesh.device_id(position),)
    assert write_gspmd(reading, Context(mesh)) == f"{{maximal device={position}}}"


@pytest.mark.parametrize(
    "text",
    [
        "{devices=[2,4]0,1,2,3,4,5,6,6}",
        "{mesh['a'=2,'b'=4], [{'a'}, {'a'}]}",
        "{mesh['a'=2,'b'=4], [{'b':(1)2}, {'b'}]}",
    ],
)
def test_refuses_what_follows_no_axes(text):
    with pytest.raises(NotationError, match="these devices do not follow axes of the mesh X=2,Y=4"):
        read_gspmd(text, Context(XY))


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("{devices=[4,2]<=[8]}", (("X", "Y:(1)2"), ("Y:(2)2",))),
        ("{devices=[2,4]<=[4,2]T(1,0)}", (("Y:(2)2",), ("X", "Y:(1)2"))),
        ("{devices=[8,1]<=[4,2]T(1,0)}", (("Y:(2)2", "X", "Y:(1)2"), ())),
        ("{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}", (("Y:(2)2",), ())),
        ("{mesh['a'=4,'b'=2], [{'a'}, {}]}", (("X", "Y:(1)2"), ())),
        ("{mesh['a'=8], [{'a':(2)2}, {}]}", (("Y:(1)2",), ())),
        ("{mesh['a'=4,'b'=2], device_ids=([4,2]T(1,0)), [{'a'}, {'b'}]}", (("Y:(2)2", "X"), ("Y:(1)2",))),
    ],
)
def test_devices_that_follow_parts_of_axes(text, spec):
    reading = read_gspmd(text, Context(XY))
    assert reading.spec == PartitionSpec(spec)
    assert read_gspmd(write_gspmd(reading, Context(XY)), Context(XY)).spec == reading.spec


def test_writes_every_spec_back():
    for text in {write_gspmd(Reading(each), Context(XY)) for each in all_specs(XY, 2)}:
        reading = read_gspmd(text, Context(XY, rank=2))
        assert write_gspmd(reading, Context(XY)) == text
    assert len({write_gspmd(Reading(each), Context(XY)) for each in all_specs(XY, 2)}) == 11


SHAPE = "write an HLO sharding as {devices=[2,4]<=[8]} or {replicated}"
MESH = "give the mesh of the program that this is from"


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "expected '{' in an empty text", SHAPE),
        ("{devices=[2,4]<=[8]", "expected '}' at the end of '{devices=[2,4]<=[8]'", SHAPE),
        (
            "{devices=[2,4]<=[9]}",
            "2·4 = 8 tiles do not fit 9 devices at character 10 of '{devices=[2,4]<=[9]}'",
            SHAPE,
        ),
        (
            "{devices=[2,2]<=[4]}",
            "4 devices, but the mesh X=2,Y=4 has 8 at character 10 of '{devices=[2,2]<=[4]}'",
            MESH,
        ),
        (
            "{devices=[2,4]<=[2,4]T(0,0)}",
            "this iota is not a permutation of the devices at character 17 of '{devices=[2,4]<=[2,4]T(0,0)}'",
            SHAPE,
        ),
        (
            "{maximal device=8}",
            "the number of dimensions is missing at character 1 of '{maximal device=8}'",
            "give it, as in --rank 2",
        ),
        (
            "{devices=[2,4]0,1,2,3,4,5,6,7 last_tile_dims={manual}}",
            "the program moves a part of its data itself at character 10 of "
            "'{devices=[2,4]0,1,2,3,4,5,6,7 last_tile_dims={manual}}'",
            "give a sharding outside shard_map",
        ),
        (
            "{{replicated}, {replicated}}",
            "a tuple of shardings begins at character 2 of '{{replicated}, {replicated}}'",
            "give the sharding of one array",
        ),
        (
            "{mesh['a'=2], [{'a'}]}",
            "2 devices, but the mesh X=2,Y=4 has 8 at character 2 of '{mesh['a'=2], [{'a'}]}'",
            MESH,
        ),
        (
            "{mesh['a'=8], [{'b'}]}",
            "unknown mesh axis 'b' at character 18 of '{mesh['a'=8], [{'b'}]}'",
            "this mesh has one axis: a",
        ),
        (
            "{mesh['a'=8], [{'a':(3)2}]}",
            "an axis of size 8 has no such part at character 21 of '{mesh['a'=8], [{'a':(3)2}]}'",
            SHAPE,
        ),
        (
            "{mesh['a'=8], [{}], unreduced=max{'a'}}",
            "the pending reduction is not a sum at character 21 of '{mesh['a'=8], [{}], unreduced=max{'a'}}'",
            "give an array that is whole or a pending sum",
        ),
        (
            "{mesh['a'=8], device_ids=(0,1,2,3,4,5,6,6), [{'a'}]}",
            "device_ids are not the 8 devices of the mesh at character 13 of "
            "'{mesh['a'=8], device_ids=(0,1,2,3,4,5,6,6), [{'a'}]}'",
            SHAPE,
        ),
    ],
)
def test_refuses(text, message, hint):
    with pytest.raises(NotationError) as caught:
        read_gspmd(text, Context(XY))
    assert str(caught.value) == message
    assert caught.value.hint == hint


def test_refuses_another_rank_and_no_mesh():
    with pytest.raises(NotationError, match="2 dimensions, but the array has 3, at character 1"):
        read_gspmd("{devices=[2,4]<=[8]}", Context(XY, rank=3))
    with pytest.raises(QuestionError, match="an HLO sharding numbers devices, and no mesh is given"):
        read_gspmd("{replicated}", Context())
    with pytest.raises(QuestionError, match="unknown mesh axis 'Z'"):
        write_gspmd(Reading(PartitionSpec((("Z",),))), Context(XY))
