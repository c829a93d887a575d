"""The bytes that members hold: running sums against a count of all pieces after every round."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedules_for
from shardviz.collectives.pattern import KINDS, Pattern
from shardviz.collectives.schedule import Schedule
from shardviz.collectives.trace import MAX_NUMBERS, HeldBytes, trace_of

GROUPS = ((1,), (2,), (5,), (8,), (2, 3))


def pattern(kind: str, dims: tuple[int, ...]) -> Pattern:
    size = int(np.prod(dims))
    shifted = tuple((member, (member + 1) % size) for member in range(0, size, 2)) if size > 1 else ()
    return Pattern(kind, dims, shifted if kind == "permute" else (), size - 1 if kind == "broadcast" else 0)


SCHEDULES = [made for kind in KINDS for dims in GROUPS for made in schedules_for(pattern(kind, dims))]


def name(schedule: Schedule) -> str:
    return f"{schedule.algorithm}-{schedule.pattern.kind}-{'x'.join(map(str, schedule.pattern.dims))}"


def needed_after(schedule: Schedule) -> list[set[tuple[int, int]]]:
    """After each round the (member, chunk) that are part of the result, or are sent or added to later: by a
    walk over all sends, of each the last one first."""
    needed = set(zip(*(each.tolist() for each in schedule.pattern.ends(schedule.chunks)), strict=True))
    found = [set(needed)]
    for sends in reversed(list(schedule)):
        each = sends.expanded(schedule.chunks)
        entries = list(
            zip(each.src.tolist(), each.dst.tolist(), each.chunk.tolist(), each.reduce.tolist(), strict=True)
        )
        # What arrives takes the place of what was there, unless it is added to it.
        needed -= {(dst, chunk) for _, dst, chunk, adds in entries if not adds}
        needed |= {(dst, chunk) for _, dst, chunk, adds in entries if adds}
        needed |= {(src, chunk) for src, _, chunk, _ in entries}
        found.append(set(needed))
    return found[::-1]


@pytest.mark.parametrize("schedule", SCHEDULES, ids=name)
@pytest.mark.parametrize("kept", [MAX_NUMBERS, 12], ids=["all rounds", "few rounds"])
def test_running_sums_are_those_of_a_count_over_all_sends(schedule, kept, monkeypatch):
    monkeypatch.setattr("shardviz.collectives.trace.MAX_NUMBERS", kept)
    trace, members = trace_of(schedule), schedule.pattern.group_size
    sizes = np.random.default_rng(0).integers(0, 9, schedule.chunks)
    equal, unequal = HeldBytes(trace, 4), HeldBytes(trace, sizes)
    for number, needed in reversed(list(enumerate(needed_after(schedule)))):
        buffer = trace.buffer(number)
        held = set(zip(buffer.member.tolist(), buffer.chunk.tolist(), strict=True))
        counted = [[chunk for member, chunk in held & needed if member == each] for each in range(members)]
        assert [sorted(chunks) for chunks in counted] == [
            trace.needed(number, member).tolist() for member in range(members)
        ]
        assert equal.after(number).tolist() == [4 * len(chunks) for chunks in counted]
        assert unequal.after(number).tolist() == [int(sizes[chunks].sum()) for chunks in counted]
