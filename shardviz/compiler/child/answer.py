"""One question, one reply: the compiler's answer and its time, or why JAX refuses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from platform import python_version

import jax
import jaxlib

from shardviz.compiler.child import shardy, xla
from shardviz.compiler.child.program import Program, jax_dtype, named_sharding, refusal_by, settled_by
from shardviz.compiler.messages import Output, Question, TargetMesh, Versions
from shardviz.reports.target_result import HeldArray, without_answer
from shardviz.sharding import ShardedArray
from shardviz.sharding.array import WIDE
from shardviz.targets import EXTRAS, ProcessName, versions_of


def versions(name: ProcessName) -> Versions:
    """(name, version) of what computes the answers."""
    packages = EXTRAS[name].packages if name in EXTRAS else ()
    own = (("jax", jax.__version__), ("jaxlib", jaxlib.__version__), ("python", python_version()))
    return (*own, *versions_of(*packages))


def answer(report: Callable[[str], None], question: Question) -> Output:
    """Ask the target about a program. A refusal of JAX or XLA is an answer too, with status "error"."""
    program = None

    def ask() -> Output:
        nonlocal program
        if question.mesh.target == "shardy":
            program = Program(question, shardy.abstract_mesh(question.mesh))
            return shardy.ask(program, report)
        mesh, placement = xla.target_mesh(question.mesh, report)
        program = Program(question, mesh)
        return xla.ask(program, report, placement)

    # JAX would silently narrow 64-bit types; whether it does must depend on the question alone.
    with jax.enable_x64(any(array.dtype in WIDE for array in question.arguments)):
        output = answered(question.mesh.target, ask)
        if program is None:
            return output
        if output.result.status == "error":
            output = replace(output, settled_by=settled_by(program))
    return replace(output, result=replace(output.result, typeof=tuple(program.typeof)))


def answered(target: str, ask: Callable[[], Output]) -> Output:
    """The answer of a target with its time, or, as an answer, what it refuses."""
    start = time.perf_counter()
    try:
        output = ask()
    except Exception as error:
        output = Output(without_answer(target, refusal_by(error)))
    return replace(output, result=replace(output.result, elapsed_s=time.perf_counter() - start))


def layout(report: Callable[[str], None], devices: TargetMesh, array: ShardedArray) -> HeldArray:
    """The layout of an array on simulated devices, by JAX. Its refusal is an answer too."""
    try:
        mesh, _ = xla.target_mesh(devices, report)
        sharding = named_sharding(mesh, array.decided_spec)
        indices = sharding.devices_indices_map(array.shape)
        held = []
        for device in mesh.devices.flat:
            bounds = (part.indices(size)[:2] for part, size in zip(indices[device], array.shape, strict=True))
            held.append((device.id, tuple(bounds)))
        bits = jax.dtypes.itemsize_bits(jax_dtype(array.dtype))
        return HeldArray(tuple(sharding.shard_shape(array.shape)), bits, tuple(held))
    except Exception as error:
        return HeldArray(error=refusal_by(error).message)
