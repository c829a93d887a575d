"""Chrome's form of a profile: the same operations as in JAX's own form of it."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from shardviz.profiles import trace_files
from shardviz.profiles.device_trace import TraceEvent
from shardviz.profiles.trace_files import chrome_events
from shardviz.profiles.xplane import xplane_events


def events(text: str) -> list[TraceEvent]:
    return [*chrome_events(io.StringIO(text), lambda: None)]


def test_the_operations_are_those_of_the_other_form(profiled_folder: Path) -> None:
    (chrome,) = profiled_folder.rglob("*.trace.json.gz")
    (xplane,) = profiled_folder.rglob("*.xplane.pb")
    ours = events(gzip.decompress(chrome.read_bytes()).decode())
    theirs = xplane_events(xplane.read_bytes(), lambda _: None)

    def told(each: TraceEvent) -> tuple[object, ...]:
        stats = each.stats
        return each.name, stats["device_ordinal"], stats["run_id"], each.start, each.end

    assert sorted(map(told, (each for each in ours if "hlo_op" in each.stats))) == sorted(
        map(told, (each for each in theirs if "hlo_op" in each.stats))
    )


TPU = {
    "displayTimeUnit": "ns",
    "traceEvents": [
        {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 3, "tid": 1, "name": "thread_name", "args": {"name": "XLA Ops"}},
        {"ph": "X", "pid": 3, "tid": 1, "ts": 1.5, "dur": 2.25, "name": "fusion.1", "args": {"flops": "12"}},
        {"ph": "X", "pid": 3, "tid": 2, "ts": 1, "dur": 2, "name": "of no thread that is named"},
        {},
    ],
}


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_it_is_read_whatever_the_pieces_in_which_it_comes(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps(TPU)
    # The beginning, with the name of the list, comes in one piece.
    monkeypatch.setattr(trace_files, "CHUNK", max(chunk, 60))
    (event,) = events(text)
    assert event == TraceEvent("/device:TPU:0", "XLA Ops", "fusion.1", 1_500_000, 3_750_000, {"flops": 12})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "no traceEvents"),
        ("[1, 2", "breaks off"),
        ('{"traceEvents": [{"ph": "X"', "breaks off"),
        ("hello", "no traceEvents"),
        (json.dumps(TPU).replace("1.5", '"soon"'), "without a time"),
    ],
)
def test_what_is_no_trace_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        events(text)
