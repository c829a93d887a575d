"""Where a program compiles: its imports, and the lines that make the mesh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.render.code.described_code import described_mesh_code
from shardviz.render.code.shardy_code import SHARDY_IMPORTS, shardy_mesh_code
from shardviz.render.code.spelling import devices_code, mesh_code, wide_code

if TYPE_CHECKING:
    from shardviz.compiler.targets import Target
    from shardviz.planner.problem import Problem


@dataclass(frozen=True)
class Setting:
    """Lines that import, and lines that make `mesh`; `has_devices` where it has some that can hold data."""

    imports: list[str]
    mesh: list[str]
    has_devices: bool


def setting_for(target: Target, problem: Problem) -> Setting:
    """The setting in which a target compiles a problem."""
    mesh, types = problem.mesh, "Explicit" if problem.axis_types == "explicit" else "Auto"
    wide = wide_code(problem.arguments[0].dtype)
    if target.name == "shardy":
        imports = [*_JAX, *_sharding("AbstractMesh, "), *SHARDY_IMPORTS]
        return Setting(imports, [*wide, *shardy_mesh_code(mesh, types)], False)
    numpy = ["import numpy as np"] if mesh.device_order is not None else []
    if target.machines is not None:
        lines, helpers = described_mesh_code(target.machines, mesh, types)
        before = _TPU if target.machines.lane == "tpu" else ["import re", ""]
        imports = [*before, *_JAX, *numpy, *helpers, *_sharding()]
        return Setting(imports, [*wide, *lines], False)
    devices = devices_code(mesh.size, problem.arguments[0].dtype) if target.name == "cpu" else wide
    imports = ["import re", "", *_JAX, *numpy, *_sharding()]
    return Setting(imports, [*devices, *[""] * bool(devices), *mesh_code(mesh, types)], True)


_JAX = ["import jax", "import jax.numpy as jnp"]
_TPU = [
    "import os",
    "import re",
    "",
    "# libtpu is to ask no network where it runs, and to bear others beside it.",
    'os.environ["TPU_SKIP_MDS_QUERY"] = os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"',
    "",
]


def _sharding(more: str = "") -> list[str]:
    names = f"{more}AxisType, NamedSharding"
    return [f"from jax.sharding import {names}", "from jax.sharding import PartitionSpec as P"]
