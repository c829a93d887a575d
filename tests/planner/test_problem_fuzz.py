"""Thousands of random and mutated texts: each is a problem, or a `ShardvizError` and nothing else."""

from __future__ import annotations

import random

import pytest

from shardviz.errors import ShardvizError
from shardviz.planner.planner import plan
from shardviz.planner.problem import Problem
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh

MESH = Mesh(("X", "Y", "data"), (2, 4, 1))

TEXTS = [
    "bd,df->bf",
    "bx,xy->by; by,yz->bz",
    "...d,df->...f",
    "ii->i",
    "A[B_X, D_Y] * W[D_Y, F] -> Out[B_X, F]",
    "In[B_X, D_Y] *_D W_in[D, F_Y] *_F W_out[F_Y, D] -> Out[B_X, D_Y]",
    "A[I_XY, J] {U_data}",
]
SPECS = ["XY,Y_->X_", "XY,Y_; ?,X_->__", "data X, X _ -> ( X Y ) _", "X_{U_Y},__->?", "(XY)_,_(YX)", ""]
SIZES = ["b=8,d=2048,f=8192", "...=4x8,d=16,f=8", "B=8,D=16,F=32", "", "i=8"]
DTYPES = ["bf16", "f32", "s4", "int8", "f31", ""]
ALPHABET = "bdfxyzXYQ_(){}[],;->.*?=0123456789 \t\n\x00\x1b→·\\é'\"U"


def mutated(draw: random.Random, text: str) -> str:
    letters = list(text)
    for _ in range(draw.randrange(1, 5)):
        place = draw.randrange(len(letters) + 1)
        match draw.randrange(5):
            case 0:
                letters[place:place] = draw.choice(ALPHABET)
            case 1:
                letters[place : place + draw.randrange(1, 4)] = []
            case 2:
                letters[place : place + 1] = draw.choice(ALPHABET)
            case 3:
                other = draw.randrange(len(letters) + 1)
                letters[place:place] = letters[min(place, other) : max(place, other)]
            case 4:
                letters[place:place] = str(draw.choice((0, 10**6, 10**17, 10**30)))
    return "".join(letters)


def noise(draw: random.Random) -> str:
    return "".join(draw.choices(ALPHABET, k=draw.randrange(30)))


def varied(draw: random.Random, texts: list[str]) -> str:
    kind = draw.random()
    return (
        noise(draw) if kind < 0.1 else draw.choice(texts) if kind < 0.5 else mutated(draw, draw.choice(texts))
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_only_shardviz_errors_escape(seed):
    draw = random.Random(seed)
    understood = refused = 0
    for _ in range(1000):
        text = varied(draw, TEXTS)
        options = {
            "specs": None if "[" in text and draw.random() < 0.8 else varied(draw, SPECS),
            "sizes": varied(draw, SIZES) if draw.random() < 0.6 else "",
            "dtype": varied(draw, DTYPES) if draw.random() < 0.1 else "bf16",
        }
        found = read(text, options)
        if isinstance(found, ShardvizError):
            refused += 1
            assert found.message.isprintable(), found.message
            assert len(found.message) < 400, found.message
        else:
            understood += 1
            if all(array.spec is not None for array in found.arguments):
                assert planned(found)
    assert understood > 50
    assert refused > 500


def read(text: str, options: dict[str, str | None]) -> Problem | ShardvizError:
    try:
        return problem_from_text(text, mesh=MESH, **options)
    except ShardvizError as error:
        return error
    except Exception as error:
        raise AssertionError(f"{text!r} {options}") from error


def planned(found: Problem) -> bool:
    """Whatever was understood is planned, or refused in words."""
    try:
        return bool(plan(found).steps)
    except ShardvizError as error:
        return "cannot be left unreduced" in error.message
