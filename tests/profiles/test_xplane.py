"""JAX's profiles, event by event against `jax.profiler.ProfileData`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jax.profiler import ProfileData

from shardviz.profiles.device_trace import DEVICE_LINES, SKIPPED, STATS, TraceEvent
from shardviz.profiles.xplane import hostname, programs, xplane_events
from tests.profiles import traces

pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning")
"""jaxlib's own types say so on Python 3.13, and end the process where that is an error."""


def events(data: bytes) -> list[TraceEvent]:
    return [*xplane_events(data, lambda _: None)]


def told(data: bytes, shared: dict[str, dict[str, int]] | None = None) -> dict[tuple[Any, ...], int]:
    """The events by what `ProfileData` says of them, with how often each is there. It leaves out the stats
    that all events of a name share."""
    found: dict[tuple[Any, ...], int] = {}
    profile = ProfileData.from_serialized_xspace(data)
    for plane in profile.planes:
        for line in plane.lines:
            if not plane.name.startswith("/host:") and line.name not in DEVICE_LINES:
                continue
            for event in line.events:
                if event.name.startswith(SKIPPED):
                    continue
                stats = {name: value for name, value in event.stats if name in STATS}
                stats |= (shared or {}).get(event.name, {})
                if not stats and plane.name.startswith("/host:"):
                    continue
                key = (plane.name, line.name, event.name, *sorted(stats.items()))
                found[key] = found.get(key, 0) + 1
    return found


def read(data: bytes) -> dict[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = {}
    for each in events(data):
        key = (each.plane, each.line, each.name, *sorted(each.stats.items()))
        found[key] = found.get(key, 0) + 1
    return found


def test_a_cpu_profile_has_the_events_that_jax_reads(profiled_folder: Path) -> None:
    (file,) = profiled_folder.rglob("*.xplane.pb")
    data = file.read_bytes()
    assert read(data) == told(data)
    assert sum("hlo_op" in each.stats for each in events(data)) > 100


def test_operations_on_the_threads_of_a_matmul_are_read() -> None:
    """XLA's CPU backend runs what does not depend on one another on any of its threads."""
    stats = {"hlo_op": "dot.1", "hlo_module": "jit_f", "run_id": 4, "device_ordinal": 2, "_p": 9}
    lines = {
        "tf_XLAPjRtCpuClient/1": [traces.Event("dot.1", 0, 5, stats)],
        "tf_XLAEigen/-7": [
            traces.Event("dot.2", 0, 9, stats),
            traces.Event("ThreadpoolListener::Record", 0, 9, {"_p": 3}),
        ],
    }
    found = events(traces.xspace({"/host:CPU": lines}))
    assert [each.name for each in found] == ["dot.1", "dot.2"]


@pytest.mark.parametrize(
    "stats",
    [
        {},
        {"run_id": -1},
        {"run_id": 2**63 - 1, "_c": 0, "step_num": 128},
        {"long_name": "x" * 127, "run_id": 3},
        {"details": "x" * 20_000, "run_id": 3},
        {"of no use": 5},
    ],
)
@pytest.mark.parametrize("plane", ["/host:CPU", "/device:TPU:0"])
def test_stats_of_every_form_are_read(stats: dict[str, int | str], plane: str) -> None:
    found = [
        traces.Event("a", 0, 0, stats),
        traces.Event("b", 3, 4e9, stats, {"flops": 7}),
        traces.Event("c", 3.5, 4, {**stats, "_p": 1 << 40}),
        traces.Event("$python", 5, 6, stats),
    ]
    data = traces.xspace({plane: {"XLA Ops": found}})
    assert read(data) == told(data, {"b": {"flops": 7}})
    begin = 1000 * 1000
    assert {(each.name, each.start - begin, each.end - begin) for each in events(data)} == {
        (each.name, round(each.start * traces.MICRO), round(each.end * traces.MICRO))
        for each in found
        if each.name in {name for _, _, name, *_ in read(data)}
    }


def test_times_are_those_that_jax_reads(profiled_folder: Path) -> None:
    (file,) = profiled_folder.rglob("*.xplane.pb")
    data = file.read_bytes()
    profile = ProfileData.from_serialized_xspace(data)
    by_jax = sorted(
        (event.name, round(event.start_ns * 1000), round(event.end_ns * 1000))
        for plane in profile.planes
        for line in plane.lines
        for event in line.events
        if "hlo_op" in dict(event.stats)
    )
    ours = sorted((each.name, each.start, each.end) for each in events(data) if "hlo_op" in each.stats)
    assert [name for name, *_ in ours] == [name for name, *_ in by_jax]
    for mine, theirs in zip(ours, by_jax, strict=True):
        # JAX gives nanoseconds as floating-point numbers.
        assert mine[1:] == pytest.approx(theirs[1:], abs=1)


def test_stats_of_all_events_of_a_name_are_read_too() -> None:
    data = traces.xspace({"/device:TPU:0": traces.tpu_plane()})
    found = events(data)
    assert {name for plane, line, name, *_ in told(data)} == {each.name for each in found}
    ops = [each for each in found if each.line == "XLA Ops"]
    assert [each.stats["flops"] for each in ops] == [7] * 10
    assert (ops[0].start, ops[0].end) == (1_000_000 + 10 * traces.MICRO, 1_000_000 + 12 * traces.MICRO)


def test_the_programs_are_those_that_were_compiled(profiled_folder: Path) -> None:
    (file,) = profiled_folder.rglob("*.xplane.pb")
    found = {each.name: each for each in programs(file.read_bytes())}
    assert found["jit_step"].device_ids == (tuple(range(8)),)
    ids = {each.stats["program_id"] for each in events(file.read_bytes()) if "program_id" in each.stats}
    assert found["jit_step"].program_id in ids


def test_the_host_is_named() -> None:
    assert hostname(traces.xspace({"/host:CPU": {}}, host="worker-3")) == "worker-3"
    assert hostname(b"") == ""


@pytest.mark.parametrize("kept", [1, 0.5])
def test_every_cut_is_refused_or_read_to_its_end(kept: float) -> None:
    whole = traces.xspace({"/device:TPU:0": traces.tpu_plane()})
    cut = whole[: int(len(whole) * kept)]
    if kept == 1:
        assert events(cut)
        return
    with pytest.raises(ValueError, match=r"message|breaks off"):
        events(cut)


def test_progress_goes_on_to_the_end() -> None:
    data = traces.xspace({f"/device:TPU:{number}": traces.tpu_plane() for number in range(3)})
    seen: list[int] = []
    for _ in xplane_events(data, seen.append):
        pass
    assert seen == sorted(seen)
    assert seen[-1] >= len(data) * 0.95
