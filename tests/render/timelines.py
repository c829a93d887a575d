"""Timelines made by hand, for the tests of their pictures."""

from __future__ import annotations

from dataclasses import replace

from shardviz.timeline.program_timeline import (
    Lane,
    LiveBuffer,
    MemoryReport,
    ProgramTimeline,
    Saving,
    TimedOp,
    TimeSpan,
)

LANES = (Lane("compute", "compute"), Lane("copy", "HBM copies"), Lane("axis", "X"), Lane("axis", "Y"))
MS = 1e-3


def timed(name: str, op: str, lane: int, start: float, end: float, **more: object) -> TimedOp:
    """An operation from `start` to `end` milliseconds."""
    fields = {"seconds": (end - start) * MS, "estimate": "links" if lane > 1 else "compiler"} | more
    return TimedOp(name, op, lane, start * MS, end * MS, **fields)  # type: ignore[arg-type]


LAYER = ProgramTimeline(
    title="jit_layer",
    machine="v4:2x2x1",
    lanes=LANES,
    ops=(
        timed("copy-start.1", "copy", 1, 0, 3, is_async=True, bytes=2**25, bound="HBM"),
        timed(
            "all-gather.1", "all-gather", 3, 0, 8, exposed=8 * MS, bytes=2**28, bound="Y", source="net.py:12"
        ),
        timed("fusion.1", "matmul", 0, 8, 16, after=(1,), flops=10**12, bound="compute", source="net.py:12"),
        timed("all-gather.2", "all-gather", 3, 8, 18, exposed=2 * MS, is_async=True, bytes=2**28, bound="Y"),
        timed("fusion.2", "fusion", 0, 18, 22, after=(2, 3), bound="HBM", source="net.py:14"),
        timed("custom-call.7", "custom-call", 0, 22, 22, seconds=None, estimate="unknown"),
        timed("fusion.3", "matmul", 0, 22, 32, after=(4,), flops=10**12, bound="compute", source="net.py:15"),
        timed("reduce-scatter.1", "reduce-scatter", 2, 24, 31, is_async=True, bytes=2**27, bound="X"),
        timed("all-reduce.1", "all-reduce", 2, 26, 34, is_async=True, exposed=2 * MS, bytes=2**27, bound="X"),
        timed("fusion.4", "fusion", 0, 34, 36, after=(8,), bound="HBM"),
    ),
    spans=(
        TimeSpan("loop", "while.1", 8 * MS, 32 * MS, 4, 0),
        TimeSpan("branch", "true branch", 18 * MS, 22 * MS, None, 1),
    ),
    seconds=108 * MS,
    drawn_seconds=36 * MS,
    compute_seconds=90 * MS,
    communication_seconds=(("X", 60 * MS), ("Y", 48 * MS)),
    exposed_seconds=(("X", 2 * MS), ("Y", 16 * MS)),
    flops=8 * 10**12,
    utilisation=0.61,
    critical_path=(1, 2, 4, 6, 8, 9),
    savings=(
        Saving(8 * MS, "all-gather.1 is exposed for 8 ms: nothing runs beside it", 1),
        Saving(2 * MS, "all-reduce.1 is exposed for 2 ms", 8),
    ),
    unknown=("custom-call.7",),
    notes=("one loop's count is read from its condition",),
    memory=MemoryReport(
        by="compiler",
        argument_bytes=5 * 2**30,
        output_bytes=2**30,
        alias_bytes=2**30,
        temporary_bytes=8 * 2**30,
        peak_bytes=13 * 2**30,
        limit_bytes=int(15.75 * 2**30),
        buffers=(
            LiveBuffer("fusion.1", "temporary", "bf16[4096,16384]", 2**30, "net.py:12", 8 * MS, 22 * MS),
            LiveBuffer("param.3", "argument", "bf16[16384,16384]", 2**29),
        ),
        curve=((0.0, 5 * 2**30), (8 * MS, 9 * 2**30), (18 * MS, 13 * 2**30), (22 * MS, 7 * 2**30)),
        peak_at=18 * MS,
    ),
)
"""Four milliseconds here and there: every kind of thing that a picture may meet."""


def long_timeline(count: int) -> ProgramTimeline:
    """`count` operations one after another on three lanes, of very different lengths."""
    ops, time = [], 0.0
    for number in range(count):
        length = (0.01, 0.2, 0.05, 3.0)[number % 4]
        lane = (0, 0, 1, 3)[number % 4]
        ops.append(timed(f"op.{number}", "fusion" if lane else "matmul", lane, time, time + length))
        time += length * (0.4 if lane else 1.0)
    return replace(LAYER, ops=tuple(ops), spans=(), drawn_seconds=time * MS, critical_path=(), savings=())
