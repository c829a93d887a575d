"""`shardviz.testing.assert_collectives` on a layer of a model, on eight simulated devices, and for a TPU."""

from __future__ import annotations

import inspect
import platform
import re
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

import shardviz
from shardviz.compiler import compile_cache
from shardviz.errors import CompilerError, QuestionError
from shardviz.testing import assert_collectives

MESH = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)


def placed(*spec):
    return NamedSharding(MESH, P(*spec))


def given(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=placed(*spec))


X = given((16, 64), "X", None)
W_IN, W_OUT = given((64, 128), None, "Y"), given((128, 64), "Y", None)


@jax.jit
def mlp(x, w_in, w_out):
    return lax.with_sharding_constraint(jnp.tanh(x @ w_in) @ w_out, placed("X", None))


@jax.jit
def careless_mlp(x, w_in, w_out):
    hidden = lax.with_sharding_constraint(jnp.tanh(x @ w_in), placed("X", None))
    return lax.with_sharding_constraint(hidden @ w_out, placed("X", None))


@jax.jit
def stack(x, weights):
    def layer(x, w):
        return jnp.tanh(x @ lax.with_sharding_constraint(w, placed())), None

    x = lax.scan(layer, x, weights)[0]
    return lax.while_loop(lambda x: x.sum() < 3, lambda x: x + 1, x)


STACK = given((16, 64), "X", None), given((3, 64, 64), None, "Y", None)


def failure(program, *args, **expected):
    with pytest.raises(AssertionError) as raised:
        assert_collectives(program, *args, **expected)
    return str(raised.value)


def place(function, code):
    """Where a line of a function stands, as a failure names it."""
    lines, first = inspect.getsourcelines(function.__wrapped__)
    (line,) = [first + number for number, line in enumerate(lines) if code in line]
    path = Path(__file__)
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{line}"


def test_what_is_as_expected_passes():
    assert_collectives(mlp, X, W_IN, W_OUT, all_reduce=1, all_gather=0)
    assert_collectives(mlp, X, W_IN, W_OUT, all_reduce=1, others=0)
    assert_collectives(mlp, X, W_IN, W_OUT, all_reduce=..., others=0)
    assert_collectives(mlp, X, W_IN, W_OUT, others=1)
    assert_collectives(mlp, X, W_IN, kwargs={"w_out": W_OUT}, all_reduce=1)
    assert_collectives(mlp.lower(X, W_IN, W_OUT), all_reduce=np.int64(1))
    assert_collectives(shardviz.inspect(mlp, X, W_IN, W_OUT), all_reduce=1)


def test_a_change_that_adds_an_all_gather_fails():
    assert (
        failure(careless_mlp, X, W_IN, W_OUT, all_reduce=1, all_gather=0)
        == f"""\
jit_careless_mlp, on the mesh X=2,Y=4, has other collectives than expected

     operation   expected  found
  ≠  all-gather         0  1
     all-reduce         1  1

all-gather:
  all-gather over Y  f32[8,32]→[8,128]  4,096 bytes  3,072 sent
    at {place(careless_mlp, "hidden = ")}"""
    )


def test_an_operation_that_is_missing():
    assert (
        failure(mlp, X, W_IN, W_OUT, reduce_scatter=1, all_gather=0)
        == """\
jit_mlp, on the mesh X=2,Y=4, has other collectives than expected

     operation       expected  found
     all-gather             0  0
  ≠  reduce-scatter         1  0
     all-reduce           any  1

no reduce-scatter

hint: CPU compilers may keep an all-reduce and a slice where GPU compilers use a reduce-scatter"""
    )


def test_others():
    assert (
        failure(mlp, X, W_IN, W_OUT, all_gather=..., others=0)
        == f"""\
jit_mlp, on the mesh X=2,Y=4, has other collectives than expected

     operation   expected  found
     all-gather       any  0
  ≠  others             0  1

others:
  all-reduce over Y  f32[8,64]  2,048 bytes  3,072 sent  at {place(mlp, "@ w_out")}"""
    )


def test_loops_count_and_a_loop_of_unknown_length_cannot():
    assert_collectives(stack, *STACK, all_gather=3)
    scan, condition = place(stack, "scan"), place(stack, "while_loop")
    assert (
        failure(stack, *STACK, all_gather=1, all_reduce=2)
        == f"""\
jit_stack, on the mesh X=2,Y=4, has other collectives than expected

     operation   expected  found
  ≠  all-gather         1  3
  ≠  all-reduce         2  1 in loops of unknown length

all-gather:
  all-gather over Y  f32[1,16,64]→[1,64,64]  16,384 bytes  12,288 sent  ×3
    at {scan}

all-reduce:
  all-reduce over X  f32[]  4 bytes  4 sent  in a loop  at {condition}"""
    )


def test_many_collectives_are_cut_short():
    def many(x):
        for scale in range(25):
            x = lax.psum_scatter(lax.all_gather(x * scale, "X", tiled=True), "X", tiled=True)
        return x

    mapped = jax.shard_map(many, mesh=MESH, in_specs=P("X"), out_specs=P("X"))
    said = failure(mapped, jnp.ones((8, 8)), all_gather=0, others=...)
    assert said.count("all-gather over X") <= 20


def test_text_that_cannot_be_read_passes_no_test():
    text = mlp.lower(X, W_IN, W_OUT).compile().as_text()
    report = shardviz.read_hlo(text[: text.index("ROOT", text.index("ENTRY"))], "X=2,Y=4")
    said = failure(report, all_gather=0)
    assert said.startswith("jit_mlp, on the mesh X=2,Y=4, cannot be read in full\n")
    assert "\nunread: the text breaks off inside " in said


def test_runs_by_mesh_axis():
    assert_collectives(careless_mlp, X, W_IN, W_OUT, all_gather={"Y": 1}, all_reduce={("Y",): 1}, others=0)
    assert_collectives(careless_mlp, X, W_IN, W_OUT, all_gather={"Y": ..., "X": 0})
    assert (
        failure(careless_mlp, X, W_IN, W_OUT, all_gather={"X": 1})
        == f"""\
jit_careless_mlp, on the mesh X=2,Y=4, has other collectives than expected

     operation                   expected  found
  ≠  all-gather over X                  1  0
  ≠  all-gather over other axes         0  1
     all-reduce                       any  1

no all-gather over X

all-gather over other axes:
  all-gather over Y  f32[8,32]→[8,128]  4,096 bytes  3,072 sent
    at {place(careless_mlp, "hidden = ")}"""
    )


def test_several_axes_in_any_order():
    def total(x):
        return jax.lax.psum(x, ("X", "Y"))

    mapped = jax.shard_map(total, mesh=MESH, in_specs=P("X", "Y"), out_specs=P())
    for axes in (("X", "Y"), ("Y", "X")):
        assert_collectives(mapped, jnp.ones((8, 8)), all_reduce={axes: 1}, others=0)
    assert "all-reduce over X, Y             1  1" not in failure(
        mapped, jnp.ones((8, 8)), all_reduce={"X": 1}
    )


def test_bytes_of_all_runs():
    assert_collectives(mlp, X, W_IN, W_OUT, max_bytes=3072)
    assert_collectives(mlp, X, W_IN, W_OUT, max_bytes="3KiB", all_reduce=1)
    assert (
        failure(mlp, X, W_IN, W_OUT, max_bytes="1KiB")
        == f"""\
jit_mlp, on the mesh X=2,Y=4, sends 3 KiB (3,072 bytes) per device: at most 1 KiB are expected

  all-reduce over Y  f32[8,64]  ×1  3,072 sent  at {place(mlp, "@ w_out")}"""
    )


def test_bytes_of_a_loop_of_unknown_length_pass_no_test():
    said = failure(stack, *STACK, max_bytes="1GiB")
    assert "has collectives in loops of unknown length: at most 1 GiB are expected" in said
    assert place(stack, "while_loop") in said


def test_memory():
    assert_collectives(mlp, X, W_IN, W_OUT, max_memory="1MiB")
    said = failure(mlp, X, W_IN, W_OUT, max_memory="1KiB")
    assert " allowed" not in said  # no machine is named
    assert "per device: at most 1 KiB are expected" in said
    assert "w_in" in said


def test_seconds_need_a_target():
    with pytest.raises(QuestionError, match="seconds are those of a machine, and none is named"):
        assert_collectives(mlp, X, W_IN, W_OUT, max_seconds="1ms")
    with pytest.raises(QuestionError, match="a report is of a program that is compiled already"):
        assert_collectives(shardviz.inspect(mlp, X, W_IN, W_OUT), all_gather=0, target="v5e:2x4")


@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="libtpu is for Linux on x86-64"
)
def test_a_target():
    on = {"target": "v5e:2x4"}
    assert_collectives(mlp, X, W_IN, W_OUT, all_reduce={"Y": 1}, others=0, max_seconds="1ms", **on)
    report = shardviz.inspect(mlp, X, W_IN, W_OUT, **on)
    said = failure(report, max_seconds="1ns")
    assert "\n\n\n" not in said
    assert " on v5e:2x4: at most 1 ns are expected\n" in said
    assert re.search(rf" exposed\s+at {re.escape(place(mlp, '@ w_out'))}\n", said)
    said = failure(report, max_memory=10)
    assert " of 15.8 GiB allowed" in said
    assert "per device: at most 10 B are expected" in said
    compile_cache.clear()
    with pytest.raises(CompilerError, match=r"took longer than 0\.001 s"):
        assert_collectives(mlp, X, W_IN, W_OUT, all_reduce=1, timeout=0.001, **on)


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({}, "no operation is named, so there is nothing to check"),
        ({"all_gather": -1}, "all_gather=-1 is not a number of runs"),
        ({"all_gather": 0.5}, "all_gather=0.5 is not a number of runs"),
        ({"others": -1}, "others=-1 is not a number of runs"),
        ({"all_gather": {}}, "all_gather={} names no axis"),
        ({"all_gather": {3: 1}}, "all_gather: '3' is not a mesh axis"),
        ({"all_gather": {"Z": 0}}, "all_gather: the mesh X=2,Y=4 has no axis 'Z'"),
        ({"all_gather": {"X": 1, ("X",): 2}}, "all_gather names X twice"),
        ({"max_bytes": "5"}, "max_bytes='5': '5' has no unit of size"),
        ({"max_bytes": "much"}, "max_bytes='much': 'much' is not a size"),
        ({"max_seconds": "1MiB"}, "max_seconds='1MiB': 'MiB' is not a unit of time"),
    ],
)
def test_a_check_of_nothing(expected, message):
    with pytest.raises(QuestionError, match=re.escape(message)) as raised:
        assert_collectives(mlp, X, W_IN, W_OUT, **expected)
    assert raised.value.hint


def test_an_operation_that_does_not_exist():
    with pytest.raises(TypeError, match="all_gathers"):
        assert_collectives(mlp, X, W_IN, W_OUT, all_gathers=0)
