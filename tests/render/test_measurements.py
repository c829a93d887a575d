"""Pictures of measurements: charts at every width, and sentences on what is to be doubted."""

from __future__ import annotations

import re

import pytest

from shardviz.devices.fitting import fits, of_one_size
from shardviz.devices.question import Measurement, measure_question
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import named_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.render.measurements import (
    HEIGHT,
    MeasuredRows,
    bandwidth_chart,
    doubts,
    fits_view,
    rows_words,
    too_few_sizes,
)
from shardviz.render.palette import PLAIN

MESH = parse_mesh("X=2,Y=4")


def measured(operations="psum", sizes="4KiB:256MiB", spread=0.0, time=lambda size: 10e-6 + size / 10e9):
    question = measure_question(operations, MESH, (), sizes, "bf16", 3)
    rows = [
        Measurement(
            case, tuple(time(case.size) * (1 + spread * share) for share in (-1, 0, 1)), wrong=0, device="cpu"
        )
        for case in question.cases
    ]
    return question, rows


def words(lines):
    return [line.plain for line in lines]


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("operations", ["psum,all_gather", "matmul,copy"])
def test_nothing_is_wider_than_the_page(width, operations):
    question, rows = measured(operations)
    placed = place_mesh(named_machine("h100:8"), MESH)
    for beside in (None, placed):
        table = MeasuredRows(question, beside, width, PLAIN)
        lines = [*table.heading(rows[0].case), *table.row(rows[0])]
        assert max(map(len, words(lines))) <= width
        assert len(words(lines)[-2]) == len(words(lines)[-1])
    assert max(map(len, words(fits_view(fits(rows), MESH, width, PLAIN)))) <= width


def test_a_chart_has_a_mark_for_each_size_and_group():
    _, rows = measured(sizes="4KiB:64MiB:4")
    lines = words(bandwidth_chart(fits(rows), MESH, 100, PLAIN))
    assert lines[0] == "psum, bus bandwidth over size"
    field = [re.split("[│┤]", line, maxsplit=1)[1] for line in lines[1 : HEIGHT + 1]]
    # Latency first, then bandwidth: it grows, and then it is as large as it becomes.
    places = {line.index("C"): row for row, line in enumerate(field) if "C" in line}
    assert [row for _, row in sorted(places.items())] == sorted(places.values(), reverse=True)
    assert sum(line.count("C") for line in field) == 8
    assert " 4 KiB " in lines[HEIGHT + 2] + " "
    assert lines[-1].split() == ["A", "X", "B", "Y", "C", "X,", "Y", "·", "the", "fitted", "lines"]


def test_one_size_has_no_chart():
    _, rows = measured("copy", sizes="1MiB")
    assert "copy, " not in "\n".join(words(fits_view(fits(rows), MESH, 80, PLAIN)))


def test_good_times_leave_no_doubt():
    _, rows = measured()
    assert list(doubts(fits(rows))) == []


def test_two_regimes_are_said():
    _, rows = measured(time=lambda size: 10e-6 + size / (10e9 if size < 2**21 else 1e9))
    (said,) = doubts(fits(rows))
    assert said.startswith("One line does not fit psum (X; Y; X, Y), ")


def test_noise_is_said():
    _, rows = measured(spread=0.5)
    (said,) = doubts(fits(rows))
    assert said.startswith("Noise over 20% for psum (X; Y; X, Y): ")


def test_the_noise_forbids_a_prediction():
    _, rows = measured("copy", spread=0.5)
    rows = [
        Measurement(row.case, tuple(each * (3 if place % 2 else 1) for each in row.seconds))
        for place, row in enumerate(rows)
    ]
    assert "Too noisy to predict within 25%: copy." in list(doubts(fits(rows)))


def test_sizes_that_tell_no_bandwidth():
    _, rows = measured("copy", sizes="4KiB:16KiB", time=lambda _: 1e-3)
    (said,) = doubts(fits(rows))
    assert said.startswith("These sizes show no bandwidth for copy: measure larger ones.")


def test_a_matmul_has_no_line_over_its_bytes():
    _, rows = measured("matmul", sizes="4KiB:64MiB:4", time=lambda size: 1e-5 + size**1.5 / 1e12)
    lines = words(bandwidth_chart(fits(rows), MESH, 100, PLAIN))
    assert lines[0] == "matmul, FLOP/s over size"
    assert "·" not in "".join(lines)


def test_a_bandwidth_that_is_hardly_known():
    _, rows = measured("copy", sizes="4KiB:64KiB", spread=0.15, time=lambda size: 1e-3 + size / 1e9)
    (said,) = doubts(fits(rows))
    assert said.startswith("The bandwidth is uncertain by more than 50% for copy: measure larger sizes")
    _, rows = measured("copy", sizes="4KiB:64MiB", spread=0.15, time=lambda size: 1e-3 + size / 1e9)
    assert not [*doubts(fits(rows))]


def test_the_clock_and_what_the_compiler_made_of_it_are_said():
    _, rows = measured(sizes="4KiB")
    assert list(rows_words(rows)) == [
        "Wall time on cpu: one iteration of a jitted loop, median over runs, excluding compilation."
    ]
    rows = [
        Measurement(row.case, row.seconds, "device", 0, "XLA moves bf16 as f32 here", "TPU v9")
        for row in rows
    ]
    assert list(rows_words(rows)) == [
        "Device time on TPU v9, from a profile: the median over a loop's iterations.",
        "XLA moves bf16 as f32 here.",
    ]


def test_one_size_is_said_to_tell_no_line():
    _, rows = measured("psum,copy", sizes="1MiB")
    assert too_few_sizes(of_one_size(rows)) == (
        "One size shows neither latency nor bandwidth of psum (X; Y; X, Y): measure two or more, such as "
        "--sizes 4KiB:1MiB."
    )
    _, rows = measured("psum,copy", sizes="1MiB,2MiB")
    assert too_few_sizes(of_one_size(rows)) == ""
