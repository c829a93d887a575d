"""A plan as a timeline: one step after another, and the memory under it."""

from __future__ import annotations

from shardviz.hardware.chips import DeviceFigures
from shardviz.hardware.links import Dimension, LinkSpec
from shardviz.hardware.machine import AxisRings, Machine, place_mesh
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from shardviz.timeline.of_plan import plan_timeline
from shardviz.units import seconds as human_seconds

MESH = Mesh(("X", "Y"), (2, 4))
FIGURES = DeviceFigures((("bf16", 1.97e14),), 16 * 10**9, 2**24, 8.2e11)


def cost_of(text, specs, dtype="bf16"):
    dimensions = tuple(
        Dimension(axis.lower(), size, MESH.stride(axis), "ring", LinkSpec(), axis.lower())
        for axis, size in MESH.shape.items()
    )
    machine = Machine("test", FIGURES, AxisRings("v5e", dimensions, LinkSpec(), 8))
    problem = problem_from_text(text, mesh=MESH, specs=specs, dtype=dtype)
    return price(plan(problem), place_mesh(machine, MESH))


def test_steps_follow_one_another_on_lanes():
    cost = cost_of("bd,df->bf", "XY,Y_->X_")
    found = plan_timeline(cost)
    assert [(lane.kind, lane.name) for lane in found.lanes] == [("compute", "compute"), ("axis", "Y")]
    einsum, psum = found.ops
    assert (einsum.start, einsum.end, einsum.lane, einsum.exposed) == (0, cost.steps[0].seconds, 0, 0)
    assert (psum.start, psum.lane, psum.after) == (einsum.end, 1, (0,))
    assert psum.exposed == psum.seconds == psum.end - psum.start
    assert (psum.estimate, psum.bound, einsum.estimate) == ("links", "Y on y", "roofline")
    assert found.seconds == found.drawn_seconds == cost.serial_seconds
    assert found.exposed_seconds == (("Y", psum.seconds),)
    assert found.utilisation == cost.serial_utilisation


def test_a_collective_over_several_axes_names_them():
    found = plan_timeline(cost_of("bd,df->bf", "_(XY),(XY)_->__"))
    assert [lane.name for lane in found.lanes] == ["compute", "X, Y"]
    assert found.ops[1].detail.startswith("over XY: ")


def test_statements_of_a_program_have_their_names():
    program = "H = X[b,d] * W1[d,f]; Y = (silu(H) + H) * W2[f,d]"
    found = plan_timeline(cost_of(program, "X=X_,W1=_Y,W2=Y_"))
    assert [op.name for op in found.ops] == [
        *("H = X * W1", "Y_1 = silu(H)", "Y_2 = Y_1 + H", "Y = Y_2 * W2", "psum Y")
    ]


def test_a_timeline_is_of_one_layer_and_says_what_all_take():
    one, all_of_them = (
        cost_of(f"bd,df->bf; bf,fd->bd{times}", "X_,_Y->?; ?,Y_->X_") for times in ("", " x 4")
    )
    found = plan_timeline(all_of_them)
    assert found.seconds == plan_timeline(one).seconds
    assert found.title == "bd,df->bf; bf,fd->bd, one layer of 4"
    assert found.notes == (f"all 4 layers take {human_seconds(4 * found.seconds)}",)
    assert plan_timeline(one).notes == ()


def test_a_step_without_a_peak_takes_the_time_of_its_memory_traffic():
    cost = cost_of("bd,df->bf", "XY,Y_->X_", dtype="f64")
    found = plan_timeline(cost)
    einsum, psum = found.ops
    traffic = cost.steps[0].hbm_bytes / 8.2e11
    assert (einsum.start, einsum.end, einsum.seconds, einsum.bound) == (0, traffic, traffic, "unknown")
    assert found.seconds == traffic + psum.seconds
    assert found.unknown == ()
    assert found.notes == ("the total is a lower bound, by 1 step: no peak in f64 is published for v5e",)
    assert found.utilisation is None


def test_the_memory_of_every_step():
    cost = cost_of("bd,df->bf", "X_,_X->X_")
    assert [each.step.op for each in cost.steps] == ["all_gather", "einsum", "all_to_all"]
    gathering, multiplying, _ = (each.seconds for each in cost.steps)
    memory = plan_timeline(cost).memory
    mib = 2**20
    # A 512×2048, W 2048×4096; A gathered 1024×2048; Out 1024×4096 before and 512×8192 after the exchange.
    assert memory.argument_bytes == (2 + 16) * mib
    assert memory.output_bytes == 8 * mib
    assert memory.temporary_bytes == 8 * mib
    assert memory.curve == (
        (0, 22 * mib),
        (gathering, 30 * mib),
        (gathering + multiplying, 34 * mib),
    )
    assert (memory.peak_bytes, memory.peak_at) == (34 * mib, gathering + multiplying)
    assert memory.over_bytes == 34 * mib - 2**24
    assert memory.allocated_bytes == round(34 * mib * 1.38)
    assert [(each.name, each.kind) for each in memory.buffers] == [
        ("W", "argument"),
        ("Out", "temporary"),
        ("Out", "output"),
        ("A", "argument"),
    ]
    assert memory.buffers[0].shape == "bf16[2048,4096]"
    assert (memory.buffers[1].start, memory.buffers[1].end) == (gathering, cost.serial_seconds)
    assert memory.buffers[0].start is None


def test_a_psum_keeps_its_place():
    memory = plan_timeline(cost_of("bd,df->bf", "XY,Y_->X_")).memory
    assert (memory.temporary_bytes, memory.output_bytes) == (0, 8 * 2**20)
    assert memory.peak_bytes == memory.argument_bytes + memory.output_bytes
