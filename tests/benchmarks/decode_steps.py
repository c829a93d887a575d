"""Published decode steps beside those of `shardviz.serving` for the same model, GPUs and batch."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import training_runs

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


class Batch(NamedTuple):
    """A published step of a `batch`, on a mesh in the words of the command line: tokens/s of all sequences,
    or the `seconds` of a token, or of a prompt alone."""

    model: str
    machine: str
    mesh: str
    batch: int
    sequence: int  # tokens in the cache, the mean of the run
    source: int  # of `SOURCES`
    tokens_per_s: float = 0.0
    seconds: float = 0.0
    dtype: str = ""
    cache: str = ""
    is_prompt: bool = False

    @property
    def published(self) -> float:
        """Seconds of a step."""
        return self.seconds or self.batch / self.tokens_per_s


SOURCES = (
    "TensorRT-LLM 0.5, performance.md",
    "LMDeploy 0.1, benchmark/a100_fp16.md",
    "Pope and others 2022, table 2 and section 4.4",
)
BATCHES = (
    Batch("llama-2-7b", "h100:1", "tensor=1", 64, 1152, 1, 5367, dtype="f8e4m3fn", cache="f8e4m3fn"),
    Batch("llama-2-70b", "h100:4", "tensor=4", 64, 1152, 1, 2616, dtype="f8e4m3fn", cache="f8e4m3fn"),
    Batch("llama-2-7b", "a100:1", "tensor=1", 32, 1152, 1, 1459),
    Batch("llama-2-70b", "a100:4", "tensor=4", 64, 1152, 1, 1181),
    Batch("llama-2-7b", "a100:1", "tensor=1", 16, 1152, 2, 1010.62),
    Batch("llama-2-70b", "a100:4", "tensor=4", 16, 1152, 2, 482.99),
    Batch("llama-2-70b", "a100:4", "tensor=4", 64, 1152, 2, 1391.80),
    Batch("palm-540b", "v4:4x4x4", "fsdp=4, tensor=16", 64, 2048, 3, seconds=28.5e-3, dtype="int8"),
    Batch("palm-540b", "v4:4x4x4", "fsdp=4, tensor=16", 64, 2048, 3, seconds=36.9e-3),
    Batch("palm-540b", "v4:4x4x4", "fsdp=4, tensor=16", 512, 2048, 3, seconds=6.0 / 64),
    Batch("llama-2-7b", "a100:1", "tensor=1", 1, 2048, 1, seconds=0.133, is_prompt=True),
    Batch("llama-2-70b", "a100:4", "tensor=4", 1, 2048, 1, seconds=0.377, is_prompt=True),
    Batch("llama-2-70b", "h100:4", "tensor=4", 1, 2048, 1, seconds=0.109, dtype="f8e4m3fn", is_prompt=True),
    Batch("palm-540b", "v4:4x4x4", "fsdp=4, tensor=16", 1, 2048, 3, seconds=0.29, dtype="int8",
          is_prompt=True),
)  # fmt: skip


@functools.cache
def batch_step(run: Batch) -> ModelStep:
    """Our step. Along two axes the weights stay where they are, sharded in both dimensions."""
    import shardviz

    axes = {name: int(size) for name, size in (axis.split("=") for axis in run.mesh.split(", "))}
    with tempfile.TemporaryDirectory() as folder:
        answer = shardviz.serving(
            training_runs.source_of(run.model, Path(folder)), rules="+".join(axes), mesh=axes,
            machine=run.machine, dtype=run.dtype, cache=run.cache, batch=run.batch, sequence=run.sequence,
            inputs="P(None, None)",
        )  # fmt: skip
    return answer.prefill if run.is_prompt else answer.decode.step


def batch_errors() -> list[float]:
    """Of each batch and prompt, our seconds without overlap over the published ones, less 1."""
    return [batch_step(run).seconds / run.published - 1 for run in BATCHES]


def batch_rows() -> Iterator[str]:
    """The lines of the table of batches and prompts."""
    for run in BATCHES:
        step = batch_step(run)
        times = (f"{each * 1e3:.3g}" for each in (run.published, step.seconds, step.overlapped_seconds))
        weights = run.model + f", {run.dtype.removesuffix('e4m3fn')}" * bool(run.dtype)
        what = f"prompt of {run.sequence:,}" if run.is_prompt else f"{run.batch} × {run.sequence:,}"
        cells = weights, f"`{run.machine}`, {run.mesh}", what, *times
        yield f"| {' | '.join(cells)} | {step.seconds / run.published:.2f} | {run.source} |"


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
