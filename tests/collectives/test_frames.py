"""Numbers in every frame: forwards, backwards, by group, by dtype."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedule_for, schedules_for
from shardviz.collectives.frames import Frames
from shardviz.collectives.operation import Operation
from shardviz.collectives.operations import OPERATIONS
from shardviz.collectives.schedule import Pattern
from shardviz.errors import QuestionError
from shardviz.sharding import Mesh

LINE = Mesh(("i",), (4,))
TUTORIAL = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 1, 2]


def run(operation: Operation, mesh: Mesh, shards: np.ndarray, algorithm: str) -> Frames:
    dims = tuple(mesh.axis_size(axis) for axis in operation.axes)
    return Frames(schedule_for(algorithm, operation.pattern(dims)), operation, mesh, shards)


def rows(frames: Frames, number: int, group: int = 0) -> list[list[list[int]]]:
    """Values by member and chunk held."""
    members = range(frames.schedule.pattern.group_size)
    return [[piece.values.tolist() for piece in frames[number].pieces(m, group)] for m in members]


@pytest.mark.parametrize(
    ("name", "numbers", "algorithm", "after"),
    [
        ("all_gather", [3, 9, 5, 2], "ring", [[3, 9, 5, 2]] * 4),
        ("psum", TUTORIAL, "ring", [[22, 20, 12, 17]] * 4),
        ("psum_scatter", TUTORIAL, "ring", [[22], [20], [12], [17]]),
        ("all_to_all", TUTORIAL, "pairwise", [[3, 5, 5, 9], [1, 9, 3, 7], [4, 2, 5, 1], [1, 6, 8, 2]]),
    ],
)
def test_the_tutorial(name: str, numbers: list[int], algorithm: str, after: list[list[int]]) -> None:
    shards = np.array(numbers, dtype=np.int32).reshape(4, -1)
    frames = run(OPERATIONS[name](("i",)), LINE, shards, algorithm)
    assert frames.before is shards
    assert frames.after.tolist() == after
    assert frames.after.dtype == np.int32


def test_a_ring_gather_passes_chunks_to_the_right() -> None:
    shards = np.array([[3], [9], [5], [2]], dtype=np.int32)
    frames = run(OPERATIONS["all_gather"](("i",)), LINE, shards, "ring")
    assert len(frames) == 4
    assert rows(frames, 0) == [[[3]], [[9]], [[5]], [[2]]]
    assert rows(frames, 1) == [[[3], [2]], [[3], [9]], [[9], [5]], [[5], [2]]]
    assert rows(frames, 3) == [[[3], [9], [5], [2]]] * 4
    first = frames[1]
    assert [(piece.chunk, piece.arrived) for piece in first.pieces(1)] == [(0, True), (1, False)]
    assert first.sends.dst.tolist() == [1, 2, 3, 0]
    assert first.phase.name == "all-gather"
    assert (frames[0].sends, frames[0].phase) == (None, None)


def test_partial_sums_tell_their_addends() -> None:
    shards = np.array(TUTORIAL, dtype=np.int32).reshape(4, 4)
    frames = run(OPERATIONS["psum"](("i",)), LINE, shards, "ring")
    told = []
    for frame in [*frames][1:4]:
        held = [piece for member in range(4) for piece in frame.pieces(member)]
        (piece,) = (piece for piece in held if piece.chunk == 0 and piece.arrived)
        told.append([int(values[0]) for values in piece.addends])
        assert piece.values[0] == sum(told[-1])
    assert told == [[5, 5], [5, 5, 9], [5, 5, 9, 3]]


@pytest.mark.parametrize("algorithm", ["ring", "direct", "recursive-doubling"])
def test_every_piece_is_the_sum_of_its_addends_and_frames_come_in_any_order(algorithm: str) -> None:
    shards = np.random.default_rng(1).integers(-99, 99, (8, 24))
    mesh = Mesh(("x", "y"), (2, 4))
    frames = run(OPERATIONS["psum"](("y",)), mesh, shards, algorithm)
    seen = {number: rows(frames, number, 1) for number in range(len(frames))}
    order = list(seen)
    random.Random(2).shuffle(order)
    for number in order:
        assert rows(frames, number, 1) == seen[number]
        for group, positions in enumerate(mesh.groups(("y",))):
            for member in range(4):
                for piece in frames[number].pieces(member, group):
                    assert piece.values.tolist() == sum(piece.addends).tolist()
                    elements = frames.cuts.start[piece.chunk]
                    leaves = frames.trace.addends(piece.datum)
                    members = [positions[frames.trace.leaf_member[leaf]] for leaf in leaves]
                    own = [shards[position][elements[elements >= 0]] for position in members]
                    assert [each.tolist() for each in own] == [each.tolist() for each in piece.addends]
    assert (frames.after[:4] == shards[:4].sum(0)).all()
    assert (frames.after[4:] == shards[4:].sum(0)).all()


def test_frames_are_a_sequence() -> None:
    frames = Frames(schedule_for("ring", Pattern("all_gather", (8,))))
    assert len(frames) == 8
    assert frames[-1].number == 7
    assert [frame.number for frame in frames] == list(range(8))
    with pytest.raises(IndexError):
        frames[8]
    with pytest.raises(IndexError):
        frames[-9]


def test_without_numbers_there_are_pieces_all_the_same() -> None:
    frames = Frames(schedule_for("ring", Pattern("all_reduce", (4,))))
    assert (frames.before, frames.after, frames.cuts) == (None, None, None)
    (piece,) = (piece for piece in frames[3].pieces(0) if piece.arrived)
    assert (piece.chunk, piece.values, piece.addends) == (0, None, None)
    assert piece.count == 4


def test_equal_data_have_equal_numbers() -> None:
    frames = Frames(schedule_for("bidirectional-ring", Pattern("all_gather", (6,))))
    assert len({tuple(piece.datum for piece in frames[-1].pieces(member)) for member in range(6)}) == 1


def test_one_device_alone() -> None:
    mesh = Mesh(("i",), (1,))
    shards = np.array([[1, 2]])
    for name in ("psum", "all_gather", "psum_scatter", "all_to_all"):
        operation = OPERATIONS[name](("i",))
        for schedule in schedules_for(operation.pattern((1,))):
            frames = Frames(schedule, operation, mesh, shards)
            assert len(frames) == 1
            assert frames.after.tolist() == [[1, 2]]


def test_empty_shards() -> None:
    frames = run(OPERATIONS["psum"](("i",)), LINE, np.zeros((4, 0, 3), dtype=np.float32), "ring")
    assert frames.after.shape == (4, 0, 3)
    assert [piece.values.size for piece in frames[-1].pieces(2)] == [0, 0, 0, 0]


def test_more_numbers_than_memory_should_take_are_refused() -> None:
    shards = np.broadcast_to(np.zeros((), dtype=np.float32), (8, 2**26))
    with pytest.raises(QuestionError, match=r"the numbers of all steps take 26\.0 GiB, more than 1"):
        run(OPERATIONS["all_gather"](("i",)), Mesh(("i",), (8,)), shards, "direct")
