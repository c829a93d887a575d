"""What was measured stands for the formula wherever the links are the same, and nowhere else."""

from __future__ import annotations

import pytest

from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import machine_toml, read_machine
from shardviz.hardware.measured import MeasuredTimes, Regime
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.states.prices import Prices, collective_price

MACHINE = """
name = "ours"
chip = "cpu"
[node]
devices = 8
bandwidth = "2GB/s"
latency = "10us"
[[measured]]
op = "psum"
mesh = "X=2,Y=4"
axes = "Y"
regimes = [
    {latency = "50us", bandwidth = "1GB/s"},
    {from = "1MiB", latency = "0us", bandwidth = "0.5GB/s"},
]
"""
REGIMES = (Regime(0, 50e-6, 1e9), Regime(2**20, 0.0, 0.5e9))


def seconds(op, size, axes, mesh="X=2,Y=4", text=MACHINE):
    return collective_price(op, size, axes, place_mesh(read_machine(text), parse_mesh(mesh))).seconds


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, 50e-6),
        (1000, 51e-6),
        (2**20 - 1, 50e-6 + (2**20 - 1) / 1e9),
        (2**20, 2**20 / 0.5e9),
        (2**30, 2**30 / 0.5e9),
    ],
)
def test_a_size_takes_the_time_of_its_line(size, expected):
    assert seconds("psum", size, ("Y",)) == pytest.approx(expected)


def test_any_axis_on_such_links_takes_that_time():
    assert seconds("psum", 1000, ("B",), "A=2,B=4") == pytest.approx(51e-6)
    assert seconds("psum", 1000, ("A",), "A=4,B=2") == pytest.approx(51e-6)
    assert seconds("psum", 1000, ("A", "B"), "A=2,B=2,C=2") == pytest.approx(51e-6)


@pytest.mark.parametrize(("op", "axes"), [("psum", ("X",)), ("psum", ("X", "Y")), ("all_gather", ("Y",))])
def test_what_was_not_measured_goes_by_the_formula(op, axes):
    without = MACHINE.partition("[[measured]]")[0]
    assert seconds(op, 10**6, axes) == seconds(op, 10**6, axes, text=without)


def test_the_mean_of_what_was_measured_over_axes_with_the_same_links():
    twice = MACHINE + MACHINE[MACHINE.index("[[measured]]") :].replace('"X=2,Y=4"', '"A=4,B=2"').replace(
        '"Y"', '"A"'
    ).replace('"50us"', '"70us"')
    assert seconds("psum", 1000, ("Y",), text=twice) == pytest.approx(61e-6)


def test_the_time_says_that_it_was_measured():
    found = collective_price("psum", 1000, ("Y",), place_mesh(read_machine(MACHINE), parse_mesh("X=2,Y=4")))
    assert found.convention == "measured over Y of X=2,Y=4: 1000 B at 1 GB/s, and 50 µs of latency"
    assert found.bound == "latency"
    assert found.words == "as measured"
    assert found.latency_seconds + found.bandwidth_seconds == pytest.approx(found.seconds)


def test_more_bytes_never_take_less_time():
    falling = MeasuredTimes("psum", "X=2", ("X",), (Regime(0, 1e-3, 1e9), Regime(1000, 0.0, 1e9)), ())
    times = [falling.seconds(size) for size in range(0, 3000, 50)]
    assert times == sorted(times)
    assert falling.seconds(1000) == pytest.approx(1e-3 + 1e-6)


POINTS = """
base = "h100:8"
[[measured]]
op = "psum"
mesh = "X=2,Y=4"
axes = "Y"
points = [{size = "64KiB", time = "40us"}, {size = "256KiB", time = "39us"}, {size = "4MiB", time = "80us"}]
"""


@pytest.mark.parametrize("regimes", ["", 'regimes = [{latency = "50us", bandwidth = "100GB/s"}]\n'])
def test_the_price_goes_through_the_points_and_beyond_them_by_the_fit(regimes):
    def at(size, text=POINTS + regimes):
        return seconds("psum", size, ("Y",), text=text)

    def beyond(size):
        return at(size, POINTS[: POINTS.index("points")] + regimes if regimes else 'base = "h100:8"')

    # One that took longer than a larger one was slowed down.
    assert at(2**16) == at(2**17) == at(2**18) == pytest.approx(39e-6)
    assert at(2**22) == pytest.approx(80e-6)
    # Half way in the logarithm of the size.
    assert at(2**20) == pytest.approx((39e-6 * 80e-6) ** 0.5)
    assert at(2**10) == pytest.approx(min(beyond(2**10), 39e-6))
    assert at(2**23) == pytest.approx(max(beyond(2**23), 80e-6))
    assert at(2**30) == beyond(2**30) > 80e-6
    times = [at(int(1.3**power)) for power in range(90)]
    assert times == sorted(times)


def test_points_are_written_as_they_are_read_and_say_what_they_are():
    machine = read_machine(POINTS)
    assert read_machine(machine_toml(machine)).measured == machine.measured
    placed = place_mesh(machine, parse_mesh("X=2,Y=4"))
    between, point, above = (collective_price("psum", 2**size, ("Y",), placed) for size in (20, 22, 30))
    assert point.convention == "measured over Y of X=2,Y=4: 4 MiB in 80 µs"
    assert between.convention == "measured over Y of X=2,Y=4: 256 KiB in 39 µs and 4 MiB in 80 µs"
    assert above.convention.endswith("to start, as other sizes were measured over Y of X=2,Y=4")
    assert (between.is_measured, point.is_measured, above.is_measured) == (True, True, False)


def test_a_permute_of_other_distances_goes_by_the_formula():
    torus = """
chip = "ours"
[torus]
shape = "8"
wrap = true
bandwidth = "10GB/s"
[[measured]]
op = "ppermute"
mesh = "X=8"
axes = "X"
regimes = [{latency = "5us", bandwidth = "1GB/s"}]
"""
    machine = read_machine(torus)
    levels = place_mesh(machine, parse_mesh("X=8")).group_levels(("X",), in_order=True)

    def time(distance, measured):
        pairs = [(member, (member + distance) % 8) for member in range(8)]
        return collective_time("collective-permute", 1000, levels, pairs=pairs, measured=measured).seconds

    assert time(1, machine.measured) == time(7, machine.measured) == pytest.approx(6e-6)
    assert time(3, machine.measured) == time(3, ())


def test_a_plan_is_priced_by_what_was_measured_and_avoids_what_is_slow():
    problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="XY,Y_->X_")

    def priced(bandwidth):
        machine = read_machine(MACHINE.replace('"0.5GB/s"', f'"{bandwidth}GB/s"'))
        placed = place_mesh(machine, problem.mesh)
        return [each for each in price(plan(problem, placed), placed).steps if each.is_collective]

    (step,) = priced(50)
    assert step.step.op == "psum"
    assert step.seconds == pytest.approx(50e-6 + 2**20 / 1e9)  # no less than a smaller one
    assert [each.step.op for each in priced(0.5)] == ["psum_scatter", "all_gather"]


def test_the_prices_of_a_search_are_those_of_the_plan():
    placed = place_mesh(read_machine(MACHINE), parse_mesh("X=2,Y=4"))
    prices = Prices(placed)
    for size in (1, 2**19, 2**20, 2**30):
        assert prices.collective_seconds("psum", ("Y",), size) == seconds("psum", size, ("Y",))
