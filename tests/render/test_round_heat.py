"""What the devices of a group hold, have sent and took part in: against a count over all sends."""

from __future__ import annotations

import numpy as np
import pytest

from shardviz.render.palette import PLAIN, SHADES
from shardviz.render.rounds.round_heat import RoundHeat
from shardviz.stepping.collective_run import PreparedRun

RUNS = [
    ("psum", "i=12", "binomial-tree", 12 * 8),
    ("psum", "i=8", "double-binary-tree", 8 * 8),
    ("all_gather", "i=5", "ring", 5 * 3),
    ("all_gather", "i=6", "line", 6 * 4),
    ("psum_scatter", "i=4", "ring", 4 * 8),
]


def heat(run, tint, number):
    return RoundHeat(PreparedRun(run, run), tint, number, PLAIN)


def counted(run, number):
    """Bytes sent and seconds busy by member, send by send."""
    size, chunks = run.schedule.pattern.group_size, run.schedule.chunks
    bytes_of = np.broadcast_to(run.chunk_bytes, (chunks,))
    sent, busy = [0] * size, [0.0] * size
    for place in range(1, number + 1):
        active = set()
        sends = run.schedule.round(place).expanded(chunks)
        for src, dst, chunk in zip(sends.src.tolist(), sends.dst.tolist(), sends.chunk.tolist(), strict=True):
            if src != dst and bytes_of[chunk]:
                sent[src] += int(bytes_of[chunk])
                active |= {src, dst}
        for member in active:
            busy[member] += run.timeline[place - 1].seconds
    return sent, busy


@pytest.mark.parametrize(("name", "mesh", "algorithm", "numbers"), RUNS)
def test_figures_are_those_of_all_sends(run_of, name, mesh, algorithm, numbers):
    run = run_of(name, mesh, range(numbers), algorithm)
    for number in range(run.schedule.rounds + 1):
        sent, busy = counted(run, number)
        assert heat(run, "sent", number).figures().tolist() == sent
        assert heat(run, "time", number).figures().tolist() == pytest.approx(busy)
        bytes_of = np.broadcast_to(run.chunk_bytes, (run.schedule.chunks,))
        held = [
            sum(int(bytes_of[piece.chunk]) for piece in run.frames[number].pieces(member) if piece.needed)
            for member in range(run.schedule.pattern.group_size)
        ]
        assert heat(run, "memory", number).figures().tolist() == held


def test_chunks_that_are_not_equal(run_of):
    run = run_of("psum", "i=4", range(4 * 6))
    assert not isinstance(run.chunk_bytes, int)
    for number in range(run.schedule.rounds + 1):
        assert heat(run, "sent", number).figures().tolist() == counted(run, number)[0]


def test_where_devices_differ_there_are_shades_and_exact_figures(run_of):
    run = run_of("psum", "i=8", range(8 * 8), "binomial-tree")
    shade, words = heat(run, "sent", 2).seen(6)
    assert shade is not None
    sent, _ = counted(run, 2)
    assert [shade(member)[0] for member in range(8)] == [
        SHADES[-1] if each == max(sent) else SHADES[0] for each in sent
    ]
    assert [text.plain for text in words] == ["sent so far", "○ 0 B … ● 32 B", "▹ 32 bytes"]


def test_where_all_are_alike_there_is_a_sentence(run_of):
    run = run_of("all_gather", "i=4", range(16))
    shade, words = heat(run, "sent", 3).seen(0)
    assert shade is None
    assert [text.plain for text in words] == ["sent so far  each device 48 bytes"]
