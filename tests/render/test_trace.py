"""Chrome's trace events: what Perfetto asks of a file, and what it can tell from one."""

from __future__ import annotations

import json
from collections import defaultdict

import pytest

from shardviz.render.times.trace import trace
from tests.render.timelines import LAYER, long_timeline


def events(*timelines):
    document = json.loads(trace(timelines))
    assert set(document) == {"displayTimeUnit", "traceEvents"}
    return document["traceEvents"]


@pytest.mark.parametrize("timeline", [LAYER, long_timeline(400)])
def test_slices_of_a_thread_follow_one_another_or_nest(timeline) -> None:
    threads = defaultdict(list)
    for event in events(timeline):
        if event["ph"] == "X":
            threads[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert threads
    for slices in threads.values():
        around: list[float] = []
        for start, end in slices:
            while around and around[-1] <= start + 2e-6:
                around.pop()
            assert not around or end <= around[-1] + 2e-6
            around.append(end)


def test_every_operation_is_there_with_what_is_known_of_it() -> None:
    found = {event["name"]: event for event in events(LAYER) if event["ph"] in "Xi"}
    assert {op.name for op in LAYER.ops} <= set(found)
    gather = found["all-gather.1"]
    assert (gather["ts"], gather["dur"]) == (0, 8000)
    assert gather["args"]["source"] == "net.py:12"
    assert gather["args"]["exposed_us"] == 8000
    assert found["custom-call.7"]["ph"] == "i"
    assert found["custom-call.7"]["args"]["us_a_run"] is None
    assert found["while.1 ×4"]["dur"] == 24_000


def test_flows_begin_and_end_in_slices() -> None:
    everything = events(LAYER)
    slices = [event for event in everything if event["ph"] == "X"]
    for kind in "sf":
        flows = {event["id"]: event for event in everything if event["ph"] == kind}
        assert len(flows) == 3
        for flow in flows.values():
            inside = [
                one
                for one in slices
                if one["tid"] == flow["tid"] and one["ts"] <= flow["ts"] < one["ts"] + one["dur"]
            ]
            assert inside


def test_threads_and_processes_are_named_and_memory_is_counted() -> None:
    found = events(LAYER, LAYER)
    names = {(e["pid"], e["args"]["name"]) for e in found if e["name"] in ("process_name", "thread_name")}
    assert {(1, "jit_layer on v4:2x2x1"), (2, "X"), (2, "HBM copies")} <= names
    counted = [event["args"]["bytes"] for event in found if event["ph"] == "C" and event["pid"] == 1]
    assert counted == [size for _, size in LAYER.memory.curve]
    used = {(event["pid"], event["tid"]) for event in found if event["ph"] in "Xisf"}
    assert used <= {(event["pid"], event["tid"]) for event in found if event["name"] == "thread_name"}
