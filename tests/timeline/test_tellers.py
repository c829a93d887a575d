"""The model against the compiler's scheduler: what differs, by how much, and the cause of each difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.timeline import tellers
from shardviz.timeline.program_timeline import Lane, ProgramTimeline, TimedOp, TimeSpan
from shardviz.timeline.tellers import compare_tellers

LANES = (Lane("compute", "compute"), Lane("axis", "X"))
RING = "a ring of 4 along x, both directions: 3/4 of 2 MiB over 2 × 45 GB/s"


def timeline(*ops: TimedOp) -> ProgramTimeline:
    total = sum((op.exposed if op.lane else op.seconds or 0.0) * (op.runs or 1) for op in ops)
    return ProgramTimeline("jit_f", "v5e:2x2", LANES, ops, (), total, total, 0, (), (), 0, None)


def work(name: str, seconds: float, estimate: str = "compiler", runs: int = 1, **fields: object) -> TimedOp:
    return TimedOp(name, "matmul", 0, 0.0, 1.0, seconds, estimate, runs, **fields)


def gather(
    seconds: float | None, exposed: float, estimate: str = "links", op: str = "all-gather", **fields: object
) -> TimedOp:
    return TimedOp(
        "ag",
        op,
        1,
        0.0,
        1.0,
        seconds,
        estimate,
        exposed=exposed,
        bytes=2 << 20,
        **{"is_async": True, **fields},
    )


def test_those_that_agree_within_a_quarter():
    found = compare_tellers(timeline(work("f", 4.0)), timeline(work("f", 5.0, "scheduler")))
    assert (found.model_seconds, found.scheduler_seconds, found.ratio) == (4.0, 5.0, 1.25)
    assert found.agree
    assert found.differences == ()
    # The totals' difference is still explained.
    assert found.causes == ((tellers.BEFORE, 1.0),)


def test_the_seconds_of_all_runs_and_the_largest_first():
    found = compare_tellers(
        timeline(work("f", 1.0, runs=10), work("g", 1.0), work("h", 1.0)),
        timeline(work("f", 2.0, runs=10), work("g", 21.0), work("h", 1.001)),
    )
    assert [(each.name, each.seconds, each.runs) for each in found.differences] == [
        ("g", 20, 1),
        ("f", 10, 10),
    ]
    assert found.causes == ((tellers.BEFORE, pytest.approx(30.001)),)
    assert not found.agree


ON_CHIP = "%f = bf16[8]{0:T(8,128)S(1)} fusion(%a), kind=kOutput"
OPERAND = "%a = bf16[8]{0:T(8,128)S(1)} copy-done(%b)\n%f = bf16[8]{0:T(8,128)} fusion(%a), kind=kOutput"
IN_HBM = "%a = bf16[8]{0:T(8,128)} copy(%b)\n%f = bf16[8]{0:T(8,128)} fusion(%a), calls=%S(1)"


@pytest.mark.parametrize(
    ("ours", "theirs", "text", "cause"),
    [
        (work("f", 1.0), 3.4, ON_CHIP, tellers.ON_CHIP),
        (work("f", 1.0), 3.4, OPERAND, tellers.ON_CHIP),
        (work("f", 1.0), 3.4, IN_HBM, tellers.BEFORE),
        # On-chip memory makes nothing slower.
        (work("f", 3.4), 1.0, ON_CHIP, tellers.BEFORE),
        (work("f", 2.2, detail="9 cycles at 1.5 GHz, 2.20 × the roofline"), 1.0, "", tellers.TILES),
        (work("f", 1.0, "roofline", bound="HBM"), 3.0, "", tellers.BYTES),
        (work("f", 1.0, "roofline", bound="compute"), 3.0, "", tellers.SMALL),
        (work("f", 1.0, "roofline", bound="compute"), 0.3, "", tellers.DOUBTFUL),
    ],
)
def test_causes_of_work(ours, theirs, text, cause):
    (found,) = compare_tellers(timeline(ours), timeline(work("f", theirs, "scheduler")), text).differences
    assert (found.cause, found.model_seconds, found.scheduler_seconds) == (cause, ours.seconds, theirs)


@pytest.mark.parametrize(
    ("ours", "theirs", "cause"),
    [
        (gather(4.0, 4.0, is_async=False), gather(4.0, 0.5), tellers.SYNCHRONOUS),
        (gather(4.0, 4.0, bound="latency"), gather(1.0, 1.0), tellers.LATENCY),
        (gather(3.0, 3.0, detail=RING), gather(4.0, 4.0), tellers.WHOLE),
        (
            gather(3.0, 3.0, detail="a line of 4 along x: 3/4 of 2 MiB over 45 GB/s"),
            gather(1.5, 1.5),
            tellers.LINE,
        ),
        (gather(6.0, 6.0, detail="6 hops along y and x: 4 MiB"), gather(1.0, 1.0), tellers.DISTANCE),
        (gather(4.0, 4.0), gather(4.0, 1.0), tellers.BESIDE),
        (gather(4.0, 4.0), gather(None, 0.0), tellers.BESIDE),
    ],
)
def test_causes_of_transfers(ours, theirs, cause):
    """The seconds that count are those for which the device waits."""
    found = compare_tellers(timeline(ours), timeline(theirs))
    assert found.causes == ((cause, theirs.exposed - ours.exposed),)


def test_another_rule_says_its_rate():
    slow = gather(1e-5, 1e-5, op="all-to-all", detail="two along y and two along x")
    fast = gather(1e-4, 1e-4, op="all-to-all")
    ((cause, _),) = compare_tellers(timeline(slow), timeline(fast)).causes
    assert cause == (
        "the scheduler takes 20.97 GB/s for every all-to-all; here it is two along y and two along x"
    )


def network(*ops: TimedOp) -> ProgramTimeline:
    return replace(timeline(*ops), lanes=(LANES[0], Lane("network", "DCN")))


@pytest.mark.parametrize(("theirs", "is_round"), [(25e-3, True), (5e-3, True), (4.7123e-3, False)])
def test_between_slices_a_round_figure_is_not_a_rate(theirs, is_round):
    found = compare_tellers(network(gather(1e-3, 1e-3)), network(gather(theirs, theirs)))
    assert (found.causes[0][0] == tellers.NETWORK) == is_round


def test_what_the_model_cannot_estimate():
    found = compare_tellers(timeline(gather(None, 0.0, "unknown")), timeline(gather(2.0, 2.0)))
    assert found.causes == ((tellers.UNKNOWN, 2.0),)


def test_what_one_alone_has():
    found = compare_tellers(timeline(work("copy.1", 2.0)), timeline(gather(1.0, 1.0)))
    assert [(each.model_seconds, each.scheduler_seconds, each.cause) for each in found.differences] == [
        (2.0, None, tellers.ADDED),
        (None, 1.0, tellers.GONE),
    ]


def test_fusions_that_were_named_anew_go_by_their_order():
    found = compare_tellers(
        timeline(work("fusion.13", 1.0), work("fusion", 1.0)),
        timeline(work("fusion.3", 2.0), work("fusion", 1.0)),
    )
    assert [(each.name, each.seconds) for each in found.differences] == [("fusion.13", 1.0)]


def test_fusions_of_another_loop_are_others():
    ours = timeline(work("fusion.1", 1.0, runs=8), work("fusion.2", 1.0, runs=1))
    theirs = timeline(work("fusion.9", 2.0, runs=8))
    found = compare_tellers(ours, theirs)
    assert [(each.name, each.scheduler_seconds, each.seconds) for each in found.differences] == [
        ("fusion.1", 2.0, 8.0),
        ("fusion.2", None, -1.0),
    ]


def test_what_stands_around_the_loops_that_were_simulated():
    before = replace(work("before", 3.0, runs=1), start=0.0)
    inside = replace(work("inside", 2.0, runs=4), start=5.0)
    ours = replace(timeline(before, inside), spans=(TimeSpan("loop", "while", 4.0, 7.0, 4, 0),))
    theirs = replace(timeline(), unknown=("main",))
    assert dict(compare_tellers(ours, theirs).causes) == {tellers.OUTSIDE: -3, tellers.ADDED: -8}
    assert dict(compare_tellers(ours, timeline()).causes) == {tellers.ADDED: -11}


def test_a_model_without_time_divides_nothing():
    found = compare_tellers(timeline(), timeline(work("f", 1.0)))
    assert found.ratio == float("inf")
    assert not found.agree
