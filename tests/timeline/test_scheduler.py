"""The scheduler's simulation as a timeline: what waits, loops in full, and names that changed afterwards."""

from __future__ import annotations

import pytest

from shardviz.timeline.program_timeline import Lane, ProgramTimeline, TimedOp
from shardviz.timeline.scheduler import CompilerSchedule, read_schedule, scheduler_timeline
from shardviz.timeline.unrolled import unrolled
from tests.timeline.schedules import computation, instruction, module, simulated

MAIN, BODY = 3 << 32, 4 << 32
LANES = (Lane("compute", "compute"), Lane("axis", "X"))
US = 1e-6
"""A schedule of ours has 1,000 cycles a microsecond."""


def model(*ops: TimedOp, seconds: float = 1.0) -> ProgramTimeline:
    return ProgramTimeline("jit_f", "v5e:2x2", LANES, ops, (), seconds, seconds, 0, (), (), 0, None)


def transfer(name: str, runs: int | None = 1, **fields: object) -> TimedOp:
    return TimedOp(
        name,
        "all-gather",
        1,
        0.0,
        1.0,
        1.0,
        "links",
        runs,
        source="f.py:3",
        bytes=64,
        is_async=True,
        **fields,
    )


def matmul(name: str, runs: int | None = 1) -> TimedOp:
    return TimedOp(name, "matmul", 0, 0.0, 1.0, 1.0, "compiler", runs, flops=10)


def gathers(*times: tuple[int, float, float], total: float = 0) -> CompilerSchedule:
    """Two gathers and two fusions: 1 and 2 are the first's ends, 5 and 6 the second's, 3 and 4 the work."""
    main = computation(
        3,
        "main",
        instruction(MAIN | 1, "ag", "all-gather-start"),
        instruction(MAIN | 2, "agd", "all-gather-done", operands=(MAIN | 1,)),
        instruction(MAIN | 3, "f", "fusion"),
        instruction(MAIN | 4, "g", "fusion"),
        instruction(MAIN | 5, "ag2", "all-gather-start"),
        instruction(MAIN | 6, "agd2", "all-gather-done", operands=(MAIN | 5,)),
        instruction(MAIN | 7, "sync", "all-reduce"),
    )
    placed = tuple((MAIN | number, start, end) for number, start, end in times)
    return read_schedule(module("main", main) + simulated(3, *placed, total=total))


def told(found: ProgramTimeline) -> dict[str, tuple[float, float, float, float | None]]:
    """By name: start, end, exposed and seconds, in microseconds."""

    def micros(value: float) -> float:
        return round(value / US, 3)

    return {
        op.name: (
            micros(op.start),
            micros(op.end),
            micros(op.exposed),
            None if op.seconds is None else micros(op.seconds),
        )
        for op in found.ops
    }


def test_a_transfer_runs_from_start_to_done_and_what_nothing_covers_is_exposed():
    schedule = gathers((1, 0, 1), (3, 1, 3001), (2, 5001, 5002), (4, 5002, 9002))
    found = scheduler_timeline(schedule, model(transfer("ag"), matmul("f"), matmul("g")))
    assert told(found) == {
        "ag": (0.001, 5.001, 2, 5),
        "f": (0.001, 3.001, 0, 3),
        "g": (5.002, 9.002, 0, 4),
    }
    assert (found.seconds, found.drawn_seconds) == (pytest.approx(9.002 * US), pytest.approx(9.002 * US))
    assert found.lanes == LANES
    assert {op.name: op.lane for op in found.ops} == {"ag": 1, "f": 0, "g": 0}
    assert found.compute_seconds == pytest.approx(7 * US)
    assert found.exposed_seconds == (("X", pytest.approx(2 * US)),)
    assert {op.name: op.detail for op in found.ops} == {
        "ag": "5,000 cycles of the scheduler's simulation",
        "f": "3,000 cycles of the scheduler's simulation, 4 KiB of temporaries after it",
        "g": "4,000 cycles of the scheduler's simulation, 4 KiB of temporaries after it",
    }
    gather = next(op for op in found.ops if op.name == "ag")
    assert (gather.source, gather.bytes, gather.estimate, gather.is_async) == (
        "f.py:3",
        64,
        "scheduler",
        True,
    )


def test_it_waits_for_the_first_that_is_asked_for():
    """Scheduled from the end, as XLA does: the device is idle before the work, and asks after it."""
    schedule = gathers((1, 0, 1), (5, 1, 2), (3, 1000, 4000), (2, 4000, 4001), (6, 4001, 4002))
    found = told(scheduler_timeline(schedule, model(transfer("ag"), transfer("ag2"))))
    assert found["ag"] == (0.001, 4, 0.998, 3.999)
    # Nothing waits for the second: as long as another one of its size.
    assert found["ag2"] == (0.002, 4.001, 0, 3.999)


def test_of_one_that_is_never_waited_for_nobody_knows_the_length():
    schedule = gathers((1, 0, 1), (3, 1, 3001), (2, 3001, 3002))
    found = scheduler_timeline(schedule, model(transfer("ag"), matmul("f")))
    assert told(found)["ag"] == (0.001, 3.001, 0, None)
    assert "does not tell" in next(op.detail for op in found.ops if op.name == "ag")


def test_a_synchronous_collective_that_it_has_is_exposed():
    found = scheduler_timeline(gathers((3, 0, 100), (7, 100, 600)), model(matmul("f")))
    assert told(found)["sync"] == (0.1, 0.6, 0.5, 0.5)
    assert [lane.name for lane in found.lanes] == ["compute", "X", "links"]


def test_a_fusion_that_is_a_collective_to_the_model_is_exposed():
    """A TPU's reduce-scatter is a fusion of an all-reduce and a slice."""
    fused = TimedOp("f", "reduce-scatter", 1, 0.0, 1.0, 1.0, "links")
    found = scheduler_timeline(gathers((3, 0, 100)), model(fused))
    assert told(found)["f"] == (0, 0.1, 0.1, 0.1)
    assert (found.compute_seconds, found.exposed_seconds) == (0, (("X", pytest.approx(0.1 * US)),))


def test_names_that_changed_afterwards():
    """A gather that became synchronous again names the one that it was; others go by their order."""
    text = (
        "ENTRY %main {\n  %all-gather.7 = bf16[8]{0} all-gather(%x), "
        'frontend_attributes={async_collective_name="ag"}\n}'
    )
    schedule = gathers((1, 0, 1), (2, 500, 501), (5, 501, 502), (6, 900, 901))
    ops = (transfer("all-gather.7"), transfer("async-collective-start"))
    found = scheduler_timeline(schedule, model(*ops), text)
    assert [*told(found)] == ["all-gather.7", "async-collective-start"]


def test_messages_between_slices_run_from_send_to_its_done():
    main = computation(
        3,
        "main",
        instruction(MAIN | 1, "send", "send"),
        instruction(MAIN | 2, "recv", "recv"),
        instruction(MAIN | 3, "send-done", "send-done", operands=(MAIN | 1,)),
        instruction(MAIN | 4, "recv-done", "recv-done", operands=(MAIN | 2,)),
    )
    times = ((MAIN | 1, 0, 1), (MAIN | 2, 1, 2), (MAIN | 3, 5000, 5001), (MAIN | 4, 5001, 5002))
    found = scheduler_timeline(read_schedule(module("main", main) + simulated(3, *times)), model())
    assert told(found) == {"send": (0.001, 5, 4.998, 4.999), "recv": (0.002, 5.001, 0, None)}


def loop(trips: float, *, entry: str = "main", outer: bool = True) -> CompilerSchedule:
    """A body of a gather of 1 µs and work of 3 µs, none of it beside the other; in its parent it lasts trips
    times the work alone."""
    text = module(
        entry,
        computation(
            4,
            "body",
            instruction(BODY | 1, "ag", "all-gather-start"),
            instruction(BODY | 2, "agd", "all-gather-done", operands=(BODY | 1,)),
            instruction(BODY | 3, "f", "fusion"),
        ),
        computation(3, "main", instruction(MAIN | 1, "while.1", "while", calls=(9, 4))),
    ) + simulated(
        4, (BODY | 1, 0, 1), (BODY | 2, 1001, 1002), (BODY | 3, 1002, 4002), total=4002, wasted=1000
    )
    if outer:
        text += simulated(3, (MAIN | 1, 0, trips * 3002))
    return read_schedule(text)


@pytest.mark.parametrize(
    ("ops", "trips", "count"),
    [((), 5, 5), ((matmul("f", 7),), 5, 7), ((), 5.5, None), ((matmul("f", None),), 5, 5)],
)
def test_a_loop_is_drawn_once_and_counted_in_full(ops, trips, count):
    """The number of trips is the model's, else what the loop's time in its parent tells."""
    found = scheduler_timeline(loop(trips), model(*ops))
    assert [(span.kind, span.name, span.count) for span in found.spans] == [("loop", "while.1", count)]
    assert found.drawn_seconds == pytest.approx(4.002 * US)
    assert found.seconds == pytest.approx(4.002 * US * (count or 1))
    assert {op.runs for op in found.ops} == {count}
    assert found.compute_seconds == pytest.approx(3 * US * (count or 1))
    assert dict(found.exposed_seconds) == {"X": 0, "links": pytest.approx(1 * US * (count or 1))}
    assert bool(found.notes) == (count is None)
    full = unrolled(found, 1000)
    assert len(full.ops) == len(found.ops) * (count or 1)
    assert max(op.end for op in full.ops) == pytest.approx(found.seconds)


def test_of_a_conditional_the_longest_branch_counts_alone():
    other = 5 << 32
    text = module(
        "main",
        computation(4, "long", instruction(BODY | 1, "f", "fusion")),
        computation(5, "short", instruction(other | 1, "g", "fusion")),
        computation(3, "main", instruction(MAIN | 1, "choice", "conditional", calls=(4, 5))),
    )
    text += simulated(4, (BODY | 1, 0, 3000)) + simulated(5, (other | 1, 0, 1000))
    found = scheduler_timeline(read_schedule(text + simulated(3, (MAIN | 1, 0, 3000))), model())
    assert {op.name: op.runs for op in found.ops} == {"f": 1, "g": 0}
    assert found.seconds == pytest.approx(3 * US)
    assert found.compute_seconds == pytest.approx(3 * US)


def test_what_is_around_loops_may_be_missing():
    found = scheduler_timeline(loop(1, outer=False), model(matmul("f", 6)))
    assert found.seconds == pytest.approx(6 * 4.002 * US)
    assert found.unknown == ("main",)
    assert "loops alone" in found.notes[0]


def test_a_text_that_breaks_off_says_so():
    schedule = gathers((1, 0, 1), (3, 1, 3001))
    cut = CompilerSchedule(schedule.computations, 1000, "main", is_complete=False)
    assert "breaks off" in scheduler_timeline(cut, model()).notes[0]
