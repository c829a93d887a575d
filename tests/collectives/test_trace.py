"""Where every datum is after every round: against a replay by plain dictionaries."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedules_for
from shardviz.collectives.schedule import KINDS, Pattern, Phase, Schedule, Sends
from shardviz.collectives.trace import MAX_PIECES, ScheduleError, Trace
from shardviz.errors import QuestionError

GROUPS = ((1,), (2,), (4,), (5,), (2, 3))


def pattern(kind: str, dims: tuple[int, ...]) -> Pattern:
    size = int(np.prod(dims))
    shifted = tuple((member, (member + 1) % size) for member in range(0, size, 2)) if size > 1 else ()
    return Pattern(kind, dims, shifted if kind == "permute" else (), size - 1 if kind == "broadcast" else 0)


SCHEDULES = {kind: [made for dims in GROUPS for made in schedules_for(pattern(kind, dims))] for kind in KINDS}


def replayed(schedule: Schedule) -> list[dict[tuple[int, int], tuple[int, ...]]]:
    """(member, chunk) → the members whose addends it holds, sorted, before and after every round."""
    starts = zip(*schedule.pattern.starts(schedule.chunks), strict=True)
    state = {(int(member), int(chunk)): (int(member),) for member, chunk in starts}
    states = [dict(state)]
    for sends in schedule:
        old = dict(state)
        for src, dst, first, reduce in zip(
            sends.src.tolist(), sends.dst.tolist(), sends.chunk.tolist(), sends.reduce.tolist(), strict=True
        ):
            for chunk in range(first, first + sends.span):
                chunk %= schedule.chunks
                mine = state[dst, chunk] if reduce else ()
                state[dst, chunk] = tuple(sorted(mine + old[src, chunk]))
        states.append(dict(state))
    return states


def check(trace: Trace) -> None:
    """Prove that the ends are reached, every total with each member's addend exactly once, told by 64-bit
    fingerprints of the addends' members."""
    pattern, done = trace.schedule.pattern, len(trace.leaf_member)
    final = trace.final(*pattern.ends(trace.schedule.chunks))
    if not pattern.reduces:
        return
    names = np.random.default_rng(0).integers(2**63, size=pattern.group_size, dtype=np.uint64)
    prints = np.zeros((trace.data, 2), dtype=np.uint64)
    prints[:done] = np.stack([names[trace.leaf_member], np.ones(done, dtype=np.uint64)], axis=1)
    for own, received in trace.sums:
        prints[done : done + len(own)] = prints[own] + prints[received]
        done += len(own)
    everyone = np.array([names.sum(dtype=np.uint64), pattern.group_size], dtype=np.uint64)
    if (prints[final] != everyone).any():
        raise ScheduleError(f"{trace.schedule.algorithm} adds up a total that is not everyone's")


def contributions(trace: Trace, datum: int) -> tuple[int, ...]:
    """The members whose addends a datum contains, in the order of the additions."""
    return tuple(int(trace.leaf_member[leaf]) for leaf in trace.addends(datum))


@pytest.mark.parametrize("kind", KINDS)
def test_every_state_is_found_in_any_order(kind: str) -> None:
    for schedule in SCHEDULES[kind]:
        trace, states = Trace(schedule), replayed(schedule)
        check(trace)
        numbers = list(range(len(states)))
        random.Random(0).shuffle(numbers)
        for number in numbers:
            held = trace.buffer(number)
            found = {
                (int(member), int(chunk)): tuple(sorted(contributions(trace, int(datum))))
                for member, chunk, datum in zip(held.member, held.chunk, held.datum, strict=True)
            }
            assert found == states[number]
            assert (np.diff(held.member * schedule.chunks + held.chunk) > 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_what_arrives_is_what_was_sent(kind: str) -> None:
    for schedule in SCHEDULES[kind]:
        trace = Trace(schedule)
        assert not trace.buffer(0).arrived.any()
        before = trace.buffer(0)
        had = set(zip(before.member.tolist(), before.chunk.tolist(), strict=True))
        for number, sends in enumerate(schedule, 1):
            each = sends.expanded(schedule.chunks)
            sent = set(zip(each.dst.tolist(), each.chunk.tolist(), strict=True))
            held = trace.buffer(number)
            slots = list(zip(held.member.tolist(), held.chunk.tolist(), strict=True))
            arrived = {slot for slot, came in zip(slots, held.arrived, strict=True) if came}
            # A chunk that only moves is the same datum wherever it is: to come once more changes nothing.
            assert arrived == (sent if schedule.pattern.reduces else sent - had)
            had |= sent


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_needed_is_sent_later_or_part_of_the_result(kind: str) -> None:
    for schedule in SCHEDULES[kind]:
        trace = Trace(schedule)
        ends = set(zip(*(each.tolist() for each in schedule.pattern.ends(schedule.chunks)), strict=True))
        later: set[tuple[int, int]] = set()
        overwritten: set[tuple[int, int]] = set()
        for number in range(schedule.rounds, -1, -1):
            held = trace.buffer(number)
            slots = list(zip(held.member.tolist(), held.chunk.tolist(), strict=True))
            needed = {slot for slot, need in zip(slots, held.needed, strict=True) if need}
            assert needed == {slot for slot in slots if slot in later or slot in ends - overwritten}
            if number:
                each = schedule.round(number).expanded(schedule.chunks)
                parts = (each.src, each.dst, each.chunk, each.reduce)
                rows = list(zip(*(part.tolist() for part in parts), strict=True))
                if schedule.pattern.reduces:
                    # What is there before this round is replaced by what arrives in it.
                    replaced = {(dst, chunk) for _, dst, chunk, _ in rows}
                    overwritten |= replaced
                    later -= replaced
                later |= {(src, chunk) for src, _, chunk, _ in rows}
                later |= {(dst, chunk) for _, dst, chunk, reduce in rows if reduce}


def line(*sends: tuple[int, int, int, bool], kind: str = "all_reduce") -> Schedule:
    """Three members, one chunk, one send a round."""

    def at(number: int) -> Sends:
        src, dst, chunk, reduce = sends[number]
        return Sends(np.array([src]), np.array([dst]), np.array([chunk]), np.array([reduce]))

    return Schedule("by hand", Pattern(kind, (3,)), 1, (Phase("all", len(sends), at),))


def test_the_order_of_the_additions() -> None:
    trace = Trace(line((0, 1, 0, True), (1, 2, 0, True)))
    after = trace.buffer(2)
    assert [contributions(trace, int(datum)) for datum in after.datum] == [(0,), (0, 1), (0, 1, 2)]


def test_several_that_add_in_one_round() -> None:
    sends = Sends(np.array([2, 1, 3]), np.array([0, 0, 0]), np.zeros(3, int), np.ones(3, bool))
    phase = Phase("all", 1, lambda _: sends)
    trace = Trace(Schedule("by hand", Pattern("reduce_scatter", (4,)), 4, (phase,)))
    assert contributions(trace, int(trace.buffer(1).datum[0])) == (2, 0, 1, 3)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (line((0, 1, 0, True), (1, 2, 0, False)), "adds up a total that is not everyone's"),
        (line((0, 1, 0, True), (0, 1, 0, True), (1, 0, 0, False), (1, 2, 0, False)), "not everyone's"),
        (line((0, 1, 0, False), kind="broadcast"), "leaves a member without a chunk"),
    ],
)
def test_a_wrong_schedule_is_caught(schedule: Schedule, words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        check(Trace(schedule))


def test_sending_what_is_not_there_is_caught() -> None:
    with pytest.raises(ScheduleError, match="sends what a member does not hold"):
        Trace(line((1, 2, 0, False), kind="broadcast"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_million_devices_are_refused_at_once(kind: str) -> None:
    huge = pattern(kind, (10**6,)) if kind != "permute" else Pattern("permute", (10**6,), ((0, 1),))
    chunks = huge.base_chunks * (10**6 if kind == "broadcast" else 1)
    nothing = Sends(*(np.zeros(10**6, int) for _ in range(3)), np.zeros(10**6, bool))
    schedule = Schedule("ring", huge, chunks, (Phase("all", 10**6, lambda _: nothing, alike=True),))
    with pytest.raises(QuestionError, match=f"more than {MAX_PIECES:,} pieces") as caught:
        Trace(schedule)
    assert "a summary" in caught.value.hint
