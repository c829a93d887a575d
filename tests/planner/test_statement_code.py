"""The expression of each function, evaluated, against NumPy."""

from __future__ import annotations

from math import exp, tanh

import numpy as np
import pytest

from shardviz.notation.einsum import Einsum
from shardviz.planner.problem import Statement
from shardviz.planner.problem.functions import FUNCTIONS, statement_code
from shardviz.planner.problem.jax_code import WHOLE, LocalDims
from shardviz.sharding import ShardedArray

SIZES = {"b": 2, "t": 4, "s": 4, "n": 2, "g": 3, "h": 5, "d": 6, "e": 4, "c": 2, "v": 7, "q": 10}


def statement(function, subscripts, **fields):
    """``statement("silu", "bd->db")``"""
    left, right = subscripts.split("->")
    einsum = Einsum(tuple(map(tuple, left.split(","))), tuple(right))
    arrays = [
        ShardedArray(f"A{number}", dims, tuple(SIZES[dim] for dim in dims), "f32", None)
        for number, dims in enumerate((*einsum.operands, einsum.result))
    ]
    return Statement(einsum, tuple(arrays[:-1]), arrays[-1], function, **fields)


def evaluated(part, operands, local=WHOLE):
    import jax
    import jax.numpy as jnp

    code = statement_code(part, [f"operands[{place}]" for place in range(len(operands))], local=local)
    taken = [jnp.asarray(each) for each in operands]
    return np.asarray(eval(code, {"jax": jax, "jnp": jnp, "operands": taken}))


def numbers(part, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=array.shape).astype(np.float32) for array in part.operands]


POINTWISE = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "negative": lambda a: -a,
    "divide": lambda a, b: a / b,
    "maximum": max,
    "minimum": min,
    "silu": lambda a: a / (1 + exp(-a)),
    # The approximation by tanh that JAX takes without being told.
    "gelu": lambda a: a / 2 * (1 + tanh((2 / np.pi) ** 0.5 * (a + 0.044715 * a**3))),
    "relu": lambda a: max(a, 0),
    "sigmoid": lambda a: 1 / (1 + exp(-a)),
    "tanh": tanh,
    "exp": exp,
    "square": lambda a: a * a,
    "normalize": lambda a, b: a / (b + 1e-6) ** 0.5,
}
DEFINED_ABOVE_ZERO = {"log": np.log, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a)}


@pytest.mark.parametrize("function", POINTWISE | DEFINED_ABOVE_ZERO)
def test_functions_of_each_element(function):
    reference = np.vectorize((POINTWISE | DEFINED_ABOVE_ZERO)[function], otypes=[float])
    part = statement(function, "btd,td->btd" if FUNCTIONS[function].operands == 2 else "btd->btd")
    taken = [
        np.abs(each) if function in (*DEFINED_ABOVE_ZERO, "normalize") else each for each in numbers(part)
    ]
    assert np.allclose(evaluated(part, taken), reference(*taken), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("subscripts", "reference"),
    [
        ("bd,d->bd", lambda a, b: a + b),
        ("bd,b->bd", lambda a, b: a + b[:, None]),
        ("b,bd->bd", lambda a, b: a[:, None] + b),
        ("bd,db->bd", lambda a, b: a + b.T),
        ("btd,bd->btd", lambda a, b: a + b[:, None, :]),
        ("btd,dt->btd", lambda a, b: a + b.T),
        ("btd,td->dtb", lambda a, b: (a + b).T),
    ],
)
def test_operands_are_broadcast_by_their_dimensions(subscripts, reference):
    part = statement("add", subscripts)
    taken = numbers(part)
    assert np.allclose(evaluated(part, taken), reference(*taken))


@pytest.mark.parametrize(
    ("function", "subscripts", "reference"),
    [
        ("sum", "btd->bd", lambda a: a.sum(1)),
        ("sum", "btd->", lambda a: a.sum()),
        ("mean", "btd->db", lambda a: a.mean(1).T),
        ("mean_square", "btd->bt", lambda a: (a * a).mean(2)),
        ("max", "btd->t", lambda a: a.max((0, 2))),
        ("multiply", "bd->bd", lambda a: a),
        ("multiply", "bd,db->bd", lambda a, b: a * b.T),
        ("multiply", "b->bd", lambda a: np.repeat(a[:, None], 6, 1)),
        ("multiply", "b,bt->tbd", lambda a, b: np.repeat((a[:, None] * b).T[:, :, None], 6, 2)),
        ("multiply", "btd,dv->bv", lambda a, b: np.einsum("btd,dv->bv", a, b)),
    ],
)
def test_reductions_and_products(function, subscripts, reference):
    part = statement(function, subscripts)
    taken = numbers(part)
    assert np.allclose(evaluated(part, taken), reference(*taken), atol=1e-5)


def test_scale_takes_its_number():
    part = statement("scale", "bd->bd", number=0.25)
    taken = numbers(part)
    assert np.allclose(evaluated(part, taken), taken[0] / 4)


def test_softmax_takes_the_largest_and_the_sum_of_its_rows():
    part = statement("softmax", "bte,be,be->bte")
    array, *_ = numbers(part)
    largest = array.max(1)
    found = evaluated(part, [array, largest, np.exp(array - largest[:, None]).sum(1)])
    assert np.allclose(found.sum(1), 1, atol=1e-5)
    assert np.allclose(found, np.exp(array) / np.exp(array).sum(1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize(("subscripts", "shape"), [("btq->btnh", (2, 4, 2, 5)), ("btnh->btq", (2, 4, 10))])
def test_reshape(subscripts, shape):
    part = statement("reshape", subscripts, merged=(("q", ("n", "h")),))
    taken = numbers(part)
    assert np.array_equal(evaluated(part, taken), taken[0].reshape(shape))


@pytest.mark.parametrize("function", ["attention", "causal_attention"])
@pytest.mark.parametrize("made", ["btngh", "hngbt"])
def test_attention_with_grouped_heads(function, made):
    part = statement(function, f"btngh,bsnh,bsnh->{made}", whole=("s", "h"))
    query, keys, values = numbers(part)
    found = evaluated(part, [query, keys, values]).transpose([made.index(dim) for dim in "btngh"])
    for b, t, n, g in np.ndindex(2, 4, 2, 3):
        seen = t + 1 if function == "causal_attention" else 4
        weights = np.exp([query[b, t, n, g] @ keys[b, s, n] / 5**0.5 for s in range(seen)])
        assert np.allclose(found[b, t, n, g], weights @ values[b, :seen, n] / weights.sum(), atol=1e-4)


@pytest.mark.parametrize(("along", "count"), [("e", 2), ("e", 1), ("t", 3)])
def test_top_k_keeps_the_largest(along, count):
    part = statement("top_k", "bte->bte", whole=(along,), number=float(count))
    (array,) = numbers(part)
    found = np.moveaxis(evaluated(part, [array]), "bte".index(along), -1)
    for row, kept in zip(
        np.moveaxis(array, "bte".index(along), -1).reshape(-1, 4), found.reshape(-1, 4), strict=True
    ):
        largest = sorted(row)[-count:]
        assert np.array_equal(kept, [value if value in largest else 0 for value in row])


def test_slots_go_to_tokens_in_order_while_there_are_any():
    part = statement("slots", "bte->btec", whole=("t",), along="t")
    (array,) = numbers(part)
    gates = np.maximum(array, 0)
    expected = np.zeros((2, 4, 4, 2))
    for b, e in np.ndindex(2, 4):
        chosen = [t for t in range(4) if gates[b, t, e] > 0]
        for place, t in enumerate(chosen[:2]):
            expected[b, t, e, place] = 1
    assert np.array_equal(evaluated(part, [gates]), expected)


def test_rows_of_a_table_and_of_a_part_of_it():
    part = statement("take", "vd,bt->btd")
    table, _ = numbers(part)
    places = np.array([[0, 6, 3, 2], [1, 1, 5, 4]], np.int32)
    assert np.array_equal(evaluated(part, [table, places]), table[places])
    # Devices with 3 and 4 rows of it: what one lacks is zero, so that their sum is the whole.
    parts = [
        evaluated(part, [table[start:stop], places], LocalDims({"v": stop - start}, {"v": str(start)}))
        for start, stop in ((0, 3), (3, 7))
    ]
    assert np.array_equal(parts[0] + parts[1], table[places])
    assert not np.array_equal(parts[0], table[places])


def test_a_device_that_has_a_part_of_the_points_adds_its_share_of_the_mean():
    part = statement("mean_square", "bd->b")
    (array,) = numbers(part)
    halves = [
        evaluated(part, [array[:, start : start + 3]], LocalDims({"d": 3}, {"d": str(start)}))
        for start in (0, 3)
    ]
    assert np.allclose(halves[0] + halves[1], (array**2).mean(1), atol=1e-6)


def test_a_device_that_has_some_rows_masks_them_where_they_stand():
    part = statement("causal_attention", "btnh,bsnh,bsnh->btnh", whole=("s", "h"))
    query, keys, values = numbers(part)
    whole = evaluated(part, [query, keys, values])
    local = LocalDims({"t": 2}, {"t": "2"})
    assert np.allclose(evaluated(part, [query[:, 2:], keys, values], local), whole[:, 2:], atol=1e-5)
