"""The arrays of programs, against JAX's own account of what it has compiled."""

from __future__ import annotations

import math
from functools import partial
from itertools import permutations

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec as P

import shardviz
from shardviz.sharding import PartitionSpec
from shardviz.targets import EXTRAS

SHAPE = (16, 48, 8)
ENTRIES = (None, "X", "Y", ("X", "Y"), ("Y", "X"))


def every_spec():
    """All ways to split three dimensions over X and Y."""
    found = {(None,) * 3}
    for axes in (("X",), ("Y",), ("X", "Y"), ("Y", "X")):
        for dims in permutations(range(3), len(axes)):
            found.add(tuple(axes[dims.index(dim)] if dim in dims else None for dim in range(3)))
        for dim in range(3):
            found.add(tuple(axes if dim == each else None for each in range(3)))
    return sorted(found, key=str)


def split(mesh, shape, *spec, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*spec)))


def check_against_jax(rows, arrays, shardings):
    """Each row has the part, the bytes and the copies that JAX's sharding of the array says."""
    for row, array, sharding in zip(rows, arrays, shardings, strict=True):
        assert row.shape == array.shape
        assert row.part == sharding.shard_shape(array.shape)
        assert row.bytes == math.prod(row.part) * array.dtype.itemsize
        slices = [str(index) for index in sharding.devices_indices_map(array.shape).values()]
        assert row.copies == slices.count(slices[0])
        dims = [
            () if entry is None else (entry,) if isinstance(entry, str) else entry for entry in sharding.spec
        ]
        assert row.spec == PartitionSpec((*map(tuple, dims), *((),) * (len(array.shape) - len(dims))))


def test_every_way_to_split_is_what_jax_has_compiled(mesh):
    specs = every_spec()
    arguments = [split(mesh, SHAPE, *spec) for spec in specs]
    results = [split(mesh, SHAPE, *spec) for spec in reversed(specs)]

    @partial(jax.jit, out_shardings=[one.sharding for one in results])
    def double(*arrays):
        return [2 * array for array in arrays]

    compiled = double.lower(*arguments).compile()
    for report in (shardviz.inspect(compiled), shardviz.inspect(double, *arguments, target="cpu")):
        given = [row for row in report.arrays if row.kind == "argument"]
        made = [row for row in report.arrays if row.kind == "output"]
        check_against_jax(given, arguments, compiled.input_shardings[0])
        check_against_jax(made, results, compiled.output_shardings)
        memory = compiled.memory_analysis()
        assert sum(row.bytes for row in given) == memory.argument_size_in_bytes
        assert sum(row.bytes for row in made) == memory.output_size_in_bytes - 8 * len(made)
        assert [row.name for row in given[:2]] == ["arrays[0]", "arrays[1]"]


def train_step(mesh):
    layers = 4

    def layer(x, w):
        return jnp.tanh(x @ w["up"]) @ w["down"], None

    def loss(params, x):
        x = lax.with_sharding_constraint(x @ params["first"], NamedSharding(mesh, P("X", None)))
        return jnp.sum(lax.scan(layer, x, params["layers"])[0])

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params, unused, x):
        gradients = jax.grad(loss)(params, x)
        return jax.tree.map(lambda w, g: w - g, params, gradients), unused.astype(jnp.bfloat16)

    stacked = {
        "up": split(mesh, (layers, 64, 256), None, None, "Y"),
        "down": split(mesh, (layers, 256, 64), None, "Y", None),
    }
    first = split(mesh, (96, 64), None, None)
    return (
        step,
        {"first": first, "layers": stacked},
        split(mesh, (40, 60), "X"),
        split(mesh, (32, 96), "X", None),
    )


def marks(rows):
    return {(row.kind, row.name, mark.kind) for row in rows for mark in row.marks}


def test_a_train_step_with_a_scan(mesh):
    step, *arguments = train_step(mesh)
    report = shardviz.inspect(step, *arguments, target="cpu")
    told = {(row.kind, row.name, row.shape, str(row.spec)) for row in report.arrays}
    for kind, name, shape, spec in (
        ("slice", "params['layers']['up'][i]", (64, 256), "P(None, 'Y')"),
        ("slice", "params['layers']['down'][i]", (256, 64), "P('Y', None)"),
        ("carry", "jit(step)/jvp()/while", (32, 64), "P('X', None)"),
        ("residual", "jit(step)/jvp()/while", (4, 32, 256), "P(None, 'X', 'Y')"),
        ("stacked", "jit(step)/transpose(jvp())/while", (4, 64, 256), "P(None, None, 'Y')"),
        ("output", "result[0]['first']", (96, 64), "P(None, None)"),
    ):
        assert (kind, name, shape, spec) in told
    # What goes through a loop is there in the compiled text, too.
    for row in report.arrays:
        if row.kind in ("carry", "residual", "stacked"):
            assert f"{row.dtype}[{','.join(map(str, row.part))}]" in report.text
            assert row.source.startswith(__file__)
    assert marks(report.arrays) == {
        ("argument", "params['first']", "replicated"),
        ("argument", "unused", "not reused"),
        ("temporary", "jit(step)/jvp()/dot_general", "repeated"),
        ("temporary", "jit(step)/transpose(jvp())/dot_general", "repeated"),
    }
    # Without a target it is the same program, of which nobody tells what the loops hand on.
    plainly = shardviz.inspect(step, *arguments).arrays
    ends = [row for row in report.arrays if row.kind in ("argument", "output")]
    assert [(row.name, row.spec, row.bytes) for row in plainly if row.kind in ("argument", "output")] == [
        (row.name, row.spec, row.bytes) for row in ends
    ]


def test_devices_that_compute_the_same_and_axes_that_do_not_divide(mesh):
    def product(x, w):
        return lax.with_sharding_constraint(x @ w, NamedSharding(mesh, P("Y", None)))

    arguments = split(mesh, (54, 128), "X", None), split(mesh, (128, 96), None, None)
    found = shardviz.inspect(product, *arguments, target="cpu").arrays
    padding = {mark.bytes for row in found for mark in row.marks if mark.kind == "padded"}
    assert padding == {14 * 96 * 4 - 54 * 96 * 4 // 4}
    (repeated,) = [mark for row in found for mark in row.marks if mark.kind == "repeated"]
    compiled = jax.jit(product).lower(*arguments).compile()
    times = round(compiled.cost_analysis()["flops"] * 8 / (2 * 54 * 128 * 96))
    assert repeated.words == f"{times} devices compute the same matmul: {times} × its FLOPs"


@pytest.mark.skipif(not EXTRAS["tpu"].installed, reason="the extra tpu is not installed")
def test_on_a_tpu_that_is_not_here_the_arrays_are_what_its_compiler_allocates(mesh):
    step, *arguments = train_step(mesh)
    report = shardviz.inspect(step, *arguments, target="v5e:2x4")
    given = [row for row in report.arrays if row.kind == "argument"]
    assert sum(row.bytes for row in given) == report.memory.argument_bytes
    assert ("stacked", "P(None, None, 'Y')") in {(row.kind, str(row.spec)) for row in report.arrays}


def test_inside_a_shard_map_nothing_is_told(mesh):
    @partial(jax.shard_map, mesh=mesh, in_specs=(P("X", None), P()), out_specs=P("X", None))
    def product(x, w):
        return jax.nn.relu(x @ w)

    arguments = split(mesh, (64, 128), "X", None), split(mesh, (128, 96), None, None)
    found = shardviz.inspect(product, *arguments, target="cpu").arrays
    assert marks(found) == {("argument", "w", "replicated")}
    assert [str(row.spec) for row in found if row.kind == "output"] == ["P('X', None)"]


def test_an_array_on_the_host(mesh):
    on_host = NamedSharding(mesh, P("X", None), memory_kind="pinned_host")
    x = jax.ShapeDtypeStruct((64, 128), jnp.float32, sharding=on_host)
    found = shardviz.inspect(
        lambda x: jax.device_put(x, NamedSharding(mesh, P("X", None))) + 1, x, target="cpu"
    )
    assert [(row.kind, row.memory_kind) for row in found.arrays if row.kind in ("argument", "output")] == [
        ("argument", "host"),
        ("output", "device"),
    ]


@jax.tree_util.register_pytree_with_keys_class
class Box:
    """A box such as Flax puts around a parameter."""

    def __init__(self, value, names):
        self.value, self.names = value, names

    def tree_flatten_with_keys(self):
        return ((jax.tree_util.GetAttrKey("value"), self.value),), self.names

    @classmethod
    def tree_unflatten(cls, names, values):
        return cls(*values, names)


def test_the_logical_axes_of_a_box_stand_beside_its_array(mesh):
    params = {"w": Box(split(mesh, (64, 128), None, "Y"), ("embed", None)), "v": split(mesh, (64, 128), "X")}
    report = shardviz.inspect(lambda params: params["w"].value + params["v"], params, target="cpu")
    given = {row.name: row.logical for row in report.arrays if row.kind == "argument"}
    assert given == {"params['v']": (), "params['w'].value": ("embed", "")}


class Pair:
    """A class that is registered without keys: JAX numbers its children, as it does Haliax's."""

    def __init__(self, up, down):
        self.up, self.down, self.kind = up, down, "pair"


jax.tree_util.register_pytree_node(
    Pair, lambda pair: ((pair.up, pair.down), None), lambda _, held: Pair(*held)
)


def test_children_without_keys_have_the_names_of_their_attributes(mesh):
    layers = {"mlp": [Pair(split(mesh, (64, 128), None, "Y"), split(mesh, (128, 64), "Y"))]}
    x = split(mesh, (16, 64), "X")

    def step(layers, x):
        (pair,) = layers["mlp"]
        return jax.tree.map(lambda w: 2 * w, layers), x @ pair.up @ pair.down

    report = shardviz.inspect(step, layers, x, target="cpu")
    rows = {row.name: row.shape for row in report.arrays if row.kind in ("argument", "output")}
    assert rows == {
        "layers['mlp'][0].up": (64, 128),
        "layers['mlp'][0].down": (128, 64),
        "x": (16, 64),
        "result[0]['mlp'][0].up": (64, 128),
        "result[0]['mlp'][0].down": (128, 64),
        "result[1]": (16, 64),
    }
