"""The texts that XLA leaves while it compiles: modules, memory reports, the simulation of its scheduler."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from shardviz.compiler.messages import MemoryTexts

if TYPE_CHECKING:
    from types import TracebackType

    from shardviz.targets.described_hardware import TopologyRequest

_DUMP: dict[str, Any] = {
    "xla_dump_to": "-",
    "xla_dump_hlo_as_text": True,
    "xla_dump_hlo_pass_re": "spmd-partitioning",
}
"""Have XLA write the modules around SPMD partitioning, the final one and its reports to stdout, which needs
no folder to clean up."""
_SCHEDULE: dict[str, Any] = {"xla_dump_latency_hiding_schedule": True}
"""Have the scheduler leave its simulation. It goes into a folder alone."""
_OF_GPU: dict[str, Any] = {"xla_gpu_collect_cost_model_stats": True, "xla_gpu_enable_triton_gemm": False}
"""Have XLA:GPU write its estimates beside the instructions; without a device it tunes no Triton tile, and the
estimates of its first one are 20 times those of cuBLAS."""
_WITHOUT_ESTIMATES = "a100"
"""The GPU whose throughput XLA does not know: asked for its estimates, it fails (jaxlib 0.10)."""

_PARTITIONED = re.compile(r"\S+\.after_(?:tpu-)?spmd-partitioning\.\S+")
_FINAL = re.compile(r"\S+\.after_codegen\.txt")
_SCHEDULED = re.compile(r"\S+after_optimizations\.txt")
_ASSIGNMENT = re.compile(r"\S+after_optimizations-buffer-assignment\.txt")
_SIMULATED = re.compile(r"\S+\.schedule\.txt")
_LIVE_RANGES = re.compile(r"\S+after_optimizations-live-range\.txt")
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
    """A context around one compilation with `options`, and then what XLA wrote: complete texts, also where it
    refused. `dump_to` and `costs_to` are folders, and `topology` the hardware, as in a `Question`."""

    def __init__(
        self, dump_to: str = "", costs_to: str = "", topology: TopologyRequest | None = None
    ) -> None:
        self.options = dict(_DUMP)
        self._folder = dump_to or costs_to
        if dump_to:
            self.options["xla_dump_hlo_pass_re"] = ".*"
        if costs_to:
            self.options |= _SCHEDULE
            if topology is not None and topology.platform == "cuda":
                estimates = ("gpu", _WITHOUT_ESTIMATES) not in topology.options
                self.options |= _OF_GPU | {"xla_gpu_collect_cost_model_stats": estimates}
        if self._folder:
            self.options["xla_dump_to"] = self._folder
        self._stdout = -1
        self._file: IO[bytes] | None = None
        self._texts: dict[str, str | Path] = {}

    def __enter__(self) -> Recording:
        if not self._folder:
            sys.stdout.flush()
            self._file = tempfile.TemporaryFile()
            self._stdout = os.dup(1)
            os.dup2(self._file.fileno(), 1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is None:
            self._texts = {path.name: path for path in sorted(Path(self._folder).glob("*.txt"))}
            return
        os.dup2(self._stdout, 1)
        os.close(self._stdout)
        with self._file as file:
            file.seek(0)
            self._texts = dict(_printed(file.read().decode(errors="replace")))

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
        return MemoryTexts(memory_sizes(analysis), *reports)

    def _find(self, name: re.Pattern[str]) -> str | None:
        """The first text whose file has a name like that."""
        text = next((text for file, text in self._texts.items() if name.fullmatch(file)), None)
        return text.read_text(encoding="utf-8", errors="replace") if isinstance(text, Path) else text


class Warnings:
    """A context around one compilation, and then what the compiler has said of arrays that it makes whole on
    every device. All that it writes still goes where it goes without this."""

    def __init__(self) -> None:
        self.text = ""

    def __enter__(self) -> Warnings:
        sys.stderr.flush()
        self._file = tempfile.TemporaryFile()
        self._stderr = os.dup(2)
        os.dup2(self._file.fileno(), 2)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.dup2(self._stderr, 2)
        os.close(self._stderr)
        with self._file as file:
            file.seek(0)
            said = file.read()
        os.write(2, said)
        lines = said.decode(errors="replace").splitlines()
        self.text = "\n".join(line for line in lines if _REMATERIALIZATION in line)


def memory_sizes(analysis: Callable[[], Any]) -> tuple[tuple[str, int], ...]:
    """Bytes by name, of what jaxlib calls `CompiledMemoryStats`; nothing where it has none."""
    try:
        found = analysis()
    except Exception:  # not every jaxlib has one of every chip: the reports tell it too
        return ()
    sizes = ((name, getattr(found, field, None)) for name, field in _SIZES.items())
    return tuple((name, size) for name, size in sizes if size is not None)


def _printed(text: str) -> Iterator[tuple[str, str]]:
    """The files in a dump to stdout: name and text."""
    begin, end = "*** Begin ", " ***\n"
    start = text.find(begin)
    while start >= 0:
        stop = text.find(end, start)
        name = text[start + len(begin) : stop]
        start = stop + len(end)
        stop = text.find(f"*** End {name}{end}", start)
        if stop < 0:
            return
        yield name, text[start:stop]
        start = text.find(begin, stop)
