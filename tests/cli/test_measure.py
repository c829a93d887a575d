"""`shardviz measure`: rows as they come, the machine's file of them, what is refused, and an interrupt."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from shardviz.cli import measure
from shardviz.cli.group import run
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import read_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.states.prices import collective_price

QUICK = ("--dtype", "f32", "--runs", "3")
JOB = ("--coordinator", "localhost:1", "--processes", "2", "--process", "0")
TWO = (
    "measure",
    "psum,all_gather",
    "--mesh",
    "X=2,Y=2",
    "--devices",
    "4",
    "--axis",
    "Y",
    "--sizes",
    "4KiB,64KiB",
    *QUICK,
)


def test_the_page_and_the_file_that_prices_what_was_measured(capsys, monkeypatch, tmp_path):
    """On a busy machine a size may take longer than a larger one, which tells no bandwidth: each run takes
    50 µs and 1 ns a byte."""
    measured = measure._Session._measured
    monkeypatch.setattr(
        measure._Session,
        "_measured",
        lambda *given: (replace(row, seconds=(5e-5 + 1e-9 * row.case.size,) * 3) for row in measured(*given)),
    )
    told, file = tmp_path / "told.toml", tmp_path / "ours.toml"
    told.write_text('chip = "cpu"\n[node]\ndevices = 4\nbandwidth = "1GB/s"\nlatency = "50us"\n')
    assert run([*TWO, "--machine", str(told), "-o", str(file), "--width", "120"]) == 0
    page = capsys.readouterr().out
    assert "\npsum over Y, 2 groups of 2, f32\n" in page
    assert page.count("bound  predicted     off  #wrong") == 2
    # 2 × 1/2 of 64 KiB over 1 GB/s
    assert re.search(r"^ +64 KiB +16,384 .* 65\.5 µs +1\d\d µs +[+-]?\d+% +0$", page, re.M)
    assert re.search(r"^ +64 KiB +8,192 .* 0$", page, re.M)
    assert "Wall time on cpu" in page
    assert "psum, bus bandwidth over size" in page
    assert re.search(r"^psum +Y +4 KiB +\d", page, re.M)
    machine = read_machine(file)
    assert (machine.name, machine.chip, machine.devices) == ("ours", "cpu", 4)
    assert {each.op for each in machine.measured} == {"psum", "all_gather"}
    placed = place_mesh(machine, parse_mesh("X=2,Y=2"))
    for each in machine.measured:
        price = collective_price(each.op, 2**16, each.axes, placed)
        assert price.convention.startswith("measured over Y of X=2,Y=2")
        assert price.seconds == pytest.approx(5e-5 + 1e-9 * 2**16, rel=1e-3)


@pytest.mark.usefixtures("capsys")
def test_the_file_is_written_before_a_page_that_cannot_be(monkeypatch, tmp_path):
    def gone(*_):
        raise OSError("the terminal is gone")

    monkeypatch.setattr("shardviz.render.measurements.rows_words", gone)
    file = tmp_path / "ours.toml"
    with pytest.raises(OSError, match="gone"):
        run(["measure", "copy", "--devices", "1", "--sizes", "4KiB", *QUICK, "-o", str(file)])
    assert read_machine(file).device.hbm_bandwidth


def test_a_file_that_cannot_be_written_loses_no_page(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda *_: True)
    words = ["measure", "copy", "--devices", "1", "--sizes", "4KiB", *QUICK, "-o"]
    assert run([*words, str(tmp_path / "nowhere" / "ours.toml")]) == 2
    out, err = capsys.readouterr()
    assert " 4 KiB " in out
    assert "cannot be written: No such file or directory" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("psum", "--devices", "4", "--mesh", "X=8"), "the mesh X=8 has 8 devices, and there are 4"),
        (("psum", "-o", "cluster.txt"), "'cluster.txt' does not end in .toml"),
        (("psum", "-o", "/nowhere/at/all.toml"), "cannot write '/nowhere/at/all.toml'"),
        (("psum", "--devices", "2", "--machine", "h100:8"), "h100:8 has 8 devices, but the mesh X=2 has 2"),
        (("psum", "--devices", "0"), "invalid value for '--devices'"),
        (
            ("psum", "--devices", "2", *JOB),
            "--devices simulates devices in one process, so it does not apply to a job",
        ),
    ],
)
def test_what_cannot_be_measured(words, message, capsys):
    assert run(["measure", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "\nhint: " in err


def test_sizes_that_do_not_fit_are_left_out(capsys):
    assert run(["measure", "psum", "--devices", "2", "--sizes", "4KiB,8TiB", "--timeout", "inf", *QUICK]) == 0
    out, err = capsys.readouterr()
    assert " 4 KiB " in out
    assert re.search(r"note: psum of 8 TiB needs .* on each device, and .* are free: skipped", err)
    assert run(["measure", "psum", "--devices", "2", "--sizes", "8TiB", *QUICK]) == 2
    assert "nothing was measured: all sizes are too large" in capsys.readouterr().err


def test_sizes_that_would_take_too_long_are_left_out(capsys):
    words = ["measure", "matmul", "--devices", "1", "--sizes", "4KiB,16TiB", "--timeout", "60", *QUICK]
    assert run(words) == 0
    assert "matmul of 16 TiB and larger sizes are skipped: it would take " in capsys.readouterr().err


def test_results_that_are_wrong_are_said(capsys, monkeypatch):
    from dataclasses import replace

    from shardviz.compiler import reading

    read = reading.read_loop
    monkeypatch.setattr(reading, "read_loop", lambda *words: replace(read(*words), wrong=3))
    assert run(["measure", "psum", "--devices", "2", "--sizes", "4KiB", *QUICK]) == 1
    out, err = capsys.readouterr()
    assert re.search(r" 4 KiB .* 3$", out, re.M)
    assert "some results are wrong" in err


def test_an_interrupt_keeps_what_there_is(tmp_path):
    """The table so far, the file, and exit code 130."""
    words = [
        "measure",
        "psum,ppermute",
        "--devices",
        "4",
        "--sizes",
        "1KiB:64MiB",
        "-o",
        "part.toml",
    ]
    program = "from shardviz.cli import main; main()"
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    with subprocess.Popen(
        [sys.executable, "-c", program, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        try:
            assert process.stdout is not None
            lines = list(islice((line for line in process.stdout if "KiB" in line), 3))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert len(lines) == 3
    assert re.search(r"note: interrupted after \d+ of 34 rows: not complete", said)
    text = (tmp_path / "part.toml").read_text()
    assert re.match(r"# written by shardviz measure\n# not complete: \d+ of 34 rows\n", text)
    assert read_machine(text).devices == 4


def test_a_compiler_that_fails_keeps_what_there_is(capsys, monkeypatch, tmp_path):
    from shardviz.compiler import reading
    from shardviz.errors import CompilerError

    read, count = reading.read_loop, iter(range(100))

    def failing(*words):
        if next(count) == 2:
            raise CompilerError("psum died", "ask again")
        return read(*words)

    monkeypatch.setattr(reading, "read_loop", failing)
    file = tmp_path / "ours.toml"
    assert run([*TWO, "--devices", "2", "--mesh", "Y=2", "-o", str(file), "--json"]) == 3
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["is_partial"]
    assert len(found["rows"]) == 2
    assert "psum died" in err
    assert "# not complete: 2 of 4 rows" in file.read_text()


@pytest.mark.slow
def test_a_job_measures_the_devices_of_all_its_processes(tmp_path):
    words = ["-n", "2", "--devices", "2", "--", "measure", "psum,ppermute", "--mesh", "X=2,Y=2"]
    environment = {key: value for key, value in os.environ.items() if key != "XLA_FLAGS"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "shardviz",
            "launch",
            *words,
            "--sizes",
            "4KiB,64KiB",
            *QUICK,
            "--json",
            "-o",
            "job.toml",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["rows"]) == 2 * 3 * 2
    assert {row["wrong"] for row in found["rows"]} == {0}
    assert {row["group_size"] for row in found["rows"]} == {2, 4}
    assert read_machine(tmp_path / "job.toml").devices == 4
