"""Each code of `shardviz.compare`, with its sentence, on a plan and hand-made collectives."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shardviz.compare
from shardviz.hlo import Collective, Origin, wire_bytes
from shardviz.notation.mesh import parse_mesh
from shardviz.notation.spec_string import parse_specs
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import array_bytes
from tests.compare.plans_by_hand import by_hand, compare

CODES = tuple(shardviz.compare.CAUSES)


def stated(specs, mesh="X=2,Y=4", text="bd,df->bf", sizes="b=8,d=2048,f=8192"):
    return problem_from_text(text, mesh=parse_mesh(mesh), specs=specs, sizes=sizes)


def of(specs, **rest):
    return plan(stated(specs, **rest), objective="bytes")


def collective(op, axes, operand, result, dtype="bf16", n=None, origin=None):
    """What a target would print, on X=2, Y=4; `n` devices in a group where the axes do not say.

    `origin`: the arguments that it moves or, after "of", computes with, as "0" or "of 0 1".
    """
    axes = tuple(axes.split())
    n = n or 1
    for axis in axes:
        n *= {"X": 2, "Y": 4}.get(axis, 2)
    before, after = array_bytes(operand, dtype), array_bytes(result, dtype)
    larger = max(before, after)
    sent = wire_bytes(op, n, larger, before)
    if origin is not None:
        numbers = tuple(map(int, origin.removeprefix("of").split()))
        origin = Origin(numbers, computed=origin.startswith("of"))
    name = f"{op}.1"
    return Collective(op, name, axes, None, operand, result, dtype, larger, sent, group_size=n, origin=origin)


def said(specs, *collectives, result=None, target="cpu", moves=None, **rest):
    spec = None if result is None else parse_specs(result)[0].operands[0]
    found = of(specs, **rest) if moves is None else by_hand(stated(specs, **rest), *moves)
    found = compare(found, target, collectives, spec)
    assert all(one.target == target for one in found)
    return [(one.code, one.message) for one in found]


CASES = {
    "packed_dtype": (
        "XY,Y_->X_",
        [collective("all-reduce", "Y", (4, 4096), (4, 4096), "u32")],
        "cpu packs 2 bf16 into each u32; the bytes are the same.",
    ),
    "narrowed_dtype": (
        "XY,Y_->X_",
        [collective("all-reduce", "Y", (4, 8192), (4, 8192), "f8e5m2")],
        "cpu moves bf16 as f8e5m2: its all-reduce over Y carries 32,768 bytes instead of 65,536.",
    ),
    "promoted_dtype": (
        "XY,Y_->X_",
        [collective("all-reduce", "Y", (4, 8192), (4, 8192), "f32")],
        "cpu computes bf16 as f32: its all-reduce over Y carries 131,072 bytes instead of 65,536, twice as "
        "many.",
    ),
    "all_reduce_and_slice": (
        "XY,Y_->XY",
        [collective("all-reduce", "Y", (4, 8192), (4, 8192))],
        "cpu does not scatter the sum: its all-reduce over Y of 65,536 bytes gives every device the whole "
        "of it, where the plan scatters it; it sends 98,304 bytes, and scattering the sum would send half of "
        "them.",
    ),
    "scatter_and_gather": (
        "XY,Y_->X_",
        [
            collective("reduce-scatter", "Y", (4, 8192), (4, 2048)),
            collective("all-gather", "Y", (4, 2048), (4, 8192)),
        ],
        "cpu writes the plan's psum over Y as two halves, a reduce-scatter over Y (65,536 bytes) and an "
        "all-gather over Y (65,536 bytes).",
    ),
    "split_collective": (
        "(XY)_,_Y->_Y",
        [
            collective("all-gather", "Y", (1, 2048), (4, 2048)),
            collective("all-gather", "X", (4, 2048), (8, 2048)),
        ],
        "cpu splits the plan's all-gather over X, Y (32,768 bytes) into 2: all-gather over Y (16,384 bytes), "
        "then all-gather over X (32,768 bytes).",
    ),
    "merged_collectives": (
        "_(XY),(XY)_->XY",
        [collective("reduce-scatter", "X Y", (8, 8192), (4, 2048))],
        "cpu does in one reduce-scatter over X, Y (131,072 bytes) what the plan does in 2 steps: "
        "reduce-scatter "
        "over X (131,072 bytes), then reduce-scatter over Y (65,536 bytes); both send 114,688 bytes.",
    ),
    "gathered_other_operand": (
        "XY,_Y->XY",
        [collective("all-gather", "Y", (2048, 2048), (2048, 8192))],
        "the plan gathers A before multiplying, cpu gathers W: it moves W by all-gather over Y "
        "(33,554,432 bytes), sending 25,165,824 bytes; the plan moves A by all-gather over Y (16,384 "
        "bytes), sending 12,288 bytes.",
    ),
    "reduced_not_gathered": (
        "_Y,__->__",
        [collective("all-reduce", "Y", (8, 8192), (8, 8192))],
        "the plan gathers A before multiplying, cpu multiplies the pieces and adds partial sums of "
        "Out over Y: it adds up Out by all-reduce over Y (131,072 bytes), sending 196,608 bytes; the "
        "plan moves A by all-gather over Y (32,768 bytes), sending 24,576 bytes.",
    ),
    "gathered_not_reduced": (
        "_X,_Y->_(YX)",
        [collective("all-gather", "X", (8, 1024), (8, 2048), origin="0")],
        "cpu gathers A before multiplying, the plan multiplies the pieces and adds partial sums of "
        "Out over X: it moves A by all-gather over X (32,768 bytes), sending 16,384 bytes; the plan "
        "adds up Out by reduce-scatter over X (32,768 bytes), sending 16,384 bytes.",
    ),
    "idle_axis": (
        "X_,_X",
        [
            collective("collective-permute", "X Y", (2, 2048), (2, 2048)),
            collective("all-gather", "Y", (2, 2048), (8, 2048)),
        ],
        "cpu also splits data over Y, which no spec mentions, and moves it there: it does collective-permute "
        "over X, Y (8,192 bytes), then all-gather over Y (32,768 bytes), sending 32,768 bytes; the plan "
        "leaves Y idle and does all-gather over X (32,768 bytes) instead, sending 16,384 bytes.",
    ),
    "sub_axes": (
        "XY,__->(YX)_",
        [
            collective("collective-permute", "X Y", (4, 512), (4, 512)),
            collective("all-to-all", "Y:(2)2 X", (4, 512), (1, 2048)),
        ],
        "cpu moves A over parts of a mesh axis (Y:(2)2), the plan over whole axes: it does "
        "collective-permute over X, Y (4,096 bytes), then all-to-all over Y:(2)2, X (4,096 bytes), "
        "sending 7,168 bytes; the plan does all-to-all over X (4,096 bytes), then all-to-all over Y, "
        "X (4,096 bytes), sending 5,632 bytes.",
    ),
    "scattered_less": (
        "_(XY),(XY)_->_X",
        [collective("all-reduce", "X Y", (8, 8192), (8, 8192))],
        "cpu does not scatter the sum of Out over X, as the plan does: it does all-reduce over X, Y "
        "(131,072 bytes), sending 229,376 bytes; the plan does reduce-scatter over X (131,072 bytes), "
        "then all-reduce over Y (65,536 bytes), sending 163,840 bytes.",
    ),
    "padded": (
        "XY,Y_->XY",
        [
            collective("reduce-scatter", "Y", (4, 8448), (4, 2112)),
            collective("collective-permute", "Y", (4, 192), (4, 192), origin="of 0 1"),
        ],
        "cpu pads Out for its reduce-scatter over Y, from 65,536 bytes to 67,584, and puts its pieces right "
        "by collective-permute over Y (1,536 bytes); it sends 52,224 bytes instead of 49,152.",
    ),
    "gathered_more": (
        "_X,__->Y_",
        [collective("all-gather", "X", (8, 1024), (8, 2048), origin="0")],
        "cpu gathers A over X to 32,768 bytes (16,384 sent); the plan slices it first and gathers only "
        "8,192 bytes (4,096 sent).",
    ),
    "operand_not_result": (
        "_Y,_X->X_",
        [
            collective("all-gather", "Y", (8, 512), (8, 2048)),
            collective("all-gather", "X", (2048, 4096), (2048, 8192)),
        ],
        "cpu gathers W before multiplying, the plan moves Out after it: it moves W by all-gather over "
        "X (33,554,432 bytes), sending 16,777,216 bytes; the plan moves Out by all-to-all over X "
        "(65,536 bytes), sending 32,768 bytes.",
    ),
    "result_not_operand": (
        "(XY)_,__->X_",
        [collective("all-gather", "Y", (1, 8192), (4, 8192))],
        "the plan gathers A before multiplying, cpu gathers Out after it: it moves Out by all-gather "
        "over Y (65,536 bytes), sending 49,152 bytes; the plan moves A by all-gather over Y (16,384 "
        "bytes), sending 12,288 bytes.",
    ),
    "other_operand": (
        "XY,_Y->XY",
        [collective("all-to-all", "Y", (2048, 2048), (512, 8192))],
        "the plan gathers A before multiplying, cpu moves W: it moves W by all-to-all over Y "
        "(8,388,608 bytes), sending 6,291,456 bytes; the plan moves A by all-gather over Y (16,384 "
        "bytes), sending 12,288 bytes.",
    ),
    "extra_collective": (
        "X_,_Y->XY",
        [collective("all-gather", "X", (4, 2048), (8, 2048), origin="0")],
        "the plan sends nothing of A: every device computes with what it holds of A by its spec, "
        "P('X', None); cpu moves A by all-gather over X (32,768 bytes), sending 16,384 bytes.",
    ),
    "avoided_collective": (
        "XY,_Y->XY",
        [],
        "cpu gets by without the plan's all-gather over Y (16,384 bytes) of A, which sends 12,288 bytes: "
        "every device computes with what it holds of A by its spec, P('X', 'Y').",
    ),
}


def test_a_packed_collective_is_compared_as_what_it_holds():
    found = said("XY,Y_->X_", collective("all-reduce", "Y", (2, 8192), (2, 8192), "u32"))
    assert [code for code, _ in found] == ["packed_dtype"]


def test_a_collective_in_a_loop_counts_as_often_as_it_runs():
    """Sixteen runs are not the plan's one, and all their bytes are told."""
    looped = replace(collective("all-reduce", "Y", (4, 8192), (4, 8192)), count=16)
    ((code, message),) = said("XY,Y_->X_", looped)
    assert code == "other_route"
    assert "all-reduce over Y (65,536 bytes) 16 times, sending 1,572,864 bytes; the plan does" in message


def test_more_elements_in_fewer_bytes_are_told_as_elements():
    gathered = collective("all-gather", "Y", (8, 512), (8, 2048), "f8e5m2")
    sentence = dict(said("_Y,XY->_Y", gathered)).get("gathered_more", "")
    assert "16,384 elements in f8e5m2; the plan slices it first" in sentence


ELSEWHERE = {
    "other_result",
    "only_other_result",
    "moved_elsewhere",
    "summed_first",
    "summed_more",
    "other_sums",
    "other_split",
    "other_route",
    "fewer_bytes",
    "collective_matmul",
    "between_slices",
    "combined_collectives",
    "fused_reduce_scatter",
    "overlapped",
    "gathered_again",
    "summed_apart",
}
"""Codes whose tests need more than collectives: below, in test_by_array.py, test_schedule_codes.py and
test_programs.py."""


def test_the_table_of_codes_is_tested_whole():
    assert set(CODES) == {*CASES, *ELSEWHERE}


BY_HAND = {
    "merged_collectives": ["psum_scatter Out X 8,8192", "psum_scatter Out Y 4,8192"],
    "scattered_less": ["psum_scatter Out X 8,8192", "psum Out Y 8,4096"],
}
"""Plans of some cases that are not the best."""


@pytest.mark.parametrize("code", CASES)
def test_code_and_sentence(code):
    specs, collectives, sentence = CASES[code]
    assert said(specs, *collectives, moves=BY_HAND.get(code)) == [(code, sentence)]


def test_other_result():
    """a target that may choose the result's sharding can leave it split otherwise; nothing else differs."""
    gathered = collective("all-gather", "X", (4, 2048), (8, 2048))
    assert said("X_,_X", gathered, result="_X", target="shardy") == []
    assert said("X_,_X", result="X_", target="shardy") == [
        (
            "other_result",
            "free to choose the result's sharding, shardy leaves Out as P('X', None) (65,536 bytes a "
            "device), the plan as P(None, 'X'); for that it needs nothing where the plan does all-gather "
            "over X (32,768 bytes), sending 16,384 bytes.",
        )
    ]
    assert said("X_,_X", gathered, result="__", target="shardy") == [
        (
            "only_other_result",
            "free to choose the result's sharding, shardy leaves Out as P(None, None) (131,072 bytes a "
            "device), the plan as P(None, 'X'); both move the same bytes.",
        )
    ]


def test_a_result_split_over_an_axis_of_one_device_is_the_same_result():
    assert said("X_,_", result="(ZX)", mesh="X=2,Z=1", text="bd,d->b", sizes="b=8,d=8") == []


def test_the_same_collectives_are_no_difference():
    assert said("XY,Y_->X_", collective("all-reduce", "Y", (4, 8192), (4, 8192))) == []
    assert said("X_,_Y->XY") == []


def test_the_order_of_a_collective_s_axes_is_no_difference():
    assert said("_(XY),(XY)_->__", collective("all-reduce", "Y X", (8, 8192), (8, 8192))) == []


def test_slices_and_collectives_of_one_device_move_nothing():
    local = collective("slice", "Y", (8, 2048), (8, 512))
    alone = collective("all-gather", "", (8, 2048), (8, 2048))
    assert said("X_,_Y->XY", local, alone) == []


def test_cpu_first_command():
    found = said("XY,Y_->X_", collective("all-reduce", "Y", (4, 8192), (4, 8192), "f32"))
    assert [code for code, _ in found] == ["promoted_dtype"]
    assert "131,072 bytes instead of 65,536, twice as many" in found[0][1]


def test_cpu_has_no_reduce_scatter():
    found = said("XY,Y_->XY", collective("all-reduce", "Y", (4, 8192), (4, 8192), "f32"))
    assert [code for code, _ in found] == ["promoted_dtype", "all_reduce_and_slice"]
    assert found[1][1] == (
        "cpu does not scatter the sum: its all-reduce over Y of 131,072 bytes in f32 gives every device the "
        "whole of it, where the plan scatters it; it sends 196,608 bytes, and scattering the sum would send "
        "half of them."
    )


def test_cpu_gathers_what_the_plan_gathers():
    found = said("XY,_Y->XY", collective("all-gather", "Y", (4, 512), (4, 2048), "f32"))
    assert [code for code, _ in found] == ["promoted_dtype"]


def test_cpu_uses_the_idle_axis():
    """As XLA for CPU does: it slices A over Y, permutes the pieces, and gathers them over Y."""
    found = said(
        "X_,_X",
        collective("collective-permute", "X Y", (2, 2048), (2, 2048), "f32"),
        collective("all-gather", "Y", (2, 2048), (8, 2048), "f32"),
        result="_X",
    )
    assert [code for code, _ in found] == ["promoted_dtype", "idle_axis"]
    assert found[0][1].endswith("(and 1 more).")
    assert found[1][1].startswith("cpu also splits data over Y, which no spec mentions")


def test_cpu_needs_nothing_where_the_plan_needs_nothing():
    assert said("X_,_Y->XY") == []


def test_an_idle_axis_explains_what_it_replaces_in_other_arrays():
    found = said(
        "X_,_X->X_",
        collective("collective-permute", "X Y", (2048, 2048), (2048, 2048)),
        collective("all-gather", "Y", (2048, 2048), (2048, 8192)),
    )
    assert [code for code, _ in found] == ["idle_axis"]
    assert (
        "does all-gather over X (32,768 bytes), then all-to-all over X (65,536 bytes) instead" in found[0][1]
    )


def test_the_other_way_round_of_scatter_and_gather():
    found = said(
        "_Y,XY->__",
        collective("collective-permute", "X Y", (8, 256), (8, 256)),
        collective("all-gather", "Y", (8, 256), (8, 1024)),
        collective("all-reduce", "X", (8, 2048), (8, 2048)),
        collective("all-gather", "Y", (8, 2048), (8, 8192)),
        moves=[
            "ppermute A X,Y 8,256",
            "all_gather A Y 8,1024",
            "psum_scatter Out X 8,2048",
            "all_gather Out Y,X 8,8192",
        ],
    )
    assert found == [
        (
            "scatter_and_gather",
            "cpu adds the partial sums in one all-reduce over X (32,768 bytes), besides all-gather over Y "
            "(131,072 bytes); the plan does it in two halves, a reduce-scatter over X (32,768 bytes) and "
            "later "
            "an all-gather over Y, X (131,072 bytes).",
        )
    ]


def test_a_gather_that_is_only_partly_replaced_by_a_sum():
    found = said(
        "_(XY),_Y->__",
        collective("all-gather", "Y", (8, 256), (8, 1024)),
        collective("all-reduce", "X", (8, 2048), (8, 2048)),
        collective("all-gather", "Y", (8, 2048), (8, 8192)),
    )
    assert found == [
        (
            "reduced_not_gathered",
            "the plan gathers A before multiplying, cpu multiplies the pieces and adds partial sums of Out "
            "over X: it moves A by all-gather over Y (16,384 bytes), then adds up Out by all-reduce over X "
            "(32,768 bytes), sending 45,056 bytes; the plan moves A by all-gather over X, Y (32,768 bytes), "
            "sending 28,672 bytes.",
        )
    ]


def test_the_devices_of_an_axis_in_another_order():
    found = said(
        "_Y,XY->_Y",
        collective("collective-permute", "X Y", (8, 256), (8, 256)),
        collective("all-gather", "Y:(2)2 Y:(1)2", (8, 256), (8, 1024)),
        collective("all-reduce", "X", (8, 2048), (8, 2048)),
    )
    assert found == [
        (
            "sub_axes",
            "cpu takes the devices of Y in another order (Y:(2)2, Y:(1)2) in its all-gather of 16,384 bytes; "
            "both send 12,288 bytes.",
        )
    ]


def test_groups_that_follow_no_axes_are_extra():
    found = said("X_,_Y->XY", collective("all-gather", "", (2, 2048), (8, 2048), n=4))
    assert found == [
        (
            "extra_collective",
            "cpu has an all-gather (32,768 bytes) that the plan does not need; it sends 24,576 bytes.",
        )
    ]


def test_unknown_operations_and_folded_shapes_are_still_told():
    odd = collective("ragged-all-to-all", "Y", (17,), (17,))
    folded = collective("all-gather", "Y", (4 * 512,), (4 * 2048,), "s8")
    found = said("X_,_Y->XY", odd, folded)
    assert {code for code, _ in found} <= set(CODES)
    assert any("a ragged-all-to-all over Y (34 bytes)" in sentence for _, sentence in found)


def test_every_array_of_a_chain_can_be_named():
    """Two gathers of weights of one shape; the target does without the second."""
    text, sizes = "bi,ij->bj; bj,jk->bk", "b=64,i=64,j=64,k=64"
    gather = collective("all-gather", "Y", (16, 64), (64, 64))
    moves = ["all_gather W1 Y 64,64", "all_gather W2 Y 64,64"]
    found = said("Y_,Y_; ,Y_", gather, text=text, sizes=sizes, moves=moves)
    assert found == [
        (
            "avoided_collective",
            "cpu gets by without the plan's all-gather over Y (8,192 bytes) of W2, which sends 6,144 bytes.",
        )
    ]


CUBE = "b=64,d=64,f=64"


def test_wider_numbers_over_other_axes_send_more_for_their_dtype():
    problem = problem_from_text(
        "ij->ij", mesh=parse_mesh("X=2,Y=2,Z=2"), specs="(YXZ)_->(XZY)_", sizes="i=64,j=8"
    )
    whole = by_hand(problem, "ppermute Out X,Y,Z 8,8")
    moved = collective("collective-permute", "X Y", (8, 8), (8, 8), "f32", origin="0")
    (found,) = [one for one in compare(whole, "cpu", [moved], None) if one.code == "other_route"]
    assert "over other axes, which sends more bytes in f32: " in found.message


def test_gathers_in_other_turns_are_not_of_more():
    """Two gathers in place of four begin larger, and bring together as much."""
    mesh, sizes = parse_mesh("X=2,Y=2,Z=2,W=2"), "b=48,d=12,f=24"
    problem = problem_from_text("bd,df->bf", mesh=mesh, specs="__,(WZ)(YX)->Y_", sizes=sizes)
    turns_of_ours = ["Z 6,6", "W 12,6", "X 12,12", "Y 12,24"]
    whole = by_hand(problem, *(f"all_gather W {turn}" for turn in turns_of_ours))
    turns = [
        collective("all-gather", "Y X", (3, 6), (3, 24), origin="1"),
        collective("all-gather", "W Z", (3, 24), (12, 24), origin="1"),
    ]
    found = compare(whole, "cpu", turns, None)
    assert [one.code for one in found] == ["other_route"]
    assert "cpu moves W by other collectives, which sends" in found[0].message


def test_as_many_elements_of_another_array_in_a_wider_dtype_are_not_as_many_bytes():
    gather = collective("all-gather", "X", (32, 64), (64, 64), "f32", origin="0")
    exchange = collective("all-to-all", "X", (32, 64), (64, 32), "f32", origin="1")
    sentence = dict(said("X_,X_->_X", gather, exchange, sizes=CUBE))["moved_elsewhere"]
    assert sentence.endswith(": the same collectives; it sends 12,288 bytes instead of 6,144.")


def test_equal_shapes_hide_no_other_array():
    """The same two collectives, of other arrays: as Shardy does it."""
    gather = collective("all-gather", "X", (32, 64), (64, 64), origin="0")
    exchange = collective("all-to-all", "X", (32, 64), (64, 32), origin="1")
    found = said("X_,X_->_X", gather, exchange, sizes=CUBE)
    assert found == [
        (
            "moved_elsewhere",
            "cpu moves A by all-gather over X (8,192 bytes), then moves W by all-to-all over X (4,096 bytes) "
            "where the plan moves W by all-gather over X (8,192 bytes), then moves Out by all-to-all over X "
            "(4,096 bytes): the same collectives; both send 6,144 bytes.",
        ),
    ]


def test_a_collective_of_no_origin_may_be_any_array_of_its_shape():
    gather = collective("all-gather", "X", (32, 64), (64, 64))
    exchange = collective("all-to-all", "X", (32, 64), (64, 32))
    assert said("X_,X_->_X", gather, exchange, sizes=CUBE) == []


def test_several_arrays_that_fit_are_all_named():
    (found,) = said("__,__->__", collective("all-gather", "X", (32, 64), (64, 64)), sizes=CUBE, mesh="X=2")
    assert found[0] == "idle_axis"
    permuted = collective("collective-permute", "X Y", (32, 64), (32, 64))
    found = said("XY,Y_->X_", permuted, sizes="b=64,d=256,f=64")
    assert "it moves A or W or Out by collective-permute over X, Y (4,096 bytes)" in found[0][1], found


def test_sums_of_one_chain_are_told_apart_by_what_they_are_made_of():
    first = collective("reduce-scatter", "Y", (4, 8), (4, 2), origin="of 0 1")
    last = collective("all-reduce", "Y", (4, 8), (4, 8), origin="of 0 1 2")
    text, sizes = "bd,df->bf; bf,fz->bz", "b=8,d=8,f=8,z=8"
    found = said("XY,Y_->X_; XY,Y_->X_", first, last, text=text, sizes=sizes)
    assert found == [
        (
            "fewer_bytes",
            "cpu adds up H1 with fewer bytes than the plan, whose sum every device gets whole: it does "
            "reduce-scatter over Y (64 bytes), "
            "sending 48 bytes; the plan does all-reduce over Y (64 bytes), sending 96 bytes, which is more.",
        )
    ]


def test_a_sum_over_rows_is_neither_the_argument_nor_the_result():
    rows = collective("all-reduce", "X", (64,), (64,), n=2, origin="of 0")
    question = {"text": "ab,cd->ac", "sizes": "a=64,b=64,c=64,d=64", "mesh": "X=4"}
    assert said("_X,__->_X", rows, **question, moves=["psum_scatter Out X 64,64"]) == [
        (
            "summed_first",
            "cpu multiplies by the sums of A over b, where the plan adds up while it multiplies: it adds up "
            "the sums of A over b by all-reduce over X (128 bytes), sending 192 bytes; the plan adds up Out "
            "by reduce-scatter over X (8,192 bytes), sending 6,144 bytes, which is more.",
        )
    ]


@pytest.mark.parametrize("origin", ["0", None])
def test_a_transpose_only_moves(origin):
    moved = collective("all-to-all", "X", (32, 64), (64, 32), origin=origin)
    assert said("_X->_X", moved, text="ab->ba", sizes="a=64,b=64", mesh="X=2") == []


def test_what_is_put_together_by_arithmetic_is_still_the_array():
    """As a TPU does it, whose pieces come together as the maximum of padded ones."""
    moved = collective("all-to-all", "Y", (8, 512), (2, 2048), origin="of 0")
    assert said("_Y,__->Y_", moved) == []


def test_an_operand_that_both_gather_is_not_replaced_by_the_other():
    own = collective("all-gather", "Y", (8, 512), (8, 2048), origin="0")
    other = collective("all-gather", "Y", (2048, 1024), (2048, 4096), origin="1")
    found = said("_Y,XY->_X", own, other)
    assert [code for code, _ in found] == ["gathered_more", "gathered_not_reduced"]
    assert "it moves W by all-gather over Y (16,777,216 bytes), sending 12,582,912 bytes" in found[1][1]


def test_a_whole_array_gathered_where_the_plan_moves_pieces():
    whole = collective("all-gather", "Y X", (1, 2048), (8, 2048), origin="0")
    total = collective("all-reduce", "X", (8, 2048), (8, 2048), origin="of 0 1")
    assert said("(YX)_,XY->_Y", whole, total) == [
        (
            "gathered_more",
            "cpu gathers A over Y, X to 32,768 bytes (28,672 sent); the plan does all-to-all over X "
            "(4,096 bytes), then all-gather over Y (16,384 bytes), sending 14,336 bytes.",
        )
    ]


def test_an_origin_outside_of_the_problem_says_nothing():
    moved = collective("all-reduce", "Y", (4, 8192), (4, 8192), origin="of 0 7")
    assert said("XY,Y_->X_", moved) == []


def test_a_slice_of_the_sum_is_told_where_the_target_shows_one():
    total = collective("all-reduce", "Y", (4, 8192), (4, 8192), origin="of 0 1")
    cut = collective("slice", "Y", (4, 8192), (4, 2048), origin="of 0 1")
    ((code, sentence),) = said("XY,Y_->XY", total, cut, target="shardy")
    assert code == "all_reduce_and_slice"
    assert "gives every device the whole of it, of which a device keeps a slice; it sends" in sentence


def test_collectives_of_no_bytes_are_no_difference():
    nothing = collective("all-reduce", "Y", (0, 8), (0, 8))
    assert said("XY,Y_->X_", nothing, sizes="b=0,d=8,f=8") == []
    assert said("XY,Y_->X_", sizes="b=0,d=8,f=8") == []
