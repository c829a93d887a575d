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


class Service(NamedTuple):
    """What DeepSeek says of its service, "DeepSeek-V3/R1 Inference System Overview", on H800 of 8 a node."""

    devices: int = 144
    length: int = 4989  # the average of tokens in the cache
    tokens_per_s_of_node: int = 14_800
    tokens_per_s: float = 21.0  # of one sequence, "20-22"

    @property
    def batch(self) -> int:
        """The sequences of a GPU that follow."""
        return round(self.tokens_per_s_of_node / 8 / self.tokens_per_s)


SERVICE = Service()


def service_row() -> str:
    """The line of the table, with the weights in f8 and H100s, which have faster links in a node."""
    import shardviz

    step = shardviz.serving(
        "deepseek-v3", rules="expert", mesh={"expert": SERVICE.devices},
        machine=f"h100:{SERVICE.devices // 8}x8", dtype="f8e4m3fn", activations="bf16",
        batch=SERVICE.batch * SERVICE.devices, sequence=SERVICE.length,
    ).decode.step  # fmt: skip
    published = 1 / SERVICE.tokens_per_s
    times = "|".join(f"{each * 1e3:.3g}" for each in (published, step.seconds, step.overlapped_seconds))
    head = f"{SERVICE.devices} H800|{SERVICE.batch} × {SERVICE.length:,}"
    return f"|{head}|{times}|{step.seconds / published:.2f}|"


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
