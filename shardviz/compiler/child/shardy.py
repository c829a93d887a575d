"""Shardy, the partitioner inside jaxlib: no devices, no backend, a mesh of any size."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jax.sharding import AbstractMesh
from jaxlib.mlir.passmanager import PassManager

from shardviz.compiler.child.program import Program, axis_types
from shardviz.compiler.child.xla import simulate
from shardviz.compiler.messages import DeviceMesh, Output

PASSES = {
    "propagation": "builtin.module(sdy-propagation-pipeline)",
    "insert-explicit-reshards": (
        "builtin.module(func.func(sdy-insert-explicit-reshards{enable-full-version=true}))"
    ),
    "reshard-to-collectives": "builtin.module(func.func(sdy-reshard-to-collectives))",
    "canonicalize": "builtin.module(canonicalize)",
}
"""Propagation, then each change of sharding made visible, then as collectives, then the simplest form.

The last joins an all-reduce and the slice of its result into `sdy.reduce_scatter`.
"""


RESHARDS, LAST = "insert-explicit-reshards", "canonicalize"
EARLY_DEVICES = 64
"""As many simulated devices start in some milliseconds."""


def abstract_mesh(mesh: DeviceMesh) -> Any:
    """A JAX mesh without devices; their order plays no part in what Shardy decides."""
    # Lowering asks for a default device and so starts the backend in any case: better with the devices
    # that the target cpu will want next than with one.
    simulate(min(math.prod(mesh.axis_sizes), EARLY_DEVICES))
    return AbstractMesh(mesh.jax_sizes, mesh.jax_names, axis_types=axis_types(mesh))


def ask(program: Program, report: Callable[[str], None]) -> Output:
    """The partitioned module. Raises what JAX and the passes raise."""
    report("lowering")
    # With no devices there is no platform to take; einsums lower alike for all of them.
    module = program.trace().lower(lowering_platforms=("tpu",)).compiler_ir("stablehlo")
    report("partitioning")
    with module.context:
        _dump(program, "00.input", module)
        for place, (name, passes) in enumerate(PASSES.items(), 1):
            PassManager.parse(passes).run(module.operation)
            _dump(program, f"{place:02}.after_{name}", module)
        located = module.operation.get_asm(enable_debug_info=True) if len(program.question.parts) > 1 else ""
    return Output("ok", str(module), located=located)


def partitioned(module: Any) -> tuple[str, str]:
    """The text of a module after all passes, with the place of each operation, and before that the one with
    explicit reshards. Raises what they raise."""
    texts = {}
    with module.context:
        for name, passes in PASSES.items():
            PassManager.parse(passes).run(module.operation)
            if name in (RESHARDS, LAST):
                texts[name] = module.operation.get_asm(enable_debug_info=True)
    return texts[LAST], texts[RESHARDS]


def with_reshards(module: Any) -> str:
    """The text with explicit reshards alone, "" where Shardy refuses the module."""
    try:
        with module.context:
            for name, passes in PASSES.items():
                PassManager.parse(passes).run(module.operation)
                if name == RESHARDS:
                    return str(module.operation.get_asm(enable_debug_info=True))
    except Exception:  # what XLA compiles all the same has no reasons then
        pass
    return ""


def _dump(program: Program, name: str, module: Any) -> None:
    """Leave the module where XLA leaves what Shardy does inside it, if it is asked for."""
    if program.question.dump_to:
        folder = Path(program.question.dump_to, "shardy", "module_0000.jit_program")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.mlir").write_text(str(module), encoding="utf-8")
