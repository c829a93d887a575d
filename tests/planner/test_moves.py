"""The moves between states: each is one operation, and the list of arrivals is that of departures."""

from __future__ import annotations

import pytest

from shardviz.planner.states.moves import (
    STAGES,
    PathMove,
    StateSpace,
    move_step,
    spec_of,
    state_of,
    state_space,
    wire_bytes_of,
)
from shardviz.sharding import Mesh, PartitionSpec, ShardedArray

SIZES = {"X": 2, "Y": 4}
MESH = Mesh(("X", "Y"), (2, 4))
SPACE = StateSpace(SIZES, SIZES)


def moves(space, state):
    return {(move.op, move.axes, move.dim, move.other.state) for move in departures(space, space.node(state))}


def departures(space, node):
    return [move for stage in range(len(STAGES)) for move in space.moves(node, stage)]


def arrivals(space, node, pending):
    return [move for stage in range(len(STAGES)) for move in space.moves(node, stage, pending)]


def test_every_move_of_a_split_vector():
    """Over one axis a vector can be gathered, and nothing else."""
    space = StateSpace({"X": 2}, {"X": 2})
    assert moves(space, ((("X",),), ())) == {("all_gather", ("X",), 0, (((),), ()))}
    assert moves(space, (((),), ())) == {("slice", ("X",), 0, ((("X",),), ()))}
    assert moves(space, (((),), ("X",))) == {
        ("psum", ("X",), None, (((),), ())),
        ("psum_scatter", ("X",), 0, ((("X",),), ())),
    }


def test_only_the_minor_end_of_a_dimension_leaves():
    found = moves(SPACE, ((("X", "Y"), ()), ()))
    gathers = {(axes, after) for op, axes, _, after in found if op == "all_gather"}
    assert gathers == {(("Y",), ((("X",), ()), ())), (("X", "Y"), (((), ()), ()))}
    assert not any(after[0][0] == ("Y",) for *_, after in found)


def test_a_permute_keeps_the_cut():
    space = StateSpace({"X": 2, "Y": 2}, {"X": 2, "Y": 2})
    node = space.node(((("X",), ("Y",)), ()))
    permutes = [move for move in departures(space, node) if move.op == "ppermute"]
    assert {move.other.state[0] for move in permutes} == {(("Y",), ("X",))}
    assert all(move.other.parts == node.parts for move in permutes)


def test_a_copy_becomes_a_pending_sum_only_where_that_is_allowed():
    state = (((),), ())
    assert not any(op == "mask" for op, *_ in moves(SPACE, state))
    masks = StateSpace(SIZES, SIZES, frozenset({"Y"}))
    assert {move for move in moves(masks, state) if move[0] == "mask"} == {
        ("mask", ("Y",), None, (((),), ("Y",)))
    }


@pytest.mark.parametrize("space", [SPACE, StateSpace(SIZES, SIZES, frozenset(SIZES), frozenset(SIZES))])
def test_what_departs_arrives(space):
    """A search backward knows the same moves as one forward."""
    every = [
        ((x, y), pending)
        for x in ((), ("X",), ("Y",), ("X", "Y"), ("Y", "X"))
        for y in ((), ("X",), ("Y",), ("X", "Y"), ("Y", "X"))
        for pending in ((), ("X",), ("Y",), ("X", "Y"))
        if len({*x, *y, *pending}) == len((*x, *y, *pending))
    ]
    forward = {
        (state, move.op, move.axes, move.other.state)
        for state in every
        for move in departures(space, space.node(state))
    }
    backward = {
        (move.other.state, move.op, move.axes, state)
        for state in every
        for move in arrivals(space, space.node(state), ("X", "Y"))
    }
    groups = {(before, op, frozenset(axes), after) for before, op, axes, after in forward}
    assert groups == {(before, op, frozenset(axes), after) for before, op, axes, after in backward}
    assert len(groups) > 90


def test_moves_over_all_parts_of_an_axis_name_the_axis():
    space = StateSpace({"Y:(1)2": 2, "Y:(2)2": 2}, {"Y": 4})
    found = moves(space, ((("Y:(1)2", "Y:(2)2"),), ()))
    assert {(op, axes) for op, axes, *_ in found} == {
        ("all_gather", ("Y",)),
        ("all_gather", ("Y:(2)2",)),
        ("ppermute", ("Y",)),
    }


def test_one_space_for_the_same_axes():
    made = [state_space((("X", 2),), (("X", 2),), frozenset()) for _ in range(2)]
    assert made[0] is made[1]
    assert made[0].node((((),), ())) is made[1].node((((),), ()))


@pytest.mark.parametrize(
    ("op", "size", "devices", "sent"),
    [
        ("all_gather", 1024, 4, 768),
        ("psum_scatter", 1024, 4, 768),
        ("all_to_all", 1024, 4, 768),
        ("psum", 1024, 4, 1536),
        ("ppermute", 1024, 4, 1024),
        ("slice", 1024, 4, 0),
        ("mask", 1024, 4, 0),
        ("psum", 1, 3, 2),  # 4/3, rounded up
    ],
)
def test_what_a_device_must_send(op, size, devices, sent):
    """Chan et al. 2007, "Collective communication: theory, practice, and experience"."""
    assert wire_bytes_of(op, size, devices) == sent


def test_a_gather_is_priced_by_what_it_makes():
    array = ShardedArray("A", ("b", "d"), (8, 16), "bf16", None)
    split, whole = ((("X",), ("Y",)), ()), ((("X",), ()), ())
    gather = move_step(array, MESH, PathMove("all_gather", ("Y",), 1, split, whole))
    assert (gather.shape, gather.bytes, gather.wire_bytes) == ((4, 16), 128, 96)
    pending = (("X",), ()), ("Y",)
    scatter = move_step(array, MESH, PathMove("psum_scatter", ("Y",), 1, pending, split))
    assert (scatter.shape, scatter.bytes) == ((4, 16), 128)


def test_specs_and_states():
    mesh = Mesh(("X", "Y", "Z"), (2, 4, 1))
    assert state_of(PartitionSpec((("X", "Z"), ()), ("Y",)), mesh) == ((("X",), ()), ("Y",))
    parts = ((("Y:(1)2", "Y:(2)2"), ()), ())
    assert spec_of(parts, mesh) == PartitionSpec((("Y",), ()))
