"""Published training runs beside the step that `shardviz.model` estimates for the same model, mesh and batch.

A published rate becomes the seconds of a step. `python tests/benchmarks/training_runs.py` writes the page
docs/training-runs.md.
"""

from __future__ import annotations

import json
import math
import re
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shardviz.models.answer import ModelStep

PAGE = Path(__file__).parents[2] / "docs" / "training-runs.md"
TEMPLATE = Path(__file__).with_name("training_runs_page.md")

MAXTEXT = "MaxText, configs/{v4,v5e,v5p}/README.md of December 2023"
A3 = "MaxText, configs/a3/llama_2_7b/README.md of April 2024"
RECIPES = "AI-Hypercomputer/tpu-recipes, training/"
TIERS = "MaxText, docs/reference/models/tiering.md"
TITAN = "torchtitan, benchmarks/"
MPT = "llm-foundry, scripts/train/benchmarking/README.md"
SOURCES = [MAXTEXT, TIERS, RECIPES, A3, TITAN, MPT]


class Run(NamedTuple):
    """A published run; its rate as the source has it: seconds, tokens/s per device, or TFLOP/s per device."""

    model: str  # a name of the catalogue, or of `SIZES`
    machine: str
    mesh: str
    rules: str
    batch: int  # sequences of a step, all devices together
    sequence: int
    remat: str
    source: str
    seconds: float = 0.0
    tokens: float = 0.0
    tflops: float = 0.0

    @property
    def devices(self) -> int:
        return math.prod(int(axis.split("=")[1]) for axis in self.mesh.split(","))

    @property
    def published(self) -> float:
        """Seconds of a step."""
        if self.seconds:
            return self.seconds
        tokens = self.batch * self.sequence / self.devices
        if self.tokens:
            return tokens / self.tokens
        return tokens * SIZES[self.model].flops_per_token(self.sequence) / (self.tflops * 1e12)


class Size(NamedTuple):
    """A decoder whose MLP has two matrices; the estimate takes a gated one of three with the same FLOPs."""

    width: int
    heads: int
    mlp: int
    layers: int
    head_size: int = 256
    vocabulary: int = 32_768
    is_tied: bool = False
    kv_heads: int = 0  # as many as heads, unless said

    def config(self) -> dict[str, object]:
        return {
            "model_type": "llama", "hidden_size": self.width, "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads or self.heads, "head_dim": self.head_size,
            "num_hidden_layers": self.layers,
            "intermediate_size": round(self.mlp * 2 / 3 / 512) * 512, "vocab_size": self.vocabulary,
            "torch_dtype": "bfloat16", "tie_word_embeddings": self.is_tied,
        }  # fmt: skip

    def flops_per_token(self, sequence: int) -> float:
        """As MaxText counted in 2023: 6 per parameter, and causal attention."""
        width = self.heads * self.head_size
        layer = 4 * self.width * width + 2 * self.width * self.mlp
        return (
            6 * (self.layers * layer + 2 * self.vocabulary * self.width) + 6 * sequence * width * self.layers
        )


SIZES = {
    "16B": Size(5120, 32, 32_768, 32),
    "32B": Size(10_240, 32, 32_768, 32),
    "64B": Size(10_240, 32, 32_768, 64),
    "128B": Size(10_240, 64, 65_536, 64),
    "256B": Size(20_480, 64, 65_536, 64),
    "512B": Size(20_480, 64, 65_536, 128),
    "1024B": Size(20_480, 128, 131_072, 128),
    "22B": Size(6144, 24, 24_576, 48),
    "52B": Size(12_288, 32, 49_152, 32),
    "llama-2-7b": Size(4096, 32, 11_008 * 3 // 2, 32, 128, 32_000),
    "mpt-3b": Size(2560, 20, 10_240, 32, 128, 50_368, is_tied=True),
    "mpt-7b": Size(4096, 32, 16_384, 32, 128, 50_368, is_tied=True),
    "mpt-13b": Size(5120, 40, 20_480, 40, 128, 50_368, is_tied=True),
    "mpt-30b": Size(7168, 56, 28_672, 48, 128, 50_368, is_tied=True),
    "mpt-70b": Size(8192, 64, 32_768, 80, 128, 50_368, is_tied=True),
    "gpt-145b": Size(12_288, 96, 49_152, 80, 128, 51_200, is_tied=True),
    "gpt-530b": Size(20_480, 128, 81_920, 105, 160, 51_200, is_tied=True),
    "gpt-1t": Size(25_600, 160, 102_400, 128, 160, 51_200, is_tied=True),
    "gspmd-128b": Size(8192, 128, 65_536 * 3 // 2, 64, 128, 32_000, is_tied=True),
    "palm-540b": Size(18_432, 48, 73_728 * 3 // 2, 118, 256, 256_000, is_tied=True, kv_heads=1),
}  # fmt: skip

FSDP_TENSOR = "fsdp+tensor"
RUNS = [
    Run("16B", "v5e:16x16", "data=256", "fsdp", 6 * 256, 2048, "layer", MAXTEXT, tflops=120),
    Run("32B", "v5e:16x16", "data=256", "fsdp", 4 * 256, 2048, "layer", MAXTEXT, tflops=132),
    Run("64B", "v5e:16x16", "data=256", "fsdp", 2 * 256, 2048, "layer", MAXTEXT, tflops=118),
    Run("128B", "v5e:16x16", "data=16,tensor=16", FSDP_TENSOR, 256, 2048, "layer", MAXTEXT, tflops=110),
    Run("32B", "v5p:4x4x4", "data=16,tensor=4", FSDP_TENSOR, 8 * 64, 2048, "dots", MAXTEXT, tflops=328),
    Run("64B", "v5p:4x4x4", "data=16,tensor=4", FSDP_TENSOR, 4 * 64, 2048, "dots", MAXTEXT, tflops=323),
    Run("128B", "v5p:4x4x8", "data=16,tensor=8", FSDP_TENSOR, 2 * 128, 2048, "dots", MAXTEXT, tflops=315),
    Run("128B", "v5p:4x8x8", "data=32,tensor=8", FSDP_TENSOR, 2 * 256, 2048, "dots", MAXTEXT, tflops=316),
    Run("256B", "v5p:8x8x8", "data=64,tensor=8", FSDP_TENSOR, 2 * 512, 2048, "dots", MAXTEXT, tflops=308),
    Run("512B", "v5p:8x8x8", "data=32,tensor=16", FSDP_TENSOR, 2 * 512, 2048, "layer", MAXTEXT, tflops=294),
    Run("1024B", "v5p:8x8x16", "data=64,tensor=16", FSDP_TENSOR, 2048, 2048, "layer", MAXTEXT, tflops=254),
    Run("1024B", "v5p:8x16x16", "data=128,tensor=16", FSDP_TENSOR, 4096, 2048, "layer", MAXTEXT, tflops=297),
    Run("llama-2-70b", "v5p:8x8x8", "data=512", "fsdp", 4 * 512, 4096, "dots", TIERS, tokens=692),
    Run("22B", "v4:4x4x4", "data=64", "fsdp", 16 * 64, 2048, "layer", MAXTEXT, tflops=156),
    Run("52B", "v4:4x4x12", "data=192", "fsdp", 10 * 192, 2048, "layer", MAXTEXT, tflops=154),
    Run("llama-2-70b", "v6e:16x16", "data=256", "fsdp", 512, 4096, "layer", RECIPES, seconds=9.052),
    Run("llama-3.1-8b", "v6e:2x4", "data=8", "fsdp", 24, 8192, "layer", RECIPES, seconds=3.443),
    Run("llama-3.1-8b", "v6e:4x8", "data=32", "fsdp", 96, 8192, "layer", RECIPES, seconds=3.495),
    Run("llama-3.1-8b", "v6e:16x16", "data=256", "fsdp", 1024, 8192, "layer", RECIPES, seconds=4.546),
    Run("llama-3.1-70b", "v6e:4x8", "data=32", "fsdp", 64, 8192, "layer", RECIPES, seconds=17.790),
    Run("llama-3.1-70b", "v6e:8x16", "data=128", "fsdp", 512, 8192, "layer", RECIPES, seconds=34.786),
    Run("llama-3.1-70b", "v6e:16x16", "data=256", "fsdp", 1280, 8192, "layer", RECIPES, seconds=42.656),
    Run("mistral-7b", "v6e:2x4", "data=8", "fsdp", 48, 8192, "layer", RECIPES, seconds=6.320),
    Run("llama-3.1-70b", "tpu7x:4x4x4", "data=128", "fsdp", 256, 8192, "layer", RECIPES, seconds=12.20),
    Run("llama-3.1-70b", "tpu7x:4x8x8", "data=512", "fsdp", 1024, 8192, "layer", RECIPES, seconds=12.27),
    Run("llama-3.1-405b", "tpu7x:4x8x8", "data=512", "fsdp", 1536, 8192, "layer", RECIPES, seconds=98.34),
    Run("llama-2-7b", "h100:8", "data=8", "fsdp", 32, 4096, "dots", A3, tflops=492),
    Run("llama-2-7b", "h100:2x8", "replica=2,data=8", "fsdp", 64, 4096, "dots", A3, tflops=422),
    Run("llama-2-7b", "h100:8x8", "replica=8,data=8", "fsdp", 256, 4096, "dots", A3, tflops=409),
    Run("llama-2-7b", "h100:16x8", "replica=16,data=8", "fsdp", 512, 4096, "dots", A3, tflops=375),
    Run("llama-3.1-8b", "h100:8", "data=8", "fsdp", 16, 8192, "dots", TITAN, tokens=6667),
    Run("llama-3.1-8b", "h100:16x8", "data=128", "fsdp", 256, 8192, "dots", TITAN, tokens=6514),
    Run("llama-3.1-8b", "h100:8x8", "data=8,tensor=8", FSDP_TENSOR, 96, 8192, "dots", TITAN, tokens=4378),
    Run("llama-3.1-70b", "h100:32x8", "data=32,tensor=8", FSDP_TENSOR, 512, 8192, "layer", TITAN, tokens=597),
    Run("mpt-7b", "h100:8", "data=8", "fsdp", 48, 2048, "none", MPT, tokens=10_643),
    Run("mpt-7b", "h100:16x8", "data=128", "fsdp", 768, 2048, "none", MPT, tokens=10_475),
    Run("mpt-13b", "h100:16x8", "data=128", "fsdp", 2048, 2048, "layer", MPT, tokens=5080),
    Run("mpt-30b", "h100:16x8", "data=128", "fsdp", 1024, 2048, "layer", MPT, tokens=2199),
    Run("mpt-70b", "h100:16x8", "data=128", "fsdp", 1024, 2048, "layer", MPT, tokens=1058),
    Run("mpt-70b", "h100:64x8", "data=512", "fsdp", 4096, 2048, "layer", MPT, tokens=1007),
    Run("mpt-3b", "a100:8", "data=8", "fsdp", 80, 2048, "none", MPT, tokens=10_811),
    Run("mpt-7b", "a100:8", "data=8", "fsdp", 48, 2048, "none", MPT, tokens=4641),
    Run("mpt-7b", "a100:8", "data=8", "fsdp", 128, 4096, "layer", MPT, tokens=3684),
    Run("mpt-13b", "a100:8", "data=8", "fsdp", 80, 4096, "layer", MPT, tokens=2060),
    Run("mpt-70b", "a100:8x8", "data=64", "fsdp", 512, 2048, "layer", MPT, tokens=410),
]  # fmt: skip


def source_of(model: str, folder: Path) -> str:
    """A name of the catalogue, or the file of a configuration."""
    if model not in SIZES:
        return model
    place = folder / model
    place.mkdir(exist_ok=True)
    (place / "config.json").write_text(json.dumps(SIZES[model].config()))
    return str(place)


def estimate(run: Run, folder: Path) -> ModelStep:
    """Our step."""
    import shardviz
    from shardviz.sharding import Mesh

    axes = {name: int(size) for name, size in (axis.split("=") for axis in run.mesh.split(","))}
    report = shardviz.model(
        source_of(run.model, folder),
        rules=run.rules,
        mesh=Mesh(tuple(axes), tuple(axes.values()), tuple(range(run.devices))),
        machine=run.machine,
        batch=run.batch,
        sequence=run.sequence,
        inputs="P(('replica', 'data'), None)" if "replica" in axes else "",
        remat=run.remat,
        dtype="bf16",
    )
    return report.step


def row(run: Run, step: ModelStep) -> str:
    """A row of the page."""
    times = (run.published, step.published_seconds, step.overlapped_seconds, step.seconds)
    cells = [f"{seconds:.3g} s" for seconds in times]
    return (
        f"| {run.model} | `{run.machine}`, {run.mesh} | {run.batch:,} × {run.sequence:,} | "
        f"{' | '.join(cells[:2])} | {step.published_seconds / run.published:.2f} | {' | '.join(cells[2:])} |"
        f" {SOURCES.index(run.source) + 1} |"
    )


def page() -> str:
    """The page, with the share of the speed at peak that the runs of each chip reach."""
    reached: dict[str, list[float]] = {}
    ratios, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for run in RUNS:
            step = estimate(run, Path(folder))
            work = step.seconds - step.communication_seconds
            reached.setdefault(run.machine.split(":")[0], []).append(work / run.published)
            ratios.append(step.published_seconds / run.published)
            rows.append(row(run, step))
    shares = [
        f"| {chip} | {len(each)} | {statistics.median(each):.2f} | {min(each):.2f} to {max(each):.2f} |"
        for chip, each in reached.items()
    ]
    return TEMPLATE.read_text(encoding="utf-8").format(
        ratios=f"{statistics.median(ratios):.2f}, from {min(ratios):.2f} to {max(ratios):.2f}",
        shares="\n".join(shares),
        rows="\n".join(rows),
        sources="; ".join(f"{number} {source}" for number, source in enumerate(SOURCES, 1)),
    )


def errors() -> list[float]:
    """Ours over published, less 1, of the runs on the page."""
    return [
        float(ratio) - 1 for ratio in re.findall(r" s \| (\d\.\d\d) \|", PAGE.read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
