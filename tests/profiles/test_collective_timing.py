"""Collectives from the last arrival to the last end, and who was waited for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.profiles.collective_timing import CollectiveTiming, Straggler, collective_timings
from shardviz.profiles.device_operations import DeviceOperations
from shardviz.profiles.device_trace import DeviceTrace
from shardviz.profiles.joined_program import JoinedProgram, facts_of, join_program
from tests.profiles.hand_made import device, on_host

PICO = 1e-12
IN_PAIRS = """\
HloModule jit_f, is_scheduled=true, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %all-reduce.1 = f32[8]{0} all-reduce(%p), channel_id=1, replica_groups={{0,2},{1,3}}, to_apply=%add
}
"""


def timed(
    traces: list[DeviceTrace], program: JoinedProgram | None = None
) -> tuple[tuple[CollectiveTiming, ...], tuple[Straggler, ...]]:
    wholes = [DeviceOperations(trace, lambda each: facts_of(each, program)).whole for trace in traces]
    return collective_timings(wholes, {} if program is None else {("jit_f", 1): program})


def arriving(*starts: int, end: int = 100) -> list[DeviceTrace]:
    return [device([("all-reduce.1", start, end, 0)], number) for number, start in enumerate(starts)]


def test_the_links_begin_when_the_last_one_has_arrived() -> None:
    (found,), (straggler,) = timed(arriving(0, 30, 70, 10))
    assert found.seconds == pytest.approx(30 * PICO)
    assert found.waited == pytest.approx((70 + 40 + 0 + 60) / 4 * PICO)
    assert (found.runs, found.groups, found.last, found.last_share) == (1, 1, "TPU 2", 1.0)
    assert straggler == Straggler("TPU 2", "all-reduce.1", 1, 1, pytest.approx(170 * PICO))


def test_groups_of_the_program_wait_for_their_own_alone() -> None:
    program = join_program(IN_PAIRS, None, None)
    (found,), stragglers = timed(arriving(0, 30, 70, 10), program)
    assert (found.runs, found.groups) == (2, 2)
    assert (found.least, found.most) == pytest.approx((30 * PICO, 70 * PICO))
    assert [(each.device, each.seconds) for each in stragglers] == [
        ("TPU 2", pytest.approx(70 * PICO)),
        ("TPU 1", pytest.approx(20 * PICO)),
    ]
    assert found.algbw == pytest.approx(32 / (50 * PICO))


@pytest.mark.parametrize(("second_host", "expected"), [(0, set()), (2, {"b TPU 2"})])
def test_on_several_hosts_only_a_known_group_waits(second_host: int, expected: set[str]) -> None:
    # The groups are {0,2} and {1,3}; with the ids 0, 2, 1 and 3 each host has one of them.
    program = join_program(IN_PAIRS, None, None, (0, 2, 1, 3))
    one = [on_host(each, "a") for each in arriving(0, 0)]
    late = [replace(each, number=each.number + second_host) for each in arriving(70, 30)]
    (found,), stragglers = timed([*one, *(on_host(each, "b") for each in late)], program)
    assert {each.device for each in stragglers} == expected
    assert found.least == pytest.approx(30 * PICO)
    assert found.runs == (2 if expected else 4)
    assert found.waited is None if not expected else found.waited and found.waited > 0


def test_devices_that_are_not_in_the_profile_may_be_the_last() -> None:
    of_all = IN_PAIRS.replace("{{0,2},{1,3}}", "{{0,1,2,3}}")
    (found,), stragglers = timed(arriving(0, 30), join_program(of_all, None, None))
    assert (found.waited, stragglers, found.last) == (None, (), "")
    (whole,), _ = timed(arriving(0, 30, 30, 30), join_program(of_all, None, None))
    assert whole.waited == pytest.approx(30 / 4 * PICO)


def test_a_permute_waits_along_its_own_ring() -> None:
    rings = IN_PAIRS.replace("all-reduce(%p)", "collective-permute(%p)").replace(
        "replica_groups={{0,2},{1,3}}, to_apply=%add", "source_target_pairs={{0,2},{2,0},{1,3},{3,1}}"
    )
    (found,), stragglers = timed(arriving(0, 30, 70, 10), join_program(rings, None, None))
    assert (found.runs, found.groups) == (2, 2)
    assert [(each.device, each.seconds) for each in stragglers] == [
        ("TPU 2", pytest.approx(70 * PICO)),
        ("TPU 1", pytest.approx(20 * PICO)),
    ]


def test_a_device_that_sends_nothing_waits_for_nobody() -> None:
    one_pair = IN_PAIRS.replace("all-reduce(%p)", "collective-permute(%p)").replace(
        "replica_groups={{0,2},{1,3}}, to_apply=%add", "source_target_pairs={{0,2},{1,3},{3,1}}"
    )
    program = join_program(one_pair.replace("{0,2},", ""), None, None)
    assert {each.device for each in timed(arriving(0, 30, 70, 10), program)[1]} == {"TPU 1"}


def test_positions_are_those_of_the_programs_devices() -> None:
    # The text's positions 0 and 2 are the devices 0 and 1.
    program = join_program(IN_PAIRS, None, None, (0, 2, 1, 3))
    (found,), _ = timed(arriving(0, 30, 70, 10), program)
    assert (found.least, found.most) == pytest.approx((30 * PICO, 70 * PICO))
    assert {each.device for each in timed(arriving(0, 30, 70, 10), program)[1]} == {"TPU 1", "TPU 2"}


def test_each_iteration_of_a_loop_is_a_run() -> None:
    traces = [
        device([("all-reduce.1", 0, 10, 0), ("all-reduce.1", 20, 45 - 5 * late, 0)], late) for late in (0, 1)
    ]
    (found,), stragglers = timed(traces)
    assert (found.runs, found.least, found.most) == (2, pytest.approx(10 * PICO), pytest.approx(25 * PICO))
    assert stragglers == ()


def test_exposed_is_the_part_beside_which_its_own_device_computes_nothing() -> None:
    trace = device([("all-reduce.1", 0, 50, 0), ("fusion.1", 20, 40, 0)])
    (found,), _ = timed([trace])
    assert found.exposed == pytest.approx(30 * PICO)
    assert found.last == ""


def test_hosts_do_not_wait_for_one_another() -> None:
    one, other = arriving(0, 70)
    (found,), stragglers = timed([on_host(one, "a"), on_host(other, "b")])
    assert (found.runs, found.waited, stragglers) == (2, 0, ())
