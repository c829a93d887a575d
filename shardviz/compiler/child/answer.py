"""Questions answered: a problem, or a program of the user's that was lowered in another process, compiled for
its target, with the time, or why JAX or XLA refuses it; and layouts."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from platform import python_version
from typing import Any

import jax
import jaxlib
import numpy as np

# Private, and the same in jax 0.8.3 to 0.12: with these JAX itself compiles what it has lowered.
from jax._src.compiler import backend_compile_and_load, get_compile_options
from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.xla_client import DeviceList

from shardviz.compiler.child import shardy, xla
from shardviz.compiler.child.program import Program, jax_dtype, named_sharding, refusal_by, settled_by
from shardviz.compiler.child.xla import rematerialization_warnings
from shardviz.compiler.messages import ModuleQuestion, Output, Question, TargetMesh, Versions, shardings_of
from shardviz.lazy_names import LazyImports
from shardviz.reports.lowered_module import ExplicitReshards
from shardviz.reports.target_result import HeldArray, TargetResult, without_answer
from shardviz.sharding import ShardedArray
from shardviz.sharding.array import WIDE
from shardviz.targets import EXTRAS, ProcessName, versions_of

with LazyImports():  # for programs of users alone
    from shardviz.compiler.child import reshards


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


def answer_program(report: Callable[[str], None], question: ModuleQuestion) -> Output:
    """Compile for the target. A refusal of XLA is an answer too, with status "error"."""
    return answered(question.mesh.target, lambda: _compiled(report, question))


def _compiled(report: Callable[[str], None], question: ModuleQuestion) -> Output:
    with make_ir_context():
        module = ir.Module.parse(question.code)
    for change in question.changes:
        shardy.change(module, change)
    if question.mesh.target == "shardy":
        report("partitioning")
        text, seen = reshards.partitioned(module)
        return Output(TargetResult("shardy", "ok", text=text), reshards=seen)
    mesh, placement = xla.target_mesh(question.mesh, report)
    report("compiling")
    devices = mesh.devices.ravel()
    warnings: list[list[str]] = []  # of each time that it is compiled

    def compile_with(options: dict[str, Any]) -> xla.Compiled:
        with rematerialization_warnings() as lines:
            warnings.append(lines)
            # XLA for CPU does not take the words.
            given = {name: {"true": True, "false": False}.get(each, each) for name, each in question.options}
            executable = _executable(module, devices, options | given)
        return xla.Compiled(
            executable,
            lambda: "\n\n".join(part.to_string() for part in executable.hlo_modules()),
            executable.get_compiled_memory_stats,
        )

    executable, output = xla.output_of(question, compile_with)
    is_asked = _is_for_shardy(module) and not question.changes
    return replace(
        output,
        result=replace(output.result, placement=placement),
        warnings="\n".join(warnings[0]),
        reshards=explicit_reshards(question.code) if is_asked else None,
        shardings=((), ()) if executable is None else shardings_of(executable),
    )


CRASHING_JAX = (0, 9, 2)
"""The release whose Shardy kills its process at a loop or a call; those before and after do not."""


@lru_cache(maxsize=1)
def explicit_reshards(code: bytes) -> ExplicitReshards | None:
    """The explicit reshards of a module, the same for all targets of a platform, which are asked one after
    the other; None where Shardy refuses it, or would crash on it."""
    with make_ir_context():
        module = ir.Module.parse(code)
        has_calls = re.search(r"\bstablehlo\.while\b|\bcall @", str(module))
        if jax.__version_info__[:3] == CRASHING_JAX and has_calls:
            return None
        try:
            uneven = tuple(reshards.Reshards(module).uneven_constraints())
            barriers = tuple(reshards.barriers_in(module))
            next(name for name in shardy.passes(module) if name == reshards.RESHARDS)  # none after it runs
            return replace(reshards.Reshards(module).read(), uneven=uneven, barriers=barriers)
        except Exception:  # what XLA compiles all the same has no reasons then
            return None


def _executable(module: ir.Module, devices: np.ndarray[Any, Any], options: dict[str, Any]) -> Any:
    client = devices[0].client
    compile_options = get_compile_options(
        num_replicas=1,
        num_partitions=devices.size,
        device_assignment=devices.reshape(1, -1),
        env_options_overrides=options,
        backend=client,
    )
    # As JAX does: the compiler chooses how to split what the program leaves open.
    build = compile_options.executable_build_options
    attributes = shardy.main_of(module).attributes
    build.allow_spmd_sharding_propagation_to_parameters = _left_open(attributes, "arg_attrs")
    build.allow_spmd_sharding_propagation_to_output = _left_open(attributes, "res_attrs")
    build.use_shardy_partitioner = _is_for_shardy(module)
    return backend_compile_and_load(client, module, DeviceList(tuple(devices)), compile_options, [])


def _left_open(attributes: Mapping[str, Any], name: str) -> list[bool]:
    """For each argument or result, true where the program does not say how it is split, or not in full."""
    texts = map(str, ir.ArrayAttr(attributes[name])) if name in attributes else ()
    # A dimension that Shardy may split further, JAX's `P.UNCONSTRAINED`, ends in a question mark.
    return ["?}" in one or not re.search("(?:sdy|mhlo)[.]sharding", one) for one in texts]


def _is_for_shardy(module: ir.Module) -> bool:
    """Return whether shardings are Shardy's: only who turned it off in JAX still has the older ones."""
    attributes = shardy.main_of(module).attributes
    return "arg_attrs" not in attributes or "mhlo.sharding" not in str(attributes["arg_attrs"])
