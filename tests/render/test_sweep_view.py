"""The chart of a sweep, at several widths."""

from __future__ import annotations

from textwrap import dedent

import pytest

from shardviz.cli.streams import STAND_INS
from shardviz.hardware.machine import assumed_machine, place_mesh
from shardviz.hardware.machine_file import read_machine
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.numbers import parse_range
from shardviz.planner.pricing.costs import sweep
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.palette import PLAIN
from shardviz.render.sweep_view import size_text, sweep_view

GATHER = ("bd,df->bf", "X_,X_->X_")


def shown(text: str, specs: str, sizes: str, width: int) -> list[str]:
    problem = problem_from_text(text, mesh=parse_mesh("X=2,Y=4"), specs=specs)
    found = sweep(problem, parse_range(sizes), lambda mesh: place_mesh(assumed_machine(), mesh))
    return [line.plain for line in sweep_view(found, width, PLAIN)]


def test_what_takes_no_time_is_sent_nevertheless() -> None:
    unlimited = "device.hbm_bandwidth = inf\ntorus.bandwidth = inf\ntorus.latency = 0\ntorus.start = 0"
    machine = read_machine(f'base = "v5e:2x4"\n{unlimited}')
    problem = problem_from_text(GATHER[0], mesh=parse_mesh("X=2,Y=4"), specs=GATHER[1])
    found = sweep(problem, parse_range("b=1Ki:8Ki"), lambda mesh: place_mesh(machine, mesh))
    text = "\n".join(line.plain for line in sweep_view(found, 80, PLAIN))
    assert "communication takes no time here" in text
    assert "nothing is sent" not in text


def test_a_chart() -> None:
    assert "\n".join(shown(*GATHER, "b=1Ki:8Ki", 40)) == (
        dedent(
            """
            bd,df->bf  mesh X=2, Y=4, 8 devices
            compute takes longer from b = 4,378
            the plan changes at b = 2Ki

                   │                      ┆
                   │                      ┆      ●●●
                   │                      ┆    ●●
                   │                      ┆ ●●●
                   │          ×××××××××××◉◉◉××××××××
                   │       ×××         ●● ┆
                   │   ××××         ●●●   ┆
                   │×××          ●●●      ┆
                   │          ●●●         ┆
                   │        ●●            ┆
                   │     ●●●              ┆
                   │   ●●                 ┆
            100 µs ┤●●●                   ┆
                   │                      ┆
                   └┴─────────┴──────────┴┆────────┴
                  b 1Ki      2Ki        4Ki      8Ki

            ● compute  × communication over X
            v5e, assumed, each mesh axis a ring: 197
            TFLOP/s in bf16, HBM 820 GB/s
            """
        ).strip("\n")
    )


@pytest.mark.parametrize("width", [20, 80])
@pytest.mark.parametrize("sizes", ["b=2:4", "b=2:1Mi", "d=16:1Mi:4", "X=1:16", "Y=1:1Ki:32"])
def test_no_line_is_wider_than_the_page_and_ascii_can_show_it(width: int, sizes: str) -> None:
    lines = shown(*GATHER, sizes, width)
    assert max(map(len, lines)) <= width
    assert {letter for line in lines for letter in line if not letter.isascii()} <= STAND_INS.keys()


@pytest.mark.parametrize(
    ("specs", "sizes", "said"),
    [
        ("X_,_Y", "b=2:1Ki", "nothing is sent at any of these sizes"),
        ("X_,X_->X_", "b=8Ki:16Ki", "compute takes longer at all of these sizes"),
        ("XY,Y_->X_", "b=128:1Ki", "communication takes longer at all of these sizes"),
        ("X_,X_->X_", "X=2:64", "communication takes longer at all of these sizes"),
    ],
)
def test_without_a_crossing_the_longer_is_named(specs: str, sizes: str, said: str) -> None:
    assert said in shown("bd,df->bf", specs, sizes, 80)


@pytest.mark.parametrize(
    ("size", "text"), [(1, "1"), (1000, "1,000"), (1024, "1Ki"), (1536, "1,536"), (3 * 2**20, "3Mi")]
)
def test_sizes_are_written_as_they_are_typed(size: int, text: str) -> None:
    assert size_text(size) == text
