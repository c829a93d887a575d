"""Traces of TPUs and GPUs, written by the names that XLA documents: none of these devices is here.

Names of planes, lines and stats are those of XLA's ``tsl/profiler/utils/xplane_schema.cc``; jaxlib's own
protocol buffer makes the bytes of them. Times of events are microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

MICRO = 1_000_000
"""Picoseconds in a microsecond."""


class Event(NamedTuple):
    """An event of a line, with its own stats and those that all events of its name have."""

    name: str
    start: float
    end: float
    stats: Mapping[str, int | str] = {}
    shared: Mapping[str, int | str] = {}


Lines = Mapping[str, Sequence[Event]]


def xspace(planes: Mapping[str, Lines], host: str = "vm", timestamp_ns: int = 1000) -> bytes:
    """A profile of these planes, each with the events of its lines by the lines' names."""
    from jax.profiler import ProfileData

    text = "".join(_plane(name, lines, timestamp_ns) for name, lines in planes.items())
    return ProfileData.text_proto_to_serialized_xspace(f'{text} hostnames: "{host}"')


def _plane(name: str, lines: Lines, timestamp_ns: int) -> str:
    events: dict[str, int] = {}
    stats: dict[str, int] = {}
    shared: dict[str, Mapping[str, int | str]] = {}

    def stat(key: str, value: int | str) -> str:
        number = stats.setdefault(key, len(stats) + 1)
        said = f'str_value: "{value}"' if isinstance(value, str) else f"int64_value: {value}"
        return f"stats {{ metadata_id: {number} {said} }}"

    parts = []
    for line, found in lines.items():
        rows = []
        for each in found:
            number = events.setdefault(each.name, len(events) + 1)
            shared.setdefault(each.name, each.shared)
            own = " ".join(stat(key, value) for key, value in each.stats.items())
            start, length = round(each.start * MICRO), round((each.end - each.start) * MICRO)
            times = f"offset_ps: {start} duration_ps: {length}"
            rows.append(f"events {{ metadata_id: {number} {times} {own} }}")
        parts.append(f'lines {{ name: "{line}" timestamp_ns: {timestamp_ns} {" ".join(rows)} }}')
    for each, number in events.items():
        said = " ".join(stat(key, value) for key, value in shared[each].items())
        escaped = each.replace('"', '\\"')
        parts.append(f'event_metadata {{ key: {number} value {{ id: {number} name: "{escaped}" {said} }} }}')
    for each, number in stats.items():
        parts.append(f'stat_metadata {{ key: {number} value {{ id: {number} name: "{each}" }} }}')
    return f'planes {{ name: "{name}" {" ".join(parts)} }}\n'


TPU_TEXT = Path(__file__).with_name("tpu.txt").read_text(encoding="utf-8")
"""The program of `tpu_plane`."""
HLO_LINES = {
    found[1]: found[0] for found in re.finditer(r"%(\S+) = \S.*?(?=, metadata|$)", TPU_TEXT, re.MULTILINE)
}
"""A TPU's name of an operation is its whole line."""


def tpu_plane(late: float = 0.0, runs: int = 2) -> Lines:
    """A TPU that runs `TPU_TEXT` every 200 µs, and in each run arrives `late` µs later at the all-reduce.

    The gather takes 10 to 60 µs of a run; the fusion runs beside it from 12 to 32, and its end is waited for
    from 40 on. Then 40 µs of matmul, and the reduction until 130 on every device.
    """
    ops, modules, steps, asynchronous = [], [], [], []
    for run in range(runs):
        begin = 200.0 * run

        def op(name: str, start: float, end: float, begin: float = begin) -> Event:
            shared = {"hlo_category": "x", "flops": 7, "program_id": 5}
            return Event(HLO_LINES[name], begin + start, begin + end, {}, shared)

        ops += [
            op("all-gather-start.1", 10, 12),
            op("fusion.1", 12, 32),
            op("all-gather-done.1", 40, 60),
            op("convolution.2", 60, 100 + late),
            op("all-reduce.3", 100 + late, 130),
        ]
        asynchronous.append(op("all-gather-start.1", 10, 60))
        modules.append(Event("jit_step(5)", begin + 10, begin + 130, {"run_id": 70 + run}))
        steps.append(Event(str(run), begin, begin + 150, {"step_num": run}))
    return {"Steps": steps, "XLA Modules": modules, "XLA Ops": ops, "Async XLA Ops": asynchronous}


def gpu_plane(late: float = 0.0) -> Lines:
    """A GPU that runs `TPU_TEXT` once: a stream that computes and one of NCCL."""

    def kernel(name: str, op: str, start: float, end: float) -> Event:
        return Event(name, start, end, {"hlo_op": op, "hlo_module": "jit_step", "correlation_id": 1})

    return {
        "Stream #16(Compute)": [
            kernel("loop_add_fusion", "fusion.1", 12, 32),
            kernel("gemm_fusion_dot", "convolution.2", 60, 100 + late),
            Event("MemcpyD2D", 131, 140, {"memcpy_details": "x"}),
        ],
        "Stream #20(Collective)": [
            kernel("ncclDevKernel_AllGather_RING_LL", "all-gather-start.1", 10, 60),
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all-reduce.3", 100 + late, 130),
        ],
        "Source code": [Event("step.py:12", 0, 150)],
    }
