"""What an operation says of its sizes without cutting anything: the same as its cuts and its numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedules_for
from shardviz.collectives.operation import Operation
from shardviz.collectives.operations import OPERATIONS

TABLE = ((0, 3, 1, 0), (2, 2, 0, 1), (0, 0, 0, 0), (1, 1, 1, 2))
CASES = [
    (OPERATIONS["all_gather"](("i",)), (5, 2)),
    (OPERATIONS["all_gather"](("i",), axis=1), (5, 2)),
    (OPERATIONS["all_gather"](("i",), axis=-1, tiled=False), (3,)),
    (OPERATIONS["psum"](("i",)), (7, 3)),
    (OPERATIONS["pmean"](("i",)), ()),
    (OPERATIONS["pmax"](("i",)), (2, 2)),
    (OPERATIONS["psum_scatter"](("i",)), (8, 3)),
    (OPERATIONS["psum_scatter"](("i",), scatter_dimension=1, tiled=False), (3, 4)),
    (OPERATIONS["all_to_all"](("i",)), (8, 3)),
    (OPERATIONS["all_to_all"](("i",), split_axis=1, concat_axis=0), (3, 4)),
    (OPERATIONS["all_to_all"](("i",), split_axis=1, concat_axis=0, tiled=False), (3, 4)),
    (OPERATIONS["ppermute"](("i",), ((0, 1), (1, 3))), (5,)),
    (OPERATIONS["pbroadcast"](("i",), source=2), (7,)),
    (OPERATIONS["ragged_all_to_all"](("i",), TABLE), (6, 3)),
]
IDS = [f"{operation.name}-{'x'.join(map(str, shape))}" for operation, shape in CASES]


@pytest.mark.parametrize(("operation", "shape"), CASES, ids=IDS)
def test_chunks_have_the_sizes_of_the_cuts(operation: Operation, shape: tuple[int, ...]) -> None:
    for schedule in schedules_for(operation.pattern((4,))):
        cut = operation.cuts(shape, "f32", 4, schedule.chunks).sizes
        said = operation.chunk_sizes(shape, 4, schedule.chunks)
        assert np.broadcast_to(said, schedule.chunks).tolist() == cut.tolist()


@pytest.mark.parametrize(("operation", "shape"), CASES, ids=IDS)
def test_the_larger_of_operand_and_result(operation: Operation, shape: tuple[int, ...]) -> None:
    result = operation.cuts(shape, "f32", 4, operation.pattern((4,)).base_chunks).shape
    larger = math.prod(operation.larger(shape, 4))
    if operation.name == "ragged_all_to_all":
        # Of the rows that are sent or received, 6 at most; the shards may have more.
        assert larger == 6 * 3
    else:
        assert larger == max(math.prod(shape), math.prod(result))


@pytest.mark.parametrize("operation", [operation for operation, _ in CASES], ids=IDS)
def test_the_smallest_shard_is_taken_and_leaves_no_chunk_empty(operation: Operation) -> None:
    for schedule in schedules_for(operation.pattern((4,))):
        smallest = operation.smallest_shard(4, schedule.pattern.pieces(schedule.chunks))
        operation.check(smallest, "f32", 4)
        sizes = np.broadcast_to(operation.chunk_sizes(smallest, 4, schedule.chunks), schedule.chunks)
        if operation.name != "ragged_all_to_all":
            assert sizes.min() > 0


def test_the_least_of_a_table_is_what_the_busiest_member_sends_to_others() -> None:
    operation = OPERATIONS["ragged_all_to_all"](("i",), TABLE)
    # Member 0 sends 4 rows to two others, member 3 sends 3 to three; what a member keeps does not travel.
    least = operation.least((6, 3), "bf16", 4)
    assert (least.rounds, least.wire_bytes) == (2, 4 * 3 * 2)
    pair = OPERATIONS["ragged_all_to_all"](("i",), ((0, 1), (1, 0)))
    assert (pair.least((1,), "f32", 2).rounds, pair.least((1,), "f32", 2).wire_bytes) == (1, 4)
    to_one = tuple((0,) * 8 if member == 0 else (1, *(0,) * 7) for member in range(8))
    gathered = OPERATIONS["ragged_all_to_all"](("i",), to_one).least((1,), "f32", 8)
    assert (gathered.rounds, gathered.wire_bytes) == (3, 4)
    nothing = OPERATIONS["ragged_all_to_all"](("i",), ((1, 0), (0, 2)))
    assert (nothing.least((2,), "f32", 2).rounds, nothing.least((2,), "f32", 2).wire_bytes) == (0, 0)
