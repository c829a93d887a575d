"""Products with and without brackets are what NumPy makes of them as they are written: judged on numbers."""

from __future__ import annotations

import itertools
import json
import re

import numpy as np
import pytest

from shardviz.codegen.problem import problem_code
from shardviz.errors import NotationError
from shardviz.notation.book import ProductFactors
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from tests.planner.executor import prove, reference, run, values_for

MESH = Mesh(("X", "Y"), (2, 2))
SIZES = dict(zip("abcdefghst", (2, 4, 6, 8, 10, 12, 4, 2, 6, 4), strict=True))


def silu(x):
    return x / (1 + np.exp(-x))


AS_WRITTEN = {
    "Y = (X[b,d] * W1[d,f]) * W2[f,d]": lambda X, W1, W2: (X @ W1) @ W2,
    "Y[b,d] = (X[b,d] * W1[d,f]) * W2[f,d]": lambda X, W1, W2: (X @ W1) @ W2,
    "Y[d,b] = (X[b,d] * W1[d,f]) * W2[f,d]": lambda X, W1, W2: ((X @ W1) @ W2).T,
    "Y = X[b,d] * (W1[d,f] * W2[f,d])": lambda X, W1, W2: X @ (W1 * W2.T),
    "Y = X[b,d] * (W1[d,f] * W2[f,e])": lambda X, W1, W2: X @ (W1 @ W2),
    "Y = ((X[b,d] * W1[d,f]) * W2[f,d]) * W3[d,e]": lambda X, W1, W2, W3: X @ W1 @ W2 @ W3,
    "(X[b,d] * W1[d,f]) * W2[f,d] -> Y[b,d]": lambda X, W1, W2: (X @ W1) @ W2,
    "X[b,d] *_d W1[d,f] *_f W2[f,d] -> Y[b,d]": lambda X, W1, W2: (X @ W1) @ W2,
    "X[b,d], W1[d,f], W2[f,d] -> Y[b,d]": lambda X, W1, W2: X * np.einsum("df,fd->d", W1, W2),
    "Y = X[b,d], W1[d,f], W2[f,d] -> bd": lambda X, W1, W2: X * np.einsum("df,fd->d", W1, W2),
    "Y = X[b,d] * W1[d,f] * W2[f,e]": lambda X, W1, W2: X @ W1 @ W2,
    "X[b,d] * W1[d,f] * W2[f,e] -> Y[b,e]": lambda X, W1, W2: X @ W1 @ W2,
    "Y = (silu(X[b,d]*W1[d,f]) * (X*W3[d,f])) * W2[f,d]": (
        lambda X, W1, W3, W2: (silu(X @ W1) * (X @ W3)) @ W2
    ),
    "Y[b,d] = (silu(X[b,d]*W1[d,f]) * (X*W3[d,f])) * W2[f,d]": (
        lambda X, W1, W3, W2: (silu(X @ W1) * (X @ W3)) @ W2
    ),
    "Y[b,d] = silu(X[b,d]*W1[d,f]) * (X*W3[d,f]) * W2[f,d]": (
        lambda X, W1, W3, W2: (silu(X @ W1) * (X @ W3)) @ W2
    ),
    "Y[b,d] = X[b,d] + (X * W1[d,f]) * W2[f,d]": lambda X, W1, W2: X + (X @ W1) @ W2,
    "Y[b,d] = 0.5 * ((X[b,d] * W1[d,f]) * W2[f,d])": lambda X, W1, W2: 0.5 * ((X @ W1) @ W2),
    "Y = ((X[b,d] * W1[d,f]) / 2) * W2[f,d]": lambda X, W1, W2: ((X @ W1) / 2) @ W2,
    "Y = (-(X[b,d] * W1[d,f])) * W2[f,d]": lambda X, W1, W2: -(X @ W1) @ W2,
    "Y = (X[b,d] * W1[d,f] + c[f]) * W2[f,d]": lambda X, W1, c, W2: (X @ W1 + c) @ W2,
    "Y[b,d] = H[b,f] * G[b,f] * W[f,d]": lambda H, G, W: (H * G) @ W,
    "Y = (H[b,f] * G[b,f]) * W[f,d]": lambda H, G, W: (H * G) @ W,
    "Y = A[b,d] * B[b,d] * C[b,d]": lambda A, B, C: A * B * C,
    "Y = A[b,d] * (B[b,d] * C[b,d])": lambda A, B, C: A * B * C,
    "Y[b,h,t,s] = Q[b,t,h,d] * K[b,s,h,d] / 8": lambda Q, K: np.einsum("bthd,bshd->bhts", Q, K) / 8,
    "Y[b,h,t,s] = 0.5 * (Q[b,t,h,d] * K[b,s,h,d])": lambda Q, K: np.einsum("bthd,bshd->bhts", Q, K) / 2,
    "Y[b,h,t,s] = Q[b,t,h,d] * K[b,s,h,d] / 8 + M[b,h,t,s]": (
        lambda Q, K, M: np.einsum("bthd,bshd->bhts", Q, K) / 8 + M
    ),
    "Y[b,h,t,s] = exp(Q[b,t,h,d] * K[b,s,h,d] / 8)": (
        lambda Q, K: np.exp(np.einsum("bthd,bshd->bhts", Q, K) / 8)
    ),
    "Y[b,t,d] = O[e,b,c,d] * scale(P[b,t,e,c], G[b,t,e])": (
        lambda **v: np.einsum("ebcd,btec,bte->btd", v["O"], v["P"], v["G"])
    ),
    "Y[b,t,d] = O[e,b,c,d] * P[b,t,e,c] * G[b,t,e]": lambda **v: np.einsum(
        "ebcd,btec,bte->btd", v["O"], v["P"], v["G"]
    ),
    "Y[b,d] = X[b,d] * (g[d] * s[b])": lambda X, g, s: X * g * s[:, None],
}


def problem(text):
    letters = {*re.findall(r"\b[a-z]\b", " ".join(re.findall(r"\[([^]]*)\]", text)))}
    sizes = ",".join(f"{letter}={SIZES[letter]}" for letter in sorted(letters))
    return problem_from_text(text, mesh=MESH, sizes=sizes)


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_a_product_is_what_it_says(text):
    asked = problem(text)
    values = values_for(asked)
    expected = AS_WRITTEN[text](**values)
    assert np.allclose(reference(asked, values)[asked.result.name], expected)
    found = plan(asked)
    prove(found, values)
    assert np.allclose(run(found, values), expected)


@pytest.mark.slow
def test_generated_code_has_the_values(printed_by):
    """The JAX functions that shardviz writes of all these texts, on the same numbers."""
    pieces, expected = ["import json, jax, jax.numpy as jnp, numpy as np", "said = []"], []
    for text, as_written in AS_WRITTEN.items():
        asked = problem(text)
        values = values_for(asked)
        expected.append(as_written(**values).tolist())
        code = problem_code(asked)
        given = ", ".join(f"np.float32({values[array.name].tolist()})" for array in asked.arguments)
        pieces += [
            re.search(r"^def program\(.*?(?=^\S)", code[code.index("def program(") :], re.S | re.M)[0],
            f"said.append(program({given}).tolist())",
        ]
    pieces.append("print(json.dumps(said))")
    found = json.loads(printed_by({"readings": "\n".join(pieces)})["readings"])
    for text, one, other in zip(AS_WRITTEN, found, expected, strict=True):
        assert np.allclose(one, other, rtol=1e-3, atol=1e-3), text


BOTH = [
    (
        "Y = X[b,d] * W1[d,f] * W2[f,d]",
        "from left to right it sums over d, then f; as one einsum it sums over d, f,",
        ["Y = (X[b,d] * W1[d,f]) * W2[f,d]", "X[b,d], W1[d,f], W2[f,d] -> Y[b]"],
    ),
    (
        "X[b_X,d] * W1[d,f] * W2[f,d] -> Y[b_X,d]",
        "from left to right it sums over d, then f; as one einsum it sums over f,",
        [
            "(X[b_X, d] * W1[d, f]) * W2[f, d] -> Y[b_X, d]",
            "X[b_X, d], W1[d, f], W2[f, d] -> Y[b_X, d]",
        ],
    ),
    (
        "Y = H[b,f] * G[b,f] * W[f,d]",
        "from left to right it sums over f; as one einsum it sums over b, then f,",
        ["Y = (H[b,f] * G[b,f]) * W[f,d]", "H[b,f], G[b,f], W[f,d] -> Y[d]"],
    ),
    (
        "Y[b,t,h] = Q[b,t,h] * K[b,s,h] * V[b,s,h]",
        "from left to right it sums over b, h, then s; as one einsum it sums over s,",
        ["Y[b,t,h] = (Q[b,t,h] * K[b,s,h]) * V[b,s,h]", "Q[b,t,h], K[b,s,h], V[b,s,h] -> Y[b,t,h]"],
    ),
]


@pytest.mark.parametrize(("text", "said", "texts"), BOTH)
def test_two_readings_are_refused_with_both(text, said, texts):
    """What the hint says can be typed, and gives two different results."""
    with pytest.raises(NotationError, match=re.escape(f"this product has two readings: {said}")) as caught:
        problem(text)
    for each in texts:
        typed = re.sub(r"^Y(\[[bth,]+\])? = |(?<=\]) -> Y\S+ \S+$", "", each).replace(" ", "")
        assert typed in caught.value.hint.replace(" ", "")
    asked = [problem(each) for each in texts]
    values = values_for(asked[0])
    found = [reference(each, values)["Y"] for each in asked]
    assert found[0].shape != found[1].shape or not np.allclose(*found)


def test_a_sum_in_brackets_that_the_result_needs_is_named():
    with pytest.raises(NotationError, match="has the dimension t=4, which no factor has") as caught:
        problem("Y[b,t,d] = O[e,b,c,d] * (P[b,t,e,c] * G[b,t,e])")
    assert caught.value.hint == "the product in brackets sums over t; scale(P, G) keeps it"


def test_a_sum_that_the_result_contradicts_is_refused():
    with pytest.raises(NotationError, match="sums over 'd', which the result has,"):
        problem("Y[b,d] = (A[b,d] + A[b,d]) *_d B[d,b]")
    with pytest.raises(NotationError, match="sums over 'X', which its factors do not share,"):
        problem("Y = V[g,f] *_X (V * H[f,b])")


def _value(dims, arrays, summed, result):
    """The arrays multiplied one by one, each sum as it is said, by `numpy.einsum`."""
    left, value = dims[0], arrays[0]
    for number, (right, gone) in enumerate(zip(dims[1:], summed, strict=True), 1):
        made = "".join(dim for dim in dict.fromkeys(left + right) if dim not in gone)
        if number == len(dims) - 1 and result is not None:
            made = result
        value = np.einsum(f"{left},{right}->{made}", value, arrays[number])
        left = made
    return value if result is not None else np.einsum(f"{left}->{''.join(sorted(left))}", value)


def test_readings_differ_exactly_where_their_values_do():
    """Products of three arrays of one or two of four letters, with and without a result: one reading is the
    einsum of NumPy; where there are two, their values differ."""
    numbers = np.random.default_rng(0)
    pairs = ["".join(each) for size in (1, 2) for each in itertools.permutations("abcd", size)]
    counts = [0, 0]
    for dims in itertools.product(pairs[:10], repeat=3):
        every = "".join(sorted({*"".join(dims)}))
        arrays = [numbers.uniform(1, 2, [2 + "abcd".index(dim) for dim in each]) for each in dims]
        for result in (None, every[:1], every[-2:], every[1:3]):
            factors = ProductFactors(
                tuple(map(tuple, dims)), (None, None), None if result is None else tuple(result)
            )
            readings = factors.readings()
            counts[len(readings) - 1] += 1
            values = [_value(dims, arrays, reading, result) for reading in readings]
            if result is not None:
                assert np.allclose(values[0], np.einsum(f"{','.join(dims)}->{result}", *arrays))
            if len(values) == 2:
                assert values[0].shape != values[1].shape or not np.allclose(*values)
    assert min(counts) > 50
