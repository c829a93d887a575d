"""Tasks at once: as many as there are cores and memory for, the first alone."""

from __future__ import annotations

import threading
import time

import pytest

from shardviz.devices import found_hardware


@pytest.mark.parametrize(
    ("held", "free", "cores", "at_once"),
    [(10, 1000, 3, 3), (10, 29, 8, 2), (10, 19, 8, 1), (0, 1000, 8, 1), (10, 1000, 1, 1)],
)
def test_as_many_as_fit(held, free, cores, at_once, monkeypatch):
    running, most, lock = 0, [0], threading.Lock()

    def do(task):
        nonlocal running
        with lock:
            running += 1
            most.append(running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return -task, held

    monkeypatch.setattr(found_hardware, "free_bytes", lambda: free)
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    found = found_hardware.side_by_side(range(12), do)
    assert next(found) == (0, 0)
    assert most == [0, 1]
    assert sorted(found) == [(task, -task) for task in range(1, 12)]
    assert max(most) == at_once
