"""Timelines that are written down: a plan's, and a program's with a loop, overlaps and an unknown."""

from __future__ import annotations

from shardviz.timeline.program_timeline import (
    Lane,
    LiveBuffer,
    MemoryReport,
    ProgramTimeline,
    Saving,
    TimedOp,
    TimeSpan,
)

GIB = 2**30


def plan() -> ProgramTimeline:
    """A gather, then a matmul."""
    return ProgramTimeline(
        title="bd,df->bf",
        machine="v5e",
        lanes=(Lane("compute", "compute"), Lane("axis", "Y")),
        ops=(
            TimedOp("all_gather A", "all_gather", 1, 0.0, 8e-6, 8e-6, "links", exposed=8e-6, bound="Y on Y"),
            TimedOp("einsum bd,df->bf", "einsum", 0, 8e-6, 20e-6, 12e-6, "roofline", after=(0,), flops=10**9),
        ),
        spans=(),
        seconds=20e-6,
        drawn_seconds=20e-6,
        compute_seconds=12e-6,
        communication_seconds=(("Y", 8e-6),),
        exposed_seconds=(("Y", 8e-6),),
        flops=10**9,
        utilisation=0.25,
        critical_path=(0, 1),
    )


def program(machine: str = "v5e:2x4", scale: float = 1.0) -> ProgramTimeline:
    """Matmuls in a loop beside a gather, then a reduce-scatter that nothing hides."""

    us = 1e-6 * scale

    def op(name, opcode, lane, start, end, estimate="compiler", **others):
        return TimedOp(name, opcode, lane, start * us, end * us, (end - start) * us, estimate, **others)

    gather = {
        "bytes": 2**20,
        "source": "model.py:12",
        "bound": "X on x",
        "detail": "ring of 4, both directions",
    }
    ops = (
        op("copy-start.1", "copy-start", 1, 0, 4, "roofline", is_async=True, bytes=3 * 2**20),
        op("fusion.1", "matmul", 0, 0, 10, flops=2 * 10**9, source="model.py:9", bound="compute"),
        op(
            *("all-gather-start", "all-gather", 2, 2, 14, "links"),
            **{**gather, "is_async": True, "after": (0,), "exposed": us, "runs": 32},
        ),
        op("fusion.2", "fusion", 0, 10, 13, after=(1,), runs=32),
        TimedOp("custom-call.7", "custom-call", 0, 14 * us, 14 * us, None, "unknown", after=(2,)),
        op("fusion.3", "matmul", 0, 14, 24, after=(2, 3), flops=2 * 10**9, runs=32),
        op(
            *("reduce-scatter.5", "reduce-scatter", 3, 24, 30, "links"),
            after=(5,),
            exposed=6 * us,
            source="model.py:14",
        ),
    )
    buffers = (
        LiveBuffer("param.1", "argument", "bf16[8192,8192]", 4 * GIB),
        LiveBuffer("fusion.1", "temporary", "f32[8,8]", GIB, "model.py:9"),
    )
    curve = ((0.0, 4 * GIB), (10 * us, 8 * GIB), (24 * us, 5 * GIB))
    limit = int(15.75 * GIB)
    memory = MemoryReport(
        "compiler", 4 * GIB, GIB, 0, 3 * GIB, 8 * GIB, limit, buffers, curve, peak_at=10 * us
    )
    return ProgramTimeline(
        title="bd,df->bf",
        machine=machine,
        lanes=(Lane("compute", "compute"), Lane("copy", "HBM copies"), Lane("axis", "X"), Lane("axis", "Y")),
        ops=ops,
        spans=(TimeSpan("loop", "while.1", 2e-6 * scale, 24e-6 * scale, 32, 0),),
        seconds=700e-6 * scale,
        drawn_seconds=30e-6 * scale,
        compute_seconds=600e-6 * scale,
        communication_seconds=(("X", 384e-6 * scale), ("Y", 6e-6 * scale)),
        exposed_seconds=(("X", 32e-6 * scale), ("Y", 6e-6 * scale)),
        flops=10**12,
        utilisation=0.61,
        critical_path=(1, 3, 5, 6),
        savings=(
            Saving(32e-6 * scale, "the all-gather of model.py:12 is exposed for 32 µs", 2),
            Saving(6e-6 * scale, "the reduce-scatter of model.py:14 is exposed for 6 µs", 6),
        ),
        unknown=("custom-call.7",),
        notes=("the layout change around a gather is not counted",),
        memory=memory,
    )
