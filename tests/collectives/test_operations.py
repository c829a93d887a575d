"""What the operations mean: chunks laid from starts to ends give what plain NumPy gives, and JAX's types."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st
from jax.sharding import PartitionSpec as P

from shardviz.collectives.operations import (
    OPERATIONS,
    PARAMETERS,
    AllGather,
    AllToAll,
    PBroadcast,
    PMax,
    PMean,
    PMin,
    PPermute,
    PSum,
    PSumScatter,
    RaggedAllToAll,
)
from shardviz.collectives.values import numpy_dtype
from shardviz.errors import QuestionError
from shardviz.sharding import Mesh, canonical_dtype
from shardviz.sharding.array import BITS

DTYPES = [name for name, bits in BITS.items() if bits]
GROUP = ("g",)


def plain(operation, shards):
    """The operation on one group, member by member, in NumPy's own words."""
    n = len(shards)
    match operation:
        case AllGather(_, axis, True):
            return np.array([np.concatenate(list(shards), axis)] * n)
        case AllGather(_, axis, False):
            return np.array([np.stack(list(shards), axis)] * n)
        case PMean():
            return np.array([shards.sum(0) / n] * n)
        case PSum():
            return np.array([shards.sum(0)] * n)
        case PMax():
            return np.array([shards.max(0)] * n)
        case PMin():
            return np.array([shards.min(0)] * n)
        case PSumScatter(_, axis, True):
            return np.array(np.split(shards.sum(0), n, axis))
        case PSumScatter(_, axis, False):
            return np.array([shards.sum(0).take(i, axis) for i in range(n)])
        case AllToAll(_, split, concat, True):
            blocks = [np.split(shard, n, split) for shard in shards]
            return np.array([np.concatenate([blocks[s][d] for s in range(n)], concat) for d in range(n)])
        case AllToAll(_, split, concat, False):
            return np.array([np.stack([shard.take(d, split) for shard in shards], concat) for d in range(n)])
        case PPermute(_, perm):
            result = np.zeros_like(shards)
            for source, target in perm:
                result[target] = shards[source]
            return result
        case PBroadcast(_, source):
            return np.array([shards[source]] * n)
        case RaggedAllToAll(_, sizes):
            received = []
            for d in range(n):
                rows = [shards[s][sum(sizes[s][:d]) : sum(sizes[s][: d + 1])] for s in range(n)]
                received.append(np.concatenate(rows))
            result = np.zeros((n, max(map(len, received)), *shards.shape[2:]), shards.dtype)
            for d, rows in enumerate(received):
                result[d, : len(rows)] = rows
            return result
    raise AssertionError(operation)


def carried_out(operation, shards, chunks):
    """The operation by its chunks alone: from where they start to where they end, all at once."""
    n = len(shards)
    pattern = operation.pattern((n,))
    dtype = canonical_dtype(str(shards.dtype))
    prepared = shards.astype(numpy_dtype(operation.moved_dtype(dtype))).reshape(n, -1)
    cuts = operation.cuts(shards.shape[1:], dtype, n, chunks)
    assert cuts.start.shape == cuts.end.shape == (chunks, max(cuts.sizes, default=0))
    assert ((cuts.start >= 0).sum(1) == cuts.sizes).all()
    assert ((cuts.end >= 0).sum(1) == cuts.sizes).all()
    data = {}
    for member, chunk in zip(*pattern.starts(chunks), strict=True):
        mine = prepared[member, cuts.start[chunk, : cuts.sizes[chunk]]]
        data[chunk] = operation.combined(data[chunk], mine) if chunk in data else mine
    result = np.zeros((n, math.prod(cuts.shape)), prepared.dtype)
    filled = np.zeros(result.shape, int)
    for member, chunk in zip(*pattern.ends(chunks), strict=True):
        place = cuts.end[chunk, : cuts.sizes[chunk]]
        result[member, place] = data[chunk]
        filled[member, place] += 1
    assert filled.max(initial=0) <= 1
    if pattern.kind != "permute" and not isinstance(operation, RaggedAllToAll):
        assert filled.all()
    finished = operation.finished(result.reshape(n, *cuts.shape), n)
    assert canonical_dtype(str(finished.dtype)) == cuts.dtype
    return finished


@st.composite
def cases(draw):
    """(operation, shape of a shard, members, chunks)."""
    n = draw(st.integers(1, 12))
    shape = draw(st.lists(st.integers(1, 5), max_size=3))
    kind = draw(st.sampled_from([*OPERATIONS.values()]))
    rank = len(shape)
    if kind is AllGather:
        tiled = draw(st.booleans()) and rank > 0
        limit = rank if tiled else rank + 1
        operation = AllGather(GROUP, draw(st.integers(-limit, limit - 1)), tiled)
    elif kind in (PSumScatter, AllToAll):
        shape = shape or [1]
        rank = len(shape)
        dim, tiled = draw(st.integers(0, rank - 1)), draw(st.booleans())
        shape[dim] = shape[dim] * n if tiled else n
        dim -= draw(st.sampled_from([0, rank]))
        concat = draw(st.integers(-rank, rank - 1))
        operation = kind(GROUP, dim, tiled) if kind is PSumScatter else kind(GROUP, dim, concat, tiled)
    elif kind is PPermute:
        sources, targets = draw(st.permutations(range(n))), draw(st.permutations(range(n)))
        count = draw(st.integers(0, n))
        operation = PPermute(GROUP, tuple(zip(sources[:count], targets[:count], strict=True)))
    elif kind is PBroadcast:
        operation = PBroadcast(GROUP, draw(st.integers(0, n - 1)))
    elif kind is RaggedAllToAll:
        row = st.lists(st.integers(0, 3), min_size=n, max_size=n).map(tuple)
        sizes = tuple(draw(st.lists(row, min_size=n, max_size=n)))
        shape = [max(map(sum, sizes)) + draw(st.integers(0, 2)), *shape[1:]]
        operation = RaggedAllToAll(GROUP, sizes)
    else:
        operation = kind(GROUP)
    chunks = operation.pattern((n,)).base_chunks * draw(st.integers(1, 4))
    return operation, tuple(shape), n, chunks


@given(cases())
def test_chunks_give_what_numpy_gives(case):
    operation, shape, n, chunks = case
    shards = np.random.default_rng(0).integers(-9, 9, (n, *shape))
    found, expected = carried_out(operation, shards, chunks), plain(operation, shards)
    np.testing.assert_array_equal(found, expected, strict=True)


def test_the_proof_can_fail():
    class Backwards(AllGather):
        def cuts(self, shape, dtype, group_size, chunks):
            cuts = super().cuts(shape, dtype, group_size, chunks)
            return type(cuts)(cuts.start, cuts.end[::-1], cuts.sizes, cuts.shape, cuts.dtype)

    shards = np.arange(6).reshape(3, 2)
    operation = Backwards(GROUP)
    assert (carried_out(operation, shards, 3) != plain(AllGather(GROUP), shards)).any()


@pytest.mark.parametrize("pieces", [1, 2, 3, 5])
def test_chunks_of_one_block_differ_by_one_element_at_most(pieces):
    sizes = PSum(GROUP).cuts((4,), "f32", 2, pieces).sizes
    assert sum(sizes) == 4
    assert max(sizes) - min(sizes) <= 1
    assert list(sizes) == sorted(sizes, reverse=True)


def jax_result(operation, shape, dtype, n=2):
    """What JAX makes of shards of that kind, without running it. Raises what JAX raises."""
    mesh = jax.make_mesh((n,), GROUP, axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:n])

    def body(shard):
        result = getattr(jax.lax, operation.name)(shard.reshape(shape), GROUP, **operation.parameters)
        return result.reshape(1, *result.shape)

    with jax.enable_x64(dtype in ("s64", "u64", "f64", "c128")):
        mapped = jax.shard_map(body, mesh=mesh, in_specs=P("g"), out_specs=P("g"), check_vma=False)
        return jax.eval_shape(mapped, jax.ShapeDtypeStruct((n, *shape), numpy_dtype(dtype)))


SIMPLE = (
    AllGather(GROUP),
    PSum(GROUP),
    PMean(GROUP),
    PMax(GROUP),
    PMin(GROUP),
    PSumScatter(GROUP),
    AllToAll(GROUP),
    PPermute(GROUP, ((0, 1), (1, 0))),
    PBroadcast(GROUP),
)


@pytest.mark.parametrize("operation", SIMPLE, ids=lambda operation: operation.name)
def test_results_have_the_dtypes_and_shapes_of_jax(operation):
    """For every dtype; or both refuse, and XLA refuses what has no order."""
    for dtype in DTYPES:
        try:
            operation.check((4, 3), dtype, 2)
        except QuestionError:
            assert dtype in REFUSED[operation.name]
            continue
        expected = jax_result(operation, (4, 3), dtype)
        cuts = operation.cuts((4, 3), dtype, 2, operation.pattern((2,)).base_chunks)
        assert (cuts.shape, numpy_dtype(cuts.dtype)) == (expected.shape[1:], expected.dtype)
        shards = np.ones((2, 4, 3), numpy_dtype(dtype))
        chunks = operation.pattern((2,)).base_chunks
        assert carried_out(operation, shards, chunks).dtype == expected.dtype


REFUSED = {
    **dict.fromkeys(("psum", "pmean"), ("s2", "u2")),
    **dict.fromkeys(("pmax", "pmin"), ("s2", "u2", "c64", "c128")),
    "psum_scatter": ("s2", "u2", "pred"),
}


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name, dtypes in REFUSED.items() for dtype in dtypes]
)
def test_jax_and_xla_refuse_these_dtypes_too(name, dtype):
    def body(shard):
        return getattr(jax.lax, name)(shard, "g")[None]

    mesh = jax.make_mesh((2,), GROUP, axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])
    mapped = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("g"), out_specs=P("g"), check_vma=False))
    shards = jax.ShapeDtypeStruct((4,), numpy_dtype(dtype))
    with jax.enable_x64(dtype == "c128"), pytest.raises((TypeError, jax.errors.JaxRuntimeError)) as caught:
        mapped.lower(shards).compile()
    assert "accept" in str(caught.value) or "upported" in str(caught.value)
    with pytest.raises(QuestionError):
        OPERATIONS[name](GROUP).check((4,), dtype, 2)


SHAPES = ((), (4,), (0,), (3, 4), (4, 3, 8))
PARAMETRISED = (
    *(AllGather(GROUP, axis, tiled) for axis in range(-3, 4) for tiled in (True, False)),
    *(PSumScatter(GROUP, axis, tiled) for axis in range(4) for tiled in (True, False)),
    *(AllToAll(GROUP, s, c, tiled) for s in range(4) for c in range(4) for tiled in (True, False)),
)


@pytest.mark.parametrize("kind", [AllGather, PSumScatter, AllToAll])
def test_parameters_are_refused_where_jax_refuses_them(kind):
    """Negative numbers elsewhere than in all_gather are left out: JAX 0.10 does not take them."""
    taken = 0
    for operation in (each for each in PARAMETRISED if isinstance(each, kind)):
        for shape in SHAPES:
            try:
                expected = jax_result(operation, shape, "f32", 4).shape[1:]
            except (ValueError, IndexError, AssertionError):
                expected = None
            if expected is not None and kind is not AllToAll and 0 in shape:
                continue  # JAX's later check of empty dimensions is tested by itself
            try:
                found = operation.cuts(shape, "f32", 4, operation.pattern((4,)).base_chunks).shape
            except QuestionError:
                found = None
            if kind is AllToAll and 0 in shape and found is None:
                continue
            assert found == expected, (operation, shape)
            taken += found is not None
    assert taken > 5


def test_jax_gathers_and_scatters_no_empty_dimension():
    for operation in (AllGather(GROUP, 1), PSumScatter(GROUP, 1)):
        mesh = jax.make_mesh((2,), GROUP, axis_types=(jax.sharding.AxisType.Auto,), devices=jax.devices()[:2])

        def body(shard, operation=operation):
            return getattr(jax.lax, operation.name)(shard, GROUP, **operation.parameters)

        mapped = jax.shard_map(body, mesh=mesh, in_specs=P(), out_specs=P(), check_vma=False)
        with pytest.raises(ValueError, match="verifier errors"):
            jax.jit(mapped).lower(np.zeros((2, 0), np.float32))
        with pytest.raises(QuestionError, match="dimension 1 of a shard has no elements"):
            operation.check((2, 0), "f32", 2)


@pytest.mark.parametrize(
    ("operation", "shape", "n", "message", "hint"),
    [
        (
            PSumScatter(GROUP),
            (5, 2),
            4,
            "dimension 0 of a shard has 5 elements, which 4 devices do not divide",
            "4 or 8 elements would work",
        ),
        (
            AllToAll(GROUP, 1, 0),
            (5, 2),
            4,
            "dimension 1 of a shard has 2 elements, which 4 devices do not divide",
            "4 elements would work",
        ),
        (
            AllToAll(GROUP, -1, 0, tiled=False),
            (5, 8),
            4,
            "dimension 1 of a shard has 8 elements, but untiled it needs one for each of the 4 devices",
            "4 elements would work, and so would these, tiled",
        ),
        (
            PSumScatter(GROUP, 0, tiled=False),
            (5,),
            4,
            "dimension 0 of a shard has 5 elements, but untiled it needs one for each of the 4 devices",
            "4 elements would work",
        ),
        (
            AllGather(GROUP, 2),
            (5, 2),
            4,
            "a shard of 2 dimensions has no dimension 2",
            "dimensions go from 0 to 1, or from -2 to -1",
        ),
        (
            AllGather(GROUP, 3, tiled=False),
            (5, 2),
            4,
            "the result of 3 dimensions has no dimension 3",
            "dimensions go from 0 to 2, or from -3 to -1",
        ),
        (
            AllGather(GROUP),
            (),
            4,
            "a shard of 0 dimensions has no dimension 0",
            "a scalar has none: use shards of one dimension or more",
        ),
        (
            AllGather(GROUP),
            (0,),
            4,
            "dimension 0 of a shard has no elements",
            "one element or more for each device would work",
        ),
        (
            AllToAll(GROUP, 0, 1),
            (4,),
            4,
            "the result of 1 dimension has no dimension 1",
            "dimensions go from 0 to 0, or from -1 to -1",
        ),
        (
            PBroadcast(GROUP, -1),
            (4,),
            4,
            "there is no device -1 in a group of 4",
            "the devices of a group count from 0 to 3",
        ),
        (
            RaggedAllToAll(GROUP, ((1, 2), (3, 3))),
            (4,),
            2,
            "device 1 of the group sends 6 rows, but dimension 0 of a shard has 4 elements",
            "send 4 rows at most, or use shards of 6",
        ),
        (
            RaggedAllToAll(GROUP, ((0, 0), (0, 0))),
            (),
            2,
            "a scalar has no rows to send",
            "use shards of one dimension or more",
        ),
    ],
)
def test_what_cannot_be_says_why_and_what_would_work(operation, shape, n, message, hint):
    with pytest.raises(QuestionError) as caught:
        operation.cuts(shape, "f32", n, 1)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize(
    ("operation", "dtype", "message"),
    [
        (PSumScatter(GROUP), "pred", "JAX's psum_scatter does not add booleans"),
        (PMax(GROUP), "c64", "c64 numbers have no order, so XLA refuses pmax"),
        (PMin(GROUP), "c128", "c128 numbers have no order, so XLA refuses pmin"),
        (PSum(GROUP), "s2", "XLA does not support psum of s2"),
        (PSumScatter(GROUP), "u2", "XLA does not support psum_scatter of u2"),
        (
            PPermute(GROUP, ((0, 1),)),
            "f8e8m0fnu",
            "f8e8m0fnu has no 0, which a device to which nobody sends would hold",
        ),
        (
            RaggedAllToAll(GROUP, ((1, 0), (1, 0))),
            "f8e8m0fnu",
            "f8e8m0fnu has no 0, which a device that receives fewer rows than another would hold",
        ),
        (PSum(GROUP), "token", "token is not a dtype of numbers"),
    ],
)
def test_a_dtype_that_cannot_be_is_named(operation, dtype, message):
    with pytest.raises(QuestionError) as caught:
        operation.check((4,), dtype, 2)
    assert caught.value.message == message
    assert caught.value.hint


MESH = Mesh(("X", "Y", "Z"), (2, 1, 4))


@pytest.mark.parametrize(
    ("operation", "message", "hint"),
    [
        (PSum(("W",)), "unknown mesh axis 'W'", "this mesh has the axes X, Y, Z"),
        (
            PPermute(("Z", "X"), ()),
            "ppermute takes mesh axes in the mesh's order, not Z, X",
            "write X, Z",
        ),
    ],
)
def test_axes_that_cannot_be_are_named(operation, message, hint):
    with pytest.raises(QuestionError) as caught:
        operation.dims(MESH)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_the_axes_of_a_group_in_their_order():
    assert AllGather(("Z", "X")).dims(MESH) == (4, 2)
    assert PPermute(("Y", "X", "Z"), ()).dims(MESH) == (1, 2, 4)


def test_jax_permutes_over_axes_in_the_mesh_s_order():
    """0.12 refuses any other; before, it took the order of the mesh all the same."""
    mesh = jax.make_mesh((2, 2), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    def body(shard):
        return jax.lax.ppermute(shard, ("y", "x"), [(0, 1)])

    mapped = jax.shard_map(body, mesh=mesh, in_specs=P(("x", "y")), out_specs=P(("x", "y")), check_vma=False)
    try:
        result = jax.jit(mapped)(np.arange(1, 5))
    except RuntimeError as error:
        assert "same order" in str(error)  # noqa: PT017
    else:
        assert result.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("dtype", "shards", "total", "mean"),
    [
        ("s8", [100, 100, 100], 44, 44 / 3),
        ("u8", [200, 100, 0], 44, 44 / 3),
        ("s4", [7, 7, 7], 5, 5 / 3),
        ("s64", [2**62, 2**62, 2**62], -(2**62), -(2**62) / 3),
        ("pred", [True, True, False], 2, 2 / 3),
    ],
)
def test_integers_wrap_around_and_the_mean_is_that_of_the_wrapped_sum(dtype, shards, total, mean):
    values = np.array(shards).astype(numpy_dtype(dtype)).reshape(3, 1)
    assert int(carried_out(PSum(GROUP), values, 1)[0, 0]) == total
    found = carried_out(PMean(GROUP), values, 1)
    assert found[0, 0] == found.dtype.type(mean)


def test_the_divisor_of_a_mean_has_the_dtype_of_the_shards():
    """In f4e2m1fn, which ends at 6, eight members count as 6."""
    shards = np.full((8, 1), 0.5, ml_dtypes.float4_e2m1fn)
    assert float(carried_out(PMean(GROUP), shards, 1)[0, 0]) == 0.5  # 4 / 6, rounded


def test_overflow_and_nan_are_silent():
    shards = np.array([[60000, np.nan, np.inf], [60000, 1, -np.inf]], np.float16)
    total = carried_out(PSum(GROUP), shards, 1)[0]
    assert np.isinf(total[0])
    assert np.isnan(total[1:]).all()
    for operation in (PMax(GROUP), PMin(GROUP)):
        assert np.isnan(carried_out(operation, shards, 1)[0, 1])


def test_parameters_have_the_names_of_jax():
    assert {name: [field.name for field in fields(kind)] for name, kind in OPERATIONS.items()} == {
        "all_gather": ["axes", "axis", "tiled"],
        "psum": ["axes"],
        "pmean": ["axes"],
        "pmax": ["axes"],
        "pmin": ["axes"],
        "psum_scatter": ["axes", "scatter_dimension", "tiled"],
        "all_to_all": ["axes", "split_axis", "concat_axis", "tiled"],
        "ppermute": ["axes", "perm"],
        "pbroadcast": ["axes", "source"],
        "ragged_all_to_all": ["axes", "send_sizes"],
    }
    assert PSumScatter(GROUP, 1).parameters == {"scatter_dimension": 1, "tiled": True}


def test_what_is_only_moved_is_never_added():
    with pytest.raises(NotImplementedError, match="all_gather reduces nothing"):
        AllGather(GROUP).combined(np.ones(1), np.ones(1))


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_field_is_given_by_one_parameter_and_needed_where_it_has_no_default(name):
    own = {field.name: field.default is MISSING for field in fields(OPERATIONS[name]) if field.name != "axes"}
    assert {parameter.field: parameter.example_for is not None for parameter in OPERATIONS[name].takes} == own


def test_a_parameter_that_several_operations_take_is_the_same():
    taken = [parameter for kind in OPERATIONS.values() for parameter in kind.takes]
    assert len(set(taken)) == len(PARAMETERS) == len({parameter.name for parameter in taken})
