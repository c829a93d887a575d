"""The stages as lines: everything fits, nothing depends on colour."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardviz.documents.programs import passes_document
from shardviz.hlo import Collective
from shardviz.hlo.dumps import PassStage
from shardviz.hlo.mlir.shardings import ShardedTensor
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.reading import problem_from_text
from shardviz.render.palette import PLAIN, TRUECOLOR
from shardviz.render.programs.passes_view import passes_view
from shardviz.reports.target_result import PassTrace, TargetResult

PROBLEM = problem_from_text(
    "bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs="XY,Y_->X_", sizes="b=8,d=2048,f=8192", dtype="bf16"
)
ROWS = ((0, 1, 2, 3), (4, 5, 6, 7))
EARLY = Collective(
    "all-reduce", "all-reduce", ("Y",), ROWS, (4, 8192), (4, 8192), "bf16", 65536, 98304, group_size=4
)
LATE = replace(EARLY, dtype="f32", bytes=131072, wire_bytes=196608)
A = ShardedTensor("0", "argument", (8, 2048), "bf16", None, (("X",), ("Y",)))
DOT = ShardedTensor("%0", "dot", (8, 8192), "bf16", None, (("X",), ()))
PART = ShardedTensor("%1", "reshard", (8, 8192), "bf16", (("X",), ()), ((), ("Y:(1)2",)), ("X",))
REWRITE = PassStage(
    "rewrite",
    "all-reduce over Y: bf16 became f32, 64 KiB became 128 KiB",
    "all-reduce-promotion (HLO_passes_through_layout_assignment)",
    (EARLY,),
    (LATE,),
    before_text="HloModule a\n%x = bf16[4]{0} all-reduce(%y)\n",
    after_text="HloModule a\n%x = f32[4]{0} all-reduce(%y)\n",
    changes=("all-reduce over Y: bf16 became f32, 64 KiB became 128 KiB",),
)
STAGES = (
    PassStage("input", "the program as it was written", "shardy before_propagation", (), (), (A,)),
    PassStage(
        "propagation",
        "Shardy decides how 2 tensors are split",
        "shardy after_propagation",
        (),
        (),
        (DOT, PART),
    ),
    PassStage("partitioner", "the partitioner inserts an all-reduce", "spmd-partitioning", (), (EARLY,)),
    REWRITE,
    PassStage("schedule", "the final schedule: an all-reduce", "cpu_after_optimizations", (LATE,), (LATE,)),
)
TRACED = PassTrace(TargetResult("cpu", "ok", elapsed_s=0.24), STAGES)


def lines(width, diffs=frozenset(), stages=STAGES):
    return [
        line.plain for line in passes_view(replace(TRACED, stages=stages), PROBLEM, width, PLAIN, diffs, True)
    ]


def test_every_stage_with_what_it_decided_and_changed():
    assert lines(100)[:12] == [
        "bd,df->bf  mesh X=2, Y=4, 8 devices",
        "cpu  240 ms",
        "",
        " 1  the program as it was written  shardy before_propagation",
        "    A  argument  bf16[8,2048]  XY",
        "",
        " 2  Shardy decides how 2 tensors are split  shardy after_propagation",
        "    %0  dot      bf16[8,8192]  ? → X_",
        "    %1  reshard  bf16[8,8192]  X_ → _ Y:(1)2{U_X}",
        "",
        " 3  the partitioner inserts an all-reduce  spmd-partitioning",
        "    + all-reduce over Y  bf16[4,8192]  65,536 bytes  98,304 sent",
    ]
    assert lines(100)[15:18] == [
        "    − all-reduce over Y  bf16[4,8192]   65,536 bytes   98,304 sent",
        "    + all-reduce over Y  f32[4,8192]   131,072 bytes  196,608 sent",
        "",
    ]
    assert lines(100)[-1] == "      all-reduce over Y  f32[4,8192]  131,072 bytes  196,608 sent  synchronous"


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_it_fits(width):
    for palette in (PLAIN, TRUECOLOR):
        drawn = passes_view(TRACED, PROBLEM, width, palette, frozenset(range(1, 6)), True)
        assert max(line.cell_len for line in drawn) <= width
        assert not any(line.plain.endswith(" ") for line in drawn)


def test_a_diff_stands_under_its_stage():
    shown = "\n".join(lines(100, frozenset((4,))))
    assert "    -%x = bf16[4] all-reduce(%y)\n    +%x = f32[4] all-reduce(%y)" in shown
    assert "the lines differ only in folded text" in "\n".join(lines(100, frozenset((1,))))


def test_many_tensors_are_counted():
    many = replace(STAGES[1], splits=(DOT,) * 20)
    assert lines(80, stages=(many,))[-1] == "    and 4 tensors more: --json lists all"


def test_what_stays_is_counted():
    stage = replace(REWRITE, before=(EARLY, LATE), after=(LATE, LATE))
    assert lines(100, stages=(stage,))[-1] == "      and 1 collective as before"


def test_the_document_has_all_of_it():
    document = passes_document(TRACED, PROBLEM, frozenset((4,)))
    assert document["schema"] == "shardviz/1"
    assert [stage["stage"] for stage in document["stages"]] == [1, 2, 3, 4, 5]
    assert [stage["kind"] for stage in document["stages"]] == [stage.kind for stage in STAGES]
    assert document["stages"][1]["splits"][0] == {
        "name": "%0",
        "op": "dot",
        "shape": [8, 8192],
        "dtype": "bf16",
        "before": None,
        "spec": [["X"], []],
        "unreduced": [],
    }
    assert [each["dtype"] for each in document["stages"][3]["before"]] == ["bf16"]
    assert "diff" not in document["stages"][0]
    assert "+%x = f32[4] all-reduce(%y)" in document["stages"][3]["diff"]
