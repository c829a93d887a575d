"""Published decode steps beside those of `shardviz.serving` for the same model, GPUs and batch."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shardviz.models.answer import ModelStep

SOURCE = "gpt-fast, README.md, Benchmarks"
SEQUENCE = 128
"""Tokens in the cache, about: prompts had 5, and 200 new ones are gpt-fast's default."""


class Run(NamedTuple):
    """A published rate of one sequence over so many A100s."""

    model: str
    devices: int
    tokens_per_s: float
    dtype: str = ""  # of the weights; the model's bf16, unless another is named


RUNS = (
    Run("llama-2-7b", 1, 104.9),
    Run("llama-2-7b", 4, 254.02),
    Run("llama-2-7b", 8, 328.43),
    Run("llama-2-70b", 2, 21.32),
    Run("llama-2-70b", 4, 38.01),
    Run("llama-2-70b", 8, 62.50),
    Run("llama-2-70b", 8, 80.44, "int8"),
    Run("llama-3.1-8b", 8, 276.01),
    Run("llama-3.1-70b", 8, 58.78),
    Run("llama-3.1-405b", 8, 15.60, "int8"),
)


@functools.cache
def estimate(run: Run) -> ModelStep:
    """Our step."""
    import shardviz

    return shardviz.serving(
        run.model, rules="tensor", mesh={"tensor": run.devices}, machine=f"a100:{run.devices}",
        dtype=run.dtype, batch=1, sequence=SEQUENCE,
    ).decode.step  # fmt: skip


def errors() -> list[float]:
    """Of each run, our seconds without overlap over the published ones, less 1."""
    return [estimate(run).seconds * run.tokens_per_s - 1 for run in RUNS]


def rows() -> Iterator[str]:
    """The lines of the table."""
    for run in RUNS:
        step, published = estimate(run), 1 / run.tokens_per_s
        times = "|".join(f"{each * 1e3:.3g}" for each in (published, step.seconds, step.overlapped_seconds))
        model = f"{run.model}, int8" if run.dtype else run.model
        yield f"|{model}|{run.devices}|{times}|{step.seconds / published:.2f}|"
