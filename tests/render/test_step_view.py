"""Whole runs as pages: what the tutorial prints, phases, groups, summaries, every width."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent

import pytest
from hypothesis import given, settings, strategies as st

from shardviz.cli.streams import STAND_INS
from shardviz.collectives.algorithms import schedules_for
from shardviz.collectives.schedule import Pattern
from shardviz.errors import QuestionError
from shardviz.notation.mesh import parse_mesh
from shardviz.render.palette import ANSI, PLAIN, TRUECOLOR
from shardviz.render.rounds.step_view import round_table, step_view
from shardviz.stepping.collective_run import CollectiveRun

RunOf = Callable[..., CollectiveRun]


def page(run: CollectiveRun, width: int = 100, number: int | None = None, verbose: bool = False) -> str:
    return "\n".join(line.plain for line in step_view(run, width, PLAIN, number, verbose))


def test_all_gather_as_the_tutorial_has_it(run_of: RunOf) -> None:
    expected = """
        all_gather over i  ring  mesh i=4, 4 devices  s32[4] P('i') → 1 per device
        ring: always to the next neighbour

        BEFORE
        0  i0   3
        1  i1   9
        2  i2   5
        3  i3   2

        all-gather  3 rounds; each sends 1 chunk to the next, 4 B
        round 1                       round 2                       round 3
                α   β   γ   δ                 α   β   γ   δ                 α   β   γ   δ
        0  i0   3   ·   ·  ▸2   α→1   0  i0   3   ·  ▸5   2   δ→1   0  i0   3  ▸9   5   2   γ→1
        1  i1  ▸3   9   ·   ·   β→2   1  i1   3   9   ·  ▸2   α→2   1  i1   3   9  ▸5   2   δ→2
        2  i2   ·  ▸9   5   ·   γ→3   2  i2  ▸3   9   5   ·   β→3   2  i2   3   9   5  ▸2   α→3
        3  i3   ·   ·  ▸5   2   δ→0   3  i3   ·  ▸9   5   2   γ→0   3  i3  ▸3   9   5   2   β→0

        ▸ has just arrived   · not here   α→1 sent α to device 1

        AFTER  s32[4] per device
        0  i0   3   9   5   2
        1  i1   3   9   5   2
        2  i2   3   9   5   2
        3  i3   3   9   5   2

        FINAL RESULT  s32[16]  P('i')
         3   9   5   2   3   9   5   2   3   9   5   2   3   9   5   2

        ring: 3 rounds, 12 bytes sent by each device
        3 µs on a ring of 4, 1 µs and 45 GB/s per link
        Lower bound: 12 bytes; 2 rounds at one message per round.
        """
    assert page(run_of("all_gather", "i=4", (3, 9, 5, 2))) == dedent(expected).strip("\n")


def test_the_other_algorithms_and_the_formula_stand_at_the_end_of_the_long_page(run_of: RunOf) -> None:
    expected = """
        ring: 3 rounds, 12 bytes sent by each device
        3 µs on a ring of 4, 1 µs and 45 GB/s per link
        Lower bound: 12 bytes; 2 rounds at one message per round.
        Others: bidirectional-ring 2 rounds, 12 B; line 3 rounds, 20 B; recursive-doubling 2 rounds, 12 B;
        bruck 2 rounds, 12 B; direct 1 round, 12 B.
        2 µs by formula, bound by latency: a ring of 4 along i, both directions: 3/4 of 16 B over 2 ×
          45 GB/s; at least 2 hops of 1 µs
        """
    lines = step_view(run_of("all_gather", "i=4", (3, 9, 5, 2)), 100, PLAIN, verbose=True)
    assert "\n".join(line.plain for line in lines).endswith(dedent(expected).rstrip("\n"))


def rows_under(text: str, heading: str, count: int) -> list[list[str]]:
    """The numbers of each device's row under a heading, stripes aside."""
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(heading)) + 1
    return [re.findall(r"-?\d+", line)[2:] for line in lines[first : first + count]]


RESULTS = [
    ("psum", "ring", [["22", "20", "12", "17"]] * 4, "22 20 12 17"),
    ("psum_scatter", "ring", [["22"], ["20"], ["12"], ["17"]], "22 20 12 17"),
    (
        "all_to_all",
        "pairwise",
        [["3", "5", "5", "9"], ["1", "9", "3", "7"], ["4", "2", "5", "1"], ["1", "6", "8", "2"]],
        "3 5 5 9 1 9 3 7 4 2 5 1 1 6 8 2",
    ),
]


@pytest.mark.parametrize(("name", "algorithm", "after", "final"), RESULTS)
def test_the_tutorials_sixteen_numbers(
    run_of: RunOf,
    tutorial: tuple[int, ...],
    name: str,
    algorithm: str,
    after: list[list[str]],
    final: str,
) -> None:
    """What the tutorial prints under BEFORE, AFTER and FINAL RESULT."""
    text = page(run_of(name, "i=4", tutorial, algorithm), verbose=True)
    assert rows_under(text, "BEFORE", 4) == [
        ["3", "1", "4", "1"],
        ["5", "9", "2", "6"],
        ["5", "3", "5", "8"],
        ["9", "7", "1", "2"],
    ]
    assert rows_under(text, "AFTER", 4) == after
    last = text.splitlines()[next(i for i, x in enumerate(text.splitlines()) if x.startswith("FINAL")) + 1]
    assert last.split() == final.split()


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather(
    run_of: RunOf, tutorial: tuple[int, ...]
) -> None:
    text = page(run_of("psum", "i=4", tutorial), verbose=True)
    scatter, gather = text.index("reduce-scatter  3 rounds"), text.index("all-gather  3 rounds")
    assert text.index("BEFORE") < scatter < gather < text.index("AFTER")
    for total in ("5+5+9+3=22", "3+7+1+9=20", "1+4+2+5=12", "1+6+8+2=17"):
        assert scatter < text.index(f"▸{total}") < gather


def test_the_short_page_has_every_round_beside_another(run_of: RunOf, tutorial: tuple[int, ...]) -> None:
    text = page(run_of("psum", "i=4", tutorial), 80)
    lines = text.splitlines()
    assert len(lines) <= 38
    assert max(map(len, lines)) <= 80
    assert re.findall(r"round (\d)", text) == list("123456")
    assert "round 2" in next(line for line in lines if line.startswith("round 1"))
    assert text.index("AFTER") < text.index("reduce-scatter") < text.index("round 1")
    last = lines[next(i for i, line in enumerate(lines) if line.startswith("round 5")) + 2]
    assert re.findall(r"▸?\d+", last.partition("i0")[2].partition("i0")[2])[:4] == ["22", "▸20", "12", "17"]
    assert "FINAL RESULT" not in text  # every device has it


def test_a_ring_takes_seven_rounds_and_both_ways_four(run_of: RunOf) -> None:
    ring = page(run_of("all_gather", "i=8", range(8)))
    both = page(run_of("all_gather", "i=8", range(8), "bidirectional-ring"))
    assert re.findall(r"round (\d+)", ring) == list("1234567")
    assert re.findall(r"round (\d+)", both) == list("1234")
    assert "7 rounds; each sends 1 chunk to the next, 4 B" in ring
    assert "each sends 1 chunk to either neighbour, 8 B" in both
    assert ring.count("▸") - 1 == 7 * 8
    assert both.count("▸") - 1 == 7 * 8


def test_order_of_axes_makes_a_difference(run_of: RunOf) -> None:
    afters = {
        axes: rows_under(page(run_of("all_gather", "X=2,Y=4", range(8), axes=axes), verbose=True), "AFTER", 8)
        for axes in (("X",), ("Y",), ("X", "Y"), ("Y", "X"))
    }
    assert [row[1:] for row in afters["X",]][:2] == [["0", "4"], ["1", "5"]]
    assert [row[1:] for row in afters["Y",]][3:5] == [["0", "1", "2", "3"], ["4", "5", "6", "7"]]
    assert {tuple(row[1:]) for row in afters["X", "Y"]} == {tuple("01234567")}
    assert {tuple(row[1:]) for row in afters["Y", "X"]} == {tuple("04152637")}


def test_many_groups_are_told_by_the_first(run_of: RunOf) -> None:
    text = page(run_of("all_gather", "X=8,Y=4", range(32), axes=("Y",)))
    assert "7 other groups of 4 devices do the same at the same time" in text
    assert "other group" not in page(run_of("all_gather", "X=2,Y=4", range(8), axes=("Y",)))


def test_256_devices_fit_a_screen(run_of: RunOf) -> None:
    run = run_of("psum", "X=16,Y=16", range(65536), "torus")
    text = page(run)
    assert len(text.splitlines()) <= 36
    assert "1–15    each sends 16 chunks to the next along X        64 B       1 µs" in text
    assert "--round N shows one round, --json all of them" in text
    assert "255  X15 Y15  " in text
    assert "8355840" in text
    narrow = page(run, 80)
    assert len(narrow.splitlines()) <= 42
    assert "rounds 1–15  reduce-scatter along X: each sends 16 chunks to the next along" in narrow


def test_many_different_rounds_are_cut_short(run_of: RunOf) -> None:
    text = page(run_of("all_gather", "i=64", 64, "bruck"))
    assert len(text.splitlines()) <= 45
    assert len(page(run_of("all_to_all", "i=32", 32 * 32, "pairwise")).splitlines()) <= 50


@pytest.mark.parametrize("rounds", [12, 13, 14, 31])
def test_rounds_that_are_not_shown_are_counted(run_of: RunOf, rounds: int) -> None:
    # Pairwise takes a round for each other device, and no two rounds read alike.
    devices = rounds + 1
    run = run_of("all_to_all", f"i={devices}", devices * devices, "pairwise")
    lines = [line.plain for line in round_table(run, 100)]
    shown = [int(row[1]) for line in lines if (row := re.match(r"all-to-all +(\d+) ", line))]
    note = re.fullmatch(r"(\d+) rounds before the last not shown", lines[-1])
    assert shown == [*range(1, len(shown)), rounds]
    assert len(shown) + (int(note[1]) if note else 0) == rounds


def test_one_round(run_of: RunOf, tutorial: tuple[int, ...]) -> None:
    text = page(run_of("psum", "i=4", tutorial), number=2)
    assert "round 2 of 6  reduce-scatter" in text
    assert "▸3+7+1" in text
    assert "BEFORE" not in text
    assert "before any round" in page(run_of("psum", "i=4", tutorial), number=0)
    with pytest.raises(QuestionError, match="round 7 does not exist"):
        page(run_of("psum", "i=4", tutorial), number=7)


def test_without_numbers(run_of: RunOf) -> None:
    text = page(run_of("psum", "i=3", 2**20))
    assert "▸Σ2" in text
    assert "FINAL RESULT" not in text
    assert text.index("BEFORE") < text.index("AFTER")


def test_one_device_sends_nothing(run_of: RunOf) -> None:
    text = page(run_of("psum", "i=1", (3, 1)))
    assert "round 1" not in text
    assert text.endswith("\nring: one device: nothing is sent")


def test_shards_of_two_dimensions_and_none(run_of: RunOf) -> None:
    text = page(run_of("psum", "i=2", range(12), shard=(2, 3)))
    after = text[text.index("AFTER") : text.index("FINAL")]
    assert [line.split() for line in after.split("\n")[1:4]] == [
        ["0", "i0", "1", "i1"],
        ["6", "8", "10"] * 2,
        ["12", "14", "16"] * 2,
    ]
    assert "FINAL RESULT  s32[2,3]  P()" in text
    scalar = page(run_of("psum", "i=2", (3, 4), shard=()))
    assert "FINAL RESULT  s32[]  P()\n 7" in scalar
    apart = page(run_of("psum_scatter", "i=2", range(4), tiled=False))
    assert "AFTER  s32[] per device\n" in apart
    assert "no FINAL RESULT: shard_map joins results along a dimension, and these are scalars" in apart
    assert "AFTER  s32[1] per device\n" in page(run_of("psum_scatter", "i=2", range(4)))


NOTES = [
    (("pmean", "i=2", (1, 2)), {}, "AFTER  f32[1] per device  every total ÷ 2\n"),
    (
        ("ppermute", "i=3", (1, 2, 3), "direct"),
        {"perm": ((0, 1),)},
        "AFTER  s32[1] per device  0 on devices that receive nothing\n",
    ),
    (
        ("ragged_all_to_all", "i=2", (3, 1, 4, 1), "pairwise"),
        {"send_sizes": ((1, 0), (1, 1))},
        "AFTER  s32[2] per device  0 in rows that receive nothing\n",
    ),
    (("psum", "i=2", (5, 6), "binomial-tree"), {}, "binomial-tree: 2 rounds, 4 bytes sent by each device"),
    (("psum", "i=3", (5, 6, 7), "binomial-tree"), {}, "4 rounds, at most 8 bytes sent by a device"),
    (("all_gather", "i=2", (5, 6)), {}, "AFTER  s32[2] per device\n"),
    (("psum", "i=2", (100, 100)), {"dtype": "int8"}, "   s8 wraps around"),
    (("psum", "i=3", 9), {}, "   Σ3 the sum of 3   "),
    (("pmax", "i=4", (1, 2, 3, 4)), {}, "   ╱ largest so far   "),
    (
        ("all_to_all", "i=2", (1, 2, 3, 4), "pairwise"),
        {},
        "   α₁→1 sent α₁ to device 1   α₁ from device 0 to device 1\ncolumns: destination or source device",
    ),
    (
        ("psum", "X=2,Y=16", tuple(range(32)), "recursive-doubling"),
        {"axes": ("Y",)},
        "1 other group of 16 devices does the same",
    ),
    (
        ("psum", "i=4", (3, 9, 5, 2)),
        {},
        "3 of the 4 chunks are empty: a shard has fewer numbers than chunks\n",
    ),
]


@pytest.mark.parametrize(
    ("question", "parameters", "said"), NOTES, ids=[" ".join(map(str, case[0][:2])) for case in NOTES]
)
def test_what_needs_to_be_said(
    run_of: RunOf, question: tuple[object, ...], parameters: dict[str, object], said: str
) -> None:
    assert said in page(run_of(*question, **parameters))


def test_empty_chunks_are_neither_drawn_nor_sent(run_of: RunOf) -> None:
    text = page(run_of("psum", "i=4", (3, 9, 5, 2)))
    assert "2→3: 1 chunk, 4 B" in text
    assert "▸9+5+2+3=19" in text
    assert "–" not in text
    assert "β" not in text


def test_everything_is_offered_only_where_it_can_be_listed(run_of: RunOf) -> None:
    small, large = (page(run_of("psum", f"i={size}", size)) for size in (32, 512))
    assert "--round N shows one round, --json all of them" in small
    assert "--round N shows one round" in large
    assert "--json" not in large


PERMUTED = {"perm": ((0, 1), (1, 0))}
NAMES = {
    "all_gather": ("all_gather", 1, {}),
    "psum": ("all_reduce", 1, {}),
    "pmax": ("all_reduce", 3, {}),
    "psum_scatter": ("reduce_scatter", 0, {}),
    "all_to_all": ("all_to_all", 0, {}),
    "ppermute": ("permute", 2, PERMUTED),
    "pbroadcast": ("broadcast", 5, {}),
}


@settings(max_examples=30)
@given(st.data())
def test_every_page_stays_within_its_width(run_of: RunOf, data: st.DataObject) -> None:
    """Any operation, algorithm, mesh and dtype; with colours, without numbers, one round or all."""
    name = data.draw(st.sampled_from([*NAMES]))
    kind, per_device, parameters = NAMES[name]
    mesh, axes, size = data.draw(
        st.sampled_from(
            [
                ("i=2", ("i",), 2),
                ("i=7", ("i",), 7),
                ("tensor=8,a=2", ("tensor",), 8),
                ("X=2,Y=3", ("Y", "X"), 6),
                ("X=4,Y=4", ("X", "Y"), 16),
                ("some_long_axis=3,Y=2", ("some_long_axis",), 3),
            ]
        )
    )
    if name == "ppermute":
        axes = tuple(sorted(axes))
    dims = tuple(parse_mesh(mesh).axis_size(axis) for axis in axes)
    able = [each.algorithm for each in schedules_for(Pattern(kind, dims, PERMUTED["perm"]))]
    count = parse_mesh(mesh).size * (per_device or size)
    dtype = data.draw(st.sampled_from(["int32", "float32", "bool", "int8"]))
    if name == "psum_scatter" and dtype == "bool":
        dtype = "int32"
    values = (
        count
        if data.draw(st.booleans())
        else data.draw(st.lists(st.integers(-128, 127), min_size=count, max_size=count))
    )
    run = run_of(name, mesh, values, data.draw(st.sampled_from(able)), axes=axes, dtype=dtype, **parameters)
    width = data.draw(st.integers(40, 200))
    number = data.draw(st.none() | st.integers(0, run.schedule.rounds))
    for palette in (PLAIN, ANSI, TRUECOLOR):
        lines = step_view(run, width, palette, number)
        assert max(line.cell_len for line in lines) <= width
        assert "\n" not in "".join(line.plain for line in lines)
        if palette is PLAIN:
            assert all(line.plain == line.plain.rstrip() for line in lines)
        assert {c for line in lines for c in line.plain if not c.isascii()} <= {*STAND_INS, "▸", "µ", "≥"}


def test_one_round_on_a_narrow_page_is_no_plural(run_of: RunOf) -> None:
    text = page(run_of("all_gather", "i=64", 64, "bruck"), 44)
    assert "\nround 1  all-gather: " in text
    assert "rounds 1 " not in text
    assert "\nrounds 1–63  all-gather: " in page(run_of("all_gather", "i=64", 64), 44)


def test_a_permute_that_moves_nothing(run_of: RunOf) -> None:
    found = page(run_of("ppermute", "i=8", 8, "direct", perm=((0, 0),)))
    assert "0 rounds" in found
    assert "Nothing is sent" in found
