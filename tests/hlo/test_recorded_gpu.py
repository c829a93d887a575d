"""Texts of XLA's CUDA compiler, which tests cannot run: it is 5 GB. Each says what it is from."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardviz.hlo import Collective, HloModule, read_hlo
from shardviz.sharding import Mesh

FOLDER = Path(__file__).parent / "recorded"
TWO_BY_FOUR = Mesh(("X", "Y"), (2, 4))
EIGHT = Mesh(("X",), (8,))


def recorded(name: str, mesh: Mesh) -> HloModule:
    module = read_hlo((FOLDER / f"{name}.txt").read_text(encoding="utf-8"), mesh)
    assert (module.unread, module.num_partitions, module.is_scheduled) == ((), mesh.size, True)
    assert module.collective_matmuls == ()
    return module


def only(module: HloModule) -> Collective:
    (collective,) = module.collectives
    return collective


def test_texts_are_short_and_say_where_they_are_from():
    texts = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")}
    assert len(texts) == 6
    assert [name for name, text in texts.items() if not text.startswith("// jax 0.10.2, ")] == []
    assert [name for name, text in texts.items() if text.count("\n") >= 60] == []


def test_reduce_scatter():
    found = only(recorded("reduce_scatter_h100x8", TWO_BY_FOUR))
    assert (found.op, found.axes, found.dim) == ("reduce-scatter", ("Y",), 1)
    assert (found.operand_shape, found.result_shape) == ((4, 8192), (4, 2048))
    assert (found.bytes, found.wire_bytes) == (4 * 8192 * 2, 3 * 4 * 2048 * 2)
    assert (found.is_async, found.overlapped, found.algorithm) == (False, (), "")


def test_a_start_that_blocks_and_one_beside_gemms():
    first, second, third = recorded("all_gather_h100x8", EIGHT).collectives
    for each in (first, second, third):
        assert (each.op, each.axes, each.bytes) == ("all-gather", ("X",), 4096 * 4096 * 2)
    assert [each.is_async for each in (first, second, third)] == [False, False, True]
    assert first.overlapped == second.overlapped == ()
    beside = [(work.name, work.op, work.cycles) for work in third.overlapped]
    assert beside == [("gemm_fusion_dot", "matmul", None), ("gemm_fusion_dot.1", "matmul", None)]


def test_all_reduce_across_two_nodes():
    found = only(recorded("all_reduce_2x8", Mesh(("X", "Y"), (2, 8))))
    assert (found.op, found.axes, found.bytes) == ("all-reduce", ("X",), 1024 * 1024 * 2)
    assert found.groups == tuple((device, device + 8) for device in range(8))
    assert (found.is_async, found.algorithm) == (False, "triton two shot")


def test_permute_without_a_matmul():
    found = only(recorded("permute_h100x8", TWO_BY_FOUR))
    assert (found.op, found.axes, found.wire_bytes) == ("collective-permute", ("Y",), 512 * 512 * 2)


@pytest.mark.parametrize(
    ("name", "op", "arrays", "elements"),
    [
        # Gathers keep their arrays, in one instruction; sums become one array.
        ("all_gathers_combined", "all-gather", 3, 8 * (128 * 64 + 64 * 128 + 32)),
        ("all_reduces_combined", "all-reduce", 1, 128 * 64 + 64 * 128 + 32),
    ],
)
def test_combined(name, op, arrays, elements):
    found = only(recorded(name, EIGHT))
    assert (found.op, found.axes, found.arrays, found.bytes) == (op, ("X",), arrays, 2 * elements)
