"""Every message of every round, against the schedule taken send by send."""

from __future__ import annotations

from collections import defaultdict

import pytest

from shardviz.hardware.group_links import group_links
from shardviz.hardware.topology import Hierarchy
from shardviz.notation.mesh import parse_mesh
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.stepping.question import CollectiveQuestion, schedule_for_operation
from shardviz.stepping.transfers import TransferLog
from shardviz.targets.hardware import placed_for
from tests.render.conftest import _run_of as run_of

RUNS = [
    ("psum", "i=4", "ring", None),
    ("psum", "i=5", "bidirectional-ring", None),
    ("all_gather", "i=8", "recursive-doubling", None),
    ("all_to_all", "i=4", "bruck", None),
    ("all_to_all", "i=6", "pairwise", "line"),
    ("psum", "X=3,Y=4", "torus", None),
    ("psum", "i=6", "ring", "switch"),
]


def ring_distance(one: int, other: int, size: int, closed: bool) -> int:
    apart = abs(one - other)
    return min(apart, size - apart) if closed else apart


@pytest.mark.parametrize(("name", "mesh", "algorithm", "topology"), RUNS)
def test_messages_are_the_sends_of_a_round_by_pair(name, mesh, algorithm, topology):
    size = parse_mesh(mesh).size
    run = run_of(name, mesh, size * size * 8, algorithm, shard=(size * 8,), topology=topology)
    log = TransferLog(run)
    assert log.is_countable
    for number, sends in enumerate(run.schedule, 1):
        expected = defaultdict(list)
        for src, dst, chunk in zip(
            *(each.tolist() for each in (sends.src, sends.dst, sends.chunk)), strict=True
        ):
            expected[src, dst] += [(chunk + k) % run.schedule.chunks for k in range(sends.span)]
        found = [log.transfer(number, place) for place in range(log.count(number))]
        assert {(each.source, each.target): each.chunks for each in found} == {
            pair: tuple(sorted(chunks)) for pair, chunks in expected.items()
        }
        assert log.before[number] - log.before[number - 1] == len(found)
        assert sum(each.bytes for each in found) == run.timeline[number - 1].bytes
        assert sum(each.hops for each in found) == run.timeline[number - 1].hops
        assert max(each.seconds for each in found) <= run.timeline[number - 1].seconds * (1 + 1e-9)


def test_hops_are_the_shortest_way():
    for closed, topology in ((True, None), (False, "line")):
        run = run_of("all_to_all", "i=6", 36 * 8, "pairwise", shard=(48,), topology=topology)
        log = TransferLog(run)
        for number in range(1, run.schedule.rounds + 1):
            for place in range(log.count(number)):
                found = log.transfer(number, place)
                assert found.hops == ring_distance(found.source, found.target, 6, closed)


def test_a_round_of_neighbours_takes_what_a_message_takes():
    run = run_of("psum", "i=4", 4096, "ring", shard=(1024,))
    found = TransferLog(run).transfer(1, 0)
    assert found.seconds == pytest.approx(run.timeline[0].seconds)
    assert found.adds
    assert not TransferLog(run).transfer(4, 0).adds


def test_levels_have_their_own_links():
    """Two nodes of eight GPUs: within one over NVLink, between them over the network."""
    mesh = parse_mesh("X=16")
    base = run_of("psum", "X=16", 16 * 1024, "ring", shard=(1024,))
    placed = placed_for("h100:2x8", (), mesh)
    links = group_links(placed, ("X",), (16,), None)
    assert isinstance(links.topology, Hierarchy)
    question = base.question
    assert isinstance(question, CollectiveQuestion)
    schedule = schedule_for_operation(question.operation, mesh, "ring", None)
    assert schedule.rounds == 30
    log = TransferLog(CollectiveRun(question, links))
    found = [log.transfer(1, place) for place in range(log.count(1))]
    outer = {(each.source, each.target) for each in found if each.level == 0}
    assert outer == {(7, 8), (15, 0)}
    slow = {each.seconds for each in found if each.level == 0}
    fast = {each.seconds for each in found if each.level != 0}
    assert min(slow) > max(fast)


def test_what_takes_long_to_count_is_looked_at_round_by_round():
    run = run_of("all_to_all", "i=512", 512, "pairwise")
    log = TransferLog(run)
    assert not log.is_countable
    assert log.count(7) == 512
