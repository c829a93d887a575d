"""A problem as the child gets it."""

from __future__ import annotations

import pickle

import jax
import numpy as np
import pytest

from shardviz.compiler.lowering import lower_program
from shardviz.compiler.question import module_question, question_for, target_mesh
from shardviz.notation.einsum import Einsum, parse_chain
from shardviz.planner.problem.jax_code import _subscripts
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray
from shardviz.targets import TARGETS, parse_targets


def subscripts(einsum):
    every = tuple(dict.fromkeys((*einsum.dims, *einsum.result)))
    return _subscripts(every, einsum.operands, einsum.result)


@pytest.mark.parametrize(
    ("einsum", "text"),
    [
        (Einsum((("b", "d"), ("d", "f")), ("b", "f")), "bd,df->bf"),
        (Einsum((("batch", "D"), ("D", "F")), ("batch", "F")), "aD,DF->aF"),
        (Einsum((("...0", "a"), ("a", "b")), ("...0", "b")), "ca,ab->cb"),
        (Einsum((("i", "i"),), ()), "ii->"),
        (Einsum(((),), ()), "->"),
    ],
)
def test_subscripts(einsum, text):
    assert subscripts(einsum) == text


def test_subscripts_mean_what_the_einsum_means():
    (einsum,) = parse_chain("...ij,...jk->...ik", 2)
    a, b = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5), np.arange(2 * 3 * 5 * 2).reshape(2, 3, 5, 2)
    assert np.array_equal(np.einsum(subscripts(einsum), a, b), np.einsum("...ij,...jk->...ik", a, b))


def test_a_question_survives_the_pipe(matmul):
    question = question_for(matmul("XY,Y_->X_"), TARGETS["cpu"])
    assert pickle.loads(pickle.dumps(question)) == question
    assert question.parts[0].result.spec is not None
    assert question.parts[0].result.spec.dims == (("X",), ())


def test_parts_of_axes_are_axes_of_the_jax_mesh():
    mesh = Mesh(("X", "Y"), (8, 2))
    array = ShardedArray("A", ("i", "j"), (64, 64), "bf16", PartitionSpec((("X:(2)2", "Y"), ("X:(4)2",))))
    asked = target_mesh(TARGETS["cpu"], mesh, [array.spec])
    assert asked.jax_axes == (("X:(1)2", 2), ("X:(2)2", 2), ("X:(4)2", 2), ("Y", 2))
    whole = target_mesh(TARGETS["cpu"], mesh, [PartitionSpec((("X",), ("Y",)))])
    assert (whole.jax_names, whole.jax_sizes) == (("X", "Y"), (8, 2))
    mixed = target_mesh(TARGETS["cpu"], mesh, [PartitionSpec((("X:(1)4",), ("X:(4)2",)))])
    assert mixed.jax_axes == (("X:(1)4", 4), ("X:(4)2", 2), ("Y", 2))


def test_jax_lays_out_parts_of_axes_as_shardviz_does(worker):
    mesh = Mesh(("X", "Y"), (4, 2))
    array = ShardedArray("A", ("i", "j"), (8, 8), "bf16", PartitionSpec((("X:(2)2",), ("Y", "X:(1)2"))))
    found = worker.layout(array, mesh).result()
    layout = Layout(array, mesh)
    assert [bounds for _, bounds in found.devices] == [
        layout.slices(layout.block(place)) for place in range(mesh.size)
    ]


def test_the_options_of_a_jit_are_for_hardware_alone():
    jitted = jax.jit(lambda x: x, compiler_options={"xla_a": "1", "xla_b": "2"})
    mesh = jax.sharding.AbstractMesh((8,), ("X",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("X"))
    lowered = lower_program(jitted, (jax.ShapeDtypeStruct((8,), "float32", sharding=split),), {}, "tpu")
    given = {"xla_b": "3"}
    tpu, cpu = (module_question(lowered, one, given, ()).options for one in parse_targets("v5e:2x4,cpu"))
    assert dict(tpu) == {"xla_a": "1", "xla_b": "3"}
    assert dict(cpu) == given
