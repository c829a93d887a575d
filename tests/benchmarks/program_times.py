"""Timelines of compiled programs: seconds beyond reading the text, of train steps of 32 layers.

The texts are those of `reading`: the layers in a loop, and one after the other.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from reading import LAYERS, jax_text
from timing import line

TIME = """
import sys, time
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.machine import assumed_machine
from shardviz.hlo import read_hlo
from shardviz.sharding import Mesh
from shardviz.timeline.of_program import timed_program

text, mesh = open(sys.argv[1]).read(), Mesh(("X", "Y"), (2, 4))
machine = assumed_machine() if sys.argv[2] == "cpu" else parse_cluster(sys.argv[2])
reading, timing = [], []
for _ in range(5):
    start = time.process_time()
    read_hlo(text, mesh)
    between = time.process_time()
    timeline = timed_program(text, machine, mesh=mesh)[1]
    reading.append(between - start)
    timing.append(time.process_time() - between)
print(len(text) / 1e6, len(timeline.ops), min(reading), min(timing) - min(reading))
"""


def report() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        targets = ("cpu", "v5e:2x4") if find_spec("libtpu") else ("cpu",)
        for target in targets:
            for layers, budget in (("loop", "≤ 0.5 s"), ("unrolled", "a few seconds")):
                jax_text(target, layers, path)
                _report(f"{LAYERS} layers on {target}, {layers}", path, target, budget)


def _report(what: str, path: Path, target: str, budget: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", TIME, path, target], check=True, capture_output=True, text=True
    )
    size, ops, reading, more = map(float, found.stdout.split())
    subject = f"program_timeline, {what}, {size:.1f} MB, {ops:,.0f} operations"
    line(subject, f"{more:.3f} s beyond {reading:.3f} s of reading", budget)


if __name__ == "__main__":
    report()
