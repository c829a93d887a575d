"""The table of transfers: its lines, and which round each belongs to."""

from __future__ import annotations

from textwrap import dedent

from shardviz.render.palette import PLAIN
from shardviz.render.rounds.transfer_table import TransferTable, transfer_lines
from shardviz.stepping.transfers import TransferLog


def table(run, number, width=80) -> TransferTable:
    return TransferTable(TransferLog(run), run, 0, number, width, PLAIN)


def test_a_round_with_its_transfers(run_of):
    run = run_of("psum", "i=3", [3, 9, 5, 2, 7, 1, 4, 8, 6], shard=(3,))
    found = table(run, 2)
    text = "\n".join(found.line(y, 0, 80).plain for y in range(9))
    assert text == dedent("""
          from → to  chunk         values                     bytes  link           time
          round 1  0 s – 1 µs  reduce-scatter  each sends 1 chunk to the next, 4 B
          0 → 1      +γ            5                            4 B  1 link         1 µs
          1 → 2      +α            2                            4 B  1 link         1 µs
          2 → 0      +β            8                            4 B  1 link         1 µs
        ▸ round 2  1 µs – 2 µs  reduce-scatter  each sends 1 chunk to the next, 4 B
          0 → 1      +β            17                           4 B  1 link         1 µs
          1 → 2      +γ            6                            4 B  1 link         1 µs
          2 → 0      +α            6                            4 B  1 link         1 µs
        """).strip("\n")


def test_every_line_has_its_round(run_of):
    run = run_of("all_gather", "i=4", [3, 9, 5, 2])
    found = table(run, 0)
    assert found.height == 1 + 3 * 5
    assert [found.round_at(y) for y in range(found.height)] == [0, *(n for n in (1, 2, 3) for _ in range(5))]
    assert [found.line_of(number) for number in range(4)] == [0, 1, 6, 11]


def test_of_too_many_to_count_the_round_has_its_own(run_of):
    run = run_of("all_to_all", "i=512", 512, "pairwise")
    found = TransferTable(TransferLog(run), run, 0, 3, 80, PLAIN)
    assert found.height == 2 + 512
    assert found.line(1, 0, 80).plain.startswith("▸ round 3")
    assert {found.round_at(y) for y in range(1, found.height)} == {3}


def test_a_narrow_table_leaves_out_the_values_and_the_link_but_not_the_time(run_of):
    run = run_of("psum", "i=4", [3, 9, 5, 2])
    lines = [line.plain for line in transfer_lines(run, 40, PLAIN, 1)]
    assert all(len(line) <= 40 for line in lines)
    (head,) = (line for line in lines if "from → to" in line)
    assert head.split()[3:] == ["chunk", "bytes", "time"]
    (first,) = (line for line in lines if "0 → 1" in line)
    assert first.endswith("1 µs")


def test_later_rounds_are_dim(run_of):
    found = table(run_of("all_gather", "i=4", [3, 9, 5, 2]), 1)
    assert "dim" not in str(found.line(2, 0, 80).spans)
    assert "dim" in str(found.line(7, 0, 80).spans)
