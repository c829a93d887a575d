"""`--style jax` is what JAX itself prints; JAX is asked, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from shardviz.errors import QuestionError
from shardviz.notation import Context, parse_mesh, read_sharding
from shardviz.render.layouts.layout_view import jax_style
from shardviz.sharding import Layout, ShardedArray

SPECS_2D = ["X _", "_ X", "Y _", "_ Y", "X Y", "Y X", "(X Y) _", "_ (X Y)", "(Y X) _", "_ (Y X)", "_ _"]
CASES = [
    *(((8, 16), "X=2,Y=4", spec, 80) for spec in SPECS_2D),
    *(((16384, 16384), "X=2,Y=4", spec, 80) for spec in SPECS_2D),
    *(((16,), "X=2,Y=4", spec, 80) for spec in ("X", "Y", "(X Y)", "(Y X)", "_")),
    ((16384, 16384), "axis=4", "_ axis", 80),
    ((16384, 16384), "axis=4", "axis _", 80),
    ((8192, 8192), "x=2,y=2", "y x", 80),
    ((4, 4000), "X=2,Y=4", "X Y", 80),
    ((4000, 4), "X=2,Y=4", "X Y", 80),
    ((24, 40), "X=2,Y=4", "X Y", 40),
    ((24, 40), "X=8", "_ X", 80),
    ((24, 40), "X=8", "_ X", 30),
    ((30, 20), "a=3,b=2", "a b", 80),
    ((6,), "a=6", "a", 80),
    ((32, 16), "X=2,Y=2,Z=2", "(X Z) Y", 80),
    ((32, 16), "X=2,Y=2,Z=2", "Z _", 120),
    ((1, 8), "X=8", "_ X", 80),
]

ASK_JAX = """
import contextlib, io, json, os, sys
os.environ['JAX_PLATFORMS'] = 'cpu'
os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=8'
import jax, numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec
answers = []
for shape, axes, spec, width in json.load(sys.stdin):
    sizes = tuple(axes.values())
    devices = numpy.array(jax.devices()[:numpy.prod(sizes)]).reshape(sizes)
    sharding = NamedSharding(Mesh(devices, tuple(axes)), PartitionSpec(*[tuple(dim) or None for dim in spec]))
    array = jax.device_put(numpy.zeros(shape, numpy.int8), sharding)
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        jax.debug.visualize_array_sharding(array, use_color=False, max_width=width)
    answers.append(page.getvalue())
print(json.dumps(answers))
"""


def layout_of(shape: tuple[int, ...], mesh: str, spec: str) -> Layout:
    where = parse_mesh(mesh)
    reading = read_sharding(spec, Context(where, len(shape)))
    return Layout(ShardedArray("A", reading.dim_names, shape, "s8", reading.spec), where)


@pytest.fixture(scope="module")
def printed_by_jax() -> list[str]:
    questions = []
    for shape, mesh, spec, width in CASES:
        layout = layout_of(shape, mesh, spec)
        questions.append((shape, layout.mesh.shape, layout.spec.dims, width))
    answer = subprocess.run(
        [sys.executable, "-c", ASK_JAX],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    printed: list[str] = json.loads(answer.stdout)
    return printed


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda n: f"{CASES[n][0]} {CASES[n][1]} {CASES[n][2]}"
)
def test_equal_to_jax(number: int, printed_by_jax: list[str]) -> None:
    shape, mesh, spec, width = CASES[number]
    assert jax_style(layout_of(shape, mesh, spec), "CPU", width) == printed_by_jax[number]


def test_the_tutorial_picture() -> None:
    """The picture of the tutorial, made on TPUs."""
    assert jax_style(layout_of((16384, 16384), "axis=4", "axis _"), "TPU") == (
        "┌───────────────────────┐\n"
        "│         TPU 0         │\n"
        "├───────────────────────┤\n"
        "│         TPU 1         │\n"
        "├───────────────────────┤\n"
        "│         TPU 2         │\n"
        "├───────────────────────┤\n"
        "│         TPU 3         │\n"
        "└───────────────────────┘\n"
    )


@pytest.mark.parametrize(
    ("shape", "mesh", "spec", "said"),
    [
        ((), "X=2", "()", "rank 1 and 2, and A has 0 dimensions"),
        ((2, 2, 2), "X=2", "X _ _", "rank 1 and 2, and A has 3 dimensions"),
        ((3, 4), "X=2", "X _", "JAX refuses this array: I=3 does not divide by 2"),
        ((0, 4), "X=2", "X _", "no elements"),
        ((2**30, 4), "X=8192", "X _", "lists every device, and the mesh X=8192 has 8,192"),
    ],
)
def test_what_jax_cannot_draw(shape: tuple[int, ...], mesh: str, spec: str, said: str) -> None:
    with pytest.raises(QuestionError) as caught:
        jax_style(layout_of(shape, mesh, spec))
    assert said in caught.value.message
    assert caught.value.hint
