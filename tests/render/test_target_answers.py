"""Several targets side by side, as text on pages of fixed width."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest

from shardviz.compare import differences
from shardviz.hardware.placement import DeviceCoords, Placement
from shardviz.hlo import Collective, CollectiveMatmul, Work
from shardviz.hlo.collective import MatmulOrder
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.palette import PLAIN, SIGNS
from shardviz.render.programs.target_answers import (
    cause_words,
    difference_lines,
    placement_words,
    target_view,
    targets_table,
)
from shardviz.reports.target_result import TargetResult

BOOK = plan(
    problem_from_text(
        "bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="XY,_Y->XY", sizes="b=1024,d=2048,f=8192"
    )
)
GATHER = Collective("all-gather", "ag", ("Y",), None, (512, 512), (512, 2048), "bf16", 2097152, 1572864)
WIDER = replace(GATHER, dtype="f32", bytes=4194304, wire_bytes=3145728)
UNDER_WORK = replace(GATHER, is_async=True, overlapped=(Work("fusion", "matmul"), Work("copy", "copy")))
ON_A_RING = replace(GATHER, algorithm="RotatedPincerEmitter, UniDirection1DRingStrategy")


def permute(number: int, shift: int, *overlapped: Work) -> Collective:
    pairs = tuple((ring + i, ring + (i + shift) % 4) for ring in (0, 4) for i in range(4))
    shape = (512, 1, 512)
    return Collective(
        "collective-permute",
        f"cp.{number}",
        ("Y",),
        pairs,
        shape,
        shape,
        "bf16",
        524288,
        524288,
        is_async=True,
        overlapped=overlapped,
    )


PARTIAL = (Work("fusion.12", "matmul", 35570), Work("fusion.9", "matmul", 24344))
PERMUTES = (permute(0, 1), permute(1, -1, PARTIAL[0]), permute(2, 1, *PARTIAL))
RING = CollectiveMatmul(
    "all-gather", ("Y",), 2, 4, ("cp.0", "cp.1", "cp.2"), ("fusion.12", "fusion.9"), 2097152, 1572864
)
CORES = Placement(
    tuple(range(8)),
    tuple(DeviceCoords((i // 2 % 2, i // 4), i % 2) for i in range(8)),
    (2, 2),
    (False, False),
)
CHIPS = Placement(
    tuple(range(8)), tuple(DeviceCoords((i % 2, i // 2)) for i in range(8)), (2, 4), (False, False)
)
GPUS = Placement(tuple(range(8)), tuple(DeviceCoords((), i) for i in range(8)), within="gpu", unit="node")


def answer(target: str, *collectives: Collective, seconds: float, **rest) -> TargetResult:
    spec = BOOK.problem.result.spec
    return TargetResult(target, "ok", collectives, spec, (GATHER,), elapsed_s=seconds, **rest)


CPU = answer("cpu", WIDER, seconds=0.13)
V2 = answer("v2:2x2", ON_A_RING, seconds=1.31, placement=CORES)
V5E = answer("v5e:2x4", *PERMUTES, seconds=1.62, collective_matmuls=(RING,), placement=CHIPS)
H100 = answer("h100:8", UNDER_WORK, seconds=0.64, placement=GPUS)
DEAD = TargetResult(
    "v9:2x4",
    "error",
    error="the v9:2x4 compiler was killed by SIGFPE while compiling",
    hint="ask again to start it anew, or ask --target shardy",
)


def side_by_side(answers: list[TargetResult], width: int) -> list[str]:
    told = [(each, differences(BOOK, each)) for each in answers]
    return [line.plain for line in targets_table(told, BOOK.problem, width, PLAIN)[1:]]


PAGES = {
    80: """
        target   collectives                    bytes     sent  compile
        cpu      all-gather over Y              4 MiB    3 MiB   130 ms  ≠ wider dtype
        v2:2x2   all-gather over Y              2 MiB  1.5 MiB   1.31 s  = as planned
        v5e:2x4  all-gather by permutes over Y  2 MiB  1.5 MiB   1.62 s  ≠ permutes
                                                                           between
                                                                           matmuls
        h100:8   all-gather over Y              2 MiB  1.5 MiB   640 ms  = overlapped
        v9:2x4   ✗ no answer
          ✗ the v9:2x4 compiler was killed by SIGFPE while compiling
            ask again to start it anew, or ask --target shardy
        """,
    60: """
        target   collectives                    bytes     sent
        cpu      all-gather over Y              4 MiB    3 MiB  ≠
          wider dtype
        v2:2x2   all-gather over Y              2 MiB  1.5 MiB  =
          as planned
        v5e:2x4  all-gather by permutes over Y  2 MiB  1.5 MiB  ≠
          permutes between matmuls
        h100:8   all-gather over Y              2 MiB  1.5 MiB  =
          overlapped
        v9:2x4   ✗ no answer
          ✗ the v9:2x4 compiler was killed by SIGFPE while compiling
            ask again to start it anew, or ask --target shardy
        """,
    40: """
        cpu  all-gather over Y  4 MiB
          3 MiB sent  130 ms  ≠ wider dtype
        v2:2x2  all-gather over Y  2 MiB
          1.5 MiB sent  1.31 s  = as planned
        v5e:2x4  all-gather by permutes over Y
          2 MiB  1.5 MiB sent  1.62 s
          ≠ permutes between matmuls
        h100:8  all-gather over Y  2 MiB
          1.5 MiB sent  640 ms  = overlapped
        v9:2x4  ✗ no answer
          ✗ the v9:2x4 compiler was killed by
            SIGFPE while compiling
            ask again to start it anew, or ask
            --target shardy
        """,
}


@pytest.mark.parametrize("width", PAGES)
def test_five_targets(width: int) -> None:
    assert "\n".join(side_by_side([CPU, V2, V5E, H100, DEAD], width)) == dedent(PAGES[width]).strip("\n")


@pytest.mark.parametrize("width", [40, 64, 80, 100, 120, 200])
def test_no_line_is_wider_than_the_page(width: int) -> None:
    assert max(map(len, side_by_side([CPU, V2, V5E, H100, DEAD], width))) <= width


def test_the_causes_of_several_differences_are_few_words() -> None:
    told = differences(BOOK, CPU)
    assert cause_words(()) == ("=", "as planned")
    assert cause_words(told) == ("≠", "wider dtype")
    more = [replace(told[0], code=code) for code in ("overlapped", "padded", "sub_axes", "other_route")]
    assert cause_words(more[:1]) == ("=", "overlapped")
    assert cause_words(more) == ("≠", "padded array, over parts of an axis, 1 more")


def test_differences_are_told_in_full() -> None:
    line, *_ = difference_lines(differences(BOOK, CPU), 200)
    assert line.plain.startswith("≠ promoted_dtype: cpu computes bf16 as f32: its all-gather over Y carries")
    assert [line.plain for line in difference_lines((), 80)] == ["= as planned"]
    assert [line.plain[:13] for line in difference_lines(differences(BOOK, H100), 400)][::2] == [
        "= overlapped:",
        "= as planned",
    ]


def test_what_a_target_chooses_for_a_free_result() -> None:
    free = plan(problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="X_,_Y"))
    answers = [
        TargetResult(name, "ok", (), spec, ())
        for name, spec in (("shardy", free.result_spec), ("cpu", free.result_spec))
    ]
    lines = targets_table([(each, ()) for each in answers], free.problem, 80, PLAIN)
    assert [line.plain for line in lines[1:]] == [
        "target  result         collectives",
        "shardy  Out[b_X, f_Y]  none         = as planned",
        "cpu     Out[b_X, f_Y]  none         = as planned",
    ]


def test_shardy_has_no_schedule() -> None:
    shardy = TargetResult("shardy", "ok", (GATHER,), BOOK.problem.result.spec)
    assert "synchronous" not in "\n".join(
        line.plain for line in target_view(shardy, (), BOOK.problem, 120, PLAIN)
    )


def test_one_target_tells_the_same_facts() -> None:
    lines = target_view(V2, (), BOOK.problem, 100, PLAIN)
    assert [line.plain for line in lines] == [
        "v2:2x2  answered in 1.31 s  → Out[b_X, f_Y]",
        "  placed: X along y (1 hop, a line), Y along x and the cores of a chip (1 hop, a ring), "
        "on 2×2 chips",
        "  all-gather over Y  bf16[512,512]→[512,2048]  2,097,152 bytes  1,572,864 sent",
        "    synchronous; RotatedPincerEmitter, UniDirection1DRingStrategy",
        "  = as planned",
    ]
    lines = target_view(V5E, (), BOOK.problem, 100, PLAIN)
    assert [line.plain for line in lines[2:4]] == [
        "  all-gather by permutes over Y  3 permutes both ways  2,097,152 bytes  1,572,864 sent",
        "    under 2 partial matmuls, ~59,914 cycles",
    ]


def test_where_collectives_stand_among_the_matmuls() -> None:
    among = [replace(GATHER, matmul_order=MatmulOrder(before, 3)) for before in range(4)]
    alone = [replace(UNDER_WORK, matmul_order=MatmulOrder(before, 1)) for before in range(2)]
    said = [
        line.plain.strip()
        for line in target_view(replace(V2, collectives=(*among, *alone)), (), BOOK.problem, 100, PLAIN)
    ]
    under = "under 1 matmul and 1 other instruction, begun"
    assert [line for line in said if "matmul" in line] == [
        "synchronous, before matmul 1",
        "synchronous, between matmuls 1 and 2",
        "synchronous, between matmuls 2 and 3",
        "synchronous, after matmul 3",
        f"{under} before the matmul",
        f"{under} after the matmul",
    ]


def test_alike_collectives_in_loops_are_counted() -> None:
    looped = replace(GATHER, count=None)
    text = "\n".join(
        line.plain
        for line in target_view(
            answer("cpu", looped, looped, GATHER, GATHER, seconds=1), (), BOOK.problem, 100, PLAIN
        )
    )
    assert "1,572,864 sent  2 of these in loops\n" in text
    assert "1,572,864 sent  ×2\n" in text
    assert "in a loop\n" in "\n".join(
        line.plain for line in target_view(replace(CPU, collectives=(looped,)), (), BOOK.problem, 100, PLAIN)
    )


def two(unit_coords: tuple[tuple[int, ...], ...], torus: tuple[int, ...]) -> Placement:
    """Eight devices on two slices or nodes, X from one to the other."""
    places = tuple(DeviceCoords(unit_coords[i % 4], 0 if torus else i % 4, slice=i // 4) for i in range(8))
    names = {} if torus else {"within": "gpu", "unit": "node"}
    return Placement(tuple(range(8)), places, torus, (False,) * len(torus), **names)


@pytest.mark.parametrize(
    ("placement", "unit"),
    [(two(((0, 0), (1, 0), (0, 1), (1, 1)), (2, 2)), "slice"), (two(((),) * 4, ()), "node")],
)
def test_traffic_between_is_apart_from_traffic_inside(placement: Placement, unit: str) -> None:
    across = replace(GATHER, axes=("X",), count=3)
    listed = replace(GATHER, axes=(), groups=((0, 4), (1, 5), (2, 6), (3, 7)))
    answered = answer("many", GATHER, across, listed, seconds=1, placement=placement)
    text = " ".join(line.plain.strip() for line in target_view(answered, (), BOOK.problem, 200, PLAIN))
    assert f"between {unit}s: 2 collectives, 6,291,456 bytes sent per device; inside" in text
    assert f"inside a {unit}: 1 collective, 1,572,864 bytes sent per device" in text
    assert f"placed: X between {unit}s, Y along" in text


def test_what_is_both_between_nodes_and_inside_is_said_to_be() -> None:
    everywhere = replace(GATHER, axes=("X", "Y"))
    answered = answer("h100:2x4", everywhere, seconds=1, placement=two(((),) * 4, ()))
    text = " ".join(line.plain.strip() for line in target_view(answered, (), BOOK.problem, 200, PLAIN))
    assert "between nodes and inside them: 1 collective, 1,572,864 bytes sent per device" in text
    assert "nothing" not in text


def test_devices_in_another_order_are_told() -> None:
    turned = replace(CHIPS, ids=(0, 1, 2, 3, 7, 6, 5, 4))
    assert placement_words(turned, BOOK.problem.mesh).endswith(", devices 0 1 2 3 / 7 6 5 4, on 2×4 chips")


def test_one_slice_has_no_traffic_between() -> None:
    text = "\n".join(line.plain for line in target_view(V5E, (), BOOK.problem, 100, PLAIN))
    assert "between slices" not in text


def test_a_sign_has_its_colour():
    (line,) = (
        each for each in target_view(answer("cpu", seconds=1), [], BOOK.problem, 80, PLAIN) if "=" in each
    )
    assert any(span.style == SIGNS["="] and line.plain[span.start : span.end] == "=" for span in line.spans)
