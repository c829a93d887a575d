"""Numbers in cells and in JSON, for every dtype; names and colours of chunks."""

from __future__ import annotations

import json
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from shardviz.collectives.schedule import Pattern
from shardviz.render.palette import TRUECOLOR
from shardviz.render.rounds.pieces import chunk_name, chunk_style, number, numbers, plain_values


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (-12, "-12"),
        (True, "True"),
        (2.0, "2"),
        (-0.0, "-0"),
        (-0.5, "-0.5"),
        (1 / 3, "0.3333"),
        (123456.0, "123456"),
        (1.5e10, "1.5e+10"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1 + 2j, "1+2j"),
        (-0.25 - 1.5j, "-0.25-1.5j"),
        (complex(0, -0.0), "0-0j"),
    ],
)
def test_number(value: complex, text: str) -> None:
    assert number(value) == text


DTYPES = [
    "bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128",
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4", "int2", "float4_e2m1fn",
]  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_becomes_plain_numbers(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    values = np.array([[0, 1], [1, 0]]).astype(dtype)
    listed = plain_values(values)
    assert listed == [[0, 1], [1, 0]]
    assert {type(each) for row in listed for each in row} <= {bool, int, float, complex}
    assert len(numbers(values)) == 4
    if values.dtype.kind != "c":
        json.dumps(listed)


def test_wide_floats_keep_their_digits() -> None:
    assert plain_values(np.array([0.1, 1e300])) == [0.1, 1e300]
    assert plain_values(np.array([2**64 - 1], dtype="uint64")) == [2**64 - 1]


NAMES = [
    ("all_gather", (4,), 4, 0, 0, "α"),
    ("all_gather", (4,), 4, 3, 0, "δ"),
    ("all_gather", (4,), 4, 0, 1, "ε"),
    ("all_gather", (48,), 48, 25, 0, "β₁"),
    ("all_to_all", (4,), 16, 0, 0, "α₀"),
    ("all_to_all", (4,), 16, 7, 0, "β₃"),
    ("all_to_all", (4,), 16, 7, 1, "ζ₃"),
    ("all_to_all", (2,), 8, 5, 0, "ζ"),
    ("all_to_all", (32,), 1024, 33, 0, "κ₁"),
]


def run_of_chunks(pattern: Pattern, chunks: int) -> SimpleNamespace:
    """As much of a run as names and colours take."""
    return SimpleNamespace(schedule=SimpleNamespace(pattern=pattern, chunks=chunks))


@pytest.mark.parametrize(("kind", "dims", "chunks", "chunk", "group", "name"), NAMES)
def test_names(kind: str, dims: tuple[int, ...], chunks: int, chunk: int, group: int, name: str) -> None:
    assert chunk_name(run_of_chunks(Pattern(kind, dims), chunks), chunk, group) == name


@pytest.mark.parametrize(("size", "groups"), [(4, 6), (8, 3), (16, 1), (5, 4)])
def test_no_two_chunks_share_a_name(size: int, groups: int) -> None:
    for kind, chunks in (("all_gather", size), ("all_to_all", size * size)):
        pattern = Pattern(kind, (size,))
        run = run_of_chunks(pattern, chunks)
        names = [chunk_name(run, c, g) for g in range(groups) for c in range(chunks)]
        assert len(set(names)) == len(names)


def test_groups_that_run_together_have_colours_of_their_own() -> None:
    run = run_of_chunks(Pattern("all_gather", (4,)), 4)
    colours = {str(chunk_style(TRUECOLOR, run, chunk, group)) for group in range(4) for chunk in range(4)}
    assert len(colours) == 16
