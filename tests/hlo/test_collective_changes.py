"""What a pass made of the collectives, in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.hlo import Collective, Work
from shardviz.hlo.collective_changes import collective_changes

ROWS = ((0, 1, 2, 3), (4, 5, 6, 7))


def collective(op, dtype="bf16", nbytes=1024, **more):
    fields = {"axes": ("Y",), "groups": ROWS, "operand_shape": (8, 64), "result_shape": (8, 64)} | more
    return Collective(op=op, name=op, dtype=dtype, bytes=nbytes, wire_bytes=nbytes, **fields)


REDUCE, GATHER, SCATTER = (collective(op) for op in ("all-reduce", "all-gather", "reduce-scatter"))
AROUND = collective("collective-permute", nbytes=256, groups=((0, 1), (1, 2), (2, 3), (3, 0)))
BACK = replace(AROUND, groups=((1, 0), (2, 1), (3, 2), (0, 3)))
MATMUL = Work("fusion", "matmul")
SCATTERED = "an all-reduce over Y and the slice after it became a reduce-scatter: 1 KiB"

CASES = [
    ([REDUCE], [replace(REDUCE, name="other")], []),
    ([], [REDUCE], ["inserted: an all-reduce over Y of 1 KiB"]),
    ([GATHER, GATHER], [GATHER], ["dropped: an all-gather over Y of 1 KiB"]),
    (
        [REDUCE],
        [replace(REDUCE, dtype="f32", bytes=2048)],
        ["all-reduce over Y: bf16 became f32, 1 KiB became 2 KiB"],
    ),
    (
        [GATHER] * 2,
        [replace(GATHER, dtype="f32", bytes=2048)] * 2,
        ["2 all-gathers over Y: bf16 became f32, 1 KiB became 2 KiB"],
    ),
    (
        [REDUCE],
        [SCATTER],
        [SCATTERED],
    ),
    ([SCATTER], [REDUCE], ["a reduce-scatter over Y became an all-reduce and a slice after it: 1 KiB"]),
    ([REDUCE], [SCATTER, GATHER], ["an all-reduce over Y became a reduce-scatter and an all-gather"]),
    (
        [GATHER],
        [AROUND, BACK, AROUND],
        ["an all-gather over Y of 1 KiB became 3 collective-permutes in two directions"],
    ),
    ([SCATTER], [AROUND, AROUND], ["a reduce-scatter over Y of 1 KiB became 2 collective-permutes"]),
    (
        [REDUCE, replace(REDUCE, operand_shape=(4,))],
        [replace(REDUCE, arrays=2, bytes=2048)],
        ["2 all-reduces over Y joined into one of 2 KiB"],
    ),
    (
        [replace(GATHER, bytes=4096)],
        [GATHER] * 4,
        ["an all-gather over Y of 4 KiB decomposed into 4"],
    ),
    ([GATHER], [replace(GATHER, is_async=True)], ["all-gather over Y: made asynchronous"]),
    (
        [replace(GATHER, is_async=True)],
        [replace(GATHER, is_async=True, overlapped=(MATMUL, Work("copy", "copy"), MATMUL))],
        ["all-gather over Y: moved beside 2 matmuls"],
    ),
    (
        [replace(GATHER, is_async=True, overlapped=(MATMUL,))],
        [replace(GATHER, is_async=False)],
        ["all-gather over Y: made synchronous, moved, no longer beside a matmul"],
    ),
    (
        [replace(REDUCE, count=None)] * 2,
        [replace(REDUCE, count=1)] * 2,
        ["2 all-reduces over Y: known to run once"],
    ),
    (
        [replace(REDUCE, count=4)],
        [replace(REDUCE, count=2)],
        ["all-reduce over Y: runs 2 times instead of 4"],
    ),
    (
        [GATHER],
        [replace(GATHER, operand_shape=(1, 8, 64))],
        ["all-gather over Y: [8,64] became [1,8,64]→[8,64]"],
    ),
    (
        [GATHER],
        [replace(GATHER, axes=("X",), groups=((0, 4),))],
        ["all-gather over X: between other devices instead of Y"],
    ),
    ([GATHER], [replace(GATHER, groups=ROWS[::-1])], []),
    (
        [REDUCE],
        [replace(REDUCE, groups=ROWS[::-1], between_slices=True)],
        ["all-reduce over Y: sent between slices"],
    ),
    ([REDUCE], [replace(SCATTER, groups=ROWS[::-1])], [SCATTERED]),
    (
        [GATHER],
        [replace(GATHER, groups=tuple(row[::-1] for row in ROWS))],
        ["all-gather over Y: between the same devices in another order"],
    ),
    (
        [GATHER],
        [replace(GATHER, algorithm="RotatedPincerEmitter")],
        ["all-gather over Y: carried out by RotatedPincerEmitter"],
    ),
    ([REDUCE], [replace(REDUCE, between_slices=True)], ["all-reduce over Y: sent between slices"]),
    (
        [REDUCE],
        [collective("all-to-all")],
        ["an all-reduce over Y became an all-to-all over Y of 1 KiB"],
    ),
]


@pytest.mark.parametrize(("before", "after", "words"), CASES)
def test_what_happened_is_said(before, after, words):
    assert collective_changes(before, after) == tuple(words)


def test_another_order_is_a_change_only_where_there_is_an_order():
    assert collective_changes([REDUCE, GATHER], [GATHER, REDUCE]) == ()
    said = collective_changes([REDUCE, GATHER], [GATHER, REDUCE], in_order=True)
    assert said == ("moved: all-gather over Y now starts before all-reduce over Y",)
