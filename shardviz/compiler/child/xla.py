"""XLA: for simulated CPU devices, for the devices that JAX finds, and for hardware that is not here."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from shardviz.compiler.child.program import Program, axis_types, spec_of, words_of
from shardviz.compiler.child.recording import Recording
from shardviz.compiler.messages import NO_ROOM, ModuleQuestion, Output, Question, TargetMesh
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

    Raises `TargetError` where JAX finds too few devices, or, in a job of several processes, each of which
    must take part, too many.
    """
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
        raise TargetError(
            f"the mesh has {plural(wanted, 'device')} but JAX finds {found:,} here",
            f"ask {simulated}--target shardy for a mesh of any size",
        )


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
    failure = None
    try:
        compiled = compile_with(recording.options if with_costs or not is_users else {})
    except jax.errors.JaxRuntimeError as error:
        failure = error
        if is_users and not with_costs:
            try:
                compile_with(recording.options)
            except jax.errors.JaxRuntimeError as again:
                failure = again
    if failure is not None:
        if NO_ROOM.search(str(failure)):
            refused = TargetResult(target, "error", error=words_of(failure, MOST_WORDS))
            return None, Output(refused, recording.partitioned, recording.schedule, recording.memory())
        if (text := recording.final) is None:
            raise failure
    else:
        try:
            text = compiled.text()
        except jax.errors.JaxRuntimeError:
            if (text := recording.final) is None:
                raise
    memory = (
        recording.memory(compiled.memory if failure is None else None) if with_costs or is_users else None
    )
    result = TargetResult(target, "ok", text=text)
    output = Output(result, recording.partitioned, recording.schedule, memory)
    return compiled.program if failure is None else None, output


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
