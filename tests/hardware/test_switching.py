"""A switch against its queues, message by message."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardviz.hardware import Switch, Wire
from shardviz.hardware.messages import Messages
from shardviz.hardware.switching import busiest_transfer
from shardviz.hardware.trip import Trip

PAIRS = st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] != pair[1])


@settings(max_examples=300)
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
    outcome = Trip.of(load, Switch(4)).outcome(Wire(1e-6, 1e9))
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
    assert Trip.of(load, Switch(2)).outcome(Wire(1e-6, 1e9)).seconds == 1e-6
