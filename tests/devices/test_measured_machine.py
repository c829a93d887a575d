"""A machine of what was measured: made from times of a known machine, it is that machine again."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from shardviz.devices.fitting import bare_machine, fits, links_not_measured, measured_machine
from shardviz.devices.question import Measurement, bound_seconds, measure_question, predicted_seconds
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import machine_toml, named_machine, read_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.render.machine_view import machine_view
from shardviz.render.palette import PLAIN

ALL = "all_gather,psum,psum_scatter,all_to_all,ppermute"
SLOW = """
chip = "cpu"
[device]
peak.bf16 = "50TFLOP/s"
hbm_bandwidth = "200GB/s"
[node]
devices = 4
count = 2
bandwidth = "20GB/s"
latency = "30us"
[network]
bandwidth = "3GB/s"
latency = "100us"
"""


def as_if_on(text, operations=ALL, mesh="D=2,T=4", sizes="4KiB:1GiB:4"):
    """The question, and rows with the times that a machine's formulas give."""
    truth = read_machine(text) if "\n" in text else named_machine(text)
    question = measure_question(operations, parse_mesh(mesh), (), sizes, "bf16", 3)
    placed = place_mesh(truth, question.mesh)
    rows = [Measurement(case, (predicted_seconds(case, placed),), device="cpu") for case in question.cases]
    return question, rows, placed


def test_links_are_those_of_which_the_times_were_made():
    question, rows, _ = as_if_on(SLOW)
    found = measured_machine(bare_machine("cpu", 8, 4), question, fits(rows), "ours", "measured")
    assert found.family.links["switch"].bandwidth == pytest.approx(20e9, rel=0.01)
    assert found.family.links["switch"].latency == pytest.approx(30e-6, rel=0.05)
    assert found.network.bandwidth == pytest.approx(3e9, rel=0.01)
    assert found.network.latency == pytest.approx(100e-6, rel=0.05)


@pytest.mark.parametrize(
    ("mesh", "sizes", "left"),
    [
        ("D=2,T=4", "4KiB:1MiB", []),
        ("D=1,T=8", "4KiB:1MiB", ["switch", "network"]),
        ("D=2,T=4", "1MiB", ["switch", "network"]),
    ],
)
def test_links_that_no_line_tells_are_known(mesh, sizes, left):
    question, rows, _ = as_if_on(SLOW, mesh=mesh, sizes=sizes)
    assert [*links_not_measured(bare_machine("cpu", 8, 4), question, fits(rows))] == left
    assert not links_not_measured(
        bare_machine("cpu", 1, 1), measure_question("copy", parse_mesh("X=1"), (), "4KiB", "f32", 1), ()
    )


def test_each_axis_of_a_torus_has_a_link_of_its_own():
    text = """
chip = "ours"
[torus]
shape = "4x8"
wrap = [false, true]
bandwidth = ["50GB/s", "20GB/s"]
latency = ["1us", "3us"]
"""
    question, rows, placed = as_if_on(text, mesh="X=8,Y=4")
    base = read_machine(text.replace('"50GB/s", "20GB/s"', '"1GB/s", "1GB/s"'))
    found = measured_machine(base, question, fits(rows), "ours", "measured")
    assert [axis.link.bandwidth for axis in found.family.torus] == pytest.approx([50e9, 20e9], rel=0.01)
    assert [axis.link.latency for axis in found.family.torus] == pytest.approx([1e-6, 3e-6], rel=0.05)
    assert placed.machine.family.torus[0].link.bandwidth == 50e9


def test_the_file_of_it_predicts_what_was_measured_and_what_was_not():
    question, rows, truth = as_if_on(SLOW, sizes="4KiB:1GiB:16")
    machine = measured_machine(bare_machine("cpu", 8, 4), question, fits(rows), "ours", "measured")
    again = read_machine(machine_toml(machine))
    placed = place_mesh(again, question.mesh)
    more = measure_question(ALL, question.mesh, (), "8KiB:512MiB", "f32", 3)
    for case in more.cases:
        assert predicted_seconds(case, placed) == pytest.approx(predicted_seconds(case, truth), rel=0.05), (
            case
        )
    # Groups of two through a switch were not measured: the formula, on the links that were fitted.
    others = measure_question(ALL, parse_mesh("A=2,B=2,C=2"), ("C",), "64MiB", "f32", 3)
    truth, placed = (place_mesh(each.machine, others.mesh) for each in (truth, placed))
    for case in others.cases:
        assert predicted_seconds(case, placed) == pytest.approx(predicted_seconds(case, truth), rel=0.05), (
            case
        )


def test_gpus_keep_the_latency_of_nccl():
    question, rows, placed = as_if_on("h100:2x4")
    found = measured_machine(placed.machine, question, fits(rows), "ours", "measured")
    assert found.family.links["switch"].latency == placed.machine.family.links["switch"].latency
    assert found.family.links["switch"].bandwidth == pytest.approx(450e9, rel=0.05)


def test_arithmetic_and_memory_are_figures_of_the_device():
    question, rows, truth = as_if_on(SLOW, "matmul,copy", sizes="64MiB:1GiB")
    found = measured_machine(bare_machine("cpu", 8, 4), question, fits(rows), "ours", "measured")
    assert found.device.flops_per_second("bf16") == pytest.approx(50e12, rel=0.01)
    assert found.device.hbm_bandwidth == pytest.approx(200e9)
    assert found.measured == ()
    placed = place_mesh(found, question.mesh)
    for case in question.cases:
        assert bound_seconds(case, placed) == pytest.approx(bound_seconds(case, truth), rel=0.01)


def test_lines_without_a_bandwidth_stay_out_of_the_file():
    question, rows, _ = as_if_on(SLOW, "psum")
    flat = [Measurement(row.case, (1e-3,), device="cpu") for row in rows]
    assert all(fit.regimes[0].bandwidth == math.inf for fit in fits(flat))
    machine = measured_machine(bare_machine("cpu", 8, 4), question, fits(flat), "ours", "measured")
    assert machine.measured == ()
    read_machine(machine_toml(machine))


def test_a_crawl_still_makes_a_file_that_is_read():
    question, rows, _ = as_if_on(SLOW, "psum")
    slow = [Measurement(row.case, (2.0 + row.case.size / 100,), device="cpu") for row in rows]
    machine = measured_machine(bare_machine("cpu", 8, 4), question, fits(slow), "ours", "measured")
    assert read_machine(machine_toml(machine)).measured[0].regimes[0].bandwidth == pytest.approx(1e3)


def test_a_bare_machine_predicts_no_local_work():
    placed = place_mesh(bare_machine("cpu", 8, 8), parse_mesh("X=8"))
    for case in measure_question("matmul,copy", placed.mesh, (), "1MiB", "bf16", 3).cases:
        assert predicted_seconds(case, placed) is None
        assert bound_seconds(case, placed) is None


def test_on_links_that_were_measured_no_bound_is_above_the_prediction():
    """Links fit all collectives in the median, so that some are faster than these allow."""
    question, rows, _ = as_if_on(SLOW)
    faster = [
        replace(row, seconds=tuple(each / 3 for each in row.seconds)) if row.case.op == "psum" else row
        for row in rows
    ]
    ours = measured_machine(bare_machine("cpu", 8, 4), question, fits(faster), "ours", "measured")
    placed = place_mesh(ours, question.mesh)
    for row in faster:
        assert bound_seconds(row.case, placed) <= predicted_seconds(row.case, placed) * (1 + 1e-9)


def test_noise_that_is_not_known_is_left_out_of_the_file():
    question, rows, _ = as_if_on(SLOW)
    ours = measured_machine(bare_machine("cpu", 8, 4), question, fits(rows), "ours", "measured")
    text = machine_toml(ours)
    assert "noise" not in text
    assert {each.noise for each in read_machine(text).measured} == {None}
    (*_, last) = [
        line.plain for line in machine_view(ours, None, None, 100, PLAIN) if "ppermute" in line.plain
    ]
    assert last.endswith("–")


def test_a_link_that_nobody_publishes_is_that_which_was_measured():
    question, rows, _ = as_if_on(SLOW.replace("count = 2", "count = 1"), "psum", "X=4")
    base, found = named_machine("trn2:4"), fits(rows)
    assert predicted_seconds(question.cases[0], place_mesh(base, question.mesh)) is None
    measured = measured_machine(base, question, found, "ours", "measured")
    assert measured.family.links["switch"].bandwidth == pytest.approx(20e9, rel=0.01)
    assert read_machine(machine_toml(measured)).measured
    without = measured_machine(base, question, (), "ours", "measured")
    assert without.family.lacks_links
