"""Reading HLO: megabytes a second and memory, of texts dense in collectives, the mesh given and inferred;
and the seconds of a whole report, with where each operand comes from and a machine's times.

JAX makes the texts of a 32-layer model's step, its layers one after the other or in a loop, which are
repeated. GPU text is made of what JAX once wrote on H100s, tests/hlo/recorded: the computations and the steps
of these small programs again and again, under new names, in one module. So is dense text of the whole train
step that `train_step.py` has recorded; of that, origins and a timeline are measured as well.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from timing import line

MEGABYTE = 1_000_000
LAYERS = 32
RECORDED = Path(__file__).parents[1] / "hlo" / "recorded"
PROGRAMS = Path(__file__).parent / "programs"
GPU_PROGRAMS = (
    "all_gather_h100x8",
    "reduce_scatter_h100x8",
    "all_reduces_combined",
    "all_gathers_combined",
)
PERMUTES = (*GPU_PROGRAMS, "permute_h100x8")
NAME = re.compile(r"%([\w.-]+)")
PARAMETER = re.compile(r" parameter\((\d+)\)")

MODEL = """
import os, sys
os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, jax.numpy as jnp, numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

topology, layers, in_loop, path = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "loop", sys.argv[4]
devices = jax.devices() if topology == "cpu" else topologies.get_topology_desc(
    platform="tpu", topology_name=topology).devices
mesh = Mesh(np.array(devices).reshape(2, 4), ("X", "Y"), axis_types=(AxisType.Auto,) * 2)
D, H, K, F = 128, 4, 32, 512

def array(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, PartitionSpec(*axes)))

def layer(x, weights):
    q, k, v, o, up, down = weights
    h = x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
    queries, keys, values = (jnp.einsum("bsd,dhk->bshk", h, w) for w in (q, k, v))
    attention = jax.nn.softmax(jnp.einsum("bshk,bthk->bhst", queries, keys) / K**0.5, -1)
    x = x + jnp.einsum("bhst,bthk,hkd->bsd", attention, values, o)
    return x + jax.nn.relu(x @ up) @ down

def loss(weights, x):
    if in_loop:
        return jnp.mean(jax.lax.scan(lambda x, each: (layer(x, each), None), x, weights)[0] ** 2)
    for each in weights:
        x = layer(x, each)
    return jnp.mean(x * x)

def step(weights, x):
    return jax.tree.map(lambda w, g: w - g * 1e-3, weights, jax.grad(loss)(weights, x))

shapes = [((D, H, K), "X", "Y")] * 3 + [((H, K, D), "Y", None, "X"), ((D, F), "X", "Y"), ((F, D), "Y", "X")]
if in_loop:
    weights = [array((layers, *shape), None, *axes) for shape, *axes in shapes]
else:
    weights = [[array(shape, *axes) for shape, *axes in shapes]] * layers
text = jax.jit(step).lower(weights, array((8, 64, D), "X")).compile().as_text()
open(path, "w").write(text)
"""
READ = """
import resource, sys, time
from shardviz.hlo import read_hlo
from shardviz.sharding import Mesh

one = open(sys.argv[1]).read()
text = one * (int(sys.argv[2]) // len(one) + 1)
options = {"infer": True} if sys.argv[3] == "inferred" else {"mesh": Mesh(("X", "Y"), (2, 4))}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
seconds = []
for _ in range(5):
    start = time.process_time()
    module = read_hlo(text, **options)
    seconds.append(time.process_time() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert not module.unread
print(len(text) / 1e6 / min(seconds), len(text) / 1e6, (peak - before) / 1e3, len(module.collectives))
"""
DENSE = """
import sys, time
from shardviz.hardware.machine_file import named_machine
from shardviz.hlo import read_hlo
from shardviz.sharding import Mesh
from shardviz.timeline.of_program import timed_program

text, machine = open(sys.argv[1]).read(), named_machine(sys.argv[2])
mesh = Mesh(("data", "model"), (2, 4))

def seconds(function, **options):
    taken = []
    for _ in range(3):
        start = time.process_time()
        result = function(text, **options)
        taken.append(time.process_time() - start)
    return min(taken), result

read, module = seconds(read_hlo, mesh=mesh)
origins, with_origins = seconds(read_hlo, mesh=mesh, origins=True)
timed, _ = seconds(lambda text: timed_program(text, machine, mesh=mesh))
assert not module.unread and any(each.origin for each in with_origins.collectives)
print(len(text) / 1e6, len(module.collectives), read, origins, timed)
"""
PRICE = """
import sys, time
from shardviz.hardware.machine_file import named_machine
from shardviz.reports.program_report import program_report
from shardviz.sharding import Mesh

text, machine = open(sys.argv[1]).read(), named_machine("v5e:2x4")
seconds = []
for _ in range(3):
    start = time.process_time()
    report = program_report(text, machine, mesh=Mesh(("X", "Y"), (2, 4)))
    seconds.append(time.process_time() - start)
assert not report.module.unread
print(min(seconds), len(text) / 1e6, len(report.entries))
"""


def gpu_text(size: int, programs: Sequence[str] = GPU_PROGRAMS) -> str:
    computations, steps = "", ""
    for name in programs:
        text = (RECORDED / f"{name}.txt").read_text()
        before, _, entry = text[text.index("\n%" if "\n%" in text else "\nENTRY") :].partition("ENTRY ")
        computations += before
        steps += entry[entry.index("{\n") + 2 : entry.index("\n}")].replace("ROOT ", "") + "\n"
    count = size // len(computations + steps) + 1
    parts = ["".join(NAME.sub(rf"%\1.r{i}", part) for i in range(count)) for part in (computations, steps)]
    header = "HloModule jit_step, is_scheduled=true, num_partitions=8\n\n"
    return f"{header}{parts[0]}\nENTRY %main (p: f32[8]) -> f32[8] {{\n{parts[1]}}}\n"


def train_step_text(target: str, size: int) -> str:
    """A module that runs the recorded train step over and over, each time on arguments of its own."""
    text = gzip.decompress((PROGRAMS / f"train_step_{target}.txt.gz").read_bytes()).decode()
    first = text.index("\n%")
    computations, _, entry = text[first:].partition("\nENTRY ")
    steps, root = entry[entry.index("{\n") + 2 : entry.rindex("\n}")].rsplit("\n  ROOT ", 1)
    arguments = len(PARAMETER.findall(steps))
    parts = ["", ""]
    for number in range(size // len(text) + 1):
        before = number * arguments
        own = PARAMETER.sub(lambda each, before=before: f" parameter({before + int(each[1])})", steps)
        for which, part in enumerate((computations, own + "\n")):
            parts[which] += NAME.sub(rf"%\1.r{number}", part)
    result = NAME.sub(rf"%\1.r{number}", root)
    return f"{text[:first]}{parts[0]}\nENTRY %main (p: f32[8]) -> f32[8] {{\n{parts[1]}  ROOT {result}\n}}\n"


def jax_text(topology: str, layers: str, path: Path) -> None:
    subprocess.run(
        [sys.executable, "-c", MODEL, topology, str(LAYERS), layers, path],
        check=True,
        stderr=subprocess.DEVNULL,
    )


def report() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        jax_text("cpu", "unrolled", path)
        _report(f"{LAYERS} layers on cpu", path, 80, "≥ 100 MB/s")
        _price(f"{LAYERS} layers on cpu", path)
        if find_spec("libtpu"):
            jax_text("v5e:2x4", "unrolled", path)
            _report(f"{LAYERS} layers on v5e:2x4", path, 80, "≥ 100 MB/s")
            _price(f"{LAYERS} layers on v5e:2x4", path)
            jax_text("v5e:2x4", "loop", path)
            _report(f"a loop of {LAYERS} layers on v5e:2x4", path, 32, "≥ 150 MB/s")
            _price(f"a loop of {LAYERS} layers on v5e:2x4", path)
        path.write_text(gpu_text(35 * MEGABYTE))
        _report("steps on 8 H100s", path, 35, "≥ 150 MB/s")
        path.write_text(gpu_text(35 * MEGABYTE, PERMUTES))
        _report("steps on 8 H100s, permutes too", path, 35, "≥ 50 MB/s")
        for target, machine, size in (("gpu", "h100:8", 35), ("v5e", "v5e:2x4", 32)):
            path.write_text(train_step_text(target, size * MEGABYTE))
            _dense(f"train steps on {machine}", path, machine)


def _report(what: str, path: Path, megabytes: int, budget: str) -> None:
    for mesh in ("given", "inferred"):
        found = subprocess.run(
            [sys.executable, "-c", READ, path, str(megabytes * MEGABYTE), mesh],
            check=True,
            capture_output=True,
            text=True,
        )
        speed, size, more, collectives = map(float, found.stdout.split())
        subject = f"read_hlo, {what}, {size:.0f} MB, {collectives:,.0f} collectives, mesh {mesh}"
        line(subject, f"{speed:.0f} MB/s, {more:.0f} MB more memory", budget)


def _dense(what: str, path: Path, machine: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", DENSE, path, machine], check=True, capture_output=True, text=True
    )
    size, collectives, read, origins, timed = map(float, found.stdout.split())
    subject = f"{what}, {size:.0f} MB, {collectives:,.0f} collectives"
    line(f"read_hlo, {subject}", f"{size / read:.0f} MB/s", "≥ 100 MB/s")
    line("  with origins", f"{size / origins:.0f} MB/s", "≥ 60 MB/s")
    line("  its timeline, beyond reading", f"{timed - read:.2f} s", "≤ 1 s")


def _price(what: str, path: Path) -> None:
    found = subprocess.run([sys.executable, "-c", PRICE, path], check=True, capture_output=True, text=True)
    seconds, size, collectives = map(float, found.stdout.split())
    line(f"report on {what}, {size:.1f} MB, {collectives:,.0f} collectives", f"{seconds:.2f} s", "≤ 1 s")


if __name__ == "__main__":
    report()
