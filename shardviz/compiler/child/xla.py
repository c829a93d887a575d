"""XLA: for simulated CPU devices, for the devices that JAX finds, and for hardware that is not here; and the
texts that it leaves while it compiles: modules, memory reports, the simulation of its scheduler."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from shardviz.compiler.child.program import Program, axis_types, spec_of, words_of
from shardviz.compiler.messages import NO_ROOM, MemoryTexts, ModuleQuestion, Output, Question, TargetMesh
from shardviz.errors import CompilerError, TargetError, plural
from shardviz.reports.target_result import TargetResult
from shardviz.targets import MAX_CPU_DEVICES

if TYPE_CHECKING:
    from shardviz.hardware.placement import Placement

MOST_WORDS = 2000
"""Characters of a message about memory: its figures stand behind an instruction."""

_simulated = 0
"""How many CPU devices are simulated; their number is fixed while a backend lives."""


def simulate(count: int) -> None:
    """Have at least `count` simulated devices. The backend only grows, so that restarts stay few."""
    global _simulated
    if count <= _simulated:
        return
    if _simulated:
        # Imported late, since it loads Pallas, which most questions do without.
        from jax.extend.backend import clear_backends

        clear_backends()
    jax.config.update("jax_num_cpu_devices", count)
    _simulated = count


def target_mesh(mesh: TargetMesh, report: Callable[[str], None]) -> tuple[Any, Placement | None]:
    """The JAX mesh of a target's devices, and where they stand, which only hardware that is not here says.
    Raises `TargetError` where JAX finds too few devices, or in a job, of which all take part, too many."""
    if mesh.topology is not None:
        # Imported late: mesh_utils and topologies are for these targets alone.
        from shardviz.compiler.child import topology

        report("describing the hardware")
        return topology.described_mesh(mesh)
    size = mesh.mesh.size
    if mesh.target == "cpu":
        simulate(size)
    else:
        _check_devices(size)
    devices = np.array(jax.devices()[:size], dtype=object)
    if mesh.mesh.device_order is not None:
        devices = devices[list(mesh.mesh.device_order)]
    return jax.sharding.Mesh(
        devices.reshape(mesh.jax_sizes), mesh.jax_names, axis_types=axis_types(mesh)
    ), None


def _check_devices(wanted: int) -> None:
    try:
        found = len(jax.devices())
    except RuntimeError as error:
        platforms = os.environ.get("JAX_PLATFORMS", "")
        raise CompilerError(
            f"JAX finds no devices here: {' '.join(str(error).split())}",
            f"JAX_PLATFORMS is {platforms}: unset it, or ask --target cpu for simulated devices"
            if platforms
            else "ask --target cpu for simulated devices, or --target shardy for a mesh of any size",
        ) from error
    if wanted != found and jax.process_count() > 1:
        raise TargetError(
            f"the mesh has {plural(wanted, 'device')} but the {jax.process_count():,} processes of the job "
            f"have {found:,}, and all take part",
            f"use a mesh of {plural(found, 'device')}, or another number of processes",
        )
    if found < wanted:
        simulated = "--target cpu for simulated devices, or " if wanted <= MAX_CPU_DEVICES else ""
        problem = f"the mesh has {plural(wanted, 'device')} but JAX finds {found:,} here"
        raise TargetError(problem, f"ask {simulated}--target shardy for a mesh of any size")


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
"""XLA's warning of an involuntary full rematerialization."""


class Recording:
    """The texts that XLA leaves in a question's folder when it compiles with `options`, also where it
    refuses."""

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
    def modules(self) -> tuple[str | None, str]:
        """The module right after SPMD partitioning, and the simulation of the latency-hiding scheduler, ""
        where it left none: it does so for programs with asynchronous operations."""
        return self.find(_PARTITIONED), self.find(_SIMULATED) or ""

    def memory(self, analysis: Callable[[], Any] | None = None) -> MemoryTexts:
        """The compiler's account of a device's memory; without the `analysis` of a compiled program that of
        one which does not fit."""
        reports = self.find(_ASSIGNMENT) or "", self.find(_LIVE_RANGES) or ""
        if analysis is None:
            return MemoryTexts((), *reports, self.find(_SCHEDULED) or "")
        try:
            stats = analysis()
        except Exception:  # not every jaxlib has one of every chip: the reports tell it too
            return MemoryTexts((), *reports)
        return MemoryTexts.of(stats, *reports)

    def find(self, name: str) -> str | None:
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


class Compiled(NamedTuple):
    """A program that XLA has made, and functions of its text and its account of the memory."""

    program: Any
    text: Callable[[], str]
    memory: Callable[[], Any]


def output_of(
    question: Question | ModuleQuestion, compile_with: Callable[[dict[str, Any]], Compiled]
) -> tuple[Any, Output]:
    """XLA's answer to a question with some options, and the program, None where jaxlib cannot load it.

    A program that does not fit into a device's memory is an answer, with what would lie there. So is one that
    the compiler has finished and jaxlib cannot load, or not print (libtpu is newer, or the chip): it is as
    the compiler itself has printed it. Such texts cost time: of a user's program they are left only for
    costs, or where it has failed. Raises what XLA raises.
    """
    recording, target = Recording(question), question.mesh.target
    with_costs, is_users = question.dumps == "costs", isinstance(question, ModuleQuestion)
    compiled: Compiled | None = None
    text: str | None
    try:
        compiled = compile_with(recording.options if with_costs or not is_users else {})
        text = compiled.text()
    except jax.errors.JaxRuntimeError as error:
        failure = error
        if compiled is None and is_users and not with_costs:
            try:
                compile_with(recording.options)
            except jax.errors.JaxRuntimeError as again:
                failure = again
        if compiled is None and NO_ROOM.search(str(failure)):
            refused = TargetResult(target, "error", error=words_of(failure, MOST_WORDS))
            return None, Output(refused, *recording.modules, recording.memory())
        if (text := recording.find(_FINAL)) is None:
            raise failure from None
    memory = None
    if with_costs or is_users:
        memory = recording.memory(None if compiled is None else compiled.memory)
    result = TargetResult(target, "ok", text=text)
    output = Output(result, *recording.modules, memory)
    return None if compiled is None else compiled.program, output


def ask(program: Program, report: Callable[[str], None]) -> Output:
    """The program that XLA emits. Raises what JAX and XLA raise."""
    report("lowering")
    lowered = program.trace().lower()
    report("compiling")
    question = program.question

    def compile_with(options: dict[str, Any]) -> Compiled:
        compiled = lowered.compile(compiler_options=options)
        return Compiled(compiled, compiled.as_text, compiled.memory_analysis)

    compiled, output = output_of(question, compile_with)
    if output.result.status != "ok":
        return output
    array = question.results[-1]
    spec = array.spec
    if compiled is not None:
        shardings = compiled.output_shardings
        last = shardings[-1] if len(question.results) > 1 else shardings
        spec = spec_of(last, question.mesh, array.rank)
    return replace(output, result=replace(output.result, result_spec=spec))
