"""The texts that XLA leaves while it compiles: modules, memory reports, the simulation of its scheduler."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shardviz.compiler.messages import MemoryTexts, ModuleQuestion, Question

_SCHEDULE: dict[str, Any] = {"xla_dump_latency_hiding_schedule": True}
"""Have the scheduler leave its simulation."""
_OF_GPU: dict[str, Any] = {"xla_gpu_collect_cost_model_stats": True, "xla_gpu_enable_triton_gemm": False}
"""Have XLA:GPU write its estimates beside the instructions; without a device it tunes no Triton tile, and the
estimates of its first one are 20 times those of cuBLAS."""
_WITHOUT_ESTIMATES = "a100"
"""The GPU whose throughput XLA does not know: asked for its estimates, it fails (jaxlib 0.10)."""

_PARTITIONED = r"\S+\.after_(?:tpu-)?spmd-partitioning\.\S+"
_FINAL = r"\S+\.after_codegen\.txt"
_SCHEDULED = r"\S+after_optimizations\.txt"
_ASSIGNMENT = r"\S+after_optimizations-buffer-assignment\.txt"
_SIMULATED = r"\S+\.schedule\.txt"
_LIVE_RANGES = r"\S+after_optimizations-live-range\.txt"
_REMATERIALIZATION = "Involuntary full rematerialization"
"""XLA's words for an array that it makes whole on its way from one sharding to another."""
_SIZES = {
    "argument": "argument_size_in_bytes",
    "output": "output_size_in_bytes",
    "alias": "alias_size_in_bytes",
    "temporary": "temp_size_in_bytes",
    "peak": "peak_memory_in_bytes",
}
"""Our names of a compiled program's `memory_analysis()`; jaxlib before 0.8 has no peak."""


class Recording:
    """The texts that XLA leaves in a question's folder when it compiles with `options`: complete ones, also
    where it refuses."""

    def __init__(self, question: Question | ModuleQuestion) -> None:
        self._folder = question.folder
        self.options: dict[str, Any] = {
            "xla_dump_to": question.folder,
            "xla_dump_hlo_as_text": True,
            "xla_dump_hlo_pass_re": ".*" if question.dumps == "passes" else "spmd-partitioning",
        }
        if question.dumps == "costs":
            self.options |= _SCHEDULE
            topology = question.mesh.topology
            if topology is not None and topology.platform == "cuda":
                estimates = ("gpu", _WITHOUT_ESTIMATES) not in topology.options
                self.options |= _OF_GPU | {"xla_gpu_collect_cost_model_stats": estimates}

    @property
    def partitioned(self) -> str | None:
        """The module right after SPMD partitioning."""
        return self._find(_PARTITIONED)

    @property
    def final(self) -> str | None:
        """The final module as the compiler itself prints it; None where there is none."""
        return self._find(_FINAL)

    @property
    def schedule(self) -> str:
        """The simulation of the latency-hiding scheduler, "" where it left none: it does so for programs with
        asynchronous operations."""
        return self._find(_SIMULATED) or ""

    def memory(self, analysis: Callable[[], Any] | None = None) -> MemoryTexts:
        """The compiler's account of a device's memory; without the `analysis` of a compiled program that of
        one which does not fit."""
        reports = self._find(_ASSIGNMENT) or "", self._find(_LIVE_RANGES) or ""
        if analysis is None:
            return MemoryTexts((), *reports, self._find(_SCHEDULED) or "")
        try:
            stats = analysis()
        except Exception:  # not every jaxlib has one of every chip: the reports tell it too
            return MemoryTexts((), *reports)
        sizes = ((name, getattr(stats, field, None)) for name, field in _SIZES.items())
        return MemoryTexts(tuple((name, size) for name, size in sizes if size is not None), *reports)

    def _find(self, name: str) -> str | None:
        """The first text whose file has a name like that."""
        texts = sorted(path for path in Path(self._folder).glob("*.txt") if re.fullmatch(name, path.name))
        return texts[0].read_text(encoding="utf-8", errors="replace") if texts else None


@contextmanager
def rematerialization_warnings() -> Iterator[list[str]]:
    """A context around one compilation, and then the lines in which the compiler has said of arrays that it
    makes them whole on every device. All that it writes still goes where it goes without this."""
    lines: list[str] = []
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            said = file.read()
            os.write(2, said)
            lines += [
                line for line in said.decode(errors="replace").splitlines() if _REMATERIALIZATION in line
            ]
