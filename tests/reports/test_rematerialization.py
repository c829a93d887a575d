"""XLA's warnings of arrays that it makes whole, in the words of several versions, and routes without it."""

from __future__ import annotations

import os
import random
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.reports.rematerialization import (
    MARK,
    rematerializations,
    reshard_route,
    route_code,
    without_warnings,
)
from shardviz.sharding import Mesh, PartitionSpec

XY = Mesh(("x", "y"), (4, 2))
BEFORE, AFTER = "{devices=[2,1,4]<=[4,2]T(1,0)}", "{devices=[1,8,1]<=[8]}"
OPERATION = (
    "%swap.1 = f32[8,16,4]{2,1,0} multiply(%a, %b), "
    'metadata={op_name="jit(f)/mul" source_file="s.py" source_line=7}'
)
OLD = "The compiler was not able to go from sharding"
NEW = "The compiler cannot go from sharding"
WHOLE = "without doing a full rematerialization of the tensor"
LAST = "As the last resort, SPMD will replicate the tensor"
NAMED = "{mesh['x'=4,'y'=2], [{'y'}, {}, {'x'}]} to {mesh['x'=4,'y'=2], [{}, {'x', 'y'}, {}]}"
WORDS = {
    "oldest": f"E spmd.cc:509] [spmd] {MARK}. The compiled was not able to go from sharding {BEFORE} "
    f"to {AFTER} {WHOLE}. You probably want to enrich the sharding",
    "named operation": f"E spmd.cc:613] [spmd] {MARK}. {OLD} {BEFORE} to {AFTER} {WHOLE} for HLO operation: "
    f"{OPERATION}. You probably want to enrich the sharding annotations",
    "shardy": f"W spmd.cc:656] [SPMD] {MARK}. {NEW} {BEFORE} to {AFTER} efficiently for HLO operation "
    f"{OPERATION}. {LAST}",
    "named axes": f"W spmd.cc:666] [SPMD] {MARK}. {NEW} {NAMED} efficiently for HLO operation "
    f"{OPERATION}. {LAST}",
}
SPECS = PartitionSpec((("y",), (), ("x",))), PartitionSpec(((), ("x", "y"), ()))


@pytest.mark.parametrize("version", WORDS)
def test_the_words_of_each_version_are_read(version):
    (found,) = rematerializations(WORDS[version], XY)
    assert (found.before, found.after) == SPECS
    assert rematerializations(WORDS[version])[0].before == SPECS[0]  # the mesh of the shardings themselves
    if version == "oldest":
        assert found.shape is None
        assert not found.route
    else:
        assert (found.shape, found.dtype) == ((16, 16, 16), "f32")
        assert (found.op_name, found.source) == ("jit(f)/mul", "s.py:7")
        assert found.whole_bytes == 16**3 * 4
        assert found.wire_bytes == 16**3 * 4 * 7 // 8
        assert found.route_bytes < found.wire_bytes


def test_equal_warnings_are_one_and_other_lines_stay():
    log = f"start\n{WORDS['shardy']}\nbetween\n{WORDS['shardy']}\nend\n"
    (found,) = rematerializations(log, XY)
    assert found.times == 2
    assert without_warnings(log) == "start\nbetween\nend\n"


@pytest.mark.parametrize("version", ["shardy", "named axes"])
def test_a_line_with_one_damaged_sign_is_read_as_far_as_it_goes(version):
    line = WORDS[version]
    first, last = line.index("{"), line.index(" efficiently")
    for place in range(first, last):
        for sign in ("", ",", "0", "'", "]"):
            for found in rematerializations(f"{line[:place]}{sign}{line[place + 1 :]}"):
                assert found.times == 1
    (found,) = rematerializations(line.replace(BEFORE, "{devices=[2,1,4]<=[4,,2]T(1,0)}"))
    assert found.written is not None
    assert (found.before is None) == (version == "shardy")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{devices=[256,1]<=[256]}", "{devices=[1,64,4]<=[256] last_tile_dim_replicate}"),
        (
            "{devices=[1,1,2,2]<=[4] last_tile_dim_replicate}",
            "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}",
        ),
        ("{devices=[4,1,1,1]0,1,2,3}", "{devices=[2,1,1,2]0,1,2,3}"),
        ("{maximal device=0}", "{devices=[4,1]<=[4]}"),
        ("{replicated}", "{devices=[4,1]<=[4]}"),
    ],
)
@pytest.mark.parametrize("mesh", [None, XY, Mesh(("data", "model"), (64, 4))])
def test_shardings_of_public_reports_are_told_as_they_stand(before, after, mesh):
    (found,) = rematerializations(WORDS["oldest"].replace(BEFORE, before).replace(AFTER, after), mesh)
    assert found.written == (before, after)


def test_a_mesh_of_ones_own_names_the_axes():
    line = WORDS["oldest"].replace(BEFORE, "{devices=[256,1]<=[256]}")
    line = line.replace(AFTER, "{devices=[1,64,4]<=[256] last_tile_dim_replicate}")
    (found,) = rematerializations(line, Mesh(("data", "model"), (64, 4)))
    assert (str(found.before), str(found.after)) == ("P(('data', 'model'), None)", "P(None, 'data')")


def compiled(mesh, chain):
    """What XLA says of a program in which an array goes from one sharding of `chain` to the next."""
    shardings = [NamedSharding(mesh, P(*(axes or None for axes in dims))) for dims in chain]

    def program(x):
        x = x * 2
        for sharding in shardings[1:]:
            x = jax.lax.with_sharding_constraint(x, sharding)
        return jnp.sin(x)

    argument = jax.ShapeDtypeStruct((16, 16, 16), jnp.float32, sharding=shardings[0])
    with tempfile.TemporaryFile() as file:
        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            jax.jit(program, out_shardings=shardings[-1]).lower(argument).compile()
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        file.seek(0)
        return file.read().decode()


def test_xla_goes_along_each_route_without_a_warning():
    """The shardings between which XLA itself knows no way, and what it says of the route."""
    devices = np.array(jax.devices()[:8]).reshape(4, 2)
    mesh = jax.sharding.Mesh(devices, ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    pairs = [(SPECS[0].dims, SPECS[1].dims)]
    choose = random.Random(1)
    for _ in range(8):
        ends = [[[], [], []], [[], [], []]]
        for dims in ends:
            for axis in choose.sample(("x", "y"), 2):
                choose.choice(dims).append(axis)
        pairs.append(tuple(tuple(map(tuple, dims)) for dims in ends))
    warned = 0
    for before, after in pairs:
        for found in rematerializations(compiled(mesh, [before, after]), XY):
            warned += 1
            assert (found.before.dims, found.after.dims) == (before, after)
            route = [move.to_spec.dims for move in found.route]
            assert len(route) > 1
            assert route[-1] == after
            assert MARK not in compiled(mesh, [before, *route])
    assert warned > 1


def test_a_route_is_written_as_constraints():
    route = reshard_route(*SPECS, (16, 16, 16), "f32", XY)
    assert [route_code(step) for step in route] == [
        "x = jax.lax.with_sharding_constraint(x, P('y', 'x', None))  # all-to-all",
        "x = jax.lax.with_sharding_constraint(x, P(None, ('x', 'y'), None))  # all-to-all",
    ]


def test_parts_of_axes_have_no_route():
    before = PartitionSpec((("x:(1)2",), (), ()))
    assert reshard_route(before, SPECS[1], (16, 16, 16), "f32", XY) == ()
