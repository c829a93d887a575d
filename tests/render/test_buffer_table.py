"""Frames as pictures: every device's row says what an independent replay of the sends says it holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from shardviz.collectives.algorithms import schedules_for
from shardviz.collectives.schedule import Pattern
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.rounds.pieces import FORMS
from shardviz.render.rounds.step_view import MAX_ROWS, BufferTable
from shardviz.stepping.collective_run import CollectiveRun

RunOf = Callable[..., CollectiveRun]


def drawn(run: CollectiveRun, number: int, width: int = 100, groups: tuple[int, ...] = (0,)) -> str:
    picture = BufferTable(run, number, groups, width, PLAIN, MAX_ROWS)
    return "\n".join(line.plain.rstrip() for line in picture.lines())


PICTURES = [
    (
        "a ring in its second round",
        ("all_gather", "i=4", (3, 9, 5, 2)),
        2,
        """
                α   β   γ   δ
        0  i0   3   ·  ▸5   2   δ→1
        1  i1   3   9   ·  ▸2   α→2
        2  i2  ▸3   9   5   ·   β→3
        3  i3   ·  ▸9   5   2   γ→0
        """,
    ),
    (
        "addends of partial sums, and what is no longer needed",
        ("psum", "i=3", (3, 1, 4, 1, 5, 9, 2, 6, 5)),
        1,
        """
                 α     β     γ
        0  i0   ╱3╱  ▸6+1╱  (4)   γ→1
        1  i1   (1)   ╱5╱  ▸4+9╱  α→2
        2  i2  ▸1+2╱  (6)   ╱5╱   β→0
        """,
    ),
    (
        "totals with their addends",
        ("psum", "i=3", (3, 1, 4, 1, 5, 9, 2, 6, 5)),
        2,
        """
                   α          β          γ
        0  i0  ▸1+2+3=6     (6+1)       (4)      β→1
        1  i1     (1)     ▸6+1+5=12    (4+9)     γ→2
        2  i2    (1+2)       (6)     ▸4+9+5=18   α→0
        """,
    ),
    (
        "totals that only move say no more than their value",
        ("psum", "i=3", (3, 1, 4, 1, 5, 9, 2, 6, 5)),
        4,
        """
                α    β    γ
        0  i0   6   ▸12   18   γ→1
        1  i1   6    12  ▸18   α→2
        2  i2  ▸6    12   18   β→0
        """,
    ),
    (
        "an all-to-all in slots",
        ("all_to_all", "i=2", (3, 1, 4, 1), "pairwise"),
        1,
        """
                 0      1
        0  i0   α₀ 3  ▸β₀ 4   α₁→1
        1  i1  ▸α₁ 1   β₁ 1   β₀→0
        """,
    ),
    (
        "what waits to go on stands after the slots",
        ("all_to_all", "i=4", tuple(range(16)), "ring"),
        1,
        """
                  0       1       2       3
        0  i0    α₀ 0   (α₁ 1)  (α₂ 2) ▸δ₀ 12   │ ▸δ₁  ▸δ₂   α₁–α₃→1
        1  i1   ▸α₁ 1    β₁ 5   (β₂ 6)  (β₃ 7)  │ ▸α₂  ▸α₃   β₀,β₂,β₃→2
        2  i2   (γ₀ 8)  ▸β₂ 6   γ₂ 10  (γ₃ 11)  │ ▸β₀  ▸β₃   γ₀,γ₁,γ₃→3
        3  i3  (δ₀ 12) (δ₁ 13) ▸γ₃ 11   δ₃ 15   │ ▸γ₀  ▸γ₁   δ₀–δ₂→0
        """,
    ),
    (
        "the largest so far",
        ("pmax", "i=2", (3, 1, 4, 1), "recursive-doubling"),
        1,
        """
                          α
        0  i0  ▸max(4,3)=4, max(1,1)=1   α→1
        1  i1  ▸max(3,4)=4, max(1,1)=1   α→0
        """,
    ),
    (
        "chunks without any element have no column, and are not sent",
        ("psum", "i=3", (7, 8, 9)),
        1,
        """
                 α
        0  i0   ╱7╱
        1  i1   (8)   α→2
        2  i2  ▸8+9╱
        """,
    ),
    (
        "where all are empty",
        ("psum", "i=2", ()),
        1,
        """
                α   β
        0  i0   –   –   β→1
        1  i1   –   –   α→0
        """,
    ),
]


@pytest.mark.parametrize(
    ("question", "number", "expected"), [case[1:] for case in PICTURES], ids=[case[0] for case in PICTURES]
)
def test_pictures(run_of: RunOf, question: tuple[object, ...], number: int, expected: str) -> None:
    assert drawn(run_of(*question), number) == dedent(expected).strip("\n")


def test_slots_without_any_element(run_of: RunOf) -> None:
    run = run_of("ragged_all_to_all", "i=2", (3, 1, 4, 1), "pairwise", send_sizes=((1, 0), (1, 1)))
    expected = """
                 0      1
        0  i0   α₀ 3  ▸β₀ 4
        1  i1    –     β₁ 1   β₀→0
        """
    assert drawn(run, 1) == dedent(expected).strip("\n")


LARGE = (*range(10**18, 10**18 + 8),)


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize(
    ("question", "dtype"),
    [
        (("psum", "i=4", LARGE * 2, "ring"), "int64"),
        (("all_to_all", "i=8", tuple(range(64)), "pairwise"), "int32"),
        (("psum", "X=2,Y=2", tuple(range(32)), "torus-split"), "int32"),
    ],
)
def test_all_cells_of_a_picture_have_one_form(
    run_of: RunOf, question: tuple[object, ...], dtype: str, width: int
) -> None:
    """Numbers or letters; and sums with their addends or without."""
    run = run_of(*question, dtype=dtype)
    for number in range(len(run.frames)):
        picture = BufferTable(run, number, (0,), width, PLAIN, MAX_ROWS)
        form = FORMS[picture.shape.form]
        labels = [cell.label(form) for cell in picture.stats.cells]
        assert None not in labels
        bare = [re.sub("[α-ω][₀-₉]* ?", "", label or "") for label in labels]
        digits = {any(character.isdigit() for character in re.sub("Σ[0-9]+", "", label)) for label in bare}
        assert len(digits) == 1
        sums = {"+" in (cell.label(form) or "") for cell in picture.stats.cells if cell.count}
        assert len(sums) <= 1


def test_what_was_sent_gives_way_only_to_richer_numbers(run_of: RunOf) -> None:
    run = run_of("psum", "i=8", tuple(range(64)))
    table = BufferTable(run, 9, (0,), 80, PLAIN, MAX_ROWS)
    assert table.shape.sent_at is not None
    assert "θ→1" in table.lines()[1].plain


def test_the_end_has_only_what_is_part_of_the_result(run_of: RunOf) -> None:
    run = run_of("psum_scatter", "i=3", 9)
    picture = BufferTable(run, 2, (0,), 80, PLAIN, MAX_ROWS, moving=False, ended=True)
    assert [line.plain.split() for line in picture.lines()][1:] == [
        ["0", "i0", "α", "·", "·"],
        ["1", "i1", "·", "β", "·"],
        ["2", "i2", "·", "·", "γ"],
    ]


def test_groups_stand_one_under_another_with_names_of_their_own(run_of: RunOf) -> None:
    run = run_of("all_gather", "X=2,Y=2", (3, 9, 5, 2), axes=("Y",))
    expected = """
        X0         α   β
        0  X0 Y0   3  ▸9   α→1
        1  X0 Y1  ▸3   9   β→0
        X1         γ   δ
        2  X1 Y0   5  ▸2   γ→3
        3  X1 Y1  ▸5   2   δ→2
        """
    assert drawn(run, 1, groups=(0, 1)) == dedent(expected).strip("\n")


def test_devices_are_named_by_their_ids(run_of: RunOf) -> None:
    run = run_of("all_gather", "i=3", (3, 9, 5), device_order=(2, 0, 1))
    assert [line.split()[0] for line in drawn(run, 1).splitlines()[1:]] == ["2", "0", "1"]
    assert [line.split()[-1] for line in drawn(run, 1).splitlines()[1:]] == ["α→0", "β→1", "γ→2"]


def test_without_numbers_pieces_have_their_names_and_sums_their_counts(run_of: RunOf) -> None:
    gathered = drawn(run_of("all_gather", "i=3", 9), 1)
    assert gathered.splitlines()[1] == "0  i0   α   ·  ▸γ   α→1"
    reduced = drawn(run_of("psum", "i=3", 9), 2)
    assert reduced.splitlines()[1] == "0  i0  ▸Σ3  (Σ2) (γ)   β→1"


def test_colour_is_the_chunk_and_gone_with_the_need(run_of: RunOf) -> None:
    run = run_of("psum", "i=3", (3, 1, 4, 1, 5, 9, 2, 6, 5))
    picture = BufferTable(run, 1, (0,), 100, TRUECOLOR, MAX_ROWS)
    rows = picture.lines()[1:]
    at = [[row.get_style_at_offset(_console(), 9 + 6 * chunk).bgcolor for chunk in range(3)] for row in rows]
    colours = [TRUECOLOR.shard(chunk).bgcolor for chunk in range(3)]
    alpha, beta, gamma = colours
    assert at == [[alpha, beta, None], [None, beta, gamma], [alpha, None, gamma]]


def _console():
    from rich.console import Console

    return Console(color_system="truecolor")


KINDS = {
    "all_gather": "all_gather",
    "psum": "all_reduce",
    "psum_scatter": "reduce_scatter",
    "all_to_all": "all_to_all",
}
NUMBER = re.compile(r"\d{3,}")


@settings(deadline=None)
@given(st.data())
def test_rows_say_what_a_replay_of_the_sends_says(run_of: RunOf, data: st.DataObject) -> None:
    """Values are distinct and large, so that each names itself; sums are only followed by their holders."""
    name = data.draw(st.sampled_from(["all_gather", "all_to_all"]))
    size = data.draw(st.integers(2, 6))
    able = [each.algorithm for each in schedules_for(Pattern(KINDS[name], (size,)))]
    algorithm = data.draw(st.sampled_from(able))
    per_device = 1 if name == "all_gather" else size
    values = np.arange(size * per_device) + 100
    run = run_of(name, f"i={size}", values, algorithm)
    schedule = run.schedule
    number = data.draw(st.integers(0, schedule.rounds))
    held: list[set[int]] = [
        {100 + chunk for chunk in range(schedule.chunks) if chunk // per_device == member}
        for member in range(size)
    ]
    for each in range(1, number + 1):
        sends = schedule.round(each).expanded(schedule.chunks)
        for dst, chunk in zip(sends.dst.tolist(), sends.chunk.tolist(), strict=True):
            held[dst].add(100 + chunk)
    rows = drawn(run, number, 200).splitlines()[1:]
    for member, row in enumerate(rows):
        shown = {int(found) for found in NUMBER.findall(row.split("│")[0])}
        if name == "all_gather":
            assert shown == held[member]
        else:
            assert shown <= held[member]
            # Slots hold what ends here, or what starts here and whose counterpart has not come yet.
            ending = {100 + origin * size + member for origin in range(size)}
            assert shown & ending == held[member] & ending
            assert len(shown) == size


WIDE = [
    ("all_gather", "i=12", 12, "ring"),
    ("psum", "i=8", tuple(range(1000, 1064)), "ring"),
    ("all_to_all", "i=6", tuple(range(36)), "bruck"),
    ("psum", "data=2,model=4", tuple(range(64)), "torus"),
]


@pytest.mark.parametrize("question", WIDE, ids=[" ".join(map(str, case[:2])) for case in WIDE])
@pytest.mark.parametrize("width", [40, 57, 120])
def test_no_row_is_wider_than_the_page(run_of: RunOf, question: tuple[object, ...], width: int) -> None:
    run = run_of(*question)
    for number in range(len(run.frames)):
        picture = BufferTable(run, number, (0,), width, TRUECOLOR, MAX_ROWS)
        lines = picture.lines()
        assert max(line.cell_len for line in lines) <= width
        shown = min(run.schedule.pattern.group_size, 16)
        assert len(lines) == 1 + shown


def test_many_devices_and_chunks_are_elided(run_of: RunOf) -> None:
    picture = BufferTable(run_of("all_gather", "i=256", 1024), 3, (0,), 80, PLAIN, max_rows=6)
    lines = [line.plain.rstrip() for line in picture.lines()]
    assert picture.summarised
    assert lines[0].split() == ["α", "β", "γ", "δ", "π₁₀"]
    assert lines[1].split() == ["0", "i0", "α", "·", "·", "·", "…", "π₁₀", "ο₁₀→1"]
    assert lines[5].strip() == "⋮"
    assert lines[6].startswith("255  i255")
