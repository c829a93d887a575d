"""A program of the user's, lowered in another process: its module, compiled for a target as JAX would."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import numpy as np

# Private, and the same in jax 0.8.3 to 0.12: with these JAX itself compiles what it has lowered.
from jax._src.compiler import backend_compile_and_load, get_compile_options
from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.xla_client import DeviceList

from shardviz.compiler.child import reshards, shardy, xla
from shardviz.compiler.child.program import words_of
from shardviz.compiler.child.recording import Recording, Warnings, memory_sizes
from shardviz.compiler.messages import NO_ROOM, CompileModule, MemoryTexts, Output
from shardviz.errors import CompilerError, TargetError
from shardviz.reports.explicit_reshards import ExplicitReshards
from shardviz.reports.target_result import TargetResult, without_answer

_SHARDINGS = ("sdy.sharding", "mhlo.sharding")
"""The attribute of an argument or a result that is split as the program says."""
MOST_WORDS = 2000
"""Characters of a message about memory: its figures stand behind an instruction."""
_OPEN = "?}"
"""The end of a dimension that Shardy may split further, in its attribute: JAX's `P.UNCONSTRAINED`."""


def compile_module(request: CompileModule, report: Callable[[str], None]) -> Output:
    """Compile for the target. A refusal of XLA is an answer too, with status "error"."""
    start = time.perf_counter()
    try:
        output = _compiled(request, report)
    except (TargetError, CompilerError) as error:
        output = Output(without_answer(request.target, error))
    except Exception as error:
        output = Output(TargetResult(request.target, "error", error=words_of(error)))
    elapsed = time.perf_counter() - start
    return replace(output, result=replace(output.result, elapsed_s=elapsed))


def _compiled(request: CompileModule, report: Callable[[str], None]) -> Output:
    with make_ir_context():
        module = ir.Module.parse(request.code)
    for change in request.changes:
        shardy.change(module, change)
    if request.target == "shardy":
        report("partitioning")
        text, seen = reshards.partitioned(module)
        return Output(TargetResult("shardy", "ok", text=text), reshards=seen)
    mesh, placed = xla.target_mesh(request, report)
    report("compiling")
    output = replace(_answer(request, module, mesh.devices.ravel()), devices=placed)
    if not _is_for_shardy(module) or request.changes:
        return output
    return replace(output, reshards=_reshards(request.code))


@lru_cache(maxsize=1)
def _reshards(code: bytes) -> ExplicitReshards | None:
    """The module's explicit reshards: the same for all targets of a platform, which are asked one
    after the other."""
    with make_ir_context():
        return reshards.explicit_reshards(ir.Module.parse(code))


def _answer(request: CompileModule, module: ir.Module, devices: np.ndarray[Any, Any]) -> Output:
    """The compiler's program. Only where it fails it compiles again, and leaves texts that say why: they cost
    time. A program that does not fit into a device's memory is an answer too, with what would lie there."""
    recording = None
    if request.with_costs:
        recording = Recording(costs_to=request.folder, topology=request.topology)
    warnings = Warnings()
    try:
        with warnings:
            executable = _executable(request, module, devices, recording)
    except jax.errors.JaxRuntimeError as error:
        failure = error
    else:
        return replace(_program(request.target, executable, recording), warnings=warnings.text)
    if recording is None:
        recording = Recording(costs_to=request.folder)
        try:
            _executable(request, module, devices, recording)
        except jax.errors.JaxRuntimeError as error:
            failure = error
    if NO_ROOM.search(str(failure)):
        words, memory = words_of(failure, MOST_WORDS), recording.memory()
        # Its last text: scheduled, or as far as the compiler came.
        text = memory.module or recording.partitioned or ""
        result = TargetResult(request.target, "error", text=text, error=words)
        return Output(result, schedule=recording.schedule, memory=memory, warnings=warnings.text)
    if recording.final is None:
        raise failure
    # The compiler has finished, and jaxlib cannot load the program.
    result = TargetResult(request.target, "ok", text=recording.final)
    return Output(result, schedule=recording.schedule, memory=recording.memory(), warnings=warnings.text)


def _program(target: str, executable: Any, recording: Recording | None) -> Output:
    """The answer of a program that is compiled."""
    analysis = executable.get_compiled_memory_stats
    if recording is None:
        result = TargetResult(target, "ok", text=_text(executable))
        return Output(result, memory=MemoryTexts(memory_sizes(analysis)))
    try:
        text = _text(executable)
    except jax.errors.JaxRuntimeError:
        if recording.final is None:
            raise
        text = recording.final
    result = TargetResult(target, "ok", text=text)
    return Output(result, schedule=recording.schedule, memory=recording.memory(analysis))


def _text(executable: Any) -> str:
    return "\n\n".join(each.to_string() for each in executable.hlo_modules())


def _executable(
    request: CompileModule, module: ir.Module, devices: np.ndarray[Any, Any], recording: Recording | None
) -> Any:
    """The program that XLA makes of the module. Raises what XLA raises."""
    options = dict(request.options) if recording is None else recording.options | dict(request.options)
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
    attributes = _main(module).attributes
    build.allow_spmd_sharding_propagation_to_parameters = _left_open(attributes, "arg_attrs")
    build.allow_spmd_sharding_propagation_to_output = _left_open(attributes, "res_attrs")
    build.use_shardy_partitioner = _is_for_shardy(module)
    with recording or nullcontext():
        return backend_compile_and_load(client, module, DeviceList(tuple(devices)), compile_options, [])


def _main(module: ir.Module) -> Any:
    functions = (each for each in module.body.operations if "sym_name" in each.attributes)
    return next(each for each in functions if ir.StringAttr(each.attributes["sym_name"]).value == "main")


def _left_open(attributes: Mapping[str, Any], name: str) -> list[bool]:
    """For each argument or result, true where the program does not say how it is split, or not in full."""
    if name not in attributes:
        return []
    each = map(str, ir.ArrayAttr(attributes[name]))
    return [_OPEN in one or not any(sharding in one for sharding in _SHARDINGS) for one in each]


def _is_for_shardy(module: ir.Module) -> bool:
    """Return whether shardings are Shardy's: only who turned it off in JAX still has the older ones."""
    return all("mhlo.sharding" not in str(each) for each in _main(module).attributes["arg_attrs"])
