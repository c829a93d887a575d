"""The price of a plan, against figures of the scaling book and a second count in exact fractions."""

from __future__ import annotations

import random
from fractions import Fraction
from math import prod

import pytest

from shardviz.hardware.chips import GPUS, TPUS
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine import place_mesh
from shardviz.hardware.machine_file import named_machine
from shardviz.planner.plan import HLO_OPS
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import price
from shardviz.planner.pricing.priced_plan import overtaking
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Layout, Mesh
from shardviz.sharding.array import BITS

MESH = Mesh(("X", "Y"), (2, 4))


def test_a_matmul_is_the_longer_of_its_arithmetic_and_its_bytes(priced):
    # "How to Scale Your Model", the chapter on rooflines: bf16[B, D] · [D, F] takes 2BDF FLOPs and moves
    # 2BD + 2DF + 2BF bytes.
    (step,) = priced("bd,df->bf", "__,__", "b=64,d=4096,f=8192").steps
    assert step.flops == 2 * 64 * 4096 * 8192
    assert step.hbm_bytes == 2 * (64 * 4096 + 4096 * 8192 + 64 * 8192)
    assert step.bound == "HBM"
    assert step.seconds == step.hbm_seconds == pytest.approx(step.hbm_bytes / 8.2e11)
    assert step.compute_seconds == pytest.approx(step.flops / 1.97e14)
    (large,) = priced("bd,df->bf", "__,__", "b=4096,d=4096,f=8192").steps
    assert large.bound == "compute"
    assert large.seconds == large.compute_seconds


def test_a_dtype_has_its_own_peak_and_size(priced):
    (bf16,), (int8,) = (
        priced("bd,df->bf", "__,__", "b=4096,d=4096,f=4096", dtype=dtype).steps for dtype in ("bf16", "int8")
    )
    assert bf16.compute_seconds == pytest.approx(2 * int8.compute_seconds)
    assert bf16.hbm_bytes == 2 * int8.hbm_bytes


def test_f32_is_a_pass_in_bf16_where_it_has_no_peak(priced):
    half, single = (priced("bd,df->bf", "XY,Y_->X_", dtype=dtype) for dtype in ("bf16", "f32"))
    assert single.steps[0].compute_seconds == half.steps[0].compute_seconds
    assert single.steps[0].hbm_seconds == 2 * half.steps[0].hbm_seconds
    assert single.unknown == ()
    tpu, gpu = TPUS["v5e"].device, GPUS["h100"].device
    assert [tpu.flops_per_second("f32", passes) for passes in (1, 6)] == [1.97e14, 1.97e14 / 6]
    assert [gpu.flops_per_second("f32", passes) for passes in (1, 6)] == [4.95e14, 4.95e14]
    assert tpu.flops_per_second("f64") is None


def test_no_peak_a_lower_bound_and_it_is_named(priced):
    cost = priced("bd,df->bf", "XY,Y_->X_", dtype="f64")
    einsum, psum = cost.steps
    assert (einsum.compute_seconds, einsum.bound) == (None, "unknown")
    assert einsum.seconds == einsum.hbm_seconds > 0
    assert cost.unknown == (einsum,)
    assert cost.serial_seconds == einsum.seconds + psum.seconds
    assert cost.serial_utilisation is None
    assert cost.bound == "unknown"
    assert cost.thresholds == ()


def test_no_bandwidth_of_memory_a_lower_bound(priced):
    cost = priced("bd,df->bf", "XY,Y_->X_", chip="v5e without memory")
    assert cost.unknown == cost.steps[:1]
    assert cost.steps[0].seconds == cost.steps[0].compute_seconds > 0


def test_sums_without_products_are_counted_once(priced):
    def flops(text):
        return priced(text, ",".join("_" * len(dims) for dims in text.partition("->")[0].split(","))).flops

    assert flops("bd->b") == 1024 * 2048
    assert flops("bd->db") == 0
    assert flops("b,b->b") == 1024
    assert flops("b,b->") == 2 * 1024


def test_a_transpose_is_bound_by_memory(priced):
    (step,) = priced("bd->db", "__").steps
    assert (step.bound, step.compute_seconds) == ("HBM", 0)
    assert step.hbm_bytes == 2 * 2 * 1024 * 2048


def test_a_pending_result_costs_no_collective(priced):
    cost = priced("bd,df->bf", "XY,Y_->X_{U_Y}")
    assert [each.step.op for each in cost.steps] == ["einsum"]
    assert (cost.communication_seconds, cost.wire_bytes, cost.flops_per_wire_byte) == (0, 0, None)
    assert cost.serial_seconds == cost.overlapped_seconds == cost.compute_seconds


def test_a_mesh_of_one(priced):
    cost = priced("bd,df->bf", "X_,_X", mesh=Mesh(("X",), (1,)))
    assert [each.step.op for each in cost.steps] == ["einsum"]
    assert cost.steps[0].flops == 2 * 1024 * 2048 * 8192


def test_sizes_of_zero(priced):
    cost = priced("bd,df->bf", "XY,Y_->X_", "b=0")
    assert cost.flops == 0
    assert cost.thresholds == ()
    assert cost.serial_utilisation in (None, 0)


def test_totals_are_sums_and_the_longer_side(priced):
    cost = priced("bx,xy->by; by,yz->bz", "X_,_Y; ?,Y_->X_", "b=512,x=1024,y=4096,z=1024")
    local = [each for each in cost.steps if each.step.op in ("einsum", "slice")]
    sent = [each for each in cost.steps if each.step.op not in ("einsum", "slice")]
    assert sent
    assert cost.compute_seconds == pytest.approx(sum(each.seconds for each in local))
    assert cost.communication_seconds == pytest.approx(sum(each.seconds for each in sent))
    assert cost.serial_seconds == pytest.approx(cost.compute_seconds + cost.communication_seconds)
    assert cost.overlapped_seconds == max(cost.compute_seconds, cost.communication_seconds)
    assert sum(cost.communication_by_axes.values()) == pytest.approx(cost.communication_seconds)
    assert cost.serial_utilisation == pytest.approx(cost.flops / 1.97e14 / cost.serial_seconds)
    assert cost.overlapped_utilisation >= cost.serial_utilisation
    assert cost.bound == max(sent, key=lambda each: each.seconds).bound


def test_a_collective_is_as_slow_as_its_links_or_its_memory(priced):
    slow, fast = (priced("bd,df->bf", "XY,Y_->X_", bandwidth=each).steps[1] for each in (4.5e10, 1e15))
    assert slow.bound == "Y on y"
    assert slow.seconds == slow.wire_seconds > slow.hbm_seconds
    assert slow.convention
    assert fast.bound == "HBM"
    assert fast.seconds == fast.hbm_seconds > fast.wire_seconds


def test_a_small_collective_is_bound_by_latency(priced):
    assert priced("bd,df->bf", "XY,Y_->X_", "b=2,d=4,f=2").steps[1].bound == "latency"


# Random problems ------------------------------------------------------------------------------------------


EINSUMS = ("bd,df->bf", "bd,df->b", "b,b->b", "bd->b", "bsd,df->bsf", "bx,xy->by;by,yz->bz", "bij,bjk->bik")


def random_problem(rng):
    sizes = [rng.choice((1, 2, 3, 4, 8)) for _ in range(rng.randint(1, 3))]
    mesh = Mesh(tuple("XYZ"[: len(sizes)]), tuple(sizes))
    text = rng.choice(EINSUMS)
    parts = []
    for number, part in enumerate(text.split(";")):
        specs = []
        for place, dims in enumerate(part.partition("->")[0].split(",")):
            free = list(mesh.axis_names)
            if number and not place:
                specs.append("?")
                continue
            spec = ""
            for _ in dims:
                taken = [free.pop(rng.randrange(len(free)))] if free and rng.random() < 0.5 else []
                spec += taken[0] if taken else "_"
            specs.append(spec)
        parts.append(",".join(specs))
    dims = sorted({letter for letter in text if letter.isalpha()})
    length = {dim: 24 * rng.randint(1, 40) for dim in dims}
    given = ",".join(f"{dim}={size}" for dim, size in length.items())
    dtype = rng.choice(("bf16", "s8"))
    return problem_from_text(text, mesh=mesh, specs=";".join(parts), sizes=given, dtype=dtype)


def shard_of(array, spec, mesh):
    """Sizes of the first device's slices of an array."""
    layout = Layout(array.with_spec(spec), mesh)
    return [stop - start for start, stop in layout.slices(layout.block(0))]


def recounted(found, device):
    """FLOPs, bytes of HBM, seconds without those on links, of every step; in exact fractions."""
    problem, mesh = found.problem, found.problem.mesh
    width = Fraction(BITS[problem.result.dtype], 8)
    arrays = {array.name: array for array in problem.arrays}
    now = {array.name: array.spec for array in problem.arguments}
    part = iter(problem.parts)

    def size(name, spec):
        return width * prod(shard_of(arrays[name], spec, mesh))

    for step in found.steps:
        if step.op == "einsum":
            einsum = next(part).einsum
            local = {}
            for name, dims in zip(step.operands, einsum.operands, strict=True):
                local |= dict(zip(dims, shard_of(arrays[name], now[name], mesh), strict=True))
            each = len(step.operands) - 1 + bool(set(local) - set(einsum.result))
            flops = each * prod(local.values())
            moved = sum(size(name, now[name]) for name in step.operands) + size(step.array, step.to_spec)
        else:
            flops = 0
            moved = size(step.array, step.from_spec) + size(step.array, step.to_spec)
            if step.op == "slice":
                moved = Fraction(0)  # read in place by the step that uses it
        now[step.array] = step.to_spec
        peak = Fraction(device.flops_per_second(problem.result.dtype))
        yield flops, moved, max(Fraction(flops) / peak, moved / Fraction(device.hbm_bandwidth))


@pytest.mark.parametrize("seed", range(60))
def test_random_plans_agree_with_a_second_count(seed, placed):
    problem = random_problem(random.Random(seed))
    found = plan(problem)
    lies = placed(problem.mesh)
    cost = price(found, lies)
    for priced_step, (flops, moved, least) in zip(
        cost.steps, recounted(found, lies.machine.device), strict=True
    ):
        step = priced_step.step
        assert (priced_step.flops, priced_step.hbm_bytes) == (flops, moved)
        wanted = float(least)
        if step.op in HLO_OPS:
            levels = lies.group_levels(step.axes)
            wanted = max(wanted, collective_time(HLO_OPS[step.op], step.bytes, levels).seconds)
            assert priced_step.wire_bytes == step.wire_bytes
        assert priced_step.seconds == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_memory_of_random_plans(seed, placed):
    """Every device holds the arguments, what later steps read, what a step makes, and at last the result."""
    problem = random_problem(random.Random(seed))
    cost = price(plan(problem), placed(problem.mesh))
    steps = [each.step for each in cost.steps]

    def read(number):
        """The forms of arrays that a step reads: the newest before it."""
        forms = {array.name: array.spec for array in cost.plan.problem.arguments}
        forms |= {step.array: step.to_spec for step in steps[:number]}
        return {(name, forms[name]) for name in steps[number].operands or (steps[number].array,)}

    given = {(array.name, array.spec) for array in problem.arguments}
    for number, each in enumerate(cost.steps):
        made = {(step.array, step.to_spec) for step in steps[: number + 1]}
        needed = {form for later in range(number, len(steps)) for form in read(later)}
        final = (steps[-1].array, steps[-1].to_spec)
        wanted = given | {(steps[number].array, steps[number].to_spec)} | (made & (needed | {final}))
        if steps[number].op == "psum":
            # The totals take the place of the partial sums.
            wanted -= {(steps[number].array, steps[number].from_spec)} - given
        held = {(one.name, one.spec): one.bytes for one in each.resident}
        assert held.keys() == wanted
        sizes = {array.name: array for array in cost.plan.problem.arrays}
        width = Fraction(BITS[problem.result.dtype], 8)
        for (name, spec), count in held.items():
            assert count == width * prod(shard_of(sizes[name], spec, problem.mesh))
        assert each.live_bytes == sum(held.values())
    assert cost.peak_bytes == max(each.live_bytes for each in cost.steps)


def test_memory_is_the_tpu_compilers(priced):
    # libtpu 0.0.52 for v5e:2x4: a peak of 3,456 MiB and 1 KiB.
    gathered = priced("bd,df->bf", "X_,X_->X_", "b=131072,d=16384,f=8192")
    assert [each.step.op for each in gathered.steps] == ["all_gather", "einsum"]
    assert gathered.peak_bytes == 3456 * 2**20


def test_a_psum_takes_no_second_place_but_beside_an_argument(priced):
    # libtpu 0.0.52 counts no temporaries for a matmul whose result it adds up.
    summed = priced("bd,df->bf", "XY,Y_->X_", "b=8,d=2048,f=8192")
    assert [each.step.op for each in summed.steps] == ["einsum", "psum"]
    assert summed.steps[0].live_bytes == summed.steps[1].live_bytes
    given = priced("bd->bd", "_X{U_Y}->_X", "b=1,d=65536")
    assert [each.step.op for each in given.steps if each.is_collective] == ["psum"]
    assert given.peak_bytes >= 2 * given.steps[0].step.bytes


def test_gathered_copies_are_gone_after_their_last_use(priced):
    cost = priced("bx,xy->by; by,yz->bz", "X_,_X; ?,_X->X_", "b=16384,x=1024,y=1024,z=1024")
    names = [[f"{each.name}{each.spec}" for each in step.resident] for step in cost.steps]
    gathered = "W1P(None, None)"
    assert [gathered in held for held in names] == [True, True, False, False]
    assert cost.peak_step is cost.steps[2] or cost.peak_step is cost.steps[3]


def test_what_does_not_fit_says_by_how_much(priced):
    cost = priced("bd,df->bf", "__,__", "b=65536,d=65536,f=65536")
    assert cost.limit_bytes == 15 * 2**30
    assert cost.over_bytes == 3 * 2 * 65536**2 - 15 * 2**30
    assert priced("bd,df->bf", "__,__").over_bytes == 0


# Published figures ----------------------------------------------------------------------------------------


def test_a_matmul_over_the_batch_on_eight_cores_of_v2(priced):
    # 95.6 ms by its formula, 96 ms measured on a v2-8.
    matmul = priced("bd,df->bf", "__,__", f"b={4 * 1024},d=8192,f=32768", chip="v2")
    assert matmul.compute_seconds == pytest.approx(95.6e-3, rel=1e-2)


def on_machine(name, text, specs, sizes, mesh, dtype="bf16"):
    problem = problem_from_text(text, mesh=mesh, specs=specs, sizes=sizes, dtype=dtype)
    cluster = parse_cluster(name)
    assert cluster is not None
    return price(plan(problem), place_mesh(cluster, mesh))


@pytest.mark.parametrize(("batch", "seconds", "bound"), [(64, 8.6e-6, "HBM"), (512, 15e-6, "compute")])
def test_a_matmul_on_one_b200(batch, seconds, bound):
    # The scaling book's chapter on GPUs: fp16[B, 4096] · [4096, 8192], weights read from HBM.
    sizes = f"b={batch},d=4096,f=8192"
    cost = on_machine("b200:1", "bd,df->bf", "__,__", sizes, Mesh(("X",), (1,)), "f16")
    assert cost.steps[0].textbook_seconds == pytest.approx(seconds, rel=0.025)
    assert cost.bound == bound
    # As measured of other sizes: 5.9 µs, 71 % of 2.25 PFLOP/s, and bytes at 26 TB/s.
    work = 5.9e-6 + 2 * batch * 4096 * 8192 / 1.5975e15 + 2 * (batch * 12288 + 4096 * 8192) / 2.6e13
    assert cost.serial_seconds == pytest.approx(work)


def test_a_matmul_of_hardly_any_work_takes_its_start():
    cost = on_machine("h100:1", "bd,df->bf", "__,__", "b=64,d=64,f=64", Mesh(("X",), (1,)))
    assert cost.bound == "latency"
    assert 5.7e-6 < cost.serial_seconds < 5.8e-6


@pytest.mark.parametrize(("machine", "batch"), [("v5e:1x1", 240), ("h100:1", 295)])
def test_the_batch_from_which_a_matmul_is_compute_bound(machine, batch):
    sizes = f"b=8,d={2**28},f={2**28}"
    cost = on_machine(machine, "bd,df->bf", "__,__", sizes, Mesh(("X",), (1,)))
    assert cost.thresholds[0].least == pytest.approx(batch, abs=1)


def test_llama_70b_mlp_on_v5p():
    mesh = Mesh(("X", "Y"), (16, 8))
    sizes = "b=64,t=2048,d=8192,f=28672"
    cost = on_machine("v5p:4x4x8", "btd,df->btf; btf,fd->btd", "X__,_Y; ?,Y_->X__", sizes, mesh)
    tokens = 64 * 2048
    assert cost.flops == 4 * tokens * 8192 * 28672 // 128
    assert cost.compute_seconds == pytest.approx(cost.flops / 4.59e14)
    # An all-reduce over Y, eight in a ring: 2 · 7/8 of bf16[4, 2048, 8192] over two links of 90 GB/s.
    assert cost.communication_seconds == pytest.approx(2 * 7 / 8 * 2 * tokens // 16 * 8192 / 1.8e11 + 4e-6)
    assert cost.bound == "compute"


def test_a_step_says_why_it_may_take_longer(priced):
    sent, local = priced("bd,df->bf", "XY,_Y->XY").steps
    assert local.optimistic == "no matmul reaches the peak"
    assert sent.optimistic == "no collective reaches its links' full bandwidth, starting one takes time"


def test_work_other_than_matmuls_launches_a_kernel_on_gpus():
    """XLA's cost model counts 1 µs."""
    mesh = Mesh(("X",), (1,))
    small, large = (
        on_machine("h100:1", "Y[b] = relu(A[b])", None, f"b={size}", mesh).steps[-1] for size in (1024, 2**30)
    )
    assert small.seconds == pytest.approx(1e-6 + small.hbm_bytes / 3.35e12)
    assert small.bound == "latency"
    assert small.convention.endswith("after 1 µs to launch its kernel")
    assert (large.bound, large.textbook_seconds) == ("HBM", pytest.approx(large.hbm_bytes / 3.35e12))


def test_a_plan_on_links_that_nobody_publishes_is_shown_without_its_seconds():
    mesh = Mesh(("X", "Y"), (4, 4))
    problem = problem_from_text("bd,df->bf", mesh=mesh, specs="XY,Y_->X_")
    cost, least = (
        price(plan(problem, placed, objective), placed)
        for name, objective in (("trn2:16", "time"), ("h100:2x8", "bytes"))
        for placed in [place_mesh(named_machine(name), mesh)]
    )
    assert [step.step.op for step in cost.steps] == [step.step.op for step in least.steps]
    sent = [step for step in cost.steps if step.is_collective]
    assert [(step.seconds, step.bound) for step in sent] == [(None, "unknown")] * len(sent)
    assert cost.missing_figure == "no bandwidth of NeuronLink is published for trn2"


def test_a_permute_on_a_torus_says_that_it_is_priced_to_the_neighbours():
    mesh = Mesh(("X", "Y"), (4, 4))
    for name, is_told in (("v5e:4x4", True), ("gb200:16", False)):
        placed = place_mesh(named_machine(name), mesh)
        problem = problem_from_text("ij->ij", mesh=mesh, specs="(XY)_->(YX)_")
        step = price(plan(problem, placed, "bytes"), placed).steps[-1]
        assert step.step.op == "ppermute"
        assert step.optimistic.endswith("blocks may go farther than to the neighbours") is is_told


def test_a_launch_may_take_longer_and_what_takes_no_time_may_not():
    placed = place_mesh(named_machine("h100:8"), MESH)
    problem = problem_from_text("ij->ij", mesh=MESH, specs="__->X_", sizes="i=64,j=64")
    einsum, cut = sorted(price(plan(problem, placed), placed).steps, key=lambda step: step.step.op)
    assert (einsum.bound, einsum.optimistic) == ("latency", "kernels may take longer to launch")
    assert (cut.step.op, cut.seconds, cut.optimistic) == ("slice", 0.0, "")


def test_what_was_measured_is_not_optimistic():
    mesh = Mesh(("X", "Y"), (2, 4))
    named = {}
    for name in ("h100:8", "v5e:2x4"):
        placed = place_mesh(named_machine(name), mesh)
        found = plan(problem_from_text("bd,df->bf", mesh=mesh, specs="XY,_Y->XY"), placed)
        named[name] = [step.optimistic for step in price(found, placed).steps]
    assert named["h100:8"] == ["", ""]
    assert named["v5e:2x4"] == [
        "no collective reaches its links' full bandwidth",
        "no matmul reaches the peak",
    ]


@pytest.mark.parametrize(
    ("times", "places"),
    [
        ([(1.0, 1.0), (2.0, 0.9)], [2]),
        ([(1.0, 0.9), (2.0, 1.0), (3.0, 0.5)], [3]),
        ([(1.0, 1.0), (1.001, 0.5)], []),
        ([(1.0, 1.0), (2.0, 0.999)], []),
    ],
)
def test_neighbours_change_sides_where_the_other_estimate_turns_their_order(times, places):
    assert overtaking(times) == places
