"""Explicit reshards, read in this process off modules that Shardy's own parser reads."""

from __future__ import annotations

import pytest
from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from shardviz.compiler.child.answer import explicit_reshards
from shardviz.compiler.child.reshards import Reshards
from shardviz.reports.lowered_module import ExplicitReshards
from shardviz.sharding import PartitionSpec

MESH = 'sdy.mesh @mesh = <["X"=2, "Y"=4]>\n'


def read(body):
    with make_ir_context():
        return Reshards(ir.Module.parse(MESH + body)).read()


def main(lines, arguments, result="tensor<8x16xf32>"):
    return f"func.func public @main({arguments}) -> {result} {{\n{lines}\n}}\n"


X = '%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y":(1)2, ?}p1]>} loc("x")'
RESHARD = """%0 = sdy.reshard %x <@mesh, [{}, {"Y"}]> : tensor<8x16xf32> loc("jit(f)/move"("f.py":1:2))
%1 = stablehlo.sine %0 : tensor<8x16xf32> loc("jit(f)/sin"("f.py":2:2))
return %1 : tensor<8x16xf32>"""


def test_a_reshard_of_an_argument_has_both_sides_and_their_names():
    found = read(main(RESHARD, X))
    (one,) = found.meetings
    assert (one.kind, one.axes, one.shape, one.dtype) == ("reshard", ("X", "Y:(1)2", "Y"), (8, 16), "f32")
    assert one.before == PartitionSpec((("X",), ("Y:(1)2",)))
    assert one.after == PartitionSpec(((), ("Y",)))
    assert (one.producer, one.argument, one.producer_name) == ("argument", "x", "jit(f)/move")
    assert (one.consumer, one.consumer_name, one.consumer_shape) == ("sine", "jit(f)/sin", (8, 16))
    (argument,) = found.arguments
    assert (argument.name, argument.number, argument.is_returned) == ("x", 0, True)


def test_a_sum_and_the_multiplications_of_one_device():
    lines = """%0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
  {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"X"}, {}]>]>}
  : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
%1 = sdy.all_reduce {"Y":(1)2} %0 out_sharding=<@mesh, [{"X"}, {}]> : tensor<8x32xf32>
return %1 : tensor<8x32xf32>"""
    found = read(main(lines, f"{X}, %w: tensor<16x32xf32>", "tensor<8x32xf32>"))
    (one,) = found.meetings
    assert (one.kind, one.axes, one.before, one.producer) == ("sum", ("Y:(1)2",), one.after, "dot_general")
    assert (one.consumer, one.consumer_shape) == ("return", ())
    assert found.products == 4 * 32 * 8


def test_inside_a_manual_computation_its_own_axes_are_gone():
    lines = """%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"X", "Y"}, {}]>]
  out_shardings=[<@mesh, [{"X"}, {}]>] manual_axes={"X"} (%y: tensor<4x16xf32>) {
  %1 = sdy.reshard %y <@mesh, [{}, {}]> : tensor<4x16xf32>
  sdy.return %1 : tensor<4x16xf32>
} : (tensor<8x16xf32>) -> tensor<8x16xf32>
return %0 : tensor<8x16xf32>"""
    (one,) = read(main(lines, X)).meetings
    assert (one.before, one.axes, one.consumer) == (PartitionSpec((("Y",), ())), ("Y",), "return")


def test_a_body_that_is_called_twice_counts_twice_and_stands_where_it_is_called():
    body = RESHARD.replace("jit(f)/", "")
    lines = """%0 = call @body(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> loc("jit(f)/layer"("f.py":9:2))
%1 = sdy.reshard %0 <@mesh, [{}, {"X"}]> : tensor<8x16xf32> loc("jit(f)/late"("f.py":10:2))
%2 = call @body(%1) : (tensor<8x16xf32>) -> tensor<8x16xf32> loc("jit(f)/layer"("f.py":11:2))
return %2 : tensor<8x16xf32>"""
    private = main(body, X).replace("public @main", "private @body")
    inner, outer = read(private + main(lines, X)).meetings
    assert (inner.calls, inner.name, inner.consumer_name) == (2, "jit(f)/layer/move", "jit(f)/layer/sin")
    assert (outer.calls, outer.producer, outer.consumer) == (1, "body", "body")


def test_a_loop_carries_its_sharding_into_the_body():
    lines = """%i = stablehlo.constant dense<0> : tensor<i32>
%0:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<8x16xf32>
  attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>, <@mesh, [{"X"}, {}]>]>}
  cond {
  %c = stablehlo.compare LT, %a, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>
} do {
  %1 = sdy.reshard %b <@mesh, [{}, {"X"}]> : tensor<8x16xf32>
  %2 = sdy.reshard %1 <@mesh, [{"X"}, {}]> : tensor<8x16xf32>
  stablehlo.return %a, %2 : tensor<i32>, tensor<8x16xf32>
}
return %0#1 : tensor<8x16xf32>"""
    first, second = read(main(lines, X)).meetings
    assert (first.before, first.after) == (second.after, second.before)
    assert first.before == PartitionSpec((("X",), ()))


def test_a_module_without_anything_has_nothing():
    with make_ir_context():
        module = ir.Module.parse("module {}")
    assert Reshards(module).read() == ExplicitReshards()


def test_a_program_that_shardy_refuses_has_none(monkeypatch):
    with make_ir_context():
        module = ir.Module.parse("module {}")
    monkeypatch.setattr("shardviz.compiler.child.shardy.SHARDY_PASSES", {"none": "no-such-pass"})
    assert explicit_reshards(str(module).encode()) is None


@pytest.mark.parametrize("dtype", ["ui8", "i1", "complex<f32>", "f8E4M3FN", "bf16"])
def test_dtypes_are_hlos(dtype):
    found = read(
        main(RESHARD, X).replace("f32", dtype).replace("stablehlo.sine", "stablehlo.optimization_barrier")
    )
    names = {"ui8": "u8", "i1": "pred", "complex<f32>": "c64", "f8E4M3FN": "f8e4m3fn", "bf16": "bf16"}
    assert found.meetings[0].dtype == names[dtype]
