"""A problem for Shardy, which decides without devices, on a mesh of any size, and says what it inserts."""

from __future__ import annotations

from shardviz.render.code.spelling import tuple_code
from shardviz.sharding import Mesh

SHARDY_IMPORTS = ["from jaxlib.mlir.passmanager import PassManager"]
_PASSES = (
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "func.func(sdy-reshard-to-collectives)",
    "canonicalize",
)


def shardy_mesh_code(mesh: Mesh, axis_types: str) -> list[str]:
    """Lines that make a mesh without devices."""
    types = f"axis_types=(AxisType.{axis_types},) * {len(mesh.axis_names)}"
    return [
        'jax.config.update("jax_platforms", "cpu")',
        "",
        "# Shardy, the partitioner, decides on a mesh without devices.",
        f"mesh = AbstractMesh({tuple_code(mesh.axis_sizes)}, {tuple_code(mesh.axis_names)}, {types})",
    ]


def shardy_passes_code() -> list[str]:
    """Lines that run Shardy's passes on what was lowered, and print the collectives."""
    return [
        'module = lowered.compiler_ir("stablehlo")',
        "with module.context:",
        "    for passes in (",
        *(f'        "{each}",' for each in _PASSES),
        "    ):",
        '        PassManager.parse(f"builtin.module({passes})").run(module.operation)',
        "",
        'sent = [line for line in str(module).splitlines() if "= sdy." in line]',
        'print("collectives:" if sent else "collectives: none, nothing is sent")',
        "for line in sent:",
        "    print(line.strip())",
    ]
