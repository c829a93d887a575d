"""Sentences and columns on pages of fixed width."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from rich.style import Style
from rich.text import Span, Text

from shardviz.render.lines import sentence, trimmed
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.tables import columns, giving_way, records, table

ROWS = [
    [Text("1"), Text("einsum"), Text(""), Text("0")],
    [Text("22"), Text("psum"), Text(""), Text("65,536")],
]


def plain(lines: list[Text] | None) -> list[str] | None:
    return None if lines is None else [line.plain for line in lines]


def test_columns_line_up_and_empty_ones_take_no_room() -> None:
    assert plain(columns(ROWS, 40, 1, (">", "", "", ">"))) == ["  1  einsum       0", " 22  psum    65,536"]


def test_narrower_tables_are_without_the_columns_that_give_way_first() -> None:
    head = (">", "step", "note", ">bytes")
    rows = [["1", "einsum", "long words", "0"], ["22", "psum", "", "65,536"]]
    wide = [
        "    step    note         bytes",
        " 1  einsum  long words       0",
        "22  psum                65,536",
    ]
    assert plain(columns(rows, 30, 0, head, giving_way("note", "bytes"))) == wide
    narrow = ["    step     bytes", " 1  einsum       0", "22  psum    65,536"]
    assert plain(columns(rows, 29, 0, head, giving_way("note", "bytes"))) == narrow
    assert plain(columns(rows, 17, 0, head, giving_way("note", "bytes"))) == [
        "    step",
        " 1  einsum",
        "22  psum",
    ]
    assert columns(rows, 9, 0, head, giving_way("note", "bytes")) is None
    assert table([], 40, 0, head) == []


def test_columns_that_do_not_fit_become_records() -> None:
    assert columns(ROWS, 17) is None
    assert plain(table(ROWS, 12)) == ["1  einsum  0", "22  psum", "  65,536"]


def test_a_cell_wider_than_the_page_is_cut() -> None:
    assert plain(records([[Text("abcdefghij"), Text("k")]], 8)) == ["abcdef", "  ghij", "  k"]


def test_a_cell_wider_than_the_page_breaks_at_blanks() -> None:
    cell = Text("XLA for up to 2,048 simulated CPU devices")
    assert plain(records([[Text("cpu"), cell]], 22)) == [
        "cpu",
        "  XLA for up to 2,048",
        "  simulated CPU",
        "  devices",
    ]


@given(st.text(alphabet="ab ", max_size=200), st.integers(12, 60))
def test_records_stay_on_the_page_and_lose_no_letter(text: str, width: int) -> None:
    lines = records([[Text("k"), Text(text)]], width)
    assert all(line.cell_len <= width for line in lines)
    assert "".join("".join(line.plain.split()) for line in lines) == "k" + "".join(text.split())


def test_sentences_hang() -> None:
    lines = sentence("one two three four five six", 16, 2, "≠ code: ")
    assert plain(lines) == ["  ≠ code: one", "    two three", "    four five", "    six"]


@given(st.text(alphabet="ab [](){}_,.-", max_size=300), st.integers(40, 120), st.integers(0, 8))
def test_sentences_stay_on_the_page_and_lose_no_letter(text: str, width: int, indent: int) -> None:
    lines = sentence(text, width, indent)
    assert all(line.cell_len <= width for line in lines)
    assert "".join("".join(line.plain.split()) for line in lines) == "".join(text.split())


@pytest.mark.parametrize("text", ["A[b_X, d_Y]{U_Z}", "[bold]x[/bold]", "[x=4, y=2]"])
def test_brackets_stay(text: str) -> None:
    assert plain(sentence(text, 80)) == [text]
    assert plain(table([[Text(text)]], 80)) == [text]


def test_the_edge_of_a_coloured_cell_is_no_blank_to_trim() -> None:
    line = Text("0   3    ", spans=[Span(3, 6, Style.parse("black on blue"))])
    assert trimmed(line, TRUECOLOR).plain == "0   3 "
    assert trimmed(line, PLAIN).plain == "0   3"
    assert trimmed(Text("words  "), TRUECOLOR).plain == "words"
    assert trimmed(Text(""), TRUECOLOR).plain == ""


@pytest.mark.parametrize("unit", ["B", "KiB", "bytes", "chunks", "µs", "s", "GB/s", "rounds"])
def test_a_number_and_its_unit_stay_together(unit: str) -> None:
    for width in range(14, 30):
        lines = [line.plain for line in sentence(f"one two three 12.5 {unit} and more", width)]
        assert any(f"12.5 {unit}" in line for line in lines)


def test_no_text_is_no_line() -> None:
    assert sentence("", 80) == []


def test_a_cell_that_is_broken_has_one_blank_where_it_goes_on():
    told = records([[Text("↑ grown: all-gather over"), Text("a b")], [Text("12345678 ab")]], 12)
    assert [line.plain for line in told] == ["↑ grown:", "  all-gather", "  over  a b", "12345678 ab"]
