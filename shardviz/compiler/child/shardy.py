"""Shardy, the partitioner inside jaxlib: no devices, no backend, a mesh of any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from jax.sharding import AbstractMesh
from jaxlib.mlir.passmanager import PassManager

from shardviz.compiler.child.backend import simulate
from shardviz.compiler.child.program import Program, axis_types
from shardviz.compiler.messages import Output, Question

PASSES = (
    "builtin.module(sdy-propagation-pipeline)",
    "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}))",
    "builtin.module(func.func(sdy-reshard-to-collectives))",
    "builtin.module(canonicalize)",
)
"""Propagation, then each change of sharding made visible, then as collectives, then the simplest form.

The last joins an all-reduce and the slice of its result into `sdy.reduce_scatter`.
"""


EARLY_DEVICES = 64
"""As many simulated devices start in some milliseconds."""


def mesh_for(question: Question) -> Any:
    """A JAX mesh without devices; their order plays no part in what Shardy decides."""
    # Lowering asks for a default device and so starts the backend in any case: better with the devices
    # that the target cpu will want next than with one.
    simulate(min(math.prod(question.axis_sizes), EARLY_DEVICES))
    return AbstractMesh(question.axis_sizes, question.axis_names, axis_types=axis_types(question))


def ask(program: Program, report: Callable[[str], None]) -> Output:
    """What Shardy decides. Raises what JAX and the passes raise."""
    report("lowering")
    # With no devices there is no platform to take; einsums lower alike for all of them.
    module = program.trace().lower(lowering_platforms=("tpu",)).compiler_ir("stablehlo")
    report("partitioning")
    with module.context:
        for passes in PASSES:
            PassManager.parse(passes).run(module.operation)
    return Output("ok", str(module))
