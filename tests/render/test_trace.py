"""Chrome's trace events: what Perfetto asks of a file, and what it can tell from one."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import groupby

import pytest

from shardviz.hardware.clusters import parse_cluster
from shardviz.render.times.timeline_rows import MAX_EVENTS, trace
from shardviz.timeline.of_program import timed_program
from shardviz.timeline.program_timeline import TimeSpan
from shardviz.user_files import EXAMPLES
from tests.render.timelines import LAYER, MS, long_timeline, timed


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
    assert found["while.1 ×4"]["dur"] == 96_000


def test_flows_begin_and_end_in_slices() -> None:
    everything = events(LAYER)
    slices = [event for event in everything if event["ph"] == "X"]
    for kind in "sf":
        flows = {event["id"]: event for event in everything if event["ph"] == kind}
        assert flows
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
    before, *loop = [size for _, size in LAYER.memory.curve]
    assert [size for size, _ in groupby(counted)] == [before, *loop * 4]
    used = {(event["pid"], event["tid"]) for event in found if event["ph"] in "Xisf"}
    assert used <= {(event["pid"], event["tid"]) for event in found if event["name"] == "thread_name"}


def looping(trips: int):
    """A program whose loop runs so often; it multiplies and gathers in each run."""
    text = (EXAMPLES / "mlp.txt").read_text()
    assert '"n":"3"' in text
    text = text.replace('"n":"3"', f'"n":"{trips}"')
    return timed_program(text, parse_cluster("v5e:2x4"), infer=True)[1]


def end(found) -> float:
    return max(event["ts"] + event.get("dur", 0) for event in found if event["ph"] in "Xi") / 1e6


@pytest.mark.parametrize("trips", [3, 40, 1_000_000])
def test_a_loop_is_as_long_as_all_its_runs(trips) -> None:
    timeline = looping(trips)
    found = events(timeline)
    assert timeline.seconds > 1.5 * timeline.drawn_seconds
    assert end(found) == pytest.approx(timeline.seconds, abs=1e-11)
    assert len(found) <= MAX_EVENTS + 100
    drawn = Counter(event["name"] for event in found if event["ph"] == "X")
    once = next(op.name for op in timeline.ops if op.runs == trips)
    rest = [event for event in found if "the rest" in event["name"]]
    if trips < 1000:
        assert (drawn[once], rest) == (trips, [])
    else:
        (bar,) = rest
        assert drawn[once] + bar["args"]["count"] == trips
        assert drawn[once] > 1000
        assert bar["dur"] == pytest.approx(bar["args"]["count"] / trips * timeline.seconds * 1e6, rel=1e-3)


def test_loops_within_loops_are_drawn_in_order_up_to_the_limit() -> None:
    body = [timed("a", "fusion", 0, 1, 2, runs=9_000), timed("b", "fusion", 0, 2, 3, runs=9_000_000)]
    loops = (
        TimeSpan("loop", "inner", 2 * MS, 3 * MS, 1000, 1),
        TimeSpan("loop", "outer", 1 * MS, 3 * MS, 9000, 0),
    )
    last = timed("c", "fusion", 0, 3, 4)
    seconds = 1e-3 + 9000 * (1e-3 + 1000 * 1e-3) + 1e-3
    made = replace(
        LAYER, ops=(timed("x", "fusion", 0, 0, 1), *body, last), spans=loops, seconds=seconds,
        drawn_seconds=4 * MS, memory=None,
    )  # fmt: skip
    found = events(made)
    drawn = Counter(event["name"] for event in found)
    assert end(found) == pytest.approx(seconds)
    assert len(found) <= MAX_EVENTS + 100
    assert drawn["a"] >= 50
    assert 999 * drawn["a"] <= drawn["b"] <= 1000 * drawn["a"]
    assert next(event for event in found if event["name"] == "c")["ts"] == pytest.approx(
        (seconds - 1e-3) * 1e6
    )
