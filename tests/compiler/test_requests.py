"""Requests to one process: which goes first, and how they end without a child."""

from __future__ import annotations

import threading
import time

import pytest

from shardviz.compiler import Cancelled, requests
from shardviz.compiler.requests import CompilerRequest, RequestScheduler, settled
from shardviz.errors import CompilerError


@pytest.fixture
def stopped():
    return []


@pytest.fixture
def scheduler(stopped):
    own = RequestScheduler(stopped.append)
    yield own
    own.close()


def added(scheduler, due=0.0, rank=0):
    request = CompilerRequest(None, str, turn=(due, rank))
    scheduler.add(request)
    return request


def test_the_lowest_rank_goes_first_and_then_the_oldest(scheduler):
    passes, cpu, shardy, other = (added(scheduler, rank=rank) for rank in (2, 1, 0, 1))
    assert [scheduler.next() for _ in range(4)] == [shardy, cpu, other, passes]


def test_what_is_not_due_waits_whatever_its_rank(scheduler):
    later = added(scheduler, due=time.monotonic() + 3600)
    now = added(scheduler, rank=2)
    assert scheduler.next() is now
    assert later.began is None
    soon = added(scheduler, due=time.monotonic() + 0.1)
    assert scheduler.next() is soon
    assert soon.began >= soon.due


def test_who_waits_for_a_request_gets_one_that_comes_later(scheduler):
    found = []
    waiting = threading.Thread(target=lambda: found.append(scheduler.next()))
    waiting.start()
    request = added(scheduler)
    waiting.join(60)
    assert found == [request]


@pytest.mark.parametrize("end", ["cancel", "drop"])
def test_one_that_has_not_begun_is_taken_out(scheduler, stopped, end):
    first, second = added(scheduler), added(scheduler)
    getattr(first, end)()
    with pytest.raises(Cancelled):
        first.result(0)
    assert scheduler.next() is second
    assert stopped == []


def test_one_that_has_begun_is_stopped_once(scheduler, stopped):
    request = added(scheduler)
    scheduler.next()
    assert request.cancel()
    assert not request.cancel()
    assert stopped == [request]
    assert not request.keep()


def test_one_that_was_dropped_goes_on_until_another_is_due(scheduler, stopped, monkeypatch):
    monkeypatch.setattr(requests, "PATIENCE_S", 0.05)
    request = added(scheduler)
    scheduler.next()
    request.drop()
    time.sleep(0.1)
    assert not request.done()
    other = added(scheduler, due=time.monotonic() + 0.05)
    with pytest.raises(Cancelled):
        request.result(60)
    assert time.monotonic() >= other.due
    assert stopped == [request]


def test_one_that_was_kept_goes_on(scheduler, stopped, monkeypatch):
    monkeypatch.setattr(requests, "PATIENCE_S", 3600)
    request = added(scheduler)
    scheduler.next()
    request.drop()
    added(scheduler)
    assert request.keep()
    monkeypatch.setattr(requests, "PATIENCE_S", 0)
    request._end_dropped()  # as its timer does
    assert not request.done()
    assert stopped == []


def test_closing_ends_what_waits_what_is_under_way_and_what_comes(scheduler):
    under_way, waiting = added(scheduler), added(scheduler)
    assert scheduler.next() is under_way
    scheduler.close()
    assert scheduler.next() is None
    for request in (under_way, waiting, added(scheduler)):
        with pytest.raises(Cancelled, match="the worker was closed"):
            request.result(0)


def test_the_first_end_counts_and_each_cleans_up():
    ends = []
    request = CompilerRequest(None, str, on_end=lambda: ends.append(request.done()))
    assert request.fail(CompilerError("dead"))
    request.settle("late")
    assert request.exception() is not None
    assert ends == [False, True]
    assert settled("answer").result(0) == "answer"


def test_a_reply_to_one_that_was_cancelled_is_not_read():
    request = CompilerRequest(None, lambda reply: reply / 0)
    with pytest.raises(TypeError):
        request.reply("a child's")
    assert request.cancel()
    request.reply("a child's")
    assert request.cancelled() or isinstance(request.exception(), Cancelled)
