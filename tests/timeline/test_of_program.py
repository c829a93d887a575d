"""Timelines of scheduled modules: small texts of our own making, with times that can be added up by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from shardviz.errors import QuestionError
from shardviz.hardware.clusters import parse_cluster
from shardviz.hardware.collective_time import collective_time
from shardviz.hardware.machine import Machine, place_mesh
from shardviz.sharding import Mesh
from shardviz.timeline.of_program import timed_program
from shardviz.timeline.program_timeline import ProgramTimeline

X = Mesh(("X",), (4,))
GROUPS = "replica_groups={{0,1,2,3}}, use_global_device_ids=true"
GATHER_SECONDS = 0.75 * 4 * 1024 * 1024 / 45e9 / 2 + 2e-6 + 3e-6
"""3/4 of bf16[2048,1024] over the two links of a chip of v5e:2x2, and two hops."""


def machine(name: str = "v5e:2x2") -> Machine:
    """A machine whose clock makes 1,000 cycles a microsecond."""
    found = parse_cluster(name)
    return replace(found, device=replace(found.device, clock=1e9))


def fusion(name: str, operand: str, cycles: int, *, root: bool = False) -> str:
    config = f'backend_config={{"window_config":{{"estimated_cycles":"{cycles}"}}}}'
    return (
        f"  {'ROOT ' if root else ''}%{name} = bf16[512,1024]{{1,0}} fusion(%{operand}), kind=kLoop, "
        f'calls=%work, metadata={{op_name="jit(f)/{name}" stack_frame_id=1}}, {config}'
    )


HEAD = """HloModule jit_f, is_scheduled=true, num_partitions=4

FileNames
1 "layers.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=2 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


%work (p: bf16[512,1024]) -> bf16[512,1024] {
  %p = bf16[512,1024]{1,0} parameter(0)
  ROOT %n = bf16[512,1024]{1,0} negate(%p)
}
"""


def module(*entry: str, others: str = "", head: str = HEAD) -> str:
    lines = "\n".join(entry)
    return f"{head}\n{others}\nENTRY %main (x: bf16[512,1024]) -> bf16[512,1024] {{\n{lines}\n}}\n"


PARAMETER = "  %x = bf16[512,1024]{1,0} parameter(0)"
START = (
    "  %ag = (bf16[512,1024]{1,0}, bf16[2048,1024]{1,0}) all-gather-start(%x), channel_id=1, "
    f"{GROUPS}, dimensions={{0}}"
)
DONE = "  %agd = bf16[2048,1024]{1,0} all-gather-done(%ag)"


def timeline(text: str, name: str = "v5e:2x2", mesh: Mesh | None = X) -> ProgramTimeline:
    return timed_program(text, machine(name), mesh=mesh)[1]


def test_work_one_after_the_other():
    found = timeline(module(PARAMETER, fusion("a", "x", 5000), fusion("b", "a", 7000, root=True)))
    assert [(op.name, op.start, op.end) for op in found.ops] == [("a", 0, 5e-6), ("b", 5e-6, 12e-6)]
    assert found.seconds == found.compute_seconds == found.drawn_seconds == 12e-6
    assert found.critical_path == (0, 1)
    assert found.ops[1].after == (0,)
    assert (found.ops[0].estimate, found.ops[0].source) == ("compiler", "layers.py:12")
    assert [lane.name for lane in found.lanes] == ["compute"]
    assert found.notes == ()


def test_a_collective_beside_work_is_exposed_for_the_rest():
    found = timeline(
        module(PARAMETER, START, fusion("a", "x", 5000), DONE, fusion("b", "a", 7000, root=True))
    )
    gather, a, b = found.ops
    assert gather.end == pytest.approx(GATHER_SECONDS, rel=1e-9)
    assert gather.exposed == pytest.approx(GATHER_SECONDS - 5e-6, rel=1e-9)
    assert (a.start, b.start) == (0, gather.end)
    assert b.after == (0, 1)
    assert found.seconds == pytest.approx(GATHER_SECONDS + 7e-6, rel=1e-9)
    assert found.critical_path == (0, 2)
    assert dict(found.exposed_seconds)["X"] == pytest.approx(gather.exposed)
    assert found.savings[0].message == "all-gather ag along X is exposed for 35 µs"


def test_an_operation_says_why_it_may_take_longer():
    """As a step of a plan does; what the compiler counts and what was measured says nothing."""
    text = module(PARAMETER, START, fusion("a", "x", 5000), DONE, "  ROOT %n = bf16[512,1024] negate(%a)")
    on_tpu, on_gpu = (
        {op.op: op.optimistic for op in timeline(text, name).ops} for name in ("v5e:2x2", "h100:4")
    )
    assert on_tpu == {
        "all-gather": "no collective reaches its links' full bandwidth",
        "fusion": "",
        "negate": "nothing reaches all of HBM's bandwidth",
    }
    assert on_gpu == {"all-gather": "", "fusion": "", "negate": "kernels may take longer to launch"}


@pytest.mark.parametrize("shift", [1, 2])
def test_a_permute_takes_the_time_of_its_own_pairs(shift):
    """Pairs that swap and a ring over NVLink; on a torus by the hops of each message."""
    pairs = [(0, 1), (1, 0), (2, 3), (3, 2)] if shift == 1 else [(n, (n + shift) % 4) for n in range(4)]
    said = ",".join(f"{{{source},{target}}}" for source, target in pairs)
    permute = f"  ROOT %p = bf16[512,1024]{{1,0}} collective-permute(%x), source_target_pairs={{{said}}}"
    for name in ("h100:4", "v5e:1x4"):
        (found,) = timeline(module(PARAMETER, permute), name).ops
        levels = place_mesh(machine(name), X).levels_for("ppermute", ("X",))
        assert found.seconds == collective_time("collective-permute", 2**20, levels, pairs=pairs).seconds


def test_a_collective_on_the_sparse_cores_takes_the_time_of_its_links():
    """As libtpu 0.0.42.1 writes it for TPU7x: a call that begins, its collective in the computation, and the
    preparation of both, whose cycles are 2^63 - 1."""
    called = (
        "%called (p: bf16[512,1024], t: token[]) -> bf16[2048,1024] {\n"
        "  %t = token[] parameter(1)\n  %p = bf16[512,1024]{1,0} parameter(0)\n"
        f"  ROOT %in = bf16[2048,1024]{{1,0}} all-gather(%p), channel_id=1, {GROUPS}, dimensions={{0}}\n"
        '}, execution_thread="sparsecore"\n'
    )
    prepared = (
        '  %ps = s32[] custom-call(), custom_call_target="PrepareAsyncCallStart"',
        '  %pd = token[] custom-call(%ps), custom_call_target="PrepareAsyncCallDone"',
    )
    start = (
        "  %ag = ((bf16[512,1024]{1,0}, token[]), bf16[2048,1024]{1,0}) call-start(%x, %pd), "
        'async_execution_thread="sparsecore", to_apply=%called'
    )
    done = "  %agd = bf16[2048,1024]{1,0} call-done(%ag)"
    work = fusion("a", "x", 5000), fusion("b", "a", 7000, root=True)
    found = timeline(module(PARAMETER, *prepared, start, work[0], done, work[1], others=called))
    beside = timeline(module(PARAMETER, START, work[0], DONE, work[1]))
    assert [(op.op, op.seconds, op.exposed, op.start) for op in found.ops] == [
        (op.op, op.seconds, op.exposed, op.start) for op in beside.ops
    ]
    assert (found.seconds, found.notes) == (beside.seconds, ())


def test_the_text_of_one_of_two_slices():
    mesh = Mesh(("S", "X"), (2, 4))
    found = machine("2*v5e:2x2")
    placed = place_mesh(found, mesh)
    text = module(PARAMETER, START, DONE, fusion("a", "x", 5000, root=True))
    gather, _ = timed_program(text, found, mesh=mesh, placement=placed.placement)[1].ops
    assert gather.seconds == pytest.approx(GATHER_SECONDS, rel=1e-9)
    # Where the mesh lies as JAX would place it, as here, that need not be said.
    assert timed_program(text, found, mesh=mesh)[1].ops[0] == gather


def test_a_hidden_collective_is_not_exposed():
    found = timeline(
        module(PARAMETER, START, fusion("a", "x", 90000), DONE, fusion("b", "a", 7000, root=True))
    )
    assert found.seconds == pytest.approx(97e-6)
    assert (found.exposed_seconds, found.critical_path) == ((), (1, 2))


def test_blocking_and_without_a_cost():
    blocking = f"  %ag = bf16[2048,1024]{{1,0}} all-gather(%x), channel_id=1, {GROUPS}, dimensions={{0}}"
    kernel = '  %k = bf16[512,1024]{1,0} custom-call(%x), custom_call_target="mystery"'
    found = timeline(module(PARAMETER, blocking, kernel, fusion("b", "k", 1000, root=True)))
    assert found.seconds == pytest.approx(GATHER_SECONDS + 1e-6)
    assert found.unknown == ("k",)
    assert found.ops[1].seconds is None
    assert any("without an estimate: 'k'" in note for note in found.notes)


RECORDED = Path(__file__).parents[1] / "hlo" / "recorded"


def test_what_ran_on_gpus():
    """Three all-gathers, of which the text says that two block, and three matmuls."""
    text = (RECORDED / "all_gather_h100x8.txt").read_text()
    found = timed_program(text, parse_cluster("h100:8"), infer=True)[1]
    gathers = [op for op in found.ops if op.op == "all-gather"]
    matmuls = [op for op in found.ops if op.op == "matmul"]
    assert [op.is_async for op in gathers] == [False, False, True]
    assert [op.flops for op in matmuls] == [found.flops // 3] * 3
    assert gathers[2].start < matmuls[0].end < gathers[2].end <= matmuls[2].start
    waited = sum(seconds for _, seconds in found.exposed_seconds)
    assert found.seconds == pytest.approx(found.compute_seconds + waited)


def test_without_cycles_the_roofline_is_a_lower_bound():
    dot = (
        "  %d = f32[512,512]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
        "  ROOT %n = f32[512,512]{1,0} negate(%d)"
    )
    found = timeline(module(PARAMETER.replace("bf16", "f32"), dot))
    assert [(op.name, op.estimate, op.bound) for op in found.ops] == [
        ("d", "roofline", "HBM"),
        ("n", "roofline", "HBM"),
    ]
    mib = 2**20
    assert found.seconds == pytest.approx((2 * 2 * mib + mib + 2 * mib) / 8.2e11)
    assert found.flops == 2 * 512 * 512 * 1024
    assert any("a lower bound" in note for note in found.notes)


def test_a_module_that_is_not_scheduled_is_timed_in_the_order_of_its_lines():
    text = module(PARAMETER, fusion("a", "x", 5000, root=True)).replace("is_scheduled=true, ", "")
    found = timeline(text)
    assert found.seconds == 5e-6
    assert "not scheduled" in found.notes[0]
    assert "is_scheduled=true" in found.notes[0]


def test_text_without_an_entry_and_a_mesh_of_another_size():
    with pytest.raises(QuestionError, match="no ENTRY computation"):
        timeline(HEAD)
    with pytest.raises(QuestionError, match="4 devices"):
        timeline(module(PARAMETER, fusion("a", "x", 5000, root=True)), mesh=Mesh(("X",), (8,)))
    with pytest.raises(QuestionError, match="8 devices, but the mesh axis_0=4 has 4") as raised:
        timed_program(module(PARAMETER, START, DONE), machine("v5e:2x4"), infer=True)[1]
    # The program's own mesh cannot be another.
    assert raised.value.hint == "use --machine v5e:2x2 or v5e:1x4"


def test_a_wait_for_other_transfers_is_no_saving():
    """Two gathers of 40 µs on the same links, the second blocks: the device waits 80 µs for it."""
    blocking = f"  %b = bf16[2048,1024]{{1,0}} all-gather(%x), channel_id=2, {GROUPS}, dimensions={{0}}"
    found = timeline(module(PARAMETER, START, blocking, DONE))
    second = found.ops[1]
    assert second.exposed == pytest.approx(2 * GATHER_SECONDS)
    assert found.savings[0].op == 1
    assert found.savings[0].seconds == pytest.approx(GATHER_SECONDS)


def test_small_savings_that_are_much_together_are_told():
    lines, last = [PARAMETER], "x"
    for number in range(1200):
        gather = (
            f"  %g{number} = bf16[2048,1024]{{1,0}} all-gather(%{last}), channel_id={number + 1}, "
            f"{GROUPS}, dimensions={{0}}"
        )
        lines += [gather, fusion(f"f{number}", f"g{number}", 5000)]
        last = f"f{number}"
    found = timeline(module(*lines))
    assert len(found.savings) == 5
    assert found.savings[0].seconds < 0.001 * found.seconds


def test_what_a_text_lacks_is_not_estimated():
    for missing in (
        "while(%x), condition=%absent, body=%absent",
        "call(%x), to_apply=%absent",
        "conditional(%i, %x, %x), branch_computations={%absent, %none}",
    ):
        lines = (PARAMETER, "  %i = s32[] constant(0)", f"  ROOT %r = bf16[512,1024]{{1,0}} {missing}")
        found = timeline(module(*lines))
        assert (found.seconds, found.unknown) == (0, ("r",))
        assert found.ops[0].detail == "the text lacks what it runs"


def test_a_size_beyond_64_bits_is_left_out():
    huge = f"  %h = f32[{'9' * 5000},4]{{1,0}} parameter(1)"
    added = f"  ROOT %r = f32[{'9' * 400},4]{{1,0}} add(%h, %h)"
    assert timeline(module(PARAMETER, huge, added)).seconds == 0


def test_the_utilisation_of_whole_numbers_is_of_their_peak():
    dot = "dot(%i, %i), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    lines = ("  %i = s8[4096,4096]{1,0} parameter(0)", f"  ROOT %d = s32[4096,4096]{{1,0}} {dot}")
    assert timeline(module(*lines)).utilisation == pytest.approx(1)


@pytest.mark.parametrize("first", ["send", "recv"])
def test_the_two_ends_of_a_channel_are_one_transfer(first):
    pairs = "frontend_attributes={_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3}}}"
    shape = "(bf16[512,1024]{1,0}, u32[], token[])"
    begin = {
        "send": f"  %s = {shape} send(%x, %t), channel_id=1, {pairs}",
        "recv": f"  %r = {shape} recv(%t), channel_id=1, {pairs}",
    }
    second = "recv" if first == "send" else "send"
    lines = (
        "  %t = token[] after-all()",
        begin[first],
        begin[second],
        "  %rd = (bf16[512,1024]{1,0}, token[]) recv-done(%r), channel_id=1",
        "  %sd = token[] send-done(%s), channel_id=1",
    )
    once = timeline(module(PARAMETER, *lines))
    assert [op.op for op in once.ops] == ["send"]
    again = (re.sub(r"%([srt]d?)\b(?!oken)", r"%\g<1>2", line) for line in lines)
    twice = timeline(module(PARAMETER, *lines, *again))
    assert [op.op for op in twice.ops] == ["send", "send"]
    assert twice.seconds == pytest.approx(2 * once.seconds)


def test_what_an_iteration_begins_for_the_next_is_drawn_where_it_is_waited_for():
    state = "(s32[], (bf16[512,1024]{1,0}, bf16[2048,1024]{1,0}), bf16[512,1024]{1,0})"
    under_way = "(bf16[512,1024]{1,0}, bf16[2048,1024]{1,0})"
    others = f"""%condition (c: {state}) -> pred[] {{
  %c = {state} parameter(0)
  ROOT %go = pred[] custom-call(%c), custom_call_target="go"
}}

%body (s: {state}) -> {state} {{
  %s = {state} parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %v = bf16[512,1024]{{1,0}} get-tuple-element(%s), index=2
{fusion("short", "v", 10000)}
  %begun = {under_way} get-tuple-element(%s), index=1
  %end = bf16[2048,1024]{{1,0}} all-gather-done(%begun)
{fusion("next", "end", 5000)}
  %again = {under_way} all-gather-start(%next), channel_id=2, {GROUPS}, dimensions={{0}}
  ROOT %o = {state} tuple(%i, %again, %short)
}}
"""
    found = timeline(
        module(
            PARAMETER,
            "  %i = s32[] constant(0)",
            START,
            f"  %t = {state} tuple(%i, %ag, %x)",
            f"  %loop = {state} while(%t), condition=%condition, body=%body, "
            'backend_config={"known_trip_count":{"n":"6"}}',
            f"  %left = {under_way} get-tuple-element(%loop), index=1",
            "  ROOT %last = bf16[2048,1024]{1,0} all-gather-done(%left)",
            others=others,
        )
    )
    ops = {op.name: op for op in found.ops}
    gather = ops["again"]
    assert (gather.start, gather.end) == (0, pytest.approx(GATHER_SECONDS))
    assert gather.exposed == pytest.approx(GATHER_SECONDS - 10e-6)
    assert ops["next"].start == gather.end
    assert [found.ops[number].name for number in found.critical_path] == ["again", "next"]
    assert found.seconds == pytest.approx(7 * GATHER_SECONDS + 6 * 5e-6)


def test_groups_that_no_mesh_explains_are_named():
    def reduce(number, operand, groups):
        return (
            f"  %r{number} = bf16[512,1024]{{1,0}} all-reduce(%{operand}), channel_id={number}, "
            f"replica_groups={groups}, use_global_device_ids=true, to_apply=%work"
        )

    two, four = reduce(1, "x", "{{0,3},{1,2}}"), reduce(2, "r1", "{{0,1,2,3}}")
    (note,) = (each for each in timeline(module(PARAMETER, two), mesh=None).notes if "mesh" in each)
    assert note == "the mesh is unknown: a ring of 2 stands for groups of that size"
    (note,) = (each for each in timeline(module(PARAMETER, two, four), mesh=None).notes if "mesh" in each)
    assert note == "the mesh is unknown: a ring of 2, a ring of 4 stand for groups of those sizes"


def test_a_text_without_a_header_has_no_name():
    entry = "ENTRY %main (x: bf16[8]) -> bf16[8] {\n  ROOT %x = bf16[8]{0} parameter(0)\n}\n"
    assert timeline(entry, mesh=None).title == "unnamed program"


def test_a_product_without_a_peak_takes_the_time_of_its_memory_traffic():
    text = module(
        "  %x = f64[512,512]{1,0} parameter(0)",
        "  ROOT %d = f64[512,512]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    )
    (op,) = timed_program(text, machine(), infer=True)[1].ops
    assert op.seconds == pytest.approx(op.bytes / 8.2e11)
    assert op.detail.endswith(", a lower bound: no peak of f64 is known")
