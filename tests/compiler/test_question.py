"""A problem as the child gets it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from shardviz.compiler import TARGETS
from shardviz.compiler.question import question_for, subscripts
from shardviz.notation import parse_chain
from shardviz.notation.einsum import Einsum


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
