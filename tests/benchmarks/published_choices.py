"""Shardings that published runs chose beside the first row of a search for the same model, machine, batch.

`python tests/benchmarks/published_choices.py` prints the table of docs/search.md, or the rows of the runs
that are named.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import training_runs

if TYPE_CHECKING:
    from shardviz.planner.search.mesh_choices import MeshSharding
    from shardviz.planner.search.mesh_ranking import MeshRanking
    from shardviz.planner.search.question import Overlap


class Choice(NamedTuple):
    """A published run: its mesh, in the words of a search over the `axes`, and the seconds of its step."""

    name: str
    model: str  # a name of the catalogue or of `training_runs.SIZES`
    machine: str
    axes: str
    mesh: str
    batch: int
    sequence: int
    why: str
    seconds: float = 0.0  # those of `training_runs.RUNS`, unless given
    remat: str = "layer"
    optimizer: str = "adam,moments=f32"
    overlap: Overlap = "parameters"

    @property
    def published(self) -> float:
        """Seconds of a step."""
        same = (run for run in training_runs.RUNS if (run.model, run.machine) == (self.model, self.machine))
        return self.seconds or next(same).published

    def ranking(self, axes: str = "") -> MeshRanking:
        """The search's answer, for other `axes` if given."""
        from shardviz.answers.search import search_question
        from shardviz.hardware.machine_file import named_machine
        from shardviz.planner.search.mesh_ranking import best_meshes

        with tempfile.TemporaryDirectory() as folder:
            question = search_question(
                training_runs.source_of(self.model, Path(folder)),
                named_machine(self.machine),
                axes or self.axes,
                backward=True,
                remat=self.remat,
                optimizer=self.optimizer,
                offload="none",
                overlap=self.overlap,
                batch=self.batch,
                sequence=self.sequence,
            )
        return best_meshes(question)


def megatron(model: str, batch: int, gpus: int, tflops: float) -> float:
    """Seconds of a step of 2,048 tokens a sequence: equation 3 of Narayanan and others, which counts what is
    computed again, over the FLOP/s of each GPU."""
    size, tokens = training_runs.SIZES[model], 2048
    width, layers = size.width, size.layers
    shares = 1 + tokens / (6 * width) + size.vocabulary / (16 * layers * width)
    return 96 * batch * tokens * layers * width**2 * shares / (gpus * tflops * 1e12)


def llama_405b(gpus: int, sequence: int, tflops: float) -> float:
    """Seconds of a step of 16 M tokens: FLOPs as PaLM's appendix B counts them, 6 per parameter, and all
    pairs of attention."""
    return 2**24 * (6 * 405e9 + 12 * 126 * 16_384 * sequence) / (gpus * tflops * 1e12)


STAGED, GATHERED = "pipeline,data,tensor=8", "data,fsdp,tensor"
WAITS = "the search waits for what a tensor axis sends; where that overlaps, the rows are close"
NO_ZERO = "ZeRO-1 lets fewer stages hold it; Megatron-LM had none then"
FEWER = "by the search's estimate fewer stages hold it, and wait less"
LATER = "with `--overlap none`; with overlap the search takes fewer tensor ways"
SAME = "the same"
SENDS = "its tokens go to 4 nodes at most, in f8, beside its work; the search waits for them, within a node"
TWICE = "twice the sequence ways leave twice the microbatches, which wait half as long"
CHOICES = (
    Choice("128B, MaxText", "128B", "v5e:16x16", GATHERED, "fsdp=16, tensor=16", 256, 2048, WAITS),
    Choice(
        "128B, MaxText", "128B", "v5p:4x4x8", GATHERED, "fsdp=16, tensor=8", 256, 2048, WAITS, remat="dots"
    ),
    Choice(
        "1024B, MaxText", "1024B", "v5p:8x16x16", "fsdp,tensor", "fsdp=128, tensor=16", 4096, 2048, WAITS
    ),
    Choice(
        "Llama 2 70B, MaxText", "llama-2-70b", "v5p:8x8x8", GATHERED, "fsdp=512", 2048, 4096,
        SAME, remat="dots",
    ),
    Choice("Llama 2 70B, MaxText", "llama-2-70b", "v6e:16x16", GATHERED, "fsdp=256", 512, 4096, SAME),
    Choice(
        "GSPMD 128B", "gspmd-128b", "v3:16x16", GATHERED, "fsdp=16, tensor=32", 128, 1024, LATER,
        128 * 1024 / 18_000, optimizer="sgd", overlap="none",
    ),
    Choice(
        "GSPMD 128B", "gspmd-128b", "v3:32x32", GATHERED, "fsdp=32, tensor=64", 512, 1024, LATER,
        512 * 1024 / 62_000, optimizer="sgd", overlap="none",
    ),
    Choice(
        "PaLM 540B", "palm-540b", "2*v4:12x16x16", "data=2,fsdp,tensor", "data=2, fsdp=256, tensor=12",
        2048, 2048, WAITS, 2048 * 2048 / 238_300,
    ),
    Choice(
        "GPT 145B, Megatron-LM", "gpt-145b", "a100:192x8", STAGED, "pipeline=8, data=24, tensor=8",
        2304, 2048, NO_ZERO, megatron("gpt-145b", 2304, 1536, 148),
    ),
    Choice(
        "GPT 530B, Megatron-LM", "gpt-530b", "a100:315x8", STAGED, "pipeline=35, data=9, tensor=8",
        2520, 2048, FEWER, megatron("gpt-530b", 2520, 2520, 163),
    ),
    Choice(
        "GPT 1T, Megatron-LM", "gpt-1t", "a100:384x8", STAGED, "pipeline=64, data=6, tensor=8",
        3072, 2048, FEWER, megatron("gpt-1t", 3072, 3072, 163),
    ),
    Choice(
        "Llama 3.1 405B", "llama-3.1-405b", "h100:1024x8", STAGED, "pipeline=16, data=64, tensor=8",
        2048, 8192, SAME, llama_405b(8192, 8192, 430), "dots",
    ),
    Choice(
        "Llama 3.1 405B", "llama-3.1-405b", "h100:2048x8", STAGED, "pipeline=16, data=128, tensor=8",
        2048, 8192, SAME, llama_405b(16_384, 8192, 400), "dots",
    ),
    Choice(
        "Llama 3.1 405B, 131,072 tokens", "llama-3.1-405b", "h100:2048x8",
        "pipeline=16,sequence,data,tensor=8", "pipeline=16, sequence=16, data=8, tensor=8",
        128, 131_072, TWICE, llama_405b(16_384, 131_072, 380), "dots",
    ),
    Choice(
        "DeepSeek-V3", "deepseek-v3", "h100:256x8", "pipeline=16,data,expert",
        "pipeline=16, data=2, expert=64",
        15_360, 4096, SENDS, 2.664e6 * 3600 / 2048 / (14.8e12 / (15_360 * 4096)),
    ),
)  # fmt: skip
"""From MaxText and its sizes as `training_runs` has them; lingvo, `synthetic_packed_input.py`, by GSPMD's
authors (the moments of its Adafactor are small: sgd stands for it); PaLM, sections 4 and 4.1; Narayanan and
others 2021, table 1; Llama 3, table 4, which had no remat, but kernels that fuse norms and SwiGLU keep as
little as "dots"; DeepSeek-V3, sections 1, 3.2 and 4.2."""


def words(found: MeshSharding) -> str:
    """A row's mesh and what was chosen with it."""
    from shardviz.planner.search.meshes import without_ones

    chosen = [mesh_words(without_ones(found.mesh)), *([found.stage.words] if found.stage else [])]
    return "; ".join(
        [*chosen, *[f"optimizer over {', '.join(found.optimizer.over)}"] * bool(found.optimizer.over)]
    )


def mesh_words(mesh: object) -> str:
    return ", ".join(f"{axis}={size}" for axis, size in mesh.shape.items())


def row(choice: Choice) -> str:
    """A line of the table: the first row of the search, and where the published mesh stands."""
    from shardviz.planner.search.meshes import without_ones

    answer = choice.ranking()
    # Axes in any order: those in front cross the nodes.
    orders = [{*mesh_words(without_ones(found.mesh)).split(", ")} for found in answer.found]
    place, own = "ruled out", None
    if (published := {*choice.mesh.split(", ")}) in orders:
        number = orders.index(published)
        own = answer.found[number]
        place = f"{number + 1} of {len(orders)}"
        fastest = min(found.overlapped_seconds for found in answer.found)
        factors = own.seconds / answer.found[0].seconds, own.overlapped_seconds / fastest
        place += ", {:.2f} ×; {:.2f} ×".format(*factors) * bool(number)
    ours = f"{own.published_seconds or own.seconds:.3g} s" if own else ""
    cells = (
        choice.name, f"`{choice.machine}`", f"`{choice.axes}`", choice.mesh, words(answer.found[0]), place,
        f"{choice.published:.3g} s", ours, choice.why,
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    for choice in CHOICES:
        if choice.name in (sys.argv[1:] or [choice.name]):
            print(row(choice), flush=True)
