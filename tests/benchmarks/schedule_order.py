"""The first and the last three meshes of a search, and libtpu's own schedule of their programs."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shardviz.sharding import Mesh

MACHINE = "v5e:2x4"


class Searched(NamedTuple):
    """A program to search on the slice; `words` are those of `search_question`."""

    name: str
    program: str
    sizes: str
    words: dict[str, object] = {}  # noqa: RUF012


STEP = {"backward": True, "optimizer": "adam"}
MLP = "H = X[b,d] * W1[d,f]; Y = H * W2[f,d]"
PROBLEMS = (
    Searched("two matmuls", MLP, "b=4096,d=4096,f=16384"),
    Searched(
        "SwiGLU", "H = X[b,d] * W1[d,f]; G = X * W3[d,f]; Y = (silu(H) * G) * W2[f,d]",
        "b=2048,d=4096,f=14336",
    ),
    Searched("two matmuls with few tokens", MLP, "b=64,d=8192,f=28672"),
    Searched(
        "attention",
        "Q = X[b,t,d] * WQ[d,n,h]; K[b,s,n,h] = X[b,s,d] * WK[d,n,h]; V[b,s,n,h] = X[b,s,d] * WV[d,n,h]; "
        "A = attention(Q, K, V); Y[b,t,d] = A * WO[n,h,d]",
        "b=8,t=2048,s=2048,d=4096,n=32,h=128",
    ),
    Searched("train step of two matmuls", MLP, "b=8192,d=2048,f=8192", STEP),
)  # fmt: skip


class Ordered(NamedTuple):
    """The seconds of a row by the search, and by libtpu's schedule; nan where it does not fit."""

    mesh: str
    searched: float
    compiled: float


def ordered(problem: Searched) -> list[Ordered]:
    """The first and the last three rows."""
    from shardviz.answers.search import search_question
    from shardviz.compiler.worker import Worker
    from shardviz.hardware.machine_file import named_machine
    from shardviz.planner.search.mesh_ranking import search_meshes
    from shardviz.reports.trials import compiled_sharding, one_layer
    from shardviz.targets import parse_targets

    question = search_question(
        problem.program, named_machine(MACHINE), "data,fsdp,tensor", sizes=problem.sizes, **problem.words
    )
    *_, answer = search_meshes(question)
    rows = (*answer.found[:3], *answer.found[-3:])
    (target,) = parse_targets(MACHINE)
    with Worker(300) as worker:
        pending = [worker.submit(one_layer(question, row), target, with_costs=True) for row in rows]
        answers = [
            compiled_sharding(question, row, request.result())
            for row, request in zip(rows, pending, strict=True)
        ]
    return [
        Ordered(_named(row.mesh), row.time.seconds, answer.seconds or math.nan)
        for row, answer in zip(rows, answers, strict=True)
    ]


def _named(mesh: Mesh) -> str:
    """The axes of several devices."""
    return ", ".join(f"{axis}={size}" for axis, size in mesh.shape.items() if size > 1)


def lines() -> Iterator[str]:
    """The table of all problems."""
    head = "first three meshes, then the last three | by the search, ms | by libtpu, ms | pairs in one order"
    yield f"| program | {head} |"
    yield "|---|---|---|---|---|"
    for problem in PROBLEMS:
        rows = ordered(problem)
        pairs = [*itertools.product(rows[:3], rows[3:])]
        agree = sum(first.compiled <= last.compiled for first, last in pairs)
        cells = (
            "; ".join(row.mesh for row in rows),
            " ".join(f"{row.searched * 1e3:.3g}" for row in rows),
            " ".join(f"{row.compiled * 1e3:.3g}" for row in rows),
        )
        yield f"| {problem.name} | {' | '.join(cells)} | {agree} of {len(pairs)} |"


if __name__ == "__main__":
    for line in lines():
        print(line)
        sys.stdout.flush()
