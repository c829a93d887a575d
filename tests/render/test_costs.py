"""Tables of algorithms on pages of fixed width."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from shardviz.hardware.links import LinkSpec
from shardviz.hardware.timelines import Timeline, fastest
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.rounds.step_notes import comparison_view, cost_lines
from shardviz.stepping.collective_run import CollectiveRun

RunOf = Callable[..., CollectiveRun]


def compared(run: CollectiveRun, width: int) -> str:
    return "\n".join(line.plain for line in comparison_view(run, width, PLAIN))


def test_rounds_on_a_torus_stand_beside_what_plans_count(run_of: RunOf) -> None:
    """An all-to-all waits for each of its rounds; within a hop a round nothing is said."""
    small, large = (
        run_of("all_to_all", "i=4", tuple(range(size)), "pairwise", split_axis=0, concat_axis=0)
        for size in (16, 2**20)
    )
    words = "messages are forwarded while they come in, and no round waits for another."
    assert words in "\n".join(line.plain for line in cost_lines(large, 120))
    assert words not in "\n".join(line.plain for line in cost_lines(small, 120))


TABLES = [
    (
        "all-reduce over 8",
        ("psum", "i=8", tuple(range(64))),
        96,
        """
        psum over i  ring  mesh i=8, 8 devices  s32[64] P('i') → 8 per device
        32 bytes over 8 devices, on a ring of 8 with 1 µs and 45 GB/s per link
        8 µs by formula, bound by latency: a ring of 8 along i, both directions: twice 7/8 of 32 B over
          2 × 45 GB/s; at least twice 4 hops of 1 µs

            algorithm           rounds  sent  × lower bound  busiest link  waiting   time
        ▸   ring                    14  56 B        1          56 B        0  14 µs
            bidirectional-ring       8  56 B        1          32 B        0   8 µs
            line                    14  64 B     1.14          32 B        0  14 µs
        ★   recursive-doubling       3  96 B     1.71         128 B        0   7 µs
        """,
    ),
    (
        "40 columns",
        ("psum", "i=8", tuple(range(64))),
        40,
        """
        psum over i  ring  mesh i=8, 8 devices
          s32[64] P('i') → 8 per device
        32 bytes over 8 devices, on a ring of 8
        with 1 µs and 45 GB/s per link
        8 µs by formula, bound by latency: a
          ring of 8 along i, both directions:
          twice 7/8 of 32 B over 2 × 45 GB/s; at
          least twice 4 hops of 1 µs

        ▸  ring  14 rounds
          56 B sent (1× lower bound)
          56 B on a link  14 µs
        bidirectional-ring  8 rounds
          56 B sent (1× lower bound)
          32 B on a link  8 µs
        line  14 rounds
          64 B sent (1.14× lower bound)
        """,
    ),
]


@pytest.mark.parametrize(
    ("question", "width", "beginning"), [case[1:] for case in TABLES], ids=[case[0] for case in TABLES]
)
def test_tables(run_of: RunOf, question: tuple[object, ...], width: int, beginning: str) -> None:
    text = compared(run_of(*question), width)
    expected = dedent(beginning).strip("\n")
    # The first column is as wide as both marks together.
    assert _squeezed(text).startswith(_squeezed(expected))


def _squeezed(text: str) -> str:
    """Lines with runs of blanks as one, so that what matters is what is said and in which order."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


def test_the_reasons_of_those_that_cannot(run_of: RunOf) -> None:
    text = compared(run_of("psum", "i=5", range(40)), 120)
    assert "– recursive-doubling, halving-doubling: 5 devices are not a power of two" in text
    assert "recursive-doubling  " not in text


def test_no_star_where_all_take_the_same_time(run_of: RunOf) -> None:
    assert "★" not in compared(run_of("all_gather", "i=2", (1, 2)), 96)


def test_one_algorithm_can_be_both_chosen_and_fastest(run_of: RunOf) -> None:
    text = compared(run_of("psum", "i=5", range(40), "bidirectional-ring"), 96)
    assert "▸★  bidirectional-ring" in text


def test_nothing_to_send_needs_no_ratio(run_of: RunOf) -> None:
    text = compared(run_of("psum", "i=1", (1, 2)), 96)
    assert "▸  ring                     0   0 B                          0 B        0   0 s" in text


def test_links_are_stated(run_of: RunOf) -> None:
    run = run_of("psum", "i=4", range(16), topology="line", link_spec=LinkSpec(2.5e-7, 9e10))
    assert "on a line of 4 with 250 ns and 90 GB/s per link" in compared(run, 100)


@pytest.mark.parametrize(
    ("width", "name"),
    [(40, "psum"), (47, "all_gather"), (60, "all_to_all"), (80, "psum_scatter"), (200, "pbroadcast")],
)
def test_no_line_is_wider_than_the_page(run_of: RunOf, name: str, width: int) -> None:
    run = run_of(name, "X=2,Y=4", range(64), "direct")
    for palette in (PLAIN, TRUECOLOR):
        lines = comparison_view(run, width, palette)
        assert max(line.cell_len for line in lines) <= width
        assert all(line.plain == line.plain.rstrip() for line in lines)


@pytest.mark.parametrize(
    ("asked", "link_spec", "topology"),
    [
        (("psum", "i=8"), LinkSpec(), None),
        (("psum", "i=5"), LinkSpec(0.0), "line"),
        (("psum", "X=4,Y=4"), LinkSpec(), "switch"),
        (("all_gather", "i=8"), LinkSpec(1e-6, float("inf")), None),
        (("all_to_all", "i=6"), LinkSpec(0.0, float("inf")), "line"),
        (("psum_scatter", "X=2,Y=4"), LinkSpec(0.0), None),
    ],
)
def test_the_fastest_have_a_star(
    run_of: RunOf, asked: tuple[str, str], link_spec: LinkSpec, topology: str | None
) -> None:
    name, mesh = asked
    for size in (960, 3_840_000):
        run = run_of(name, mesh, size, "direct", topology=topology, link_spec=link_spec)
        rows = compared(run, 100).splitlines()
        starred = {row.split()[1] for row in rows if row.lstrip("▸").startswith("★  ")}
        best = fastest(run.rows)
        able = sum(isinstance(row, Timeline) for row in run.rows)
        assert starred == (set() if len(best) == able > 1 else set(best))


def test_a_lower_bound_never_loses_silently(run_of: RunOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardviz.hardware.timelines.QUEUE_WORK", 2**25)
    run = run_of("all_to_all", "i=512", 512 * 512, "pairwise")
    assert next(row for row in run.rows if row.algorithm == "direct").exact is False
    assert "★" not in compared(run, 100)
