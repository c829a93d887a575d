"""`shardviz launch`: the processes of a job on this machine, and the launchers that JAX knows."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from shardviz.cli.group import run
from shardviz.compiler.child_process import simulated_environment

PSUM = ("step", "psum", "--mesh", "i=4", "--on", "real")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("layout", "8x8"), "layout cannot run in several processes"),
        (("lanch", "8x8"), "unknown command 'lanch'"),
        ((*PSUM, "--process", "1"), "launch sets --process itself"),
        (("step", "psum", "--msh", "i=4"), "no such option '--msh'"),
    ],
)
def test_what_cannot_be_launched(
    words: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["launch", "-n", "2", "--", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.lower().startswith(f"shardviz: error: {error}")
    assert "\nhint: " in err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--process", "1"), "--coordinator and --processes are missing"),
        (("--coordinator", "here", "--processes", "2", "--process", "1"), "'here' is not HOST:PORT"),
    ],
)
def test_an_address_that_cannot_be(
    words: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*PSUM, *words]) == 2
    assert error in capsys.readouterr().err


def shardviz(*words: str, launcher: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
    environment = simulated_environment(os.environ) | more
    line = [*launcher, sys.executable, "-m", "shardviz", *words]
    return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=300)


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_a_job_answers_as_one_process_does() -> None:
    processes = 2
    words = ("step", "all_gather", "--mesh", "i=8", "--on", "real", "--json")
    each = 8 // processes
    job = document(shardviz("launch", "-n", str(processes), "--devices", str(each), "--", *words))
    alone = document(shardviz(*words, JAX_NUM_CPU_DEVICES="8"))
    assert job.pop("job") == {
        "processes": processes,
        "hosts": [socket.gethostname()] * processes,
        "process_of_device": [device // each for device in range(8)],
        "groups": [{"axes": ["i"], "within_process": 0, "across_processes": 1, "across_hosts": []}],
    }
    assert job == alone
    assert job["verified_against"] == "real"


@pytest.mark.slow
def test_the_compiler_of_a_job_answers_as_that_of_one_process() -> None:
    words = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_", "--target", "real", "--json")
    job = document(shardviz("launch", "-n", "2", "--devices", "4", "--", *words))
    alone = document(shardviz(*words, JAX_NUM_CPU_DEVICES="8"))
    for each in (job, alone):
        (target,) = each["targets"]
        del target["elapsed_s"]
    found = [
        (each["axes"], each["within_process"], each["across_processes"]) for each in job.pop("job")["groups"]
    ]
    assert found == [(["X"], 0, 4), (["Y"], 2, 0)]
    assert job == alone


@pytest.mark.slow
def test_the_mesh_of_a_job_takes_all_its_devices() -> None:
    done = shardviz("launch", "-n", "2", "--devices", "4", "--", *PSUM)
    assert done.returncode == 3
    (error,) = [line for line in done.stderr.splitlines() if "error" in line]
    words = "the mesh has 4 devices but the 2 processes of the job have 8, and all take part"
    assert error == f"shardviz: error: real: {words}"


MEASURE = ("measure", "psum", "--runs", "1", "--json", "--sizes")


@pytest.mark.slow
def test_a_process_that_is_asked_something_else_is_named() -> None:
    with socket.create_server(("localhost", 0)) as unused:
        job = ("--coordinator", f"localhost:{unused.getsockname()[1]}", "--processes", "2", "--process")
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "shardviz", *MEASURE, ("4KiB", "4KiB,8KiB")[process], *job, str(process)],
            env=simulated_environment(os.environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(2)
    ]
    (out, said), (_, other) = (each.communicate(timeout=60) for each in started)
    assert [each.returncode for each in started] == [3, 3]
    assert out == other == ""
    words = f"process 1 of 2 on {socket.gethostname()} was asked another question than process 0"
    assert said.splitlines()[0] == f"shardviz: error: {words}"


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_measured(tmp_path: Path) -> None:
    """Ctrl-C goes to all processes of a terminal, and to those of launch from it as well."""
    words = ("measure", "psum,ppermute", "--sizes", "1KiB:64MiB", "-o", "part.toml")
    with subprocess.Popen(
        [sys.executable, "-m", "shardviz", "launch", "-n", "2", "--", *words],
        env=simulated_environment(os.environ) | {"PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout is not None
            lines = list(islice((line for line in process.stdout if "KiB" in line), 2))
            os.killpg(process.pid, signal.SIGINT)
            rest, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert len(lines) == 2
    assert "Wrote part.toml" in rest
    (interrupted,) = said.splitlines()
    assert re.fullmatch(r"shardviz: note: interrupted after \d+ of 34 rows: not complete", interrupted)
    assert "# not complete: " in (tmp_path / "part.toml").read_text()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mpirun") is None, reason="Open MPI's mpirun is not installed")
def test_jax_finds_the_job_of_open_mpi() -> None:
    root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    launcher = ("mpirun", "--oversubscribe", "-n", "2")
    found = document(shardviz(*PSUM, "--json", launcher=launcher, JAX_NUM_CPU_DEVICES="2", **root))
    assert found["verified_against"] == "real"


SLURM = {
    "SLURM_JOB_ID": "4321",
    "SLURM_STEP_NODELIST": "localhost",
    "SLURM_NTASKS": "2",
    "SLURM_STEP_NUM_NODES": "1",
}


@pytest.mark.slow
def test_jax_finds_the_job_of_slurm() -> None:
    """By the variables that srun sets; Slurm itself is not here."""
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "shardviz", *PSUM, "--json"],
            env=simulated_environment(os.environ)
            | SLURM
            | {"SLURM_PROCID": str(process), "SLURM_LOCALID": str(process), "JAX_NUM_CPU_DEVICES": "2"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for process in range(2)
    ]
    first, second = (each.communicate(timeout=300)[0] for each in started)
    assert json.loads(first)["verified_against"] == "real"
    assert second == ""


JOB_OF_ONES_OWN = """
import sys
import jax
jax.distributed.initialize(sys.argv[1], 2, int(sys.argv[2]), cluster_detection_method="deactivate")
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import shardviz
from shardviz.testing import assert_collectives

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("X", "Y"))
a = jax.ShapeDtypeStruct((64, 64), "float32", sharding=NamedSharding(mesh, P("X", "Y")))
w = jax.device_put(np.ones((64, 64), np.float32), NamedSharding(mesh, P("Y", None)))
step = jax.jit(lambda a, w: a @ w, out_shardings=NamedSharding(mesh, P("X", None)))
(found,) = shardviz.inspect(step, a, w).collectives
print(found.op, *found.axes)
assert_collectives(step, a, w, all_reduce=1, others=0)
try:
    assert_collectives(step, a, w, all_gather=1)
except AssertionError:
    print("refused")
"""


@pytest.mark.slow
def test_programs_are_inspected_in_every_process_of_a_job(tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as unused:
        at = f"localhost:{unused.getsockname()[1]}"
    environment = simulated_environment(os.environ) | {"JAX_NUM_CPU_DEVICES": "4"}
    (tmp_path / "own.py").write_text(JOB_OF_ONES_OWN)
    started = [
        subprocess.Popen(
            [sys.executable, tmp_path / "own.py", at, str(process)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for process in range(2)
    ]
    for each in started:
        printed = each.communicate(timeout=300)[0]
        assert each.returncode == 0, printed
        # Gloo prints among the lines.
        assert re.findall(r"all-reduce \w+|refused", printed) == ["all-reduce Y", "refused"], printed
