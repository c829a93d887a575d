"""A program of the user's, lowered in another process: its module, compiled for a target as JAX would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

# Private, and the same in jax 0.8.3 to 0.12: with these JAX itself compiles what it has lowered.
from jax._src.compiler import backend_compile_and_load, get_compile_options
from jax.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.xla_client import DeviceList

from shardviz.compiler.child import reshards, shardy, xla
from shardviz.compiler.child.answer import answered
from shardviz.compiler.child.xla import rematerialization_warnings
from shardviz.compiler.messages import ModuleQuestion, Output
from shardviz.reports.lowered_module import ExplicitReshards
from shardviz.reports.target_result import TargetResult

_SHARDINGS = ("sdy.sharding", "mhlo.sharding")
"""The attribute of an argument or a result that is split as the program says."""
_OPEN = "?}"
"""The end of a dimension that Shardy may split further, in its attribute: JAX's `P.UNCONSTRAINED`."""


def answer(report: Callable[[str], None], question: ModuleQuestion) -> Output:
    """Compile for the target. A refusal of XLA is an answer too, with status "error"."""
    return answered(question.mesh.target, lambda: _answer(report, question))


def _answer(report: Callable[[str], None], question: ModuleQuestion) -> Output:
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
            executable = _executable(module, devices, options | dict(question.options))
        return xla.Compiled(
            executable,
            lambda: "\n\n".join(part.to_string() for part in executable.hlo_modules()),
            executable.get_compiled_memory_stats,
        )

    _, output = xla.output_of(question, compile_with)
    is_asked = _is_for_shardy(module) and not question.changes
    return replace(
        output,
        result=replace(output.result, placement=placement),
        warnings="\n".join(warnings[0]),
        reshards=_reshards(question.code) if is_asked else None,
    )


@lru_cache(maxsize=1)
def _reshards(code: bytes) -> ExplicitReshards | None:
    """The module's explicit reshards: the same for all targets of a platform, which are asked one
    after the other."""
    with make_ir_context():
        return reshards.explicit_reshards(ir.Module.parse(code))


def _executable(module: ir.Module, devices: np.ndarray[Any, Any], options: dict[str, Any]) -> Any:
    """The program that XLA makes of the module. Raises what XLA raises."""
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
    if name not in attributes:
        return []
    each = map(str, ir.ArrayAttr(attributes[name]))
    return [_OPEN in one or not any(sharding in one for sharding in _SHARDINGS) for one in each]


def _is_for_shardy(module: ir.Module) -> bool:
    """Return whether shardings are Shardy's: only who turned it off in JAX still has the older ones."""
    return all("mhlo.sharding" not in str(each) for each in shardy.main_of(module).attributes["arg_attrs"])
