"""XLA: for simulated CPU devices, for the devices that JAX finds, and for hardware that is not here."""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from shardviz.compiler.child.program import Program, axis_types, spec_of
from shardviz.compiler.messages import DeviceMesh, Output
from shardviz.compiler.targets import MAX_CPU_DEVICES
from shardviz.errors import CompilerError, TargetError, plural

_DUMP = {"xla_dump_to": "-", "xla_dump_hlo_as_text": True, "xla_dump_hlo_pass_re": "spmd-partitioning"}
"""Have XLA write the modules around SPMD partitioning to stdout, which needs no folder to clean up."""

_WANTED = re.compile(r"spmd-partitioning|after_codegen")
"""What is read of a dump of all passes."""

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
    """A JAX mesh of the devices that JAX finds; `TargetError` when they are too few."""
    wanted, found = math.prod(mesh.axis_sizes), len(_devices())
    if found < wanted:
        simulated = "--target cpu for simulated devices, or " if wanted <= MAX_CPU_DEVICES else ""
        raise TargetError(
            f"the mesh has {plural(wanted, 'device')} but JAX finds {found:,} here",
            f"ask {simulated}--target shardy for a mesh of any size",
        )
    return _jax_mesh(mesh)


def ask(program: Program, report: Callable[[str], None]) -> Output:
    """The program that XLA emits. Raises what JAX and XLA raise."""
    report("lowering")
    lowered = program.trace().lower()
    report("compiling")
    compiled, dump = _compile(lowered, program.question.dump_to)
    return Output(
        "ok",
        _text(compiled, dump),
        _dumped(dump, r"\S+\.after_(?:tpu-)?spmd-partitioning\.\S+"),
        spec_of(compiled.output_shardings, program.question, len(program.question.parts[-1].result.shape)),
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
    devices = devices.reshape(mesh.axis_sizes)
    return jax.sharding.Mesh(devices, mesh.axis_names, axis_types=axis_types(mesh))


def _compile(lowered: Any, folder: str) -> tuple[Any, str]:
    """Compile, and return what XLA wrote to stdout meanwhile, or into the folder for dumps of all passes."""
    if folder:
        every_pass = {"xla_dump_to": folder, "xla_dump_hlo_pass_re": ".*"}
        compiled = lowered.compile(compiler_options=_DUMP | every_pass)
        found = (path for path in sorted(Path(folder).glob("*.txt")) if _WANTED.search(path.name))
        return compiled, "".join(map(_as_on_stdout, found))
    sys.stdout.flush()
    with tempfile.TemporaryFile() as dump:
        stdout = os.dup(1)
        os.dup2(dump.fileno(), 1)
        try:
            compiled = lowered.compile(compiler_options=_DUMP)
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
        dump.seek(0)
        return compiled, dump.read().decode(errors="replace")


def _as_on_stdout(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    return f"*** Begin {path.name} ***\n{text}\n*** End {path.name} ***\n"


def _text(compiled: Any, dump: str) -> str:
    """The final module. Where it holds what this jaxlib does not know yet (libtpu is newer, or the chip),
    as the compiler itself has printed it."""
    try:
        text: str = compiled.as_text()
    except jax.errors.JaxRuntimeError:
        found = _dumped(dump, r"\S+\.after_codegen\.txt")
        if found is None:
            raise
        return found
    return text


def _dumped(dump: str, name: str) -> str | None:
    """The first module in a dump whose file has a name like that."""
    found = re.search(rf"^\*\*\* Begin {name} \*\*\*\n(.*?)^\*\*\* End ", dump, re.MULTILINE | re.DOTALL)
    return found[1] if found else None
