"""Rankings as text on pages of fixed width."""

from __future__ import annotations

from textwrap import dedent

import pytest

from shardviz.notation import parse_mesh, parse_specs
from shardviz.planner import plan, problem_from_text, search
from shardviz.render.palette import TRUECOLOR
from shardviz.render.plans.ranking_view import ranking_view, specs_text

PROBLEM = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), sizes="b=8,d=2048,f=8192")


def ranked(width: int, limit: int) -> str:
    return "\n".join(line.plain for line in ranking_view(PROBLEM, search(PROBLEM), width, TRUECOLOR, limit))


RANKINGS = [
    (
        "80 columns",
        80,
        5,
        """
        bd,df->bf  mesh X=2, Y=4, 8 devices

              specs            sent    memory  collectives  case
        1  ★  __,_(XY)->_(XY)   0 B  4.05 MiB  none         case 1
        2     X_,_Y->XY         0 B  8.03 MiB  none         case 1
        3     __,_Y->_Y         0 B  8.06 MiB  none         case 1
        4     Y_,_X->YX         0 B    16 MiB  none         case 1
        5     __,_X->_X         0 B  16.1 MiB  none         case 1
        ★ no other sends less without holding or computing more. Sent and memory are per
        device. 76 more shardings: --limit 81 or --json shows all.
        """,
    ),
    (
        "40 columns",
        40,
        2,
        """
        bd,df->bf  mesh X=2, Y=4, 8 devices

        1  ★  __,_(XY)->_(XY)  0 B  4.05 MiB
          none  case 1
        2  X_,_Y->XY  0 B  8.03 MiB  none
          case 1
        ★ no other sends less without holding or
        computing more. Sent and memory are per
        device. 79 more shardings: --limit 81 or
        --json shows all.
        """,
    ),
]


@pytest.mark.parametrize(
    ("width", "limit", "expected"), [case[1:] for case in RANKINGS], ids=[case[0] for case in RANKINGS]
)
def test_ranking(width: int, limit: int, expected: str) -> None:
    assert ranked(width, limit) == dedent(expected).strip("\n")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    assert max(map(len, ranked(width, 81).splitlines())) <= width


def test_all_of_them_need_no_remark() -> None:
    assert "more" not in ranked(120, 81).splitlines()[-1].replace("computing more", "")


def test_specs_can_be_asked_again() -> None:
    for candidate in search(PROBLEM)[::9]:
        text = specs_text(candidate.plan)
        assert parse_specs(text, PROBLEM.mesh.axis_names)
        again = problem_from_text("bd,df->bf", mesh=PROBLEM.mesh, specs=text, sizes="b=8,d=2048,f=8192")
        assert plan(again).wire_bytes == candidate.plan.wire_bytes
