"""Programs whose times on real TPUs are published, compiled by libtpu for those TPUs, without one.

``python tests/benchmarks/measured_programs.py`` writes their texts to ``programs/``, from which
`accuracy.py` tells their times without a compiler, and what the compiler's own scheduler simulated of those
with asynchronous operations; with ``--check`` it compares all or the named, and exits with 1 if one differs.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
os.environ.setdefault("TPU_STDERR_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from jax.sharding import AxisType, NamedSharding, PartitionSpec

# A text names the user's line alone, not those of the calls to this file.
jax.config.update("jax_traceback_in_locations_limit", 1)

P = PartitionSpec
HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
MEGACORE = {"chip_config_name": "megacore"}
"""One device a chip, as JAX shows a v4."""


@dataclass(frozen=True)
class MeasuredProgram:
    """A function of bf16 arrays on a mesh of a TPU slice.

    `arrays` are (shape, spec), `out` is the result's spec, `options` are the compiler's. With `mapped` the
    function is one of shards, under `jax.shard_map`.
    """

    slice: str
    mesh: Mapping[str, int]
    function: Callable[..., Any]
    arrays: tuple[tuple[tuple[int, ...], PartitionSpec], ...]
    out: PartitionSpec
    mapped: bool = False
    options: Mapping[str, bool] = field(default_factory=dict)

    def texts(self) -> tuple[str, str]:
        """The scheduled module, without the path of this file, and the scheduler's simulation, or ""."""
        extra = MEGACORE if self.slice.startswith("v4") else {}
        devices = topologies.get_topology_desc(self.slice, platform="tpu", **extra).devices
        names = tuple(self.mesh)
        mesh = jax.make_mesh(
            tuple(self.mesh.values()), names, devices=devices, axis_types=(AxisType.Auto,) * len(names)
        )
        specs = tuple(spec for _, spec in self.arrays)
        arguments = [
            jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))
            for shape, spec in self.arrays
        ]
        function = self.function
        if self.mapped:
            function = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=self.out, check_vma=False)
        jitted = jax.jit(function, out_shardings=NamedSharding(mesh, self.out))
        with tempfile.TemporaryDirectory() as folder:
            dump = {
                "xla_dump_to": folder,
                "xla_dump_hlo_module_re": "none",
                "xla_dump_latency_hiding_schedule": True,
            }
            compiled = jitted.lower(*arguments).compile(compiler_options={**dump, **self.options})
            dumped = "".join(path.read_text() for path in Path(folder).glob("*.schedule.txt"))
        # The module before the simulation is the same program, in a thousand lines.
        start = dumped.find("computation_schedules {")
        return compiled.as_text().replace(f"{HERE}{os.sep}", ""), dumped[start:] if dumped else ""


def four_layers(activation: Any, *weights: Any) -> Any:
    """A batch through layers whose weights are split over all devices."""
    for weight in weights:
        activation = activation @ weight
    return activation


def matmul(left: Any, right: Any) -> Any:
    return left @ right


def up_projection(tokens: Any, weight: Any) -> Any:
    return jnp.einsum("bsd,df->bsf", tokens, weight)


def down_projection(hidden: Any, weight: Any) -> Any:
    return jnp.einsum("bsf,fd->bsd", hidden, weight)


def collective_matmul(left: Any, right: Any) -> Any:
    """Multiply the chunk of `left` that is here while it moves on to the neighbour along Y."""
    size, own = jax.lax.axis_size("Y"), jax.lax.axis_index("Y")
    chunk = left.shape[1]
    total = jnp.zeros((left.shape[0], right.shape[1]), left.dtype)
    for turn in range(size):
        rows = jax.lax.dynamic_slice_in_dim(right, (own + turn) % size * chunk, chunk)
        total += left @ rows
        if turn < size - 1:
            left = jax.lax.ppermute(left, "Y", [(each, (each - 1) % size) for each in range(size)])
    return total


def gather(array: Any) -> Any:
    return jax.lax.all_gather(array, "Y", tiled=True)


_FOUR_LAYERS = MeasuredProgram(
    "v4:2x2x1",
    {"axis": 4},
    four_layers,
    (((16384, 16384), P("axis", None)), *[((16384, 16384), P(None, "axis"))] * 4),
    P("axis", None),
)
_BOOK = {"X": 2, "Y": 4}
_LEFT, _RIGHT = ((1024, 2048), P("X", "Y")), ((2048, 8192), P(None, "Y"))
_COLLECTIVE = partial(
    MeasuredProgram, "v2:2x2", _BOOK, collective_matmul, (_LEFT, _RIGHT), P("X", "Y"), mapped=True
)
_MLP = {"X": 4, "Y": 2}
_GATHER = partial(MeasuredProgram, "v5e:8x4", {"X": 8, "Y": 4}, gather, out=P(None, None), mapped=True)

MEASURED = {
    "four_layers": _FOUR_LAYERS,
    "four_layers_async": MeasuredProgram(
        _FOUR_LAYERS.slice,
        _FOUR_LAYERS.mesh,
        four_layers,
        _FOUR_LAYERS.arrays,
        _FOUR_LAYERS.out,
        options={"xla_enable_async_all_gather": True},
    ),
    "nothing_to_gather": MeasuredProgram(
        "v2:2x2", _BOOK, matmul, (((1024, 2048), P("X", None)), _RIGHT), P("X", "Y")
    ),
    "gather_first": MeasuredProgram("v2:2x2", _BOOK, matmul, (_LEFT, _RIGHT), P("X", "Y")),
    "collective_matmul": _COLLECTIVE(),
    "collective_matmul_async": _COLLECTIVE(options={"xla_enable_async_collective_permute": True}),
    "up_projection": MeasuredProgram(
        "v2:2x2",
        _MLP,
        up_projection,
        (((32, 1024, 8192), P("X", None, None)), ((8192, 32768), P(None, "Y"))),
        P("X", None, "Y"),
    ),
    "down_projection": MeasuredProgram(
        "v2:2x2",
        _MLP,
        down_projection,
        (((32, 1024, 32768), P("X", None, "Y")), ((32768, 8192), P("Y", None))),
        P("X", None, "Y"),
    ),
    "gather_32MiB": _GATHER(arrays=(((2048, 8192), P("Y", None)),)),
    "gather_128KiB": _GATHER(arrays=(((256, 256), P("Y", None)),)),
}


def write_or_check(programs: Mapping[str, MeasuredProgram]) -> int:
    """Write the texts of programs, or compare them with those that are there; return the exit code."""
    differ = []
    PROGRAMS.mkdir(exist_ok=True)
    named = [word for word in sys.argv[1:] if word != "--check"]
    for name in named or programs:
        for path, text in zip(paths(name), programs[name].texts(), strict=True):
            if "--check" not in sys.argv:
                path.unlink(missing_ok=True)
                if text:
                    path.write_text(text, encoding="utf-8")
            elif text != (path.read_text(encoding="utf-8") if path.exists() else ""):
                differ.append(path.name)
    if differ:
        print("these differ from what libtpu writes:", ", ".join(differ), file=sys.stderr)
    return 1 if differ else 0


def paths(name: str) -> tuple[Path, Path]:
    """The files of a program's text and of its schedule."""
    return PROGRAMS / f"{name}.txt", PROGRAMS / f"{name}.schedule.txt"


if __name__ == "__main__":
    sys.exit(write_or_check(MEASURED))
