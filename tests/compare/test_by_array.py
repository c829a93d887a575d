"""Differences told by array and einsum, on collectives that Shardy printed, each with what its operand is."""

from __future__ import annotations

import pytest

from shardviz.hlo import Collective, Origin, wire_bytes
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.spec_string import parse_specs
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import array_bytes
from tests.compare.plans_by_hand import by_hand, compare


def printed(mesh, line):
    """``all-gather X (24,48)->(48,48) 0``: the arguments that the operand is, or after "of" is made of."""
    op, axes, shapes, origin = line.split(" ", 3)
    before, after = ([int(size) for size in side.strip("()").split(",")] for side in shapes.split("->"))
    held, made = array_bytes(tuple(before), "bf16"), array_bytes(tuple(after), "bf16")
    numbers = tuple(map(int, origin.removeprefix("of ").split()))
    sent = wire_bytes(
        op, mesh.group_size(axis for axis in axes.split(",") if ":" not in axis), max(held, made), held
    )
    return Collective(
        op, op, tuple(axes.split(",")), None, tuple(before), tuple(after), "bf16", max(held, made), sent,
        origin=Origin(numbers, computed=origin.startswith("of ")),
    )  # fmt: skip


def said(text, mesh, specs, sizes, *lines, result=None, moves=None):
    mesh = parse_mesh(mesh)
    spec = None if result is None else parse_specs(result)[0].operands[0]
    problem = problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes)
    found = plan(problem, objective="bytes") if moves is None else by_hand(problem, *moves)
    answer = [printed(mesh, line) for line in lines]
    return [(one.code, one.message) for one in compare(found, "shardy", answer, spec)]


CASES = {
    "an operand in place of the result": (
        ("ij,ij->ij", "X=4", "X_,__->_X", "i=96,j=96"),
        ["all-to-all X (24,96)->(96,24) 0", "slice X (96,96)->(96,24) 1"],
        "moved_elsewhere",
        "shardy moves A by all-to-all over X (4,608 bytes) where the plan moves Out by all-to-all over X "
        "(4,608 bytes): the same collectives; both send 3,456 bytes.",
    ),
    "the sums of an operand": (
        ("a,dg->ad", "X=4,Y=2", "Y,_X->YX", "a=48,d=48,g=48"),
        ["reduce-scatter X (48)->(12) of 1"],
        "summed_first",
        "shardy multiplies by the sums of W over g, where the plan adds up while it multiplies: it adds up "
        "the sums of W over g by reduce-scatter over X (96 bytes), sending 72 bytes; the plan moves W by "
        "all-to-all over X (1,152 bytes), sending 864 bytes, which is more.",
    ),
    "the gradient of a weight": (
        ("btd,btf->df", "X=2,Y=4", "(XY)__,(XY)__->X_", "b=64,t=64,d=64,f=64"),
        ["all-reduce X,Y (64,64)->(64,64) of 0 1", "slice X (64,64)->(32,64) of 0 1"],
        "scattered_less",
        "shardy does not scatter the sum of Out over X, as the plan does: it does all-reduce over X, Y "
        "(8,192 bytes), sending 14,336 bytes; the plan does reduce-scatter over X (8,192 bytes), then "
        "all-reduce over Y (4,096 bytes), sending 10,240 bytes.",
    ),
    "a sum of more": (
        ("bd,df->bf", "X=2,Y=4", "Y_,Y_->(YX)_", "b=192,d=1536,f=1536"),
        [
            "all-to-all Y (48,1536)->(192,384) 0",
            "reduce-scatter Y (192,1536)->(48,1536) of 0 1",
            "slice X (48,1536)->(24,1536) of 0 1",
        ],
        "summed_more",
        "shardy adds up Out before it is cut as far as in the plan: it does reduce-scatter over Y (589,824 "
        "bytes), sending 442,368 bytes; the plan does reduce-scatter over Y (294,912 bytes), then all-to-all "
        "over X (73,728 bytes), sending 258,048 bytes.",
    ),
    "sums over another axis": (
        ("bd,df->bf", "X=2,Y=4", "_(YX),X_->_X", "b=48,d=48,f=48"),
        [
            "all-gather X (48,6)->(48,12) 0",
            "collective-permute X,Y (12,24)->(12,24) 1",
            "all-reduce Y (48,24)->(48,24) of 0 1",
        ],
        "other_sums",
        "shardy splits the multiplication otherwise, with partial sums of Out over Y, the plan over X: it "
        "moves A by all-gather over X (1,152 bytes), then moves W by collective-permute over X, Y (576 "
        "bytes), then adds up Out by all-reduce over Y (2,304 bytes), sending 4,608 bytes; the plan moves A "
        "by collective-permute over X, Y (576 bytes), then all-gather over Y (2,304 bytes), then adds up Out "
        "by reduce-scatter over X (4,608 bytes), sending 4,608 bytes.",
    ),
    "an array that one side leaves": (
        ("bd,df->bf", "X=2,Y=4", "YX,_X->_(XY)", "b=192,d=96,f=192"),
        ["all-gather Y,X (48,48)->(192,96) 0", "slice Y (96,96)->(96,24) 1"],
        "other_split",
        "shardy splits the multiplication of A and W otherwise: it moves A by all-gather over Y, X (36,864 "
        "bytes), sending 32,256 bytes; the plan moves A by all-gather over X (9,216 bytes), then moves Out "
        "by all-to-all over Y (9,216 bytes), sending 11,520 bytes.",
    ),
    "fewer bytes": (
        ("abc->cab", "X=2,Y=2,Z=2,W=2", "_(XZ)(YW)->_X(YW)", "a=96,b=96,c=96"),
        [
            "collective-permute X,Y,Z,W (24,96,24)->(24,96,24) 0",
            "all-to-all X (24,96,24)->(48,48,24) 0",
            "all-gather Z (48,48,24)->(96,48,24) 0",
        ],
        "fewer_bytes",
        "shardy moves Out with fewer bytes than the plan: it does collective-permute over X, Y, Z, W "
        "(110,592 bytes), then all-to-all over X (110,592 bytes), then all-gather over Z (221,184 bytes), "
        "sending 276,480 bytes; the plan does collective-permute over X, Y, Z, W (110,592 bytes), then "
        "all-to-all over X, Z (110,592 bytes), then all-gather over Z (221,184 bytes), sending 304,128 "
        "bytes, which is more.",
    ),
    "other moves of as many bytes": (
        ("i,j->ij", "X=2,Y=2,Z=2", "(YXZ),(YXZ)->(XYZ)_", "i=1536,j=96"),
        ["collective-permute X,Y (192)->(192) 0", "all-gather Y,X,Z (12)->(96) 1"],
        "other_route",
        "shardy moves A over other axes, which sends as many bytes: it does collective-permute over X, Y "
        "(384 bytes), sending 384 bytes; the plan does collective-permute over X, Y, Z (384 bytes), sending "
        "384 bytes.",
    ),
    "the diagonal of what a device holds": (
        ("aa->a", "X=4", "_X->X", "a=192"),
        [],
        "avoided_collective",
        "shardy gets by without the plan's all-gather over X (73,728 bytes) of A, which sends 55,296 bytes: "
        "every device computes with what it holds of A by its spec, P(None, 'X').",
    ),
    "gathered, where the plan exchanges": (
        ("abc->acb", "X=2,Y=2", "X__->_X_", "a=48,b=48,c=48"),
        ["all-gather X (24,48,48)->(48,48,48) 0"],
        "other_route",
        "shardy moves Out by gathering it, where the plan gathers none of it, which sends more bytes: it "
        "does all-gather over X (221,184 bytes), sending 110,592 bytes; the plan does all-to-all over X "
        "(110,592 bytes), sending 55,296 bytes.",
    ),
}


BY_HAND = {
    "the sums of an operand": ["all_to_all W X 48,12"],
    "the gradient of a weight": ["psum_scatter Out X 64,64", "psum Out Y 32,64"],
    "sums over another axis": ["ppermute A X,Y 48,6", "all_gather A Y 48,24", "psum_scatter Out X 48,48"],
    "fewer bytes": [
        "ppermute Out X,Y,Z,W 24,96,24",
        "all_to_all Out X,Z 24,96,24",
        "all_gather Out Z 96,48,24",
    ],
    "other moves of as many bytes": ["ppermute A X,Y,Z 192", "all_gather W Y,X,Z 96"],
}
"""Plans of some cases that are not the best."""


@pytest.mark.parametrize("name", CASES)
def test_the_cause_and_the_arrays(name):
    question, lines, code, sentence = CASES[name]
    assert said(*question, *lines, moves=BY_HAND.get(name)) == [(code, sentence)]


def test_each_einsum_of_a_chain_is_told_by_itself():
    """Neither the sums of W2 nor what the plan does with it follow from how the first einsum is split."""
    found = said(
        "ed,cd->ce;ce,abe->aec",
        "Y=3,Z=2,X=2",
        "XY,__; ,_Z_",
        "a=48,b=48,c=48,d=48,e=48",
        "all-reduce Y (48,24)->(48,24) of 0 1",
        "all-reduce Z (48,48)->(48,48) of 2",
        moves=["all_gather A Y 24,48", "all_gather W2 Z 48,48,24"],
    )
    assert [code for code, _ in found] == ["summed_first", "reduced_not_gathered"]
    whole = "the plan moves W2 by all-gather over Z (110,592 bytes), sending 55,296 bytes, which is more."
    assert found[0][1].endswith(whole)
    assert found[1][1].endswith("the plan moves A by all-gather over Y (2,304 bytes), sending 1,536 bytes.")


def test_a_result_left_elsewhere_is_told_with_what_moved_for_it():
    (found,) = said(
        "bd,df->fb", "X=2,Y=4", "X_,_X", "b=48,d=48,f=48", "all-gather X (24,48)->(48,48) 0", result="X_"
    )
    assert found == (
        "only_other_result",
        "free to choose the result's sharding, shardy leaves Out as P('X', None) (2,304 bytes a device), "
        "the plan as P(None, 'X'); it moves A by all-gather over X (4,608 bytes), the plan moves W by "
        "all-gather over X (4,608 bytes); both move the same bytes.",
    )
