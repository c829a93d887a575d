"""What moves over every link, against the timeline's own count of bytes."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.collectives.algorithms import schedule_for, schedules_for
from shardviz.collectives.schedule import Pattern, Sends
from shardviz.hardware.topology import topology_for
from shardviz.notation.mesh import parse_mesh
from shardviz.render.rounds import round_traffic
from shardviz.render.rounds.round_traffic import RoundTraffic, sends_line

CASES = [
    (name, mesh, topology)
    for name in ("all_gather", "psum", "all_to_all")
    for mesh, topology in (("i=4", None), ("i=5", "line"), ("X=2,Y=4", None), ("i=6", "switch"))
]


@pytest.mark.parametrize(("name", "mesh", "topology"), CASES)
def test_links_carry_what_the_timeline_counts(run_of, name, mesh, topology):
    dims = parse_mesh(mesh).axis_sizes
    size = parse_mesh(mesh).size
    pattern = Pattern({"psum": "all_reduce"}.get(name, name), dims)
    links = topology_for(topology, dims)
    for schedule in schedules_for(pattern):
        run = run_of(name, mesh, size * size * schedule.chunks, schedule.algorithm, topology=topology)
        chunk = run.chunk_bytes
        assert isinstance(chunk, int)
        for number in (1, schedule.rounds):
            traffic = RoundTraffic(run, number)
            counted = run.timeline.link_bytes(number)
            sends = schedule.round(number).expanded(schedule.chunks)
            different = len(set(sends.chunk.tolist())) == len(sends)
            for link in range(links.links):
                chunks = traffic.chunks(*links.ends(link))
                assert bool(chunks) == bool(counted[link])
                if different:
                    assert len(chunks) * chunk == counted[link]


def test_nothing_moves_before_the_first_round(run_of):
    traffic = RoundTraffic(run_of("psum", "i=4", 16), 0)
    assert traffic.chunks(0, 1) == []
    assert len(traffic.sent(0)) == len(traffic.received(0)) == 0


def test_members_know_what_they_send_and_receive(run_of):
    traffic = RoundTraffic(run_of("all_gather", "i=4", 4), 2)
    assert traffic.sent(0).listed == traffic.received(1).listed == traffic.chunks(0, 1) == [3]
    assert traffic.sent(0).others == [1]


def test_of_too_many_messages_no_link_says_what_it_carries(run_of, monkeypatch):
    monkeypatch.setattr(round_traffic, "MAX_FOLLOWED", 0)
    assert RoundTraffic(run_of("all_gather", "i=6", 36, "direct"), 1).chunks(0, 1) == []


ROUNDS = [
    ("all_gather", (4,), "ring", 1, "each sends 1 chunk to the next"),
    ("all_gather", (8,), "bidirectional-ring", 1, "each sends 1 chunk to either neighbour"),
    ("all_gather", (2,), "ring", 1, "the two swap 1 chunk"),
    ("all_gather", (8,), "recursive-doubling", 1, "pairs 1 apart swap 1 chunk"),
    ("all_gather", (8,), "recursive-doubling", 3, "pairs 4 apart swap 4 chunks"),
    ("all_gather", (4,), "direct", 1, "each sends 1 chunk to every other"),
    ("all_to_all", (4,), "pairwise", 3, "partners (number xor 3) swap 1 chunk"),
    ("all_to_all", (5,), "pairwise", 2, "each sends 1 chunk to the one 2 after"),
    ("all_to_all", (5,), "pairwise", 4, "each sends 1 chunk to the one before"),
    ("broadcast", (8,), "binomial-tree", 1, "0→4: 1 chunk"),
    ("broadcast", (4,), "binomial-tree", 2, "0→1, 2→3: 1 chunk each"),
    ("all_reduce", (2, 4), "torus", 1, "each sends 4 chunks to the other along X"),
    ("all_reduce", (4, 4), "torus", 4, "each sends 1 chunk to the next along Y"),
    ("all_gather", (4, 4), "ring", 1, "each sends 1 chunk to the next"),
]


@pytest.mark.parametrize(("kind", "dims", "algorithm", "number", "words"), ROUNDS)
def test_rounds(kind: str, dims: tuple[int, ...], algorithm: str, number: int, words: str) -> None:
    pattern = Pattern(kind, dims)
    schedule = schedule_for(algorithm, pattern)
    assert sends_line(schedule.round(number), pattern, ("X", "Y")[: len(dims)]) == words


def made(pairs: list[tuple[int, int]], span: int = 1) -> Sends:
    src, dst = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Sends(src, dst, np.arange(len(src)), np.zeros(len(src), dtype=bool), span)


PAIRS = [
    ([], "nothing is sent"),
    ([(0, 1)], "0→1: 1 chunk"),
    ([(0, 1), (0, 1), (2, 3)], "0→1, 2→3: 1 to 2 chunks"),
    ([(0, 5), (3, 1)], "0→5, 3→1: 1 chunk each"),
    ([(i, (i * 3 + 1) % 64) for i in range(40)], "0→1, 1→4, 2→7, … 40 messages: 1 chunk each"),
]


@pytest.mark.parametrize(("pairs", "words"), PAIRS)
def test_anything_else_is_listed(pairs: list[tuple[int, int]], words: str) -> None:
    assert sends_line(made(pairs), Pattern("all_gather", (64,)), ("X",)) == words


def test_a_span_is_as_many_chunks() -> None:
    pairs = [(i, (i + 1) % 8) for i in range(8)]
    line = sends_line(made(pairs, span=3), Pattern("all_gather", (8,)), ("X",))
    assert line == "each sends 3 chunks to the next"


def test_far_along_two_axes() -> None:
    dims = (4, 4)
    place = np.arange(16).reshape(dims)
    both = [
        (int(place[i, j]), int(target))
        for i in range(4)
        for j in range(4)
        for target in (place[(i + 1) % 4, j], place[i, (j - 1) % 4])
    ]
    words = sends_line(made(both), Pattern("all_gather", dims), ("X", "Y"))
    assert words == "each sends 1 chunk to the one before along Y and to the next along X"
