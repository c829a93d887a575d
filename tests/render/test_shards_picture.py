"""Arrays of numbers in rows: what is shown is what is there, within the page."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import numpy as np
from hypothesis import given, strategies as st
from rich.console import Console

from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.rounds.device_values import final_picture, shards_picture
from shardviz.stepping.collective_run import CollectiveRun

RunOf = Callable[..., CollectiveRun]


def rows(run: CollectiveRun, ended: bool, width: int = 80, devices: int = 16) -> list[str]:
    return [line.plain.rstrip() for line in shards_picture(run, ended, width, PLAIN, devices)]


def test_a_matrix_a_device(run_of: RunOf) -> None:
    run = run_of("all_gather", "i=2", range(8), shard=(2, 2))
    expected = """
        0  i0   1  i1
         0 1     0 1
         2 3     2 3
         4 5     4 5
         6 7     6 7
        """
    assert rows(run, True) == dedent(expected).strip("\n").splitlines()
    assert [line.plain.strip() for line in final_picture(run, 80, PLAIN)] == ["0 1", "2 3", "4 5", "6 7"] * 2


def test_devices_that_are_left_out_are_marked(run_of: RunOf) -> None:
    run = run_of("psum", "i=9", range(9))
    assert [row.split()[0] for row in rows(run, True, devices=6)] == ["0", "1", "2", "3", "⋮", "8"]
    matrices = rows(run_of("psum", "i=9", range(36), shard=(2, 2)), True, devices=6)
    assert "…" in "".join(matrices)


def test_a_long_result_is_broken_after_whole_devices(run_of: RunOf) -> None:
    run = run_of("all_gather", "i=4", range(4))
    drawn = [line.plain.split() for line in final_picture(run, 40, PLAIN)]
    assert drawn == [["0", "1", "2", "3"] * 2] * 2


def test_nothing_at_all(run_of: RunOf) -> None:
    run = run_of("psum", "i=2", [], shard=(0, 3))
    assert [row.split()[-1] for row in rows(run, False)] == ["[]", "[]"]


def test_colours_follow_the_data_to_where_it_ends(run_of: RunOf, tutorial: tuple[int, ...]) -> None:
    """In an all-to-all the number that device 1 got from device 2 is coloured as device 2 had it."""
    run = run_of("all_to_all", "i=4", tutorial, "pairwise")
    console = Console(color_system="truecolor")

    def colours(ended: bool) -> list[list[str]]:
        lines = shards_picture(run, ended, 80, TRUECOLOR)
        return [
            [str(line.get_style_at_offset(console, 8 + 4 * i).bgcolor) for i in range(4)] for line in lines
        ]

    before, after = colours(False), colours(True)
    assert np.array(before).T.tolist() == after
    assert len({colour for row in before for colour in row}) == 16


def test_what_no_chunk_fills_has_no_colour(run_of: RunOf) -> None:
    run = run_of("ppermute", "i=2", (3, 9), "direct", perm=((0, 1),))
    first, second = shards_picture(run, True, 80, TRUECOLOR)
    console = Console(color_system="truecolor")
    assert first.get_style_at_offset(console, 8).bgcolor is None
    assert second.get_style_at_offset(console, 8).bgcolor == TRUECOLOR.shard(0).bgcolor


@given(st.data())
def test_any_shape_stays_within_the_page(run_of: RunOf, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 40), max_size=3)))
    devices = data.draw(st.integers(1, 3))
    size = devices * int(np.prod(shape, dtype=int))
    scale = data.draw(st.sampled_from([1, 997, -123457]))
    run = run_of("psum", f"i={devices}", np.arange(size) * scale, shard=shape)
    width = data.draw(st.integers(40, 200))
    for ended in (False, True):
        assert max(map(len, rows(run, ended, width))) <= width
    drawn = final_picture(run, width, PLAIN)
    assert max(line.cell_len for line in drawn) <= width
    total = (np.arange(size) * scale).reshape(devices, -1).sum(axis=0).astype("int32")
    shown = [int(word) for word in " ".join(line.plain for line in drawn).split() if word not in "…⋮"]
    assert (shown[0], shown[-1]) == (total[0], total[-1])
    if len(shown) == total.size:
        assert shown == total.tolist()


def test_a_number_wider_than_those_at_the_edges(run_of: RunOf) -> None:
    values = np.ones((3, 90), dtype="int32")
    values[1] = 2**30
    run = run_of("psum", "i=1", values, shard=(3, 90))
    assert max(map(len, rows(run, True, 40))) <= 40


def test_sixteen_wide_numbers_stay_in_one_line_each(run_of: RunOf) -> None:
    run = run_of("psum", "i=16", range(256))
    drawn = rows(run, True, 110)
    assert len(drawn) == 16
    assert "…" not in "".join(drawn)
