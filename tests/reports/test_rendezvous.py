"""Devices that wait for others at a collective: what XLA for CPUs says of a program that hangs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from shardviz.cli.group import run
from shardviz.reports.failures import stuck_collectives

HANGS = """
import jax, jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec as P

mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def step(x):
    add = lambda x: jax.lax.psum(x, "x")
    return jax.lax.cond(jax.lax.axis_index("x") < 3, add, lambda x: x, x)

step = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
print(step.lower(jnp.zeros((8, 128))).compile().as_text(), flush=True)
step(jnp.zeros((8, 128))).block_until_ready()
"""
FLAGS = (
    "--xla_force_host_platform_device_count=4 --xla_cpu_collective_call_warn_stuck_timeout_seconds=2 "
    "--xla_cpu_collective_call_terminate_timeout_seconds=4"
)


def test_a_program_that_hangs_on_cpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hangs.py").write_text(HANGS)
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": FLAGS}
    found = subprocess.run(
        [sys.executable, "hangs.py"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert found.returncode
    Path("log.txt").write_text(found.stderr)
    Path("both.txt").write_text(found.stdout + found.stderr)
    assert run(["hlo", "log.txt"]) == 0
    assert capfd.readouterr().out == "✗ 3 of 4 devices wait for the others at all reduce: 4 s\n"
    assert run(["hlo", "both.txt"]) == 0
    out = capfd.readouterr().out
    assert " ".join(out.split()).startswith("✗ 3 of 4 devices wait for the others at all reduce, ")
    assert "hangs.py:8: 4 s" in " ".join(out.split())
    # Since jax 0.12 the text names the user's axis.
    assert re.search("all-reduce (axis_0|x) ", out)
    for file in ("log.txt", "both.txt"):
        assert run(["hlo", file, "--json"]) == 0
        (said,) = json.loads(capfd.readouterr().out)["stuck"]
        assert said.startswith("3 of 4 devices wait for the others at all reduce")


def test_gpus_tell_ranks_or_only_how_many_threads_wait() -> None:
    """The forms of XLA for GPUs, whose warnings are one for each thread."""
    line = (
        "E external/xla/xla/service/rendezvous.cc:38] This thread has been waiting for `{}` for {} seconds "
    )
    end = (
        "and may be stuck. Expected 8 threads to join the rendezvous, but not all of them arrived on time.\n"
    )
    cliques = "".join(
        line.format(f"initialize clique for rank {rank}; clique=devices=[0,1,2]; stream=0; run_id=7", 10)
        + end
        for rank in (6, 0, 6)
    )
    permute = line.format("rendezvous of collective-permute; run_id=15; op id:1", 20) + end
    assert stuck_collectives(cliques + permute) == (
        "2 of 8 devices (ranks 0, 6) wait for the others at initialize clique: 10 s",
        "1 of 8 devices wait for the others at collective-permute: 20 s",
    )
    assert stuck_collectives(3 * permute)[0].startswith("3 of 8 devices wait")
    only = permute.replace("not all of them", "only 5 of them").replace(
        "This thread has been waiting", "Termination timeout"
    )
    assert stuck_collectives(permute + only)[0].startswith("5 of 8 devices wait")
    assert stuck_collectives("nothing waits") == ()
