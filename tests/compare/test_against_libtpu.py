"""What the real TPU compilers make of some matmuls, and the reasons that are given for it."""

from __future__ import annotations

import pytest

from shardviz.compare import differences
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.targets import parse_targets

SMALL, BOOK = "b=8,d=2048,f=8192", "b=1024,d=2048,f=8192"
"""Sizes at which latency counts, and those of the scaling book's collective matmul."""

REASONS = [
    ("v5e:2x4", "XY,_Y->XY", BOOK, ["collective_matmul"]),
    ("v5e:2x4", "XY,Y_->XY", BOOK, ["fused_reduce_scatter"]),
    ("v5e:2x4", "XY,Y_->XY", SMALL, ["all_reduce_and_slice"]),
    ("v5e:2x4", "XY,Y_->YX", BOOK, ["padded"]),
    ("v5e:2x4", "_Y,_X->X_", SMALL, ["operand_not_result"]),
    ("v5e:2x4", "_X,__->Y_", SMALL, ["gathered_more"]),
    ("v5e:2x4", "X_,YX->YX", SMALL, ["gathered_not_reduced"]),
    ("v5e:2x4", "_Y,__->(XY)_", SMALL, []),
    ("v2:2x2", "XY,_Y->XY", BOOK, []),
    ("v2:2x2", "XY,Y_->XY", SMALL, ["all_reduce_and_slice"]),
    ("2*v5e:2x2", "_(XY),(XY)_->__", SMALL, ["between_slices"]),
    ("2*v5e:2x2", "X_,__->__", SMALL, ["between_slices", "result_not_operand"]),
]


@pytest.fixture
def ask(worker):
    def asked(target, specs, sizes):
        problem = problem_from_text("bd,df->bf", mesh=parse_mesh("X=2,Y=4"), specs=specs, sizes=sizes)
        answer = worker.ask(problem, *parse_targets(target))
        assert answer.status == "ok", answer.error
        return answer, differences(plan(problem, objective="bytes"), answer)

    return asked


@pytest.mark.slow
@pytest.mark.parametrize(("target", "specs", "sizes", "codes"), REASONS)
def test_each_difference_has_its_reason(ask, target, specs, sizes, codes):
    answer, found = ask(target, specs, sizes)
    assert [each.code for each in found if each.code != "overlapped"] == codes, found
    assert {each.dtype for each in answer.collectives} <= {"bf16"}, "a TPU computes bf16 as it is"


def test_the_collective_matmul_of_the_book(ask):
    _, (found,) = ask("v5e:2x4", "XY,_Y->XY", BOOK)
    assert found.message == (
        "v5e:2x4 takes the plan's all-gather over Y (2,097,152 bytes) apart, a collective matmul: 3 permutes "
        "both ways around the ring of 4 between 2 partial matmuls, which work on the pieces that are there; "
        "it sends 1,572,864 bytes, as many as the all-gather."
    )


def test_what_crosses_slices_is_what_the_inside_has_left(ask):
    """A sum over both axes: each of 4 devices inside a slice has a quarter of it to send across."""
    answer, _ = ask("2*v5e:2x2", "_(XY),(XY)_->__", SMALL)
    (across,) = [each for each in answer.collectives if each.between_slices]
    assert (across.op, across.axes, across.bytes) == ("all-reduce", ("X",), 8 * 8192 * 2 // 4)
