"""Memory from a text's order: cases that can be added up by hand, and libtpu's own account."""

from __future__ import annotations

import os
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import topologies
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

from shardviz.hlo.module import Reader
from shardviz.timeline.live_memory import live_memory
from shardviz.timeline.program_timeline import MemoryReport
from shardviz.timeline.rows import ProgramRows

MIB = 2**20


def report(text: str) -> MemoryReport:
    return live_memory(ProgramRows(Reader(text, None, None)), 100)


def module(*lines: str, header: str = "", others: str = "") -> str:
    entry = "\n".join(f"  {line}" for line in lines)
    head = f"HloModule m, is_scheduled=true{header}\n\n{others}"
    return f"{head}ENTRY %main (x: f32[4]) -> f32[4] {{\n{entry}\n}}\n"


ONE = "f32[262144]{0}"
"""A mebibyte."""
X = f"%x = {ONE} parameter(0)"


def test_a_buffer_is_live_until_it_is_last_read():
    found = report(
        module(
            X,
            f"%a = {ONE} reverse(%x), dimensions={{0}}",
            f"%b = {ONE} reverse(%a), dimensions={{0}}",
            f"%c = {ONE} reverse(%b), dimensions={{0}}",
            f"ROOT %d = {ONE} reverse(%c), dimensions={{0}}",
        )
    )
    assert (found.by, found.argument_bytes, found.output_bytes) == ("estimate", MIB, MIB)
    assert (found.temporary_bytes, found.peak_bytes, found.limit_bytes) == (2 * MIB, 4 * MIB, 100)
    assert found.order == (("a", 3 * MIB), ("b", 4 * MIB), ("c", 4 * MIB), ("d", 3 * MIB))
    assert {(each.name, each.kind, each.first, each.last) for each in found.buffers} == {
        ("x", "argument", "", ""),
        ("d", "output", "", ""),
        ("a", "temporary", "a", "b"),
        ("b", "temporary", "b", "c"),
    }


def test_elementwise_work_takes_its_operands_place():
    found = report(
        module(
            X,
            f"%a = {ONE} reverse(%x), dimensions={{0}}",
            f"%b = {ONE} negate(%a)",
            f"ROOT %c = {ONE} negate(%b)",
        )
    )
    assert (found.temporary_bytes, found.peak_bytes) == (0, 2 * MIB)


def test_tuples_and_what_lies_on_the_chip_take_nothing():
    found = report(
        module(
            X,
            "%a = f32[262144]{0:S(1)} reverse(%x), dimensions={0}",
            f"%t = (f32[262144]{{0:S(1)}}, {ONE}) tuple(%a, %x)",
            f"%g = {ONE} get-tuple-element(%t), index=1",
            f"ROOT %c = {ONE} reverse(%g), dimensions={{0}}",
        )
    )
    assert (found.temporary_bytes, found.peak_bytes) == (0, 2 * MIB)


def test_each_array_of_a_tuple_counts_whatever_stands_between_them():
    """With spaces before a layout, or with words of another line where the comma was."""
    for between in (", ", "  {1,0}, /*index=1*/", "calls=%main /*index=1*/"):
        lines = (
            f"%r = (f32[512,512]{between}{ONE}) all-reduce(%x, %x)",
            f"ROOT %y = {ONE} get-tuple-element(%r), index=1",
        )
        found = report(module(X, *lines))
        assert (found.output_bytes, found.temporary_bytes) == (MIB, MIB), between


def test_tiles_are_padded():
    found = report(module("ROOT %x = bf16[100,3]{1,0:T(8,128)(2,1)} parameter(0)"))
    assert found.argument_bytes == 104 * 128 * 2


LOOP = f"""%body (s: (s32[], {ONE})) -> (s32[], {ONE}) {{
  %s = (s32[], {ONE}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %h = {ONE} get-tuple-element(%s), index=1
  %u = {ONE} reverse(%h), dimensions={{0}}
  %v = {ONE} reverse(%u), dimensions={{0}}
  ROOT %r = (s32[], {ONE}) tuple(%i, %v)
}}

%cond (c: (s32[], {ONE})) -> pred[] {{
  %c = (s32[], {ONE}) parameter(0)
  ROOT %p = pred[] constant(false)
}}

"""


def test_a_loop_writes_in_place_and_a_donated_argument_is_written_over():
    lines = (
        X,
        "%n = s32[] constant(0)",
        f"%a = {ONE} reverse(%x), dimensions={{0}}",
        f"%t = (s32[], {ONE}) tuple(%n, %a)",
        f"%w = (s32[], {ONE}) while(%t), condition=%cond, body=%body",
        f"%o = {ONE} get-tuple-element(%w), index=1",
        f"ROOT %out = {ONE} reverse(%o), dimensions={{0}}",
    )
    # The argument, the output, the state, and %u in the body.
    assert report(module(*lines, others=LOOP)).peak_bytes == 4 * MIB
    donated = report(
        module(*lines, others=LOOP, header=", input_output_alias={ {}: (0, {}, may-alias) }, other=1")
    )
    assert (donated.alias_bytes, donated.peak_bytes) == (MIB, 3 * MIB)


def test_what_runs_beside_keeps_its_operand():
    found = report(
        module(
            X,
            f"%a = {ONE} reverse(%x), dimensions={{0}}",
            f"%s = ({ONE}, f32[1048576]{{0}}) all-gather-start(%a), "
            "replica_groups={{0,1,2,3}}, dimensions={0}",
            f"%b = {ONE} reverse(%x), dimensions={{0}}",
            "%g = f32[1048576]{0} all-gather-done(%s)",
            f'ROOT %c = {ONE} custom-call(%b, %g), custom_call_target="k"',
        )
    )
    assert dict(found.order)["b"] == (1 + 1 + 1 + 4 + 1) * MIB
    assert dict(found.order)["c"] == (1 + 1 + 4 + 1) * MIB


def test_without_an_entry_nothing_is_live():
    found = report("HloModule m\n\n%f (x: f32[4]) -> f32[4] {\n  ROOT %x = f32[4]{0} parameter(0)\n}\n")
    assert (found.peak_bytes, found.buffers) == (0, ())


@cache
def mesh(name: str, count: int) -> jax.sharding.Mesh:
    os.environ.update(TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
    devices = topologies.get_topology_desc(platform="tpu", topology_name=name).devices
    return jax.sharding.Mesh(
        np.array(sorted(devices, key=lambda device: device.id)).reshape(count),
        ("X",),
        axis_types=(AxisType.Auto,),
    )


def compiled(function, *arrays, donate=()):
    chips = mesh("v5e:2x4", 8)
    arguments = [
        jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(chips, spec))
        for shape, spec in arrays
    ]
    return jax.jit(function, donate_argnums=donate).lower(*arguments).compile()


def layers(x, weights):
    def layer(x, w):
        return lax.with_sharding_constraint(
            jnp.tanh(x @ w), NamedSharding(mesh("v5e:2x4", 8), P("X", None))
        ), None

    return lax.scan(layer, x, weights)[0]


def step(weights, x):
    gradient = jax.grad(lambda w: (layers(x, w).astype(jnp.float32) ** 2).sum())(weights)
    return weights - 0.1 * gradient


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "arrays", "donate"),
    [
        (step, (((6, 4096, 4096), P(None, "X", None)), ((16384, 4096), P("X", None))), (0,)),
        (lambda a: jnp.sort(a, axis=0), (((16384, 4096), P("X", None)),), ()),
    ],
    ids=["train step", "sort"],
)
def test_libtpu_counts_nearly_the_same(function, arrays, donate):
    """`memory_analysis` also counts what lies on the chip, at most 128 MiB on v5e."""
    program = compiled(function, *arrays, donate=donate)
    theirs, ours = program.memory_analysis(), report(program.as_text())
    assert ours.argument_bytes == theirs.argument_size_in_bytes
    assert abs(ours.output_bytes - theirs.output_size_in_bytes) <= 1024
    assert ours.alias_bytes == theirs.alias_size_in_bytes
    assert ours.peak_bytes <= 1.02 * theirs.peak_memory_in_bytes
    assert ours.peak_bytes >= 0.98 * theirs.peak_memory_in_bytes - 128 * MIB
