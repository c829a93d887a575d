"""Resharding: the cheapest path is found, judged by trying every path, and each move costs what it must."""

from __future__ import annotations

import random
from functools import cache

import pytest

from shardviz.planner.reshard import Reshards, Shards, spec_of, state_of
from shardviz.sharding import Mesh, PartitionSpec

SIZES = {"X": 2, "Y": 4}


def spec(text):
    """``X_``, ``(XY)_``, or with pending sums ``__|Y``."""
    body, _, pending = text.partition("|")
    dims, group = [], None
    for letter in body:
        if letter == "(":
            group = []
        elif letter == ")":
            dims.append(tuple(group))
            group = None
        elif group is not None:
            group.append(letter)
        else:
            dims.append(() if letter == "_" else (letter,))
    return PartitionSpec(tuple(dims), tuple(pending))


def state(text):
    return state_of(spec(text), Mesh(tuple(SIZES), tuple(SIZES.values())))


ALL = ["__", "X_", "Y_", "_X", "_Y", "XY", "YX", "(XY)_", "(YX)_", "_(XY)", "_(YX)"]
PENDING = ["__|X", "__|Y", "__|XY", "X_|Y", "_X|Y", "Y_|X", "_Y|X"]


@cache
def every_path(start, shape, axes, most):
    """Least bytes to every state that `most` moves over `axes` reach, by trying every path."""
    shards = Shards(shape, "bf16", SIZES, axes)
    best = {start: 0}
    front = {start: 0}
    for _ in range(most):
        following = {}
        for held, sent in front.items():
            for move in shards.moves(held):
                total = sent + move.wire_bytes
                if total < best.get(move.after, total + 1):
                    best[move.after] = following[move.after] = total
        front = following
    return best


@pytest.mark.parametrize("shape", [(8, 16), (64, 8), (8, 8)])
def test_no_path_of_up_to_four_moves_sends_less(shape):
    reshards = Reshards(SIZES)
    compared = 0
    for start in map(state, (*ALL, *PENDING)):
        for goal in map(state, ALL):
            # Axes that neither end names stay idle.
            named = {axis for dims, pending in (start, goal) for axes in (*dims, pending) for axis in axes}
            reached = every_path(start, shape, tuple(sorted(named)), 4)
            cost, moves = reshards.path(shape, "bf16", start, goal)
            compared += 1
            assert cost.wire_bytes <= reached[goal], (start, goal)
            if len(moves) <= 4:
                assert cost.wire_bytes == reached[goal], (start, goal)
            assert cost.wire_bytes >= reshards.bound(shape, "bf16", start, goal)
    assert compared == 18 * 11


@pytest.mark.parametrize("seed", range(3))
def test_a_path_joins_its_moves_and_adds_their_costs(seed):
    """On up to five axes, where the path is no longer the cheapest, it still leads to the goal."""
    draw = random.Random(seed)
    names = "XYZWV"
    for _ in range(60):
        sizes = {name: draw.choice((2, 2, 3)) for name in names[: draw.randrange(1, 6)]}
        reshards = Reshards(sizes)
        mesh = Mesh(tuple(sizes), tuple(sizes.values()))

        def place(pending, draw=draw, mesh=mesh):
            dims, unreduced = [[], [], []], []
            for axis in draw.sample(mesh.axis_names, len(mesh.axis_names)):
                where = draw.randrange(5 if pending else 4)
                if where < 3:
                    dims[where].append(axis)
                elif where == 4:
                    unreduced.append(axis)
            return state_of(PartitionSpec(tuple(map(tuple, dims)), tuple(unreduced)), mesh)

        start, goal = place(pending=True), place(pending=False)
        shape = (mesh.size, mesh.size, mesh.size)
        cost, moves = reshards.path(shape, "f32", start, goal)
        assert [move.before for move in moves] == [start, *(move.after for move in moves)][: len(moves)]
        assert (moves[-1].after if moves else start) == goal
        assert cost.wire_bytes == sum(move.wire_bytes for move in moves)
        assert cost.slices == sum(move.op == "slice" for move in moves)
        assert cost.collectives == len(moves) - cost.slices
        assert cost.wire_bytes >= reshards.bound(shape, "f32", start, goal)


MOVES = [
    # An array of 8×16 bf16 is 256 bytes; of each move: op, axes, dim, bytes of the larger side, wire bytes.
    ("XY", "X_", [("all_gather", "Y", 1, 128, 96)]),
    ("(XY)_", "__", [("all_gather", "XY", 0, 256, 224)]),
    ("__", "XY", [("slice", "X", 0, 256, 0), ("slice", "Y", 1, 128, 0)]),
    ("Y_", "_Y", [("all_to_all", "Y", 0, 64, 48)]),
    ("__|Y", "__", [("psum", "Y", None, 256, 384)]),
    ("__|Y", "_Y", [("psum_scatter", "Y", 1, 256, 192)]),
    ("X_|Y", "XY", [("psum_scatter", "Y", 1, 128, 96)]),
    ("(XY)_", "(YX)_", [("ppermute", "XY", None, 32, 32)]),
    ("__|XY", "__|X", [("psum", "Y", None, 256, 384)]),
    ("XY", "XY", []),
]


@pytest.mark.parametrize(("start", "goal", "expected"), MOVES)
def test_moves_and_their_bytes(start, goal, expected):
    _, moves = Reshards(SIZES).path((8, 16), "bf16", state(start), state(goal))
    assert [(m.op, "".join(m.axes), m.dim, m.bytes, m.wire_bytes) for m in moves] == expected


def test_axes_that_stay_take_no_part():
    """The same bytes are found whether or not another axis splits a dimension on both sides."""
    reshards = Reshards({"Z": 2, **SIZES})
    alone, _ = reshards.path((8, 16), "bf16", state("Y_"), state("_Y"))
    start, goal = ((("Z", "Y"), ()), ()), ((("Z",), ("Y",)), ())
    beside, moves = reshards.path((16, 16), "bf16", start, goal)
    assert beside == alone
    assert [move.op for move in moves] == ["all_to_all"]
    assert (moves[0].before, moves[0].after) == (start, goal)


def test_no_move_makes_unequal_parts():
    shards = Shards((6, 4), "f32", SIZES, ("X", "Y"))
    for move in shards.moves(state("XY")):
        assert shards.divides(move.after), move


def test_axes_of_one_device_split_nothing():
    mesh = Mesh(("X", "one"), (2, 1))
    held = state_of(PartitionSpec((("one", "X"), ())), mesh)
    assert held == ((("X",), ()), ())
    assert spec_of(held) == PartitionSpec((("X",), ()))
