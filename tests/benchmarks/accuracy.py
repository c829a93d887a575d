"""Published times beside shardviz's: ``python tests/benchmarks/accuracy.py`` writes ``docs/accuracy.md``, and
all cases to ``docs/accuracy-cases.md``.

Each case of the table `CASES` is a question with a published answer, the commands that ask shardviz the same,
and the figure in their JSON documents that answers it.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import re
import shlex
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import decode_steps
import matmul_fit
import nccl_errors
import training_runs

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "accuracy.md"
PICTURE = PAGE.with_name("nccl-errors.svg")
CASES_PAGE = PAGE.with_name("accuracy-cases.md")
TEMPLATE = Path(__file__).with_name("accuracy_page.md")
"""The page, with {names} where the tables belong."""
CASES_TEMPLATE = Path(__file__).with_name("accuracy_cases_page.md")
PROGRAMS = "tests/benchmarks/programs"
LIBTPU = "0.0.42.1"
"""The release that compiled them: the one that jax 0.10 asks for."""

Document = dict[str, Any]
Figure = Callable[..., float]
"""Finds a figure in the documents of a case's commands, which it takes one by one."""

UNITS = {"s": 1.0, "ms": 1e3, "µs": 1e6, "ns": 1e9, "days": 1 / 86400}
"""How many of a unit are a second. Figures in other units are shown as they are."""
FORMULA, MEASURED, DOUBTED = "formula", "measured", "doubted"


@dataclass(frozen=True)
class Case:
    """A question with a published answer.

    `published` is that answer as it is printed, in `unit`. A "formula" was computed by its author, a
    "measured" time was taken from real devices; a "doubted" one, too, but its reporter doubts it. `commands`
    ask shardviz, `figure` finds our answer, in seconds where `unit` is one of time, and `compiler` the
    compiler's own. `convention` says how both are counted, `source` is a key of `SOURCES`.
    """

    id: str
    question: str
    published: str
    unit: str
    kind: Literal["formula", "measured", "doubted"]
    commands: tuple[str, ...]
    figure: Figure
    convention: str
    source: str
    compiler: Callable[[], float] | None = None

    @property
    def theirs(self) -> float:
        """The published answer, in `unit`."""
        return float(self.published.replace(",", ""))

    @property
    def ours(self) -> float:
        """Our answer, in `unit`."""
        return self.figure(*map(answer, self.commands)) * UNITS.get(self.unit, 1.0)

    @property
    def error(self) -> float:
        """Ours over the published answer, less 1."""
        return self.ours / self.theirs - 1

    @property
    def is_met(self) -> bool:
        """Ours is within 1 % of the published answer, or it is that answer when rounded as that is."""
        digits = len(self.published.replace(",", "").replace(".", "").strip("0")) or 1
        rounded = float(f"{self.ours:.{digits - 1}e}")
        return abs(self.error) <= 0.01 or math.isclose(rounded, self.theirs)


@cache
def answer(command: str) -> Document:
    """The JSON document that a command prints. Raises `RuntimeError` where it fails."""
    from shardviz.cli.group import run

    printed = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(printed):
        code = run([*shlex.split(command)[1:], "--json"])
    if code:
        raise RuntimeError(f"{command}: exit code {code}")
    printed.seek(0)
    found: Document = json.load(printed)
    return found


BOOK = "https://jax-ml.github.io/scaling-book"
SOURCES = {
    "sharding": f"[How to Scale Your Model, sharded matrices]({BOOK}/sharding)",
    "tpus": f"[How to Scale Your Model, TPUs]({BOOK}/tpus)",
    "roofline": f"[How to Scale Your Model, rooflines]({BOOK}/roofline)",
    "training": f"[How to Scale Your Model, training]({BOOK}/training)",
    "applied training": f"[How to Scale Your Model, training LLaMA 3]({BOOK}/applied-training)",
    "applied inference": f"[How to Scale Your Model, serving LLaMA 3]({BOOK}/applied-inference)",
    "gpus": f"[How to Scale Your Model, GPUs]({BOOK}/gpus)",
    "profiling": f"[How to Scale Your Model, profiling]({BOOK}/profiling)",
    "jax": f"[How to Scale Your Model, programming TPUs in JAX]({BOOK}/jax-stuff)",
    "layers": "a post on multi-chip performance in JAX: four layers on a TPU v4-8",
    "astra-sim": "[ASTRA-sim](https://astra-sim.github.io), its analytical network and its collectives",
    "pallas": "[JAX, collective matmul in Pallas on GPUs]"
    "(https://docs.jax.dev/en/latest/pallas/gpu/collective_matmul.html)",
    "marin": "[marin #6736](https://github.com/marin-community/marin/issues/6736): v5p-8, v6e-8, 8 H100",
    "pytorch": "[PyTorch #195719](https://github.com/pytorch/pytorch/issues/195719): RCCL on MI355X",
    "benchmarks": "[accelerator-microbenchmarks #71]"
    "(https://github.com/AI-Hypercomputer/accelerator-microbenchmarks/issues/71)",
    "nccl-tests": "[NCCL's tests](https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md)",
}


# Figures in the documents.


def step(op: str, key: str = "seconds") -> Figure:
    """A figure of the first step of a plan with this operation."""

    def figure(explained: Document) -> float:
        return float(next(each[key] for each in explained["cost"]["steps"] if each["op"] == op))

    return figure


def textbook(op: str) -> Figure:
    """Seconds of a step as the book counts them: V bytes over the whole bandwidth, or the roofline."""
    return step(op, "textbook_seconds")


def serial(explained: Document) -> float:
    """Seconds of all steps of a plan, one after the other."""
    return float(explained["cost"]["serial_seconds"])


def perfect_overlap(explained: Document) -> float:
    """The longer of a plan's compute and communication."""
    return float(explained["cost"]["overlapped_seconds"])


def threshold(dim: str) -> Figure:
    """The size above which a plan is compute-bound."""

    def figure(explained: Document) -> float:
        return float(next(each["least"] for each in explained["cost"]["thresholds"] if each["dim"] == dim))

    return figure


def schedule(run: Document) -> float:
    """Seconds of all rounds of a collective, in which devices store a message before they forward it."""
    return float(run["seconds"])


def closed_form(run: Document) -> float:
    """Seconds of a collective by formula; a message is passed on while it comes in."""
    return float(run["closed_form"]["seconds"])


def total(read: Document) -> float:
    """Seconds of a compiled program."""
    return float(read["timeline"]["seconds"])


def collective(op: str) -> Figure:
    """Seconds of a compiled program's only collective of a kind."""

    def figure(read: Document) -> float:
        (found,) = (each["seconds"] for each in read["timeline"]["ops"] if each["op"] == op)
        return float(found)

    return figure


# The compiler's own figures.

CLOCKS = {"v2": 7.0e8, "v4": 1.05e9, "v5e": 1.5e9}
"""Hertz of the cycles that libtpu counts in."""


def cycles(name: str, chip: str) -> Callable[[], float]:
    """Seconds of all `estimated_cycles` in a program's text; there are none of collectives."""

    def figure() -> float:
        text = (ROOT / PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")
        entry = text[text.index("\nENTRY") :]
        return sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', entry))) / CLOCKS[chip]

    return figure


def scheduler(name: str) -> Callable[[], float]:
    """Seconds of a program by the compiler's latency-hiding scheduler, as it dumped them."""

    def figure() -> float:
        from shardviz.timeline.scheduler import read_schedule

        text = (ROOT / PROGRAMS / f"{name}.schedule.txt").read_text(encoding="utf-8")
        simulated = read_schedule(text)
        (entry,) = simulated.computations
        return simulated.seconds(entry.cycles)

    return figure


def program(name: str, mesh: str, machine: str) -> str:
    return f"shardviz hlo {PROGRAMS}/{name}.txt --mesh {mesh} --machine {machine} --time"


def explain(einsum: str, mesh: str, specs: str, sizes: str, machine: str = "", *more: str) -> str:
    """A question about a plan alone; without a machine v5e chips are assumed, and each axis a ring."""
    split = ["--specs", specs] if specs else []
    named = ["--machine", machine] if machine else []
    asked = ["shardviz", "explain", einsum, "--mesh", mesh, *split, "--sizes", sizes, *more]
    return shlex.join([*asked, *named, "--target", "none"])


def rounds(op: str, mesh: str, *more: str) -> str:
    """A question about one collective."""
    return shlex.join(["shardviz", "step", op, "--mesh", mesh, *more, "--on", "none"])


CUBE = "X=4,Y=4,Z=4"
_1024x4096 = "i=1024,j=4096"
ASTRA = ("--latency", "500ns", "--bandwidth", "50GiB/s")
"""ASTRA-sim's links. Its switch is a hop of its own: twice the latency from device to device."""
SWITCH = ("--latency", "1us", "--bandwidth", "50GiB/s", "--topology", "switch")
RING_THROUGH_A_SWITCH = (*SWITCH, "--algorithm", "ring")
RING = (*ASTRA, "--topology", "ring", "--algorithm", "ring")
MLP = "In[B_X, D_Y] *_D W_in[D_X, F_Y] *_F W_out[F_Y, D_X] -> Out[B_X, D_Y]"
LLAMA = "B=4194304,D=8192,F=28672"
POD = 8960
COLLECTIVE_MATMUL = "A[B_X, D_Y] * W[D, F_Y] -> Out[B_X, F_Y]"


def hidden_flops_per_byte(explained: Document) -> float:
    """The FLOPs per gathered byte at which the arithmetic takes as long as the gather."""
    steps = explained["cost"]["steps"]
    gather = next(
        (priced, planned)
        for priced, planned in zip(steps, explained["plan"]["steps"], strict=True)
        if priced["op"] == "all_gather"
    )
    matmul = next(each for each in steps if each["op"] == "einsum")
    bytes_per_second = gather[1]["bytes"] / gather[0]["textbook_seconds"]
    return float(matmul["flops"] / matmul["compute_seconds"] / bytes_per_second)


def best_fsdp_size(explained: Document) -> float:
    """The size of X at which gathering weights over it and activations over Y take the least together.

    Time over X grows with it, as each Y has fewer devices, and time over Y falls: their product stays.
    """
    sizes = dict(
        zip(*(explained["problem"]["mesh"][key] for key in ("axis_names", "axis_sizes")), strict=True)
    )
    spent = {"X": 0.0, "Y": 0.0}
    for each in explained["cost"]["steps"]:
        if each["axes"]:
            spent[each["axes"][0]] += each["textbook_seconds"]
    return math.sqrt(spent["Y"] * sizes["X"] / (spent["X"] * sizes["Y"]) * POD)


def at_peak(flops: float, devices: int, utilisation: float) -> Figure:
    """Seconds of so many FLOPs at a share of the peak of so many devices."""

    def figure(explained: Document) -> float:
        return flops / (devices * utilisation * explained["cost"]["peak_flops_per_second"])

    return figure


CASES = (
    Case(
        "D1", "v4 4×4×4: all-gather of bf16[1024_X, 4096_Y] over X",
        "23.3", "µs", FORMULA,
        (explain("ij->ij", CUBE, "XY->_Y", _1024x4096, "v4:4x4x4"),),
        textbook("all_gather"), "a ring, both directions, V/W", "sharding",
    ),
    Case(
        "D2", "the same over X and Y",
        "46.6", "µs", FORMULA,
        (explain("ij->ij", CUBE, "(XY)_->__", _1024x4096, "v4:4x4x4"),),
        textbook("all_gather"), "two rings at once, both directions, V/(2·W)", "sharding",
    ),
    Case(
        "D3", "the same shards, all-reduce over Z",
        "11.65", "µs", FORMULA,
        (explain("ij,jk->ik", CUBE, "XZ,ZY->XY", "i=1024,j=65536,k=4096", "v4:4x4x4"),),
        textbook("psum"), "a ring, both directions, 2·V/W", "sharding",
    ),
    Case(
        "D4", "v4 4×4×4: all-gather of bf16[128_X] over X",
        "2", "µs", FORMULA,
        (explain("i->i", CUBE, "X->_", "i=128", "v4:4x4x4"),),
        textbook("all_gather"), "latency: 2 hops of 1 µs each way round a ring of 4", "sharding",
    ),
    Case(
        "D5 ring", "v5e, a ring of 4: all-gather of bf16[2048_Y, 8192]",
        "373", "µs", FORMULA,
        (explain("ij->ij", "Y=4", "Y_->__", "i=2048,j=8192"),),
        textbook("all_gather"), "a ring, both directions, V/W, as if the axis were a ring", "sharding",
    ),
    Case(
        "D5 line", "v5e 8×4: the same; an axis of 4 does not wrap",
        "559", "µs", FORMULA,
        (explain("ij->ij", "X=8,Y=4", "Y_->__", "i=2048,j=8192", "v5e:8x4"),),
        textbook("all_gather"), "a line, (N−1)/N · V/w", "sharding",
    ),
    Case(
        "D6", "v5e 8×4: all-gather of bf16[256_Y, 256]",
        "3", "µs", FORMULA,
        (explain("ij->ij", "X=8,Y=4", "Y_->__", "i=256,j=256", "v5e:8x4"),),
        textbook("all_gather"), "latency: 3 hops of 1 µs along a line of 4", "sharding",
    ),
    Case(
        "D7", "int8[128_XY, 2048] on a mesh of 2, 8, 2: bytes a device",
        "16,384", "B", FORMULA,
        ("shardviz layout 128x2048 --mesh X=2,Y=8,Z=2 --spec '(XY) _' --dtype int8",),
        lambda layout: layout["array"]["bytes_per_device"], "bytes of one shard", "sharding",
    ),
    Case(
        "D8", "A[I_X, …] on a mesh of 4, 8, 2: bytes of all devices over those of one copy",
        "16", "×", FORMULA,
        ("shardviz layout 64x64 --mesh X=4,Y=8,Z=2 --spec 'X _'",),
        lambda layout: layout["array"]["replicas"], "devices that hold the same shard", "sharding",
    ),
    Case(
        "D9", "v5e 4×4: bf16[8, 128, 8192] from (0,0) to (3,3)",
        "192", "µs", FORMULA,
        (rounds("ppermute", "i=16", "--perm", "(0,15)", "--shape", "16x8388608", "--dtype", "bf16",
                "--machine", "v5e:4x4"),),
        lambda run: run["closed_form"]["textbook_seconds"],
        "6 hops of 1 µs, then all bytes over both links of the corner", "tpus",
    ),
    Case(
        "D11 v5e", "v5e: batch above which a bf16 matmul is compute-bound",
        "240", "rows", FORMULA,
        (explain("bd,df->bf", "x=1", "__,__", "b=1024,d=1Mi,f=1Mi", "v5e:1x1"),),
        threshold("b"), "FLOPs over the peak = bytes over HBM's bandwidth", "roofline",
    ),
    Case(
        "D11 H100", "H100: the same",
        "295", "rows", FORMULA,
        (explain("bd,df->bf", "x=1", "__,__", "b=1024,d=1Mi,f=1Mi", "h100:1"),),
        threshold("b"), "FLOPs over the peak = bytes over HBM's bandwidth", "gpus",
    ),
    Case(
        "D12", "8 H100: all-gather of bf16[1024_X, 16384]",
        "65.2", "µs", FORMULA,
        (explain("ij->ij", "X=8", "X_->__", "i=1024,j=16384", "h100:8"),),
        textbook("all_gather"), "through the switch, (N−1)/N · V/w, without latency", "gpus",
    ),
    Case(
        "D13", "8 H100: all-gather of bf16[4096_X, 65536]",
        "1.044", "ms", FORMULA,
        (explain("ij->ij", "X=8", "X_->__", "i=4096,j=65536", "h100:8"),),
        textbook("all_gather"), "through the switch, (N−1)/N · V/w, without latency", "gpus",
    ),
    Case(
        "D15 64", "B200: fp16[64, 4096] · [4096, 8192]",
        "8.6", "µs", FORMULA,
        (explain("bd,df->bf", "x=1", "__,__", "b=64,d=4096,f=8192", "b200:1", "--dtype", "f16"),),
        textbook("einsum"), "bytes over HBM's bandwidth", "gpus",
    ),
    Case(
        "D15 512", "B200: the same with 512 rows",
        "15", "µs", FORMULA,
        (explain("bd,df->bf", "x=1", "__,__", "b=512,d=4096,f=8192", "b200:1", "--dtype", "f16"),),
        textbook("einsum"), "FLOPs over the peak; the book rounds that to 2.3e15", "gpus",
    ),
    Case(
        "D16 one", "v5p: FLOPs per gathered byte above which one axis is hidden",
        "2,550", "FLOP/B", FORMULA,
        (explain("bd,df->bf", CUBE, "X_,X_->X_", "b=65536,d=8192,f=8192", "v5p:4x4x4"),),
        hidden_flops_per_byte, "peak over W, a ring, both directions", "training",
    ),
    Case(
        "D16 three", "v5p: the same over three axes",
        "850", "FLOP/B", FORMULA,
        (explain("bd,df->bf", "X=64", "X_,X_->X_", "b=65536,d=8192,f=8192", "v5p:4x4x4"),),
        hidden_flops_per_byte, "peak over 3·W", "training",
    ),
    Case(
        "D16 DCN", "v5p: the same over the data-center network",
        "73,440", "FLOP/B", FORMULA,
        (explain("bd,df->bf", "D=2,X=64", "D_,D_->D_", "b=65536,d=8192,f=8192", "2*v5p:4x4x4"),),
        hidden_flops_per_byte, "peak over a chip's part of the network, one way", "training",
    ),
    Case(
        "D17 mesh", "8,960 v5p, Llama-3 70B, 4.19 M tokens: best FSDP size beside tensor parallelism",
        "1,618", "devices", FORMULA,
        (explain(MLP, "X=256,Y=16", "", LLAMA, "v5p:16x16x16"),),
        best_fsdp_size, "V/W, FSDP over two axes of the torus, tensor parallelism over one",
        "applied training",
    ),
    Case(
        "D17 days", "8,960 v5p: 15 T tokens of Llama-3 70B at 40 % utilisation",
        "44", "days", FORMULA,
        (explain(MLP, "X=256,Y=16", "", LLAMA, "v5p:16x16x16"),),
        at_peak(6 * 70e9 * 15e12, POD, 0.4), "6 · parameters · tokens over 40 % of the peak",
        "applied training",
    ),
    Case(
        "D19", "16 v5e: prefill of 8,192 tokens of Llama 70B at 40 % utilisation",
        "0.91", "s", FORMULA,
        (explain("bd,df->bf", "X=16", "__,_X", "b=8192,d=8192,f=28672", "v5e:4x4"),),
        at_peak(2 * 70e9 * 8192, 16, 0.4), "2 · parameters · tokens over 40 % of the peak",
        "applied inference",
    ),
    Case(
        "D20 matmul", "v2, 8 cores: bf16[32_X, 1024, 8192] · [8192, 32768_Y], mesh of 4, 2",
        "95.6", "ms", FORMULA,
        (explain("bsd,df->bsf", "X=4,Y=2", "X__,_Y->X_Y", "b=32,s=1024,d=8192,f=32768", "v2:2x2"),),
        step("einsum"), "FLOPs over the peak", "profiling",
    ),
    Case(
        "D20 scatter", "v2: reduce-scatter of bf16[8, 1024, 8192] over Y",
        "1.118", "ms", FORMULA,
        (explain("bsf,fd->bsd", "X=4,Y=2", "X_Y,Y_->X_Y", "b=32,s=1024,d=8192,f=32768", "v2:2x2"),),
        textbook("psum_scatter"), "the two cores of a chip, half of V over one link each way", "profiling",
    ),
    *(
        Case(
            f"{id_} {network}",
            f"send of 1 MiB from 1 to 4 of 16, {network}, {'with' if id_ == 'D22' else 'without'} congestion",
            published, "ns", FORMULA,
            (rounds("ppermute", f"i={members}", "--perm", perm, "--shape", f"{members}x524288",
                    "--dtype", "bf16", *links),),
            figure, convention, "astra-sim",
        )
        for id_, network, published, members, perm, links, figure, convention in (
            ("D21", "ring", "21,031", 16, "(1,4)", ASTRA, closed_form, "3 · 500 ns, then all bytes"),
            ("D21", "fully connected", "20,031", 16, "(1,4)", (*ASTRA, "--topology", "switch"), closed_form,
             "500 ns, then all bytes"),
            ("D21", "switch", "20,531", 16, "(1,4)", SWITCH, closed_form, "2 · 500 ns, then all bytes"),
            ("D22", "ring", "60,093", 16, "(1,4)", ASTRA, schedule, "3 · (500 ns and all bytes)"),
            ("D22", "fully connected", "20,031", 16, "(1,4)", (*ASTRA, "--topology", "switch"), schedule,
             "500 ns and all bytes"),
            ("D22", "switch", "40,062", 3, "(0,2)", (*ASTRA, "--topology", "line"), schedule,
             "2 · (500 ns and all bytes): the switch is a device between"),
        )
    ),
    *(
        Case(
            f"D24 {size}", f"all-reduce of {size} through a switch, 8 devices: ASTRA-sim's {whole} ns",
            links, "ns", FORMULA,
            (rounds("psum", "i=8", "--shape", f"8x{count}", "--dtype", "bf16", *RING_THROUGH_A_SWITCH),),
            lambda run: 4 * run["seconds"], "four parts, each 14 rounds of 2 · 500 ns and 1/8", "astra-sim",
        )
        for size, count, whole, links in (
            ("1 KiB", 2**7, "56,600", "56,000"),
            ("64 KiB", 2**13, "58,812", "58,128"),
            ("1 MiB", 2**17, "92,440", "90,160"),
            ("1 GiB", 2**27, "36,818,164", "35,056,000"),
        )
    ),
    Case(
        "D26 1 KiB", "all-reduce of 1 KiB on a torus of 4×4: ASTRA-sim's 15,366 ns",
        "15,006", "ns", FORMULA,
        (
            rounds("psum_scatter", "i=4", "--shape", "16x32", "--dtype", "bf16", *RING),
            rounds("psum", "i=4", "--shape", "4x32", "--dtype", "bf16", *RING),
        ),
        lambda scatter, reduce: 2 * scatter["seconds"] + 4 * reduce["seconds"],
        "the second axis is busy: a scatter, four all-reduces, a gather", "astra-sim",
    ),
    *(
        Case(
            f"D26 {size}", f"all-reduce of {size} on a torus of 4×4: ASTRA-sim's {whole} ns",
            links, "ns", FORMULA,
            (rounds("psum_scatter", "i=4", "--shape", f"16x{count}", "--dtype", "bf16", *RING),),
            lambda scatter: 8 * scatter["seconds"],
            "the first axis is busy: four scatters and four gathers", "astra-sim",
        )
        for size, count, whole, links in (
            ("1 MiB", 2**15, "43,040", "41,280"),
            ("1 GiB", 2**25, "31,522,268", "30,012,000"),
        )
    ),
    Case(
        "D28", "all-reduce of 1 MiB over 40 GPUs in 354.9 µs: bus bandwidth",
        "5.76", "GB/s", FORMULA,
        (rounds("psum", "i=40", "--shape", "40x524288", "--dtype", "bf16"),),
        lambda run: run["wire_bytes"] / 354.9e-6 / 1e9, "2·(N−1)/N of the bytes over the measured time",
        "nccl-tests",
    ),
    Case(
        "D29 math", "v4 2×2×1, four layers of 16,384 × 16,384, 4,096 rows a chip: arithmetic",
        "31.99", "ms", FORMULA,
        (explain("be,ef->bf; bf,fg->bg; bg,gh->bh; bh,hi->bi", "axis=4",
                 "axis _, _ axis; ?, _ axis; ?, _ axis; ?, _ axis",
                 "b=16384,e=16384,f=16384,g=16384,h=16384,i=16384", "v4:2x2x1"),),
        lambda explained: explained["cost"]["compute_seconds"], "FLOPs over the peak", "layers",
    ),
    Case(
        "D5 measured", "v5e 8×4: all-gather of bf16[2048_Y, 8192]",
        "680", "µs", MEASURED,
        (program("gather_32MiB", "X=8,Y=4", "v5e:8x4"),),
        total, "a line of 4; then a copy from VMEM", "sharding", scheduler("gather_32MiB"),
    ),
    Case(
        "D6 measured", "v5e 8×4: all-gather of bf16[256_Y, 256]",
        "8", "µs", MEASURED,
        (program("gather_128KiB", "X=8,Y=4", "v5e:8x4"),),
        total, "a line of 4, latency; then a copy from VMEM", "sharding", scheduler("gather_128KiB"),
    ),
    Case(
        "D13 measured", "8 H100: all-gather of bf16[4096_X, 65536]",
        "1.5", "ms", MEASURED,
        (explain("ij->ij", "X=8", "X_->__", "i=4096,j=65536", "h100:8"),),
        step("all_gather"), "through the switch, as NCCL takes it", "gpus",
    ),
    *(
        Case(
            f"{name} {devices}", f"{devices} H100: f16[1024_X, 4096] · [4096, 4096_X] a shard, {how}",
            published, "µs", MEASURED,
            (explain("mk,kn->mn", f"X={devices}", "X_,_X->_X",
                     f"m={1024 * devices},k=4096,n={4096 * devices}", f"h100:{devices}", "--dtype", "f16"),),
            figure, convention, "pallas",
        )
        for name, how, figure, convention, times in (
            ("D31", "gathered by NCCL, then cuBLAS", serial, "both as measured of other sizes",
             ("147", "290", "565")),
            ("D31 overlapped", "as one kernel", perfect_overlap, "perfect overlap", ("102", "212", "436")),
        )
        for devices, published in zip((2, 4, 8), times, strict=True)
    ),
    Case(
        "D20 measured", "v2, 8 cores: bf16[32_X, 1024, 8192] · [8192, 32768_Y]",
        "96", "ms", MEASURED,
        (program("up_projection", "X=4,Y=2", "v2:2x2"),),
        total, "the compiler's cycles", "profiling", cycles("up_projection", "v2"),
    ),
    Case(
        "D20 measured scatter", "v2: reduce-scatter of bf16[8, 1024, 8192] over Y, after a matmul",
        "1.13", "ms", MEASURED,
        (program("down_projection", "X=4,Y=2", "v2:2x2"),),
        collective("reduce-scatter"), "the two cores of a chip", "profiling",
    ),
    Case(
        "D29 measured", "v4 2×2×1, four layers, gathers beside matmuls",
        "39.82", "ms", MEASURED,
        (program("four_layers_async", "axis=4", "v4:2x2x1"),),
        total, "the compiler's cycles; the first gather blocks, the others are hidden", "layers",
        scheduler("four_layers_async"),
    ),
    Case(
        "D29 default", f"the same program as libtpu {LIBTPU} compiles it by default: gathers block",
        "39.82", "ms", MEASURED,
        (program("four_layers", "axis=4", "v4:2x2x1"),),
        total, "the compiler's cycles and four gathers, two lines of 2 at once", "layers",
        cycles("four_layers", "v4"),
    ),
    Case(
        "D30 alone", "v2, mesh 2×4: bf16[1024_X, 2048] · [2048, 8192_Y], nothing to gather",
        "224", "µs", MEASURED,
        (program("nothing_to_gather", "X=2,Y=4", "v2:2x2"),),
        total, "the compiler's cycles", "jax", cycles("nothing_to_gather", "v2"),
    ),
    Case(
        "D30 overlapped", "D30 alone with bf16[1024_X, 2048_Y], as a collective matmul",
        "244", "µs", MEASURED,
        (program("collective_matmul", "X=2,Y=4", "v2:2x2"),),
        total, "the compiler's cycles and three permutes that block, as compiled", "jax",
        cycles("collective_matmul", "v2"),
    ),
    Case(
        "D30 asynchronous", "that with permutes that do not block",
        "244", "µs", MEASURED,
        (program("collective_matmul_async", "X=2,Y=4", "v2:2x2"),),
        total, "the compiler's cycles; the permutes are hidden", "jax", scheduler("collective_matmul_async"),
    ),
    Case(
        "D30 gathered", "D30 alone with bf16[1024_X, 2048_Y], gathered first",
        "311", "µs", MEASURED,
        (program("gather_first", "X=2,Y=4", "v2:2x2"),),
        total, "the compiler's cycles and a gather over two chips and their cores", "jax",
        cycles("gather_first", "v2"),
    ),
    *(
        Case(
            f"D32 {chip} {size}", f"{chip}: permute of {size} to the neighbour", published, "µs", MEASURED,
            (rounds("ppermute", "X=2", "--perm", "(0,1),(1,0)", "--shape", f"2x{count}", "--dtype", "bf16",
                    "--machine", f"{chip}:{torus}"),),
            closed_form, "a start, one hop and all bytes over one link", "marin",
        )
        for chip, torus, times in (
            ("v5p", "1x2x1", ("5.0", "16.94", "781.98")), ("v6e", "1x2", ("5.75", "17.45", "776.34"))
        )
        for size, count, published in zip(
            ("1 KiB", "1 MiB", "64 MiB"), (2**9, 2**19, 2**25), times, strict=True
        )
    ),
    Case(
        "D32 H100", "8 H100: all-reduce of 1 GiB", "4.06", "ms", MEASURED,
        (rounds("psum", "X=8", "--shape", f"8x{2**29}", "--dtype", "bf16", "--machine", "h100:8"),),
        closed_form, "as NCCL was measured elsewhere", "marin",
    ),
    *(
        Case(
            f"D33 {size}", f"tpu7x 2×2×4: all-reduce of {size} of f32 over all 32 cores",
            published, "µs", DOUBTED,
            (rounds("psum", "X=32", "--shape", f"32x{count}", "--dtype", "f32", "--machine", "tpu7x:2x2x4"),),
            closed_form, "the cores of a chip, then three lines at once", "benchmarks",
        )
        for size, count, published in (
            ("2 MiB", 2**19, "123.8"), ("4 MiB", 2**20, "129.9"), ("8 MiB", 2**21, "162.3"),
        )
    ),
    *(
        Case(
            f"D34 {size}", f"8 MI355X: all-to-all of {size}", published, "µs", MEASURED,
            (rounds("all_to_all", "X=8", "--shape", f"64x{count}", "--dtype", "f32",
                    "--machine", "mi355x:8"),),
            closed_form, "a start, then 1/8 over each of seven links", "pytorch",
        )
        for size, count, published in (
            ("8 MiB", 2**18, "68.6"), ("64 MiB", 2**21, "340.5"), ("256 MiB", 2**23, "666.4"),
            ("1 GiB", 2**25, "2485.2"),
        )
    ),
)  # fmt: skip


ASTRA_LESS = (
    "56,600 ns less 600; 58,812 less 600 and 84; 92,440 less 600 and 1,680; 36,818,164 less 600 and "
    "1,761,564 through the switch; 15,366 less 360; 43,040 less 320 and 1,440; 31,522,268 less 320 and "
    "1,509,948 on the torus"
)


def page() -> str:
    """The document."""
    return TEMPLATE.read_text(encoding="utf-8").format(
        met=_met(),
        families="\n".join(_family_rows()),
        groups="\n".join(_group_rows()),
        nccl=nccl_errors.table(),
        points=f"{len(nccl_errors.points()):,}",
        matmuls=matmul_fit.table(),
        matmul_points=f"{len(matmul_fit.points()):,}",
        steps="\n".join(_step_rows()),
        decode_source=decode_steps.SOURCE,
        decode_steps="\n".join(decode_steps.rows()),
        deepseek=decode_steps.service_row(),
    )


def cases_page() -> str:
    """The document of all cases."""
    return CASES_TEMPLATE.read_text(encoding="utf-8").format(
        met=_met(),
        formulas="\n".join(_formula_row(case) for case in CASES if case.kind == FORMULA),
        measured="\n".join(_measured_row(case) for case in CASES if case.kind != FORMULA),
        astra=ASTRA_LESS,
        batches="\n".join(decode_steps.batch_rows()),
        batch_sources="; ".join(f"{number} {each}" for number, each in enumerate(decode_steps.SOURCES, 1)),
        commands=_commands(),
        libtpu=LIBTPU,
        sources="\n".join(f"- {text}" for text in SOURCES.values()),
    )


def _met() -> str:
    formulas = [case for case in CASES if case.kind == FORMULA]
    missed = [case.id for case in formulas if not case.is_met]
    return f"{len(formulas) - len(missed)} of {len(formulas)}" + (
        f" (missed: {', '.join(missed)})" if missed else ""
    )


def _on_gpus(case: Case) -> bool:
    return "H100" in case.question or "MI355X" in case.question


GROUPS: dict[str, Callable[[Case], bool]] = {
    "TPU programs and collectives": lambda case: case.kind == MEASURED and not _on_gpus(case),
    "H100 gathers, all-reduces and matmuls": lambda case: case.kind == MEASURED and "H100" in case.question,
    "MI355X all-to-alls, by formula": lambda case: "MI355X" in case.question,
    "TPU7x all-reduces, doubted": lambda case: case.kind == DOUBTED,
}
"""The measured cases, in groups."""


def _family_rows() -> Iterator[str]:
    """The median error and the worst of each family of measured times."""
    families: dict[str, list[float]] = {
        f"[{name}](#tpus-and-single-programs)": [case.error for case in CASES if belongs(case)]
        for name, belongs in [*GROUPS.items()][:3]
    }
    families |= {
        "[collectives over GPUs](#collectives-over-gpus)": [point.error for point in nccl_errors.points()],
        "[matmuls on GPUs](#matmuls-on-gpus)": [point.error for point in matmul_fit.points()],
        "[train steps](#train-steps) on TPUs and GPUs": training_runs.errors(),
        "[decode steps](#decode-steps) of one sequence on A100s": decode_steps.errors(),
        "[batches and prompts](accuracy-cases.md#batches-and-prompts)": decode_steps.batch_errors(),
    }
    for name, errors in families.items():
        off = sorted(map(abs, errors))
        yield f"| {name} | {len(off):,} | {statistics.median(off):.0%} | {off[-1]:.0%} |"


def _group_rows() -> Iterator[str]:
    for name, belongs in GROUPS.items():
        own = sorted((case for case in CASES if belongs(case)), key=lambda case: abs(case.error))
        median = statistics.median(abs(case.error) for case in own)
        yield f"| {name} | {len(own)} | {median:.0%} | {abs(own[-1].error):.0%} | {own[-1].id} |"


def _step_rows() -> Iterator[str]:
    ratios: dict[str, list[float]] = {}
    for run, error in zip(training_runs.RUNS, training_runs.errors(), strict=True):
        ratios.setdefault(run.machine.partition(":")[0], []).append(1 + error)
    for chip, own in ratios.items():
        median = statistics.median(own)
        yield f"| {chip} | {len(own)} | {median:.2f} | {min(own):.2f} to {max(own):.2f} |"


def _formula_row(case: Case) -> str:
    met = "" if case.is_met else " **missed**"
    return (
        f"| {case.id} | {case.question} | {case.published} {case.unit} | {_figure(case.ours)} {case.unit} "
        f"| {_percent(case.error)}{met} | {case.convention} |"
    )


def _measured_row(case: Case) -> str:
    compiler = "–" if case.compiler is None else f"{_figure(case.compiler() * UNITS[case.unit])} {case.unit}"
    return (
        f"| {case.id} | {case.question} | {case.published} {case.unit} | {_figure(case.ours)} {case.unit} "
        f"| {_percent(case.error)} | {compiler} | {case.convention} |"
    )


def _percent(error: float) -> str:
    """``+31.0 %``; an error that rounds to nothing has no sign."""
    found = f"{error * 100:+.1f}"
    return f"{found[1:] if float(found) == 0 else found} %"


def _figure(value: float) -> str:
    """Four significant digits."""
    digits = max(0, 3 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{digits}f}"


def _commands() -> str:
    """Each command once, below the numbers of its cases."""
    cases: dict[str, list[str]] = {}
    for case in CASES:
        for command in case.commands:
            cases.setdefault(command, []).append(case.id)
    return "\n".join(f"# {', '.join(ids)}\n{command}" for command, ids in cases.items())


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")
    CASES_PAGE.write_text(cases_page(), encoding="utf-8")
    PICTURE.write_text(nccl_errors.picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
