"""XLA: its devices, simulated, found or described; what it makes of a program for them, and the texts that it
leaves meanwhile: modules, memory reports, the simulation of its scheduler."""

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
    from shardviz.targets.hardware import TopologyRequest

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
        report("describing the hardware")
        return described_mesh(mesh, mesh.topology)
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
        available = len(jax.devices())
    except RuntimeError as error:
        hint = "ask --target cpu for simulated devices, or --target shardy for a mesh of any size"
        if platforms := os.environ.get("JAX_PLATFORMS"):
            hint = f"JAX_PLATFORMS is {platforms}: unset it, or ask --target cpu for simulated devices"
        raise CompilerError(f"JAX finds no devices here: {' '.join(str(error).split())}", hint) from error
    if wanted != available and jax.process_count() > 1:
        raise TargetError(
            f"the mesh has {plural(wanted, 'device')} but the {jax.process_count():,} processes of the job "
            f"have {available:,}, and all take part",
            f"use a mesh of {plural(available, 'device')}, or another number of processes",
        )
    if available < wanted:
        simulated = "--target cpu for simulated devices, or " if wanted <= MAX_CPU_DEVICES else ""
        problem = f"the mesh has {plural(wanted, 'device')} but JAX finds {available:,} here"
        raise TargetError(problem, f"ask {simulated}--target shardy for a mesh of any size")


def described_mesh(mesh: TargetMesh, topology: TopologyRequest) -> tuple[Any, Placement]:
    """A JAX mesh of the devices that a topology describes, and where they stand. Raises `TargetError` where
    JAX does not place a mesh of these sizes on them."""
    # Imported late, as in `_placed`: no other target needs them.
    from jax.experimental import topologies

    from shardviz.devices.found_hardware import found_placement, slice_of
    from shardviz.hardware.clusters import parse_cluster
    from shardviz.hardware.machine import not_placed
    from shardviz.targets.hardware import target_config

    machine = parse_cluster(mesh.target)
    assert machine is not None
    options = dict(topology.options)
    if topology.platform == "cuda":
        given = {"topology": topology.topology, "target_config": target_config(options["gpu"])}
        found = topologies.get_topology_desc("any", platform="cuda", **given)
    else:
        found = topologies.get_topology_desc(topology.topology, platform=topology.platform, **options)
    # On several slices the ids leave gaps; the positions here are the ids that shardviz shows.
    devices = sorted(found.devices, key=lambda device: (slice_of(device), device.id))
    if mesh.mesh.device_order is not None:
        placed = np.array([devices[id_] for id_ in mesh.mesh.device_order], dtype=object)
    else:
        try:
            placed = _placed(mesh.mesh.axis_sizes, devices)
        except NotImplementedError as error:
            raise TargetError(*not_placed(machine, mesh.mesh)) from error
    jax_mesh = jax.sharding.Mesh(placed.reshape(mesh.jax_sizes), mesh.jax_names, axis_types=axis_types(mesh))
    return jax_mesh, found_placement(machine.family, [*jax_mesh.devices.flat])


def _placed(sizes: tuple[int, ...], devices: list[Any]) -> Any:
    """The devices as `jax.make_mesh` places them; across slices, as `create_hybrid_device_mesh` does with the
    leading axes. Raises `NotImplementedError`."""
    from jax.experimental import mesh_utils

    from shardviz.devices.found_hardware import slice_of
    from shardviz.hardware.chip_torus import parts_by_slice

    slices = len({*map(slice_of, devices)})
    if slices == 1:
        names = tuple(f"a{axis}" for axis in range(len(sizes)))
        return jax.make_mesh(sizes, names, devices=devices).devices
    within, across = parts_by_slice(sizes, slices)
    # The condition of jax.make_mesh.
    split = devices[0].device_kind in ("TPU v5 lite", "TPU v5e")
    return mesh_utils.create_hybrid_device_mesh(within, across, devices, allow_split_physical_axes=split)


class Recording:
    """The texts that XLA leaves in a question's folder when it compiles with `options`, or refuses to."""

    def __init__(self, question: Question | ModuleQuestion) -> None:
        self._folder = question.folder
        self.options: dict[str, Any] = {
            "xla_dump_to": question.folder,
            "xla_dump_hlo_as_text": True,
            "xla_dump_hlo_pass_re": ".*" if question.dumps == "passes" else "spmd-partitioning",
        }
        if question.dumps == "costs":
            self.options["xla_dump_latency_hiding_schedule"] = True
            topology = question.mesh.topology
            if topology is not None and topology.platform == "cuda":
                # Asked for estimates of an A100, whose throughput it does not know, XLA fails (jaxlib 0.10).
                self.options["xla_gpu_collect_cost_model_stats"] = ("gpu", "a100") not in topology.options
                # Without a device it tunes no Triton tile: its estimates are 20 times those of cuBLAS.
                self.options["xla_gpu_enable_triton_gemm"] = False

    @property
    def modules(self) -> tuple[str | None, str]:
        """The module right after SPMD partitioning, and the simulation of the latency-hiding scheduler, ""
        where it left none: it does so for programs with asynchronous operations."""
        simulated = self.find(r"\S+\.schedule\.txt") or ""
        return self.find(r"\S+\.after_(?:tpu-)?spmd-partitioning\.\S+"), simulated

    def memory(self, analysis: Callable[[], Any] | None = None) -> MemoryTexts:
        """The compiler's account of memory; without an `analysis`, of a program that does not fit."""
        name = r"\S+after_optimizations"
        kinds = "buffer-assignment", "live-range"
        assignment, live_range = (self.find(rf"{name}-{kind}\.txt") or "" for kind in kinds)
        if analysis is None:
            return MemoryTexts((), assignment, live_range, self.find(rf"{name}\.txt") or "")
        try:
            stats = analysis()
        except Exception:  # not every jaxlib has one of every chip: the reports tell it too
            return MemoryTexts((), assignment, live_range)
        return MemoryTexts.of(stats, assignment, live_range)

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
            every = said.decode(errors="replace").splitlines()
            lines += [line for line in every if "Involuntary full rematerialization" in line]


class Compiled(NamedTuple):
    """A program that XLA has made, and functions of its text and its account of the memory."""

    program: Any
    text: Callable[[], str]
    memory: Callable[[], Any]


def output_of(
    question: Question | ModuleQuestion, compile_with: Callable[[dict[str, Any]], Compiled]
) -> tuple[Any, Output]:
    """XLA's answer to a question with some options, and the program, None where jaxlib cannot load it.

    A program that does not fit into a device's memory is an answer, too, and so is one that jaxlib cannot
    load or print (libtpu is newer, or the chip): it is as the compiler itself has printed it. Such texts cost
    time: of a user's program they are left only for costs, or where it has failed. Raises what XLA raises."""
    recording, target = Recording(question), question.mesh.target
    with_costs, is_users = question.dumps == "costs", isinstance(question, ModuleQuestion)
    # Nobody runs it: LLVM need not make the code fast, which takes half of the time; the text is the same.
    options = {"xla_backend_optimization_level": "0"} if target == "cpu" else {}
    compiled: Compiled | None = None
    text: str | None
    memory = None
    try:
        compiled = compile_with(options | (recording.options if with_costs or not is_users else {}))
        text = compiled.text()
    except jax.errors.JaxRuntimeError as error:
        failure = error
        if compiled is None and is_users and not with_costs:
            try:
                compile_with(recording.options)
            except jax.errors.JaxRuntimeError as again:
                failure = again
        if compiled is None and NO_ROOM.search(str(failure)):
            # The figures of such a message stand behind an instruction.
            refused = TargetResult(target, "error", error=words_of(failure, 2000))
            return None, Output(refused, *recording.modules, recording.memory())
        if (text := recording.find(r"\S+\.after_codegen\.txt")) is None:
            raise failure from None
    if with_costs or is_users:
        memory = recording.memory(None if compiled is None else compiled.memory)
    output = Output(TargetResult(target, "ok", text=text), *recording.modules, memory)
    return None if compiled is None else compiled.program, output


def ask(program: Program, report: Callable[[str], None], placement: Placement | None = None) -> Output:
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
    return replace(output, result=replace(output.result, result_spec=spec, placement=placement))
