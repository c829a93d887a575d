"""XLA: for simulated CPU devices, for the devices that JAX finds, and for hardware that is not here."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from shardviz.compiler.child.program import Program, axis_types, spec_of, words_of
from shardviz.compiler.child.recording import Recording
from shardviz.compiler.messages import (
    NO_ROOM,
    CompileModule,
    DeviceMesh,
    Output,
    Question,
    RunCollective,
    TimeLoop,
)
from shardviz.errors import CompilerError, TargetError, plural
from shardviz.reports.target_result import TargetResult
from shardviz.targets import MAX_CPU_DEVICES

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


def simulated_mesh(mesh: DeviceMesh) -> Any:
    """A JAX mesh of simulated CPU devices."""
    simulate(math.prod(mesh.axis_sizes))
    return _jax_mesh(mesh)


def real_mesh(mesh: DeviceMesh) -> Any:
    """A JAX mesh of the devices that JAX finds; `TargetError` when they are too few, and in a job of several
    processes, each of which must take part, when they are too many."""
    wanted, found = math.prod(mesh.axis_sizes), len(_devices())
    if wanted != found and jax.process_count() > 1:
        raise TargetError(
            f"the mesh has {plural(wanted, 'device')} but the {jax.process_count():,} processes of the job "
            f"have {found:,}, and all take part",
            f"use a mesh of {plural(found, 'device')}, or another number of processes",
        )
    if found < wanted:
        simulated = "--target cpu for simulated devices, or " if wanted <= MAX_CPU_DEVICES else ""
        raise TargetError(
            f"the mesh has {plural(wanted, 'device')} but JAX finds {found:,} here",
            f"ask {simulated}--target shardy for a mesh of any size",
        )
    return _jax_mesh(mesh)


Places = tuple[tuple[int, tuple[int, ...], int, int], ...]
"""Of the device at each mesh position: see `Output.devices`."""


def target_mesh(
    request: Question | CompileModule | RunCollective | TimeLoop, report: Callable[[str], None]
) -> tuple[Any, Places]:
    """The JAX mesh of a target's devices, and where they stand, which only hardware that is not here says."""
    if isinstance(request, Question | CompileModule) and request.topology is not None:
        # Imported late: mesh_utils and topologies are for these targets alone.
        from shardviz.compiler.child import topology

        report("describing the hardware")
        devices = topology.described_devices(request.topology)
        mesh = topology.described_mesh(request, devices)
        return mesh, topology.places(mesh, devices)
    return simulated_mesh(request.mesh) if request.target == "cpu" else real_mesh(request.mesh), ()


def ask(program: Program, report: Callable[[str], None]) -> Output:
    """The program that XLA emits. Raises what JAX and XLA raise.

    A program that does not fit into a device's memory is an answer, with what would lie there. So is one that
    the compiler has finished, and that jaxlib cannot load: it is as the compiler itself has printed it.
    """
    report("lowering")
    lowered = program.trace().lower()
    report("compiling")
    question = program.question
    recording = Recording(question.dump_to, question.costs_to, question.topology)
    try:
        with recording:
            compiled = lowered.compile(compiler_options=recording.options)
    except jax.errors.JaxRuntimeError as error:
        if NO_ROOM.search(str(error)):
            words, memory = words_of(error), recording.memory()
            refused = TargetResult(program.question.target, "error", error=words)
            return Output(refused, schedule=recording.schedule, memory=memory)
        if recording.final is None:
            raise
        compiled = None
    result = question.results[-1]
    spec = result.spec
    if compiled:
        shardings = compiled.output_shardings
        spec = spec_of(shardings[-1] if len(question.results) > 1 else shardings, question, len(result.shape))
    return Output(
        TargetResult(question.target, "ok", text=_text(compiled, recording)),
        recording.partitioned,
        spec,
        schedule=recording.schedule,
        memory=recording.memory(compiled.memory_analysis if compiled else None)
        if question.costs_to
        else None,
    )


def _devices() -> list[Any]:
    """The devices that JAX finds; `CompilerError` where it cannot start a platform."""
    try:
        return list(jax.devices())
    except RuntimeError as error:
        platforms = os.environ.get("JAX_PLATFORMS", "")
        raise CompilerError(
            f"JAX finds no devices here: {' '.join(str(error).split())}",
            f"JAX_PLATFORMS is {platforms}: unset it, or ask --target cpu for simulated devices"
            if platforms
            else "ask --target cpu for simulated devices, or --target shardy for a mesh of any size",
        ) from error


def _jax_mesh(mesh: DeviceMesh) -> Any:
    devices = np.array(jax.devices()[: math.prod(mesh.axis_sizes)], dtype=object)
    if mesh.device_order is not None:
        devices = devices[list(mesh.device_order)]
    devices = devices.reshape(mesh.jax_sizes)
    return jax.sharding.Mesh(devices, mesh.jax_names, axis_types=axis_types(mesh))


def _text(compiled: Any, recording: Recording) -> str:
    """The final module. Where it holds what this jaxlib does not know yet (libtpu is newer, or the chip),
    as the compiler itself has printed it."""
    try:
        if compiled is not None:
            text: str = compiled.as_text()
            return text
    except jax.errors.JaxRuntimeError:
        if recording.final is None:
            raise
    return recording.final or ""
