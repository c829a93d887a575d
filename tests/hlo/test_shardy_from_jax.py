"""Shardy's own decisions, read and carried out: what was read must turn one sharding into the other."""

from __future__ import annotations

import itertools
import random

import jax
import jax.numpy as jnp
import jaxlib.mlir.passmanager as passmanager
import numpy as np
import pytest
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

from shardviz.hlo import Collective, ShardyModule, read, read_shardy
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray

XY = Mesh(("X", "Y"), (2, 4))
PASSES = (
    "builtin.module(sdy-propagation-pipeline)",
    "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}))",
    "builtin.module(func.func(sdy-reshard-to-collectives))",
    "builtin.module(canonicalize)",
)
MATRIX = (
    *(((), ()), (("X",), ()), (("Y",), ()), ((), ("X",)), ((), ("Y",)), (("X",), ("Y",)), (("Y",), ("X",))),
    *((("X", "Y"), ()), (("Y", "X"), ()), ((), ("X", "Y")), ((), ("Y", "X"))),
)


def sharding(mesh: Mesh, spec: PartitionSpec) -> NamedSharding:
    abstract = AbstractMesh(
        mesh.axis_sizes, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names)
    )
    return NamedSharding(abstract, P(*(dim or None for dim in spec.dims)))


def argument(mesh: Mesh, shape, spec: PartitionSpec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding(mesh, spec))


def shardy(function, *arguments, **options) -> str:
    lowered = jax.jit(function, **options).trace(*arguments).lower(lowering_platforms=("tpu",))
    module = lowered.compiler_ir("stablehlo")
    with module.context:
        for each in PASSES:
            passmanager.PassManager.parse(each).run(module.operation)
    return str(module)


def shards(mesh: Mesh, data: np.ndarray, spec: PartitionSpec) -> list[np.ndarray]:
    """What each position of the mesh holds."""
    array = ShardedArray("a", tuple("abcdefgh"[: data.ndim]), data.shape, "f32", spec)
    return [data[tuple(slice(*s) for s in device.slices)] for device in Layout(array, mesh)]


def apply(collective: Collective, held: list[np.ndarray]) -> list[np.ndarray]:
    """A small interpreter of what was read: groups, dimensions and pairs."""
    result: list[np.ndarray | None] = [None] * len(held)
    groups, dim, split = collective.groups, collective.dim, collective.split_dim
    assert groups is not None
    if collective.op == "collective-permute":
        assert sorted(source for source, _ in groups) == sorted(target for _, target in groups)
        for source, target in groups:
            result[target] = held[source]
        return result
    assert dim is not None
    for group in groups:
        for place, device in enumerate(group):
            if collective.op == "all-gather":
                result[device] = np.concatenate([held[other] for other in group], dim)
            elif collective.op == "slice":
                result[device] = np.split(held[device], len(group), dim)[place]
            else:
                assert collective.op == "all-to-all"
                assert split is not None
                pieces = [np.split(held[other], len(group), split)[place] for other in group]
                result[device] = np.concatenate(pieces, dim)
    return result


def random_spec(rng: random.Random, mesh: Mesh, rank: int) -> PartitionSpec:
    dims: list[tuple[str, ...]] = [()] * rank
    for axis in rng.sample(mesh.axis_names, len(mesh.axis_names)):
        if rng.random() < 0.7:
            dim = rng.randrange(rank)
            dims[dim] = (*dims[dim], axis)
    return PartitionSpec(tuple(dims))


MESHES = (
    XY,
    Mesh(("X", "Y"), (4, 2)),
    Mesh(("A", "B", "C"), (2, 2, 2)),
    Mesh(("X", "one", "Y"), (4, 1, 2)),
    Mesh(("A", "B"), (4, 4)),
)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_read_moves_the_data_where_it_belongs(seed):
    rng = random.Random(seed)
    carried_out: dict[str, int] = {}
    for _ in range(25):
        mesh = rng.choice(MESHES)
        rank = rng.choice((1, 2, 3))
        shape = (32, 48, 64)[:rank]
        before, after = random_spec(rng, mesh, rank), random_spec(rng, mesh, rank)
        text = shardy(lambda a: a, argument(mesh, shape, before), out_shardings=sharding(mesh, after))
        module = read_shardy(text, mesh)
        assert module.unread == ()
        if any(c.dim is None for c in module.collectives if c.op != "collective-permute"):
            continue
        data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        held = shards(mesh, data, before)
        for collective in module.collectives:
            assert held[0].shape == collective.operand_shape
            held = apply(collective, held)
            assert held[0].shape == collective.result_shape
            assert collective.bytes == 4 * max(np.prod(collective.operand_shape), held[0].size)
            carried_out[collective.op] = carried_out.get(collective.op, 0) + 1
        for found, expected in zip(held, shards(mesh, data, after), strict=True):
            np.testing.assert_array_equal(found, expected)
    assert len(carried_out) >= 3
    assert sum(carried_out.values()) >= 20


@pytest.mark.parametrize("start", range(2))
def test_matmuls(start):
    """Of the 1,452 matmuls one in 19 on X=2, Y=4: specs as asked, and shapes that fit each operation."""
    combinations = list(itertools.product(MATRIX, MATRIX, (None, *MATRIX)))[start * 7 :: 37]
    for a, w, out in combinations:
        first, second = PartitionSpec(a), PartitionSpec(w)
        options = {} if out is None else {"out_shardings": sharding(XY, PartitionSpec(out))}
        text = shardy(
            jnp.matmul, argument(XY, (8, 2048), first), argument(XY, (2048, 8192), second), **options
        )
        module = read_shardy(text, XY)
        assert module.unread == ()
        assert module.argument_specs == (first, second)
        (result,) = module.result_specs
        assert result is not None
        if out is not None:
            assert result == PartitionSpec(out)
        for c in module.collectives:
            assert c.axes
            assert c.groups is not None
            assert c.bytes == 4 * max(np.prod(c.operand_shape), np.prod(c.result_shape))
            n = c.group_size
            expected = {"all-gather": n, "slice": 1 / n, "reduce-scatter": 1 / n}.get(c.op, 1)
            assert np.prod(c.result_shape) == np.prod(c.operand_shape) * expected


def only(text: str, mesh: Mesh = XY) -> Collective:
    module = read_shardy(text, mesh)
    assert module.unread == ()
    (collective,) = module.collectives
    return collective


def test_the_first_example():
    a, w, out = (PartitionSpec(dims) for dims in ((("X",), ("Y",)), (("Y",), ()), (("X",), ())))
    found = only(
        shardy(
            jnp.matmul,
            argument(XY, (8, 2048), a),
            argument(XY, (2048, 8192), w),
            out_shardings=sharding(XY, out),
        )
    )
    assert (found.op, found.axes, found.operand_shape, found.bytes) == (
        "all-reduce",
        ("Y",),
        (4, 8192),
        131072,
    )
    assert found.groups == ((0, 1, 2, 3), (4, 5, 6, 7))


def test_a_hundred_thousand_devices():
    mesh = Mesh(("data", "model", "x"), (1024, 16, 8))
    a, w = PartitionSpec((("data",), ("model",))), PartitionSpec((("model",), ()))
    found = only(shardy(jnp.matmul, argument(mesh, (4096, 2048), a), argument(mesh, (2048, 8192), w)), mesh)
    assert (found.op, found.axes, found.groups, found.group_size) == ("all-reduce", ("model",), None, 16)
    assert found.operand_shape == (4, 8192)


def reductions(module: ShardyModule) -> list[int | None]:
    """How often each all-reduce and reduce-scatter runs; Shardy takes either, as the program allows."""
    return [c.count for c in module.collectives if c.op in ("all-reduce", "reduce-scatter")]


@pytest.mark.since_jax("0.10", "its Shardy leaves functions alone, or dies")
def test_loops_and_functions_count_like_the_unrolled_program():
    spec = PartitionSpec((("X",), ()))

    def layer(x, w):
        return lax.with_sharding_constraint(x @ w, sharding(XY, spec))

    def rolled(x, w):
        return lax.fori_loop(0, 5, lambda _, carry: layer(carry, w), x)

    def unrolled(x, w):
        for _ in range(5):
            x = layer(x, w)
        return x

    def called(x, w):
        inner = jax.jit(layer)
        for _ in range(5):
            x = inner(x, w)
        return x

    arguments = argument(XY, (8, 64), spec), argument(XY, (64, 64), PartitionSpec((("Y",), ())))
    once, often, calls = (
        read_shardy(shardy(f, *arguments, out_shardings=sharding(XY, spec)), XY)
        for f in (rolled, unrolled, called)
    )
    assert reductions(once) == reductions(calls) == [5]
    assert reductions(often) == [1] * 5


def test_a_loop_of_unknown_length():
    def loop(x, w):
        return lax.while_loop(lambda c: c.sum() < 9.0, lambda c: lax.with_sharding_constraint(c @ w, spec), x)

    spec = sharding(XY, PartitionSpec((("X",), ())))
    text = shardy(
        loop,
        argument(XY, (8, 64), PartitionSpec((("X",), ()))),
        argument(XY, (64, 64), PartitionSpec((("Y",), ()))),
    )
    found = reductions(read_shardy(text, XY))
    assert found
    assert set(found) == {None}


@pytest.mark.parametrize("axes", [("X",), ("Y",), ("Y", "X")])
@pytest.mark.parametrize("order", [None, (3, 1, 4, 0, 5, 7, 2, 6)])
def test_collectives_of_shard_map(axes, order):
    mesh = Mesh(("X", "Y"), (2, 4), order)

    def body(x):
        y = lax.psum(lax.all_gather(x, axes, axis=1, tiled=True), axes)
        y = lax.all_to_all(y, axes, 0, 1, tiled=True)
        y = lax.psum_scatter(y, axes, scatter_dimension=1, tiled=True)
        return lax.ppermute(y, axes[0], [(0, 1), (1, 0)])

    concrete = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y"))
    spec = P("X", "Y")
    mapped = jax.shard_map(body, mesh=concrete, in_specs=spec, out_specs=spec, check_vma=False)
    for text in (
        jax.jit(mapped).lower(jax.ShapeDtypeStruct((64, 64), jnp.float32)).as_text(),
        shardy(mapped, jax.ShapeDtypeStruct((64, 64), jnp.float32, sharding=NamedSharding(concrete, spec))),
    ):
        module = read_shardy(text, mesh)
        assert module.unread == ()
        n = mesh.group_size(axes)
        assert [(c.op, c.operand_shape, c.result_shape, c.dim, c.split_dim) for c in module.collectives] == [
            ("all-gather", (32, 16), (32, 16 * n), 1, None),
            ("all-reduce", (32, 16 * n), (32, 16 * n), None, None),
            ("all-to-all", (32, 16 * n), (32 // n, 16 * n * n), 1, 0),
            ("reduce-scatter", (32 // n, 16 * n * n), (32 // n, 16 * n), 1, None),
            ("collective-permute", (32 // n, 16 * n), (32 // n, 16 * n), None, None),
        ]
        for c in module.collectives[:-1]:
            assert c.axes == axes
            assert set(c.groups) == set(mesh.replica_groups(axes))
        assert module.collectives[-1].axes == axes[:1]


def test_axes_outside_of_a_manual_computation_split_its_shapes():
    abstract = sharding(XY, PartitionSpec(())).mesh
    mapped = jax.shard_map(
        lambda x, w: lax.psum(x @ w, "X"),
        mesh=abstract,
        in_specs=(P(None, "X"), P("X", None)),
        out_specs=P(None, None),
        axis_names={"X"},
        check_vma=False,
    )
    text = shardy(
        mapped,
        argument(XY, (8, 16), PartitionSpec(((), ("X",)))),
        argument(XY, (16, 32), PartitionSpec((("X",), ("Y",)))),
        out_shardings=sharding(XY, PartitionSpec(((), ()))),
    )
    assert [(c.op, c.axes, c.operand_shape) for c in read_shardy(text, XY).collectives] == [
        ("all-reduce", ("X",), (8, 8)),
        ("all-gather", ("Y",), (8, 8)),
    ]


def test_branches_of_conditionals_read_as_in_hlo():
    """A gather of each device's part stands in a function that one branch calls, and in a loop's `case`."""
    chips = jax.make_mesh(XY.axis_sizes, XY.axis_names, axis_types=(AxisType.Auto,) * 2)
    gather = jax.jit(lambda x: lax.all_gather(x, "Y", tiled=True)[:8])
    later = jax.jit(lambda x: lax.all_gather(x, "Y", tiled=True)[-8:])
    branches = [later, lambda x: lax.psum(x, "X"), lambda x: lax.ppermute(x, "Y", [(0, 1), (1, 0)])]

    def function(i, x):
        x = lax.cond(i[0] > 1, gather, jnp.sin, lax.psum(x, "Y"))
        return lax.fori_loop(0, 5, lambda _, x: lax.switch(i[0], branches, x), x)

    split = {"in_specs": (P(), P("X", "Y")), "out_specs": P("X", "Y"), "check_vma": False}
    mapped = jax.shard_map(function, mesh=chips, **split)
    lowered = jax.jit(mapped).lower(jnp.zeros(1, int), jnp.zeros((16, 32)))
    of_hlo, of_mlir = (
        sorted((each.op, each.axes, each.count, each.in_branch) for each in read(text, XY).collectives)
        for text in (lowered.compile().as_text(), lowered.as_text())
    )
    assert of_mlir == of_hlo
    assert [(op, count) for op, _, count, in_branch in of_hlo if in_branch] == [
        ("all-gather", 1),
        ("all-gather", 5),
        ("all-reduce", 5),
        ("collective-permute", 5),
    ]
