"""What a process has loaded stays out of the search for circles, and costs a reading nothing."""

from __future__ import annotations

import gc

import pytest

from shardviz import garbage


def test_a_reading_leaves_what_was_frozen_and_does_not_count_it(monkeypatch):
    frozen = gc.get_freeze_count()
    assert frozen > 10_000  # what the tests load
    with monkeypatch.context() as patched:
        patched.setattr(gc, "get_freeze_count", pytest.fail)  # it looks at each object
        with garbage.uncollected():
            assert not gc.isenabled()
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen


def test_of_a_process_that_froze_nothing_what_was_read_counts_as_old(monkeypatch):
    monkeypatch.setattr(garbage, "_is_frozen", False)
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: calls.append("unfreeze"))
    calls = []
    with pytest.raises(ValueError, match="text"), garbage.uncollected():
        raise ValueError("text")
    assert calls == ["freeze", "unfreeze"]
    assert gc.isenabled()
