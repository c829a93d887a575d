"""Programs as pages: every line is found, drawn to its width, marked, and the same in both pages."""

from __future__ import annotations

import pytest

from shardviz.hlo import read
from shardviz.notation.mesh import parse_mesh
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.programs.program_pages import (
    LINES_AT_ONCE,
    LineIndex,
    line_details,
    next_of,
    place_rule,
    read_program,
)
from shardviz.reports.target_result import TargetResult
from shardviz.user_files import EXAMPLES

MESH = parse_mesh("X=2,Y=4")
HLO = (EXAMPLES / "mlp.txt").read_text(encoding="utf-8")
SHARDY = """\
module @m attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["X"=2, "Y"=4]>
  func.func public @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8x8xf32>
    %1 = sdy.all_reduce {"Y"} %0 out_sharding=<@mesh, [{"X"}, {}]> : tensor<8x8xf32>
    %2 = sdy.all_gather [{"X"}, {}] %1 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>

    return %2 : tensor<8x8xf32>
  }
}
#loc1 = loc("a.py")
"""


@pytest.fixture(params=["cpu", "shardy"])
def program(request):
    text = HLO if request.param == "cpu" else SHARDY
    return read_program(TargetResult(request.param, "ok", read(text, MESH).collectives, text=text), MESH)


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", []), ("a", ["a"]), ("a\n", ["a"]), ("a\n\nbcd", ["a", "", "bcd"]), ("\n", [""])],
)
def test_the_lines_of_a_text(text, lines):
    index = LineIndex(text)
    assert [index.line(number) for number in range(index.count)] == lines
    assert index.width == max(map(len, lines), default=0)
    assert [index.line(number, 1, 2) for number in range(index.count)] == [line[1:2] for line in lines]


def test_a_search_goes_through_a_text_part_by_part():
    count = 2 * LINES_AT_ONCE + 10
    index = LineIndex(
        "\n".join(f"line {number} [k]" + " LINE" * (number % 7 == 0) for number in range(count))
    )
    parts = [*index.searched("] Line")]
    assert [len(part) > 0 for part in parts] == [True, True, True]
    assert [number for part in parts for number in part] == [*range(0, count, 7)]
    assert [*LineIndex("").searched("a")] == []


@pytest.mark.parametrize("width", [12, 84])
@pytest.mark.parametrize("palette", [PLAIN, TRUECOLOR])
def test_no_line_of_a_folded_page_is_wider_than_the_page(program, width, palette):
    page = program.page(True, width, palette)
    assert max(page.line(number, 0, width).cell_len for number in range(page.height)) <= width


def test_a_raw_page_has_every_character(program):
    page = program.page(False, 40, PLAIN)
    lines = program.compiled.text.splitlines()
    assert [page.line(number, 0, page.width).plain for number in range(page.height)] == lines
    assert page.line(3, 4, 9).plain == lines[3][4:9]
    assert page.width == max(map(len, lines))


def test_the_collectives_are_the_same_on_both_pages(program):
    folded, raw = program.page(True, 84, PLAIN), program.page(False, 84, PLAIN)
    names = [[page.collective(number).name for number in page.collectives] for page in (folded, raw)]
    assert sorted(names[0]) == sorted(names[1]) == sorted(each.name for each in program.compiled.collectives)
    for number in folded.collectives:
        there = raw.number_at(folded.place(number))
        assert raw.collective(there) == folded.collective(number)
        assert folded.number_at(raw.place(there)) == number
        assert "▸" in folded.line(number, 0, 84).plain


@pytest.mark.parametrize(
    ("instruction", "line"),
    [("convolution.1", "fusion"), ("p0", "fusion"), ("go", "while"), ("sum", "all-reduce"), ("acts", "acts")],
)
def test_an_instruction_that_is_folded_away_is_on_the_line_that_calls_it(instruction, line):
    program = read_program(TargetResult("cpu", "ok", read(HLO, MESH).collectives, text=HLO), MESH)
    page = program.page(True, 84, PLAIN)
    assert page.written(page.number_at(program.raw.place_of(instruction))).startswith(line)


def test_characters_that_are_none_to_look_at_have_a_stand_in():
    text = HLO.replace("model.py", "mo\x1b[2Jdel\x07.py")
    page = read_program(TargetResult("cpu", "ok", text=text), MESH).page(False, 84, PLAIN)
    assert page.line(3, 0, 84).plain == '1 "mo?[2Jdel?.py"'


def test_a_search_finds_what_the_page_says_of_a_collective(program):
    page = program.page(True, 84, PLAIN)
    found = [number for part in page.searchable.searched("all-reduce over y") for number in part]
    assert [page.collective(number).op for number in found] == ["all-reduce"]


def test_what_is_said_of_a_line(program):
    page = program.page(True, 84, PLAIN)
    first = page.collectives[0]
    said = "\n".join(line.plain for line in line_details(program, page, first, 84, PLAIN))
    assert f"{page.collective(first).op} over" in said
    assert "bytes" in said
    assert "devices {0," in said
    assert page.words(1) == line_details(program, page, 1, 300, PLAIN)[0].plain
    assert max(line.cell_len for line in line_details(program, page, first, 30, PLAIN)) <= 30


def test_the_rule_says_where_the_cursor_is(program):
    page = program.page(True, 84, PLAIN)
    last = page.collectives[-1]
    rule = place_rule(last, page, 60).plain
    count = len(page.collectives)
    assert rule.startswith(f"── line {last + 1} of {page.height} ── collective {count} of {count} ─")
    assert [len(place_rule(0, page, width).plain) for width in (10, 40, 100)] == [10, 40, 100]


@pytest.mark.parametrize(
    ("number", "step", "found"),
    [(0, 1, 2), (2, 1, 5), (5, 1, None), (6, 1, None), (9, -1, 5), (5, -1, 2), (2, -1, None), (0, -1, None)],
)
def test_the_next_of_some_lines(number, step, found):
    assert next_of((2, 5), number, step) == found


def test_names_that_two_functions_use_are_told_apart():
    text = SHARDY.replace(
        "#loc1",
        """func.func private @f(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %1 = stablehlo.add %arg0, %arg0 : tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
#loc1""",
    )
    program = read_program(TargetResult("shardy", "ok", read(text, MESH).collectives, text=text), MESH)
    page = program.page(True, 84, PLAIN)
    assert ["sdy." in page.words(number) for number in page.collectives] == [True, True]
