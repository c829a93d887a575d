"""The codes for how a compiler carries out what it moves, on hand-made records and sentences."""

from __future__ import annotations

from dataclasses import replace

from shardviz.compare import SAME_TRAFFIC
from shardviz.hlo import Collective, CollectiveMatmul, Work
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import plan
from shardviz.planner.problem.reading import problem_from_text
from tests.compare.plans_by_hand import compare

BOOK = "b=1024,d=2048,f=8192"
"""The sizes of the scaling book's collective matmul."""


def planned(specs, sizes="b=8,d=2048,f=8192", mesh="X=2,Y=4"):
    return plan(
        problem_from_text("bd,df->bf", mesh=parse_mesh(mesh), specs=specs, sizes=sizes), objective="bytes"
    )


def said(plan, *collectives, target="v5e:2x4", **rest):
    return [(each.code, each.message) for each in compare(plan, target, collectives, None, **rest)]


def permute(number, shift):
    pairs = tuple((ring + i, ring + (i + shift) % 4) for ring in (0, 4) for i in range(4))
    name = f"collective-permute-start.{number}"
    return Collective(
        "collective-permute", name, ("Y",), pairs, (512, 1, 512), (512, 1, 512), "bf16", 524288, 524288
    )


RING = CollectiveMatmul(
    "all-gather",
    ("Y",),
    directions=2,
    group_size=4,
    permutes=tuple(f"collective-permute-start.{number}" for number in range(3)),
    matmuls=("fusion.12", "fusion.9"),
    bytes=2097152,
    wire_bytes=1572864,
)
PERMUTES = (permute(0, 1), permute(1, -1), permute(2, 1))


def test_a_collective_matmul_in_place_of_the_plan_s_gather():
    found = said(planned("XY,_Y->XY", BOOK), *PERMUTES, collective_matmuls=[RING])
    assert found == [
        (
            "collective_matmul",
            "v5e:2x4 takes the plan's all-gather over Y (2,097,152 bytes) apart, a collective matmul: 3 "
            "permutes both ways around the ring of 4 between 2 partial matmuls, which work on the pieces "
            "that are there; it sends 1,572,864 bytes, as many as the all-gather.",
        )
    ]


def test_a_collective_matmul_of_a_loop_and_one_way():
    ring = replace(RING, directions=1, permutes=RING.permutes[:1], matmuls=("fusion.1",), wire_bytes=None)
    ((code, message),) = said(planned("XY,_Y->XY", BOOK), PERMUTES[0], collective_matmuls=[ring])
    assert code == "collective_matmul"
    assert message.endswith(
        "1 permute one way around the ring of 4 between 1 partial matmul, which work on "
        "the pieces that are there."
    )


def test_permutes_in_a_loop_are_counted_as_they_run():
    looped = [PERMUTES[0], *(replace(each, count=4) for each in PERMUTES[1:])]
    ((_, message),) = said(planned("XY,_Y->XY", BOOK), *looped, collective_matmuls=[RING])
    assert "3 permutes (9 runs) both ways around the ring of 4" in message


def test_a_collective_matmul_in_every_layer_runs_as_often_as_the_plan_s_gather():
    problem = problem_from_text(
        "Y = X[b,d] * W[d,f] x 5", mesh=parse_mesh("X=2,Y=4"), specs="X=XY,W=_Y,Y=XY", sizes=BOOK
    )
    ring = replace(RING, wire_bytes=5 * 1572864)
    looped = [replace(each, count=5) for each in PERMUTES]
    ((code, message),) = said(plan(problem, objective="bytes"), *looped, collective_matmuls=[ring])
    assert code == "collective_matmul"
    assert "takes the plan's all-gather over Y (2,097,152 bytes) apart" in message
    assert "3 permutes (15 runs)" in message
    assert message.endswith("it sends 7,864,320 bytes, as many as the all-gather.")


def test_a_scatter_is_taken_apart_as_well():
    scatter = CollectiveMatmul("reduce-scatter", ("Y",), 1, 4, RING.permutes, ("f.1", "f.2"), 65536, 50000)
    small = [replace(each, operand_shape=(4, 2048), result_shape=(4, 2048), bytes=16384) for each in PERMUTES]
    ((code, message),) = said(planned("XY,Y_->XY"), *small, collective_matmuls=[scatter])
    assert code == "collective_matmul"
    assert "takes the plan's reduce-scatter over Y (65,536 bytes) apart" in message
    assert message.endswith("it sends 50,000 bytes, where the reduce-scatter sends 49,152.")


def test_a_collective_matmul_that_the_plan_does_not_have():
    """What it stands for is then compared like any other gather."""
    found = said(planned("X_,_Y->XY"), *PERMUTES, collective_matmuls=[replace(RING, axes=("X",))])
    assert [code for code, _ in found] == ["collective_matmul", "extra_collective"]
    assert "takes an all-gather over X (2,097,152 bytes) apart" in found[0][1]


REDUCED = Collective("all-reduce", "ar", ("Y",), None, (4, 8192), (4, 8192), "bf16", 65536, 98304)
SCATTERED = replace(REDUCED, op="reduce-scatter", name="rs", result_shape=(4, 2048), wire_bytes=49152)


def test_what_runs_beside_collectives_is_said_once():
    gather = Collective("all-gather", "ag", ("Y",), None, (4, 512), (4, 2048), "bf16", 16384, 12288)
    one = replace(gather, is_async=True, overlapped=(Work("f", "matmul", 52000), Work("g", "matmul", 626)))
    plan = planned("XY,_Y->XY")
    assert said(plan, gather) == []
    assert said(plan, replace(gather, is_async=True)) == []
    assert said(plan, one) == [
        (
            "overlapped",
            "v5e:2x4 runs other work during its collective: all-gather over Y (16,384 bytes) under 2 "
            "matmuls, ~52,626 cycles.",
        )
    ]
    busy = replace(one, overlapped=(Work("c", "copy"),))
    found = said(planned("XY,Y_->X_"), *[busy] * 5)
    assert found[0][1].count("all-gather over Y (16,384 bytes) under 1 instruction") == 3
    assert found[0][1].endswith("; and 2 more.")


def test_the_permutes_of_a_collective_matmul_are_not_told_twice():
    under = [replace(each, is_async=True, overlapped=(Work("f", "matmul"),)) for each in PERMUTES]
    found = said(planned("XY,_Y->XY", BOOK), *under, collective_matmuls=[RING])
    assert [code for code, _ in found] == ["collective_matmul"]


def test_a_reduce_scatter_that_the_compiler_made():
    found = said(planned("XY,Y_->XY"), SCATTERED, partitioned=[REDUCED], target="h100:8")
    assert found == [
        (
            "fused_reduce_scatter",
            "h100:8 makes one reduce-scatter over Y (65,536 bytes) of the partitioner's all-reduce and "
            "slice: it sends 49,152 bytes, and the all-reduce would send 98,304.",
        )
    ]
    assert said(planned("XY,Y_->XY"), SCATTERED, partitioned=[SCATTERED], target="h100:8") == []


def test_several_collectives_as_one_with_several_arrays():
    plan = planned("_X,_X->__", "b=64,d=64,f=64")
    (first, second) = [step for step in plan.collectives if step.op == "all_gather"]
    total = first.bytes + second.bytes
    both = Collective(
        "all-gather", "ag", ("X",), None, (64, 32), (64, 64), "bf16", total, total // 2, arrays=2
    )
    assert said(plan, both) == [
        (
            "combined_collectives",
            "v5e:2x4 carries 2 arrays in one all-gather over X (16,384 bytes), for which the plan has 2 "
            "collectives: 2 times all-gather over X (8,192 bytes); the bytes are the same.",
        )
    ]


ACROSS = Collective(
    "all-reduce", "send", ("X",), None, (4, 256), (4, 256), "bf16", 2048, 2048, between_slices=True
)


def test_a_sum_split_at_the_edge_of_the_slices():
    scatter = replace(REDUCED, op="reduce-scatter", result_shape=(4, 1024), operand_shape=(4, 8192))
    inside = [replace(scatter, axes=("Y",)), replace(scatter, op="all-gather", axes=("Y",))]
    found = said(planned("_(XY),(XY)_->__"), inside[0], ACROSS, inside[1], target="2*v5e:2x2")
    assert found == [
        (
            "between_slices",
            "2*v5e:2x2 splits the plan's all-reduce over X, Y (131,072 bytes): inside each slice "
            "reduce-scatter over Y (65,536 bytes), then all-gather over Y (65,536 bytes), between slices an "
            "all-reduce over X of 2,048 bytes by send and recv over the data-center network, 2,048 bytes "
            "sent by a device.",
        )
    ]


def test_a_sum_that_only_crosses_slices():
    across = replace(ACROSS, operand_shape=(8, 8192), result_shape=(8, 8192), bytes=131072, wire_bytes=131072)
    found = said(planned("_X,X_->__"), across, target="2*v5e:2x2")
    assert found == [
        (
            "between_slices",
            "2*v5e:2x2 carries the plan's all-reduce over X (131,072 bytes) between slices: send and recv "
            "over the data-center network, 131,072 bytes sent by a device.",
        )
    ]


def test_what_leaves_the_traffic_as_planned():
    assert {
        "overlapped",
        "fused_reduce_scatter",
        "combined_collectives",
        "packed_dtype",
        "moved_elsewhere",
        "only_other_result",
    } == SAME_TRAFFIC
