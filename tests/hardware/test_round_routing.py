"""Queues against a simulation of single events, in exact arithmetic."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from shardviz.hardware.links import LinkSpec
from shardviz.hardware.round_routing import RoundRouting, busiest_transfer, store_and_forward
from shardviz.hardware.routes import Messages, route_segments
from shardviz.hardware.topology import Switch, Torus
from tests.conftest import examples

RATE = 2**20
"""Bytes a second; latencies are whole multiples of the time of a byte: then all times are exact floats."""

AXES = st.tuples(st.integers(1, 7), st.booleans())
TORI = st.lists(AXES, min_size=1, max_size=3).map(
    lambda axes: Torus(tuple(size for size, _ in axes), tuple(wrap for _, wrap in axes))
)
SIZES = st.one_of(st.just(5), st.integers(1, 3), st.integers(0, 1000), st.sampled_from([0, 1, 100_000]))
LATENCIES = st.one_of(st.just(0), st.integers(1, 10), st.sampled_from([45_000, 10**6]))


@st.composite
def rounds(draw: st.DrawFn) -> tuple[Torus, list[tuple[int, int, int]], int]:
    """A torus, messages with different (src, dst) in any order, and a latency in bytes."""
    torus = draw(TORI.filter(lambda torus: 1 < torus.devices <= 64))
    device = st.integers(0, torus.devices - 1)
    pairs = draw(
        st.lists(
            st.tuples(device, device).filter(lambda pair: pair[0] != pair[1]),
            min_size=1,
            max_size=80,
            unique=True,
        )
    )
    same = draw(st.booleans())
    size = draw(SIZES)
    return torus, [(*pair, size if same else draw(SIZES)) for pair in pairs], draw(LATENCIES)


def columns(messages: list[tuple[int, int, int]]) -> Messages:
    src, dst, size = np.array(messages, dtype=np.int64).T
    return Messages(src, dst, size)


@examples(120)
@given(rounds())
def test_every_message_arrives_when_single_events_say(plainly: SimpleNamespace, question: tuple) -> None:
    torus, messages, latency = question
    full = [message for message in messages if message[2]]
    if not full:
        return
    load = columns(full)
    link_spec = LinkSpec(latency / RATE, float(RATE))
    seconds, waited = store_and_forward(
        torus, route_segments(torus, load.src, load.dst), load.bytes * 1.0, link_spec
    )
    expected = plainly.arrivals(torus, full, Fraction(latency, RATE), Fraction(RATE))
    assert [Fraction(time) for time in seconds.tolist()] == [time for time, _ in expected]
    assert waited.tolist() == [waits for _, waits in expected]


def test_crowded_tori_with_messages_of_every_size(plainly: SimpleNamespace) -> None:
    # Ways that meet at different times are what a window that is too long gets wrong, in a few cases of 100.
    chance = random.Random(1)
    for _ in range(100):
        dims = tuple(chance.choice([2, 3, 4, 5]) for _ in range(2))
        torus = Torus(dims, tuple(chance.random() < 0.7 for _ in dims))
        pairs = [(src, dst) for src in range(torus.devices) for dst in range(torus.devices) if src != dst]
        chance.shuffle(pairs)
        latency, largest = chance.choice([0, 10, 100, 1000]), chance.choice([3, 30, 300, 3000])
        messages = [(*pair, chance.randint(1, largest)) for pair in pairs[: chance.choice([20, 100, 300])]]
        load = columns(messages)
        link_spec = LinkSpec(latency / RATE, float(RATE))
        seconds, _ = store_and_forward(
            torus, route_segments(torus, load.src, load.dst), load.bytes * 1.0, link_spec
        )
        expected = plainly.arrivals(torus, messages, Fraction(latency, RATE), Fraction(RATE))
        assert [Fraction(time) for time in seconds.tolist()] == [time for time, _ in expected]


@examples(120)
@given(rounds())
def test_rounds_take_as_long_as_single_events_say(plainly: SimpleNamespace, question: tuple) -> None:
    torus, messages, latency = question
    outcome = RoundRouting(columns(messages), torus, LinkSpec(latency / RATE, float(RATE))).time()
    expected = plainly.arrivals(torus, messages, Fraction(latency, RATE), Fraction(RATE))
    assert outcome.seconds == pytest.approx(float(max(time for time, _ in expected)), rel=1e-12)
    assert outcome.waiting == sum(waits for _, waits in expected)


@pytest.mark.parametrize(
    "torus",
    [
        Torus((9,), (True,)),
        Torus((8,), (False,)),
        Torus((4, 3), (True, True)),
        Torus((2, 3, 2), (True, False, True)),
    ],
)
def test_everyone_to_everyone(plainly: SimpleNamespace, torus: Torus) -> None:
    for latency, sizes in product([0, 45_000], [(0, 1, 2, 3), (1, 45_000)]):
        chance = random.Random(7)
        n = torus.devices
        messages = [(src, dst, chance.choice(sizes)) for src in range(n) for dst in range(n) if src != dst]
        chance.shuffle(messages)
        outcome = RoundRouting(columns(messages), torus, LinkSpec(latency / RATE, float(RATE))).time()
        expected = plainly.arrivals(torus, messages, Fraction(latency, RATE), Fraction(RATE))
        assert Fraction(outcome.seconds) == max(time for time, _ in expected)
        assert outcome.waiting == sum(waits for _, waits in expected)


def test_ties_go_to_the_message_that_stands_first() -> None:
    line = Torus((4,), (False,))
    link_spec = LinkSpec(0.0, 1.0)
    # 1→3 and 0→2 want the link 1→2 at the times 10 and 10; the order of the round decides.
    early = columns([(1, 2, 10), (1, 3, 10), (0, 2, 10)])
    late = columns([(1, 2, 10), (0, 2, 10), (1, 3, 10)])
    for load in (early, late):
        seconds, _ = store_and_forward(
            line, route_segments(line, load.src, load.dst), load.bytes * 1.0, link_spec
        )
        # 1→3 was in the queue first in both: it was there from the start.
        assert dict(zip(zip(load.src, load.dst, strict=True), seconds, strict=True)) == {
            (1, 2): 10,
            (1, 3): 30,
            (0, 2): 30,
        }
    both = columns([(0, 2, 5), (2, 0, 5), (1, 2, 5), (1, 0, 5)])
    seconds, _ = store_and_forward(
        line, route_segments(line, both.src, both.dst), both.bytes * 1.0, link_spec
    )
    assert seconds.tolist() == [10, 10, 5, 5]
    torus = Torus((3, 3), (True, True))
    # From (0, 0) and (2, 0) over (1, 0) to (1, 1): they arrive at (1, 0) together.
    for messages in ([(0, 4, 7), (6, 4, 7)], [(6, 4, 7), (0, 4, 7)]):
        load = columns(messages)
        seconds, _ = store_and_forward(
            torus, route_segments(torus, load.src, load.dst), load.bytes * 1.0, link_spec
        )
        assert seconds.tolist() == [14, 21]


def test_an_endless_bandwidth_leaves_the_latency() -> None:
    messages = columns([(0, 2, 5), (1, 2, 500), (0, 3, 5)])
    outcome = RoundRouting(messages, Torus((8,), (True,)), LinkSpec(2.0, float("inf"))).time()
    assert (outcome.seconds, outcome.waiting) == (6.0, 0)


def test_nothing_takes_no_time_where_links_have_no_latency_and_messages_no_bytes() -> None:
    messages = columns([(0, 2, 0), (1, 2, 0), (0, 3, 0)])
    outcome = RoundRouting(messages, Torus((8,), (True,)), LinkSpec(0.0, 1e9)).time()
    assert (outcome.seconds, outcome.waiting) == (0.0, 0)


def test_what_would_take_too_long_is_bounded_and_says_so() -> None:
    n = 1024
    src, away = (each.reshape(-1) for each in np.meshgrid(np.arange(n), np.arange(1, n), indexing="ij"))
    load = Messages(src, (src + away) % n, np.full(len(src), 1000))
    outcome = RoundRouting(load, Torus((n,), (True,)), LinkSpec(0.0, 1e9)).time()
    assert not outcome.exact
    assert outcome.waiting is None
    assert outcome.seconds == pytest.approx(n * n / 8 * 1e-6)


@examples(60)
@given(st.integers(2, 40), st.integers(1, 20), st.floats(1e-9, 1e-3), st.floats(1e3, 1e12))
def test_times_are_never_below_the_bounds(n: int, size: int, latency: float, rate: float) -> None:
    src, away = (each.reshape(-1) for each in np.meshgrid(np.arange(n), np.arange(1, n), indexing="ij"))
    load, link_spec = Messages(src, (src + away) % n, np.full(len(src), size)), LinkSpec(latency, rate)
    routing = RoundRouting(load, Torus((n,), (True,)), link_spec)
    alone = int(routing.hops.max()) * link_spec.seconds(size)
    busiest = link_spec.seconds(int(routing.loads.max()))
    one_by_one = float((routing.hops * link_spec.seconds(size)).sum())
    assert max(alone, busiest) * (1 - 1e-9) <= routing.time().seconds <= one_by_one * (1 + 1e-9)


def test_wires_and_sizes_at_the_ends_of_what_is_possible() -> None:
    for latency, rate, size in product([0.0, 1e-30, 1e-6, 1e6], [1.0, 4.5e10, 1e18], [1, 2**45]):
        n = 12
        src, away = (each.reshape(-1) for each in np.meshgrid(np.arange(n), np.arange(1, n), indexing="ij"))
        load = Messages(src, (src + away) % n, np.full(len(src), size))
        outcome = RoundRouting(load, Torus((n,), (True,)), LinkSpec(latency, rate)).time()
        least = max(6 * (latency + size / rate), latency + 18 * size / rate)
        assert least * (1 - 1e-9) <= outcome.seconds <= (6 * latency + 30 * size / rate) * (1 + 1e-9)
        assert outcome.exact


PAIRS = st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] != pair[1])


@examples(120)
@given(st.lists(PAIRS, min_size=1, max_size=40, unique=True), st.data())
def test_as_message_by_message(
    plainly: SimpleNamespace, pairs: list[tuple[int, int]], data: st.DataObject
) -> None:
    sizes = st.sampled_from([0, 1, 1, 2, 5, 1000])
    messages = [(*pair, data.draw(sizes)) for pair in pairs]
    load = Messages(*np.array(messages, dtype=np.int64).T)
    assert busiest_transfer(load) == plainly.through_switch(messages)


def test_a_message_pays_one_latency_and_is_sent_once() -> None:
    load = Messages(np.array([0]), np.array([1]), np.array([1000]))
    outcome = RoundRouting(load, Switch(4), LinkSpec(1e-6, 1e9)).time()
    assert outcome.seconds == pytest.approx(2e-6)
    assert outcome.waiting == 0


def test_where_all_begin_with_another_receiver_no_link_is_idle() -> None:
    n = 16
    src = np.repeat(np.arange(n), n - 1)
    turned = (src + np.tile(np.arange(1, n), n)) % n
    assert busiest_transfer(Messages(src, turned, np.full(len(src), 10)))[0] == 10 * (n - 1)
    # All to device 0 first, then all to device 1: its link is not free when others have sent what is before.
    order = np.lexsort((turned, src))
    assert busiest_transfer(Messages(src, turned[order], np.full(len(src), 10)))[0] > 10 * (n - 1)


def test_huge_sizes_do_not_overflow() -> None:
    src = np.repeat(np.arange(50), 49)
    dst = (src + np.tile(np.arange(1, 50), 50)) % 50
    assert busiest_transfer(Messages(src, dst, np.full(len(src), 2**48)))[0] == 49 * 2**48


def test_nothing_but_empty_messages() -> None:
    load = Messages(np.array([0, 1]), np.array([1, 0]), np.array([0, 0]))
    assert busiest_transfer(load) == (0, 0)
    assert RoundRouting(load, Switch(2), LinkSpec(1e-6, 1e9)).time().seconds == 1e-6
