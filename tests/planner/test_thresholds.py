"""The sizes from which on a plan is compute bound: the scaling book's, and those of a plain search."""

from __future__ import annotations

import pytest

from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import named_machine
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price, resized
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.training import Training, with_backward
from shardviz.sharding import Mesh

RING = Mesh(("X",), (64,))
TORUS = Mesh(("X", "Y", "Z"), (16, 16, 16))
HUGE = 2**30
"""A size beside which the batch's own bytes do not count, as in the book's formulas."""


def threshold(cost, dim):
    return next(each for each in cost.thresholds if each.dim == dim)


@pytest.mark.parametrize(("chip", "batch"), [("v5e", 240), ("h100", 295)])
def test_the_batch_from_which_a_matmul_is_not_bound_by_memory(priced, chip, batch):
    # "How to Scale Your Model": B > peak / HBM bandwidth, where B is small beside D and F.
    found = threshold(priced("bd,df->bf", "__,__", f"b=8,d={HUGE},f={HUGE}", chip=chip), "b")
    assert found.least == pytest.approx(batch, abs=1)
    assert (found.largest, found.limit) == (None, "HBM")


@pytest.mark.parametrize(
    ("mesh", "specs", "tokens"),
    [(RING, "X_,X_->X_", 2550), (TORUS, "(XYZ)_,(XYZ)_->(XYZ)_", 850)],
)
def test_tokens_on_a_device_that_hide_the_gather_of_weights(priced, mesh, specs, tokens):
    # The book's B/X > C/W on one axis of a v5p and C/3W on three; N-1 of N parts are sent.
    sizes = f"b={mesh.size * 2**15},d=8192,f=8192"
    cost = priced("bd,df->bf", specs, sizes, mesh=mesh, chip="v5p", bandwidth=9e10)
    assert [each.step.op for each in cost.steps] == ["all_gather", "einsum"]
    found = threshold(cost, "b")
    exact = 4.59e14 / (2 * 9e10 * len(mesh.axis_names)) * (mesh.size - 1) / mesh.size
    assert found.least / mesh.size == pytest.approx(exact, abs=1)
    assert exact == pytest.approx(tokens, rel=2e-2)
    assert found.limit.startswith(("X", "XYZ"))


def test_tokens_on_a_device_that_hide_the_network(priced):
    # 4.59e14 / 6.25e9 = 73,440 tokens on a device, for slices beside one another.
    mesh = Mesh(("X",), (256,))
    cost = priced(
        "bd,df->bf",
        "X_,X_->X_",
        f"b={2**26},d=65536,f=65536",
        mesh=mesh,
        chip="v5p",
        bandwidth=6.25e9,
        kind="network",
    )
    assert threshold(cost, "b").least / 256 == pytest.approx(73_440 * 255 / 256, rel=1e-3)


def test_a_tensor_parallel_layer(priced):
    # The book's Y < F · W/C: F > 2550 · Y on one axis of a v5p, with the gather and the scatter in sum.
    mesh = Mesh(("Y",), (8,))
    cost = priced(
        "bd,df->bf; bf,fd->bd",
        "_Y,_Y; ?,Y_->_Y",
        "b=8192,d=8192,f=65536",
        mesh=mesh,
        chip="v5p",
        bandwidth=9e10,
    )
    assert [each.step.op for each in cost.steps if each.is_collective] == ["all_gather", "psum_scatter"]
    assert threshold(cost, "f").least / 8 == pytest.approx(2550 * 7 / 8, rel=2e-3)


def test_every_size_and_no_size(priced):
    alone = priced("bd,df->bf", "X_,_Y", "b=8192,d=8192,f=8192")
    for each in alone.thresholds:
        assert each.least is not None
        assert (each.largest, each.limit) == (None, "HBM")
    summed = priced("bd,df->bf", "XY,Y_->X_")
    assert {each.dim: each.least is None for each in summed.thresholds} == {"b": True, "d": False, "f": True}
    assert {each.limit for each in summed.thresholds} == {"Y on y"}


CASES = (
    ("bd,df->bf", "XY,Y_->X_", "b=64,d=4096,f=512"),
    ("bd,df->bf", "X_,XY->XY", "b=64,d=512,f=512"),
    ("bd,df->bf", "X_,_X->XY", "b=256,d=256,f=4096"),
    ("bd,df->bf", "__,__", "b=16,d=512,f=512"),
    ("bx,xy->by;by,yz->bz", "X_,_Y;?,Y_->X_", "b=64,x=256,y=1024,z=256"),
)


@pytest.mark.parametrize(("text", "specs", "sizes"), CASES)
def test_thresholds_are_where_a_search_finds_them(priced, placed, text, specs, sizes):
    cost = priced(text, specs, sizes)
    for each in cost.thresholds:
        bound = []
        for size in range(each.multiple, 20_000, max(each.multiple, 97 // each.multiple * each.multiple)):
            one = price(resized(cost.plan, each.dim, size), placed(cost.plan.problem.mesh))
            arithmetic = sum(step.compute_seconds or 0 for step in one.steps)
            memory = sum(step.hbm_seconds for step in one.steps if not step.is_collective)
            if arithmetic >= max(memory, one.communication_seconds):
                bound.append(size)
            inside = each.least is not None and each.least <= size <= (each.largest or size)
            assert inside == (size in bound[-1:]), (each, size)


@pytest.mark.parametrize(("text", "specs", "sizes"), CASES)
def test_a_resized_plan_is_the_same_plan_of_other_sizes(text, specs, sizes):
    mesh = Mesh(("X", "Y"), (2, 4))
    small = plan(problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes), objective="bytes")
    double = {name: int(size) * 2 for name, _, size in (one.partition("=") for one in sizes.split(","))}
    grown = small
    for dim, size in double.items():
        grown = resized(grown, dim, size)
    given = ",".join(f"{dim}={size}" for dim, size in double.items())
    wanted = plan(problem_from_text(text, mesh=mesh, specs=specs, sizes=given), objective="bytes")

    def facts(found):
        return [(one.op, one.axes, one.dim, one.shape, one.bytes, one.wire_bytes) for one in found.steps]

    assert facts(grown) == facts(wanted)
    assert grown.problem == wanted.problem


def test_a_diagonal_has_no_threshold(priced):
    cost = priced("aa,ab->ab", "__,__", "a=64,b=64")
    assert [each.dim for each in cost.thresholds] == ["b"]


def test_where_nccl_chooses_between_protocols_the_least_size_is_exact():
    mesh = Mesh(("X", "Y"), (2, 4))
    cluster = parse_cluster("h100:8")
    assert cluster is not None
    lies = place_mesh(cluster, mesh)
    cost = price(plan(problem_from_text("bd,df->bf", mesh=mesh, specs="XY,Y_->X_")), lies)
    found = threshold(cost, "d")
    assert found.least is not None

    def is_bound(size):
        one = price(resized(cost.plan, "d", size), lies)
        arithmetic = sum(step.compute_seconds or 0 for step in one.steps)
        return arithmetic >= max(one.communication_seconds, one.steps[0].hbm_seconds or 0)

    assert is_bound(found.least)
    assert not is_bound(found.least - found.multiple)


def test_work_in_a_type_without_a_peak_has_none(priced):
    """A sum is bound by memory, which is known, where the peak in its type is not."""
    cost = priced("xsyd->xy", "_X_Y->XY", "x=4,s=128,y=4,d=4", dtype="f64")
    assert not cost.unknown
    assert cost.thresholds == ()


@pytest.mark.parametrize(
    ("machine", "devices", "rows"),
    [("v5e:2x2", 4, 1.97e14 / 9e10), ("h100:8", 8, 1985 * 8 / 7)],
)
def test_rows_on_a_device_whose_backward_pass_hides_the_sums_of_the_gradients(machine, devices, rows):
    # Part 5 and the chapter on GPUs: 8·B·D·F FLOPs against 8·D·F bytes, B > peak / bandwidth; its 2,200 of an
    # H100 leaves out that N-1 of N parts are sent, and that NCCL reaches 80 % of the links: 2,412. Matmuls
    # reach 85 % of the peak and take 8·(B·D + D·F + B·F) bytes on the chip. Forward work is over before there
    # is a gradient.
    text = "H = X[b,d] * W1[d,f]; Y = silu(H) * W2[f,d]"
    mesh, specs = Mesh(("data",), (devices,)), "X=data _,Y=data _,W1=_ _,W2=_ _"
    forward = problem_from_text(text, mesh=mesh, specs=specs, sizes="b=65536,d=16384,f=131072")
    step = plan(with_backward(forward, Training("none", None)))
    cost = price(step, place_mesh(named_machine(machine), mesh))
    found = threshold(cost, "b")
    assert found.least / devices == pytest.approx(rows * (devices - 1) / devices, rel=5e-3)
    below = price(resized(cost.plan, "b", found.least * 9 // 10), cost.placed)
    assert below.overlapped_seconds > below.compute_seconds > below.communication_seconds
    assert below.step_seconds == pytest.approx(below.overlapped_seconds)


@pytest.mark.parametrize("tokens", [1024, 32768])
def test_tokens_whose_causal_attention_hides_the_gather_of_keys_and_values(priced, tokens):
    # The last of four devices has 7/32 of t² pairs; 2 arrays of 2·4,096·t bytes, 3/4 of them sent both ways.
    arrays = "Q[b,t,n,h], K[b,s,n,h], V[b,s,n,h]"
    cost = priced(
        f"O = causal_attention({arrays})",
        "Q=_ X _ _, K=_ X _ _, V=_ X _ _, O=_ X _ _",
        f"b=1,t={tokens},s={tokens},n=32,h=128",
        mesh=Mesh(("X",), (4,)),
    )
    exact = (2 * 3 / 4 * 2 * 4096 / 9e10) / (4 * 4096 * 7 / 32 / 1.97e14)
    assert threshold(cost, "t").least == pytest.approx(exact, abs=4)
