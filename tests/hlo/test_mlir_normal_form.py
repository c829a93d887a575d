# ruff: noqa: E501 - a compiler's line cannot be broken
"""What JAX lowers to, in any layout of its text."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jaxlib.mlir import ir

from shardviz.errors import NotationError
from shardviz.hlo import ShardyModule, read, read_shardy
from shardviz.sharding import Mesh, PartitionSpec


def every_collective(rows, vector):
    gathered = lax.all_gather(rows, "Y", axis=0, tiled=True)
    part = lax.psum_scatter(gathered, "Y", scatter_dimension=0, tiled=True)
    part = lax.all_to_all(part, "X", 0, 1, tiled=True)
    part = lax.ppermute(part, "Y", [(0, 1), (1, 2), (2, 3)])
    part = lax.fori_loop(0, 5, lambda i, x: lax.ppermute(x, "X", [(0, 1), (1, 0)]) + i, part)
    part = lax.fori_loop(
        0, 3, lambda i, x: lax.fori_loop(2, 9, lambda j, y: lax.pmax(y, "Y") * j, x + i), part
    )
    part = lax.cond(part.sum() > 0, lambda x: lax.psum(x, ("X", "Y")), lambda x: x, part)
    return part + vector.sum()


@pytest.fixture(scope="module")
def lowered() -> ir.Module:
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
    mapped = jax.shard_map(
        every_collective, mesh=mesh, in_specs=(P("X", "Y"), P("Y")), out_specs=P("X"), check_vma=False
    )
    split = [NamedSharding(mesh, spec) for spec in (P("X", "Y"), P("Y"))]
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((16, 16), (4,))]
    return jax.jit(mapped, in_shardings=split).lower(*shapes).compiler_ir("stablehlo")


def facts(module: ShardyModule) -> ShardyModule:
    return replace(module, collectives=tuple(replace(each, name="") for each in module.collectives))


def test_what_jax_lowers_to(lowered):
    own = lowered.operation.get_asm()
    expected = facts(read_shardy(own))
    assert expected.unread == ()
    assert {each.op: each.count for each in expected.collectives} == {
        "all-gather": 1, "reduce-scatter": 1, "all-to-all": 1, "collective-permute": 5, "all-reduce": 1,
    }  # fmt: skip
    assert 21 in [each.count for each in expected.collectives]
    assert expected.argument_specs == (PartitionSpec((("X",), ("Y",))), PartitionSpec((("Y",),)))
    assert facts(read_shardy(own.replace("\n", "\r\n"))) == expected


def test_the_generic_form_is_refused(lowered):
    with pytest.raises(NotationError, match="generic form"):
        read(lowered.operation.get_asm(print_generic_op_form=True))


def wrapped(text: str, rng: random.Random, share: float) -> str:
    """The text with line breaks in place of some of the spaces that stand in no string."""

    margin = rng.choice(("\n", "\n        ", "\n\n\t", " \n"))

    def broken(found: re.Match[str]) -> str:
        return found[0] if found[0] != " " or rng.random() > share else margin

    return re.sub(r'"(?:[^"\\]|\\.)*"|\n[ ]+| ', broken, text)


@pytest.mark.parametrize("share", [0.03, 0.3, 1])
def test_an_operation_may_go_on_in_the_next_line(lowered, share):
    rng = random.Random(0)
    with lowered.context:
        shardy = ir.Module.parse(SHARDY)
    for module in (lowered, shardy):
        own = module.operation.get_asm()
        expected = facts(read_shardy(own))
        for _ in range(4):
            broken = wrapped(own, rng, share)
            with lowered.context:
                assert ir.Module.parse(broken).operation.get_asm() == own
            assert facts(read_shardy(broken)) == expected


def test_a_break_that_keeps_a_space_is_one_like_the_others(lowered):
    own = lowered.operation.get_asm()
    broken, breaks = re.subn(r"compare +(LT,) (%\w+), ", r"compare \n\1\n\2,\n", own)
    assert breaks == 3
    with lowered.context:
        assert ir.Module.parse(broken).operation.get_asm() == own
    assert facts(read_shardy(broken)) == facts(read_shardy(own))


SHARDY = """module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=2, "Y"=4]>
  func.func public @main(%arg0: tensor<8x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}) -> tensor<8x64xf32> {
    %0 = sdy.all_gather [{}, {"Y":(2)2}] %arg0 out_sharding=<@mesh, [{"X"}, {"Y":(1)2}]> : tensor<8x64xf32>
    %1 = sdy.all_slice [{}, {"Y":(2)2}] %0 out_sharding=<@mesh, [{"X"}, {"Y"}]> : tensor<8x64xf32>
    %2 = sdy.all_to_all [{"X"}: 0->1] %1 out_sharding=<@mesh, [{}, {"Y", "X"}]> : tensor<8x64xf32>
    %3 = sdy.collective_permute %2 out_sharding=<@mesh, [{}, {"X", "Y"}]> : tensor<8x64xf32>
    %4 = sdy.all_gather [{}, {"X", "Y"}] %3 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>
    %5 = sdy.all_reduce {"Y"} %4 out_sharding=<@mesh, [{}, {}]> : tensor<8x64xf32>
    %6 = sdy.reduce_scatter [{"X"}, {}] %5 out_sharding=<@mesh, [{"X"}, {}]> : tensor<8x64xf32>
    return %6 : tensor<8x64xf32>
  }
}
"""


def test_a_text_that_is_cut_off_is_read(lowered):
    own = lowered.operation.get_asm()
    lines, whole = own.split("\n"), read_shardy(own)
    found = 0
    for stop in range(3, len(lines) - 1):
        module = read_shardy("\n".join(lines[:stop]))
        assert module.unread == ("the text breaks off inside the module",)
        assert module.name == whole.name
        assert found <= len(module.collectives) <= len(whole.collectives)
        found = len(module.collectives)
    assert found == len(whole.collectives)


def ragged(*operands):
    return lax.ragged_all_to_all(*operands, axis_name="Y")


def test_a_ragged_all_to_all_is_a_custom_call():
    mesh = jax.make_mesh((2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
    mapped = jax.shard_map(ragged, mesh=mesh, in_specs=(P(("X", "Y")),) * 6, out_specs=P(("X", "Y")))
    arrays = [jax.ShapeDtypeStruct((rows, 4), jnp.bfloat16) for rows in (64, 128)]
    numbers = [jax.ShapeDtypeStruct((32,), jnp.int32)] * 4
    module = jax.jit(mapped).lower(*arrays, *numbers).compiler_ir()
    text = module.operation.get_asm()
    assert "ragged_all_to_all" in text
    (found,) = read_shardy(text).collectives
    assert (found.op, found.groups) == ("ragged-all-to-all", ((0, 1, 2, 3), (4, 5, 6, 7)))
    assert (found.operand_shape, found.result_shape, found.bytes, found.wire_bytes) == (
        (8, 4),
        (16, 4),
        64,
        48,
    )


MAIN = """module @m attributes {mhlo.num_partitions = 8 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32>) -> tensor<?xf32> {
    %0 = OPERATION
    return %0 : tensor<?xf32>
  }
}
"""
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ALL = (
    '"stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<> : tensor<0x0xi64>, '
    f"{CHANNEL}, use_global_device_ids}}> : (tensor<4x8xf32>) -> tensor<32x8xf32>"
)
PERMUTE = (
    '"stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>, '
    f"{CHANNEL}}}> : (tensor<4x8xf32>) -> tensor<4x8xf32>"
)


def test_no_groups_are_one_of_all():
    module = read(MAIN.replace("OPERATION", ALL))
    assert module.unread == ()
    assert [each.groups for each in module.collectives] == [(tuple(range(8)),)]


def test_a_mesh_is_of_all_devices_of_a_program():
    assert read(MAIN.replace("OPERATION", PERMUTE), infer=True).mesh == Mesh(("axis_0",), (8,))


def test_a_module_in_one_line_is_refused():
    with pytest.raises(NotationError, match="no function on a line of its own"):
        read(MAIN.replace("OPERATION", ALL).replace("\n", " "))
