"""Shardings that published runs chose beside the first row of a search for the same model, machine and batch.

`python tests/benchmarks/published_choices.py` prints the table of docs/search.md.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shardviz.planner.search.mesh_ranking import MeshRanking

DECODER = """
Q[b,t,n,h] = X[b,t,d] * WQ[d,n,h]
K = X[b,s,d] * WK[d,n,h]
V = X[b,s,d] * WV[d,n,h]
O = causal_attention(Q, K, V)
Z[b,t,d] = X + O * WO[n,h,d]
H = Z * W1[d,f]
Y[b,t,d] = Z + gelu(H) * W2[f,d]
"""
"""A layer without norms, whose MLP has two matrices."""


class Choice(NamedTuple):
    """A published run: its mesh, in the words of a search over the `axes`."""

    name: str
    model: str  # a name of the catalogue or of `training_runs.SIZES`, or a program
    machine: str
    axes: str
    mesh: str
    batch: int
    sequence: int
    source: str
    sizes: str = ""
    remat: str = "layer"

    def ranking(self) -> MeshRanking:
        """The search's answer."""
        import training_runs

        from shardviz.answers.search import search_question
        from shardviz.hardware.machine_file import named_machine
        from shardviz.planner.search.mesh_ranking import best_meshes

        words: dict[str, object] = {"batch": self.batch, "sequence": self.sequence}
        if self.sizes:
            tokens = f"b={self.batch},t={self.sequence},s={self.sequence}"
            words = {"sizes": f"{self.sizes},{tokens}"}
        with tempfile.TemporaryDirectory() as folder:
            program = self.model if self.sizes else training_runs.source_of(self, Path(folder))
            question = search_question(
                program,
                named_machine(self.machine),
                self.axes,
                backward=True,
                remat=self.remat,
                optimizer="adam",
                **words,
            )
        return best_meshes(question)


def decoder(layers: int, width: int, heads: int, size: int) -> tuple[str, str]:
    """The program of a decoder and its sizes."""
    return f"{DECODER.strip()} x {layers}", f"d={width},f={4 * width},n={heads},h={size}"


GPT, GPT_SIZES = decoder(80, 12_288, 96, 128)
PALM, PALM_SIZES = decoder(118, 18_432, 48, 256)
STAGED, GATHERED = "pipeline,data,tensor", "data,fsdp,tensor"
META, MAXTEXT, NVIDIA, GOOGLE = "Llama 3, table 4", "MaxText", "Megatron-LM 2021, table 1", "PaLM, section 4"
CHOICES = [
    Choice("Llama 2 70B", "llama-2-70b", "v5p:8x8x8", GATHERED, "fsdp=512", 2048, 4096, MAXTEXT, "", "dots"),
    Choice("128B", "128B", "v5p:4x4x8", GATHERED, "fsdp=16,tensor=8", 256, 2048, MAXTEXT, "", "dots"),
    Choice("PaLM 540B", PALM, "2*v4:12x16x16", "data=2,fsdp,tensor", "data=2,fsdp=256,tensor=12", 2048, 2048,
           GOOGLE, PALM_SIZES),
    Choice("GPT 145B", GPT, "a100:192x8", STAGED, "pipeline=8,data=24,tensor=8", 2304, 2048,
           NVIDIA, GPT_SIZES),
    Choice("Llama 3.1 405B", "llama-3.1-405b", "h100:1024x8", STAGED, "pipeline=16,data=64,tensor=8",
           2048, 8192, META),
]  # fmt: skip


def row(choice: Choice) -> str:
    """A line of the table: the first row of the search, and where the published mesh stands."""
    from shardviz.planner.search.mesh_ranking import without_ones

    answer = choice.ranking()
    # Axes in any order: those in front cross the nodes.
    meshes = [str(without_ones(found.mesh)) for found in answer.found]
    orders = [{*mesh.split(",")} for mesh in meshes]
    first = answer.found[0]
    chosen = [meshes[0], *([first.stage.words] if first.stage else [])]
    chosen += [f"optimizer over {', '.join(first.over)}"] * bool(first.over)
    place = "ruled out"
    if (published := {*choice.mesh.split(",")}) in orders:
        own = answer.found[orders.index(published)]
        place = f"row {orders.index(published) + 1}, {own.seconds / first.seconds:.2f} × its seconds"
    ruled = {str(without_ones(each.mesh)): each.reason for each in answer.infeasible}
    place = ruled.get(choice.mesh, place)
    cells = (choice.name, f"`{choice.machine}`", choice.mesh, "; ".join(chosen), place, choice.source)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    for choice in CHOICES:
        if choice.name in (sys.argv[1:] or [choice.name]):
            print(row(choice), flush=True)
