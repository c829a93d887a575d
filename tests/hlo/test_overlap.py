"""What runs between a start and its done, in texts of every form."""

from __future__ import annotations

import pytest

from shardviz.hlo import read_hlo
from shardviz.hlo.overlap import algorithm_of

GROUPS = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true"
GATHERED = "(f32[8], f32[32]) all-gather-start(%p), dimensions={0}, " + GROUPS
HELPERS = """
%product (a: f32[8,8], b: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8] parameter(0)
  %b = f32[8,8] parameter(1)
  ROOT %d = f32[8,8] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%outer (a: f32[8,8], b: f32[8,8]) -> f32[8,8] {
  %a = f32[8,8] parameter(0)
  %b = f32[8,8] parameter(1)
  ROOT %f = f32[8,8] fusion(%a, %b), kind=kOutput, calls=%product
}
"""
GATHERING = """
%gathering (p: f32[8]) -> f32[32] {
  %p = f32[8] parameter(0)
  ROOT %inner = f32[32] all-gather(%p), dimensions={0}, GROUPS
}
""".replace("GROUPS", GROUPS)


def overlapped(*lines: str, helpers: str = HELPERS):
    body = "\n".join(f"  {line}" for line in lines)
    module = read_hlo(
        f"HloModule m, is_scheduled=true, num_partitions=4\n{helpers}\n"
        f"ENTRY %main (p: f32[8], q: f32[8,8]) -> f32[8] {{\n  %p = f32[8] parameter(0)\n"
        f"  %q = f32[8,8] parameter(1)\n{body}\n}}\n"
    )
    assert module.unread == ()
    return [
        (each.is_async, [(work.name, work.op) for work in each.overlapped]) for each in module.collectives
    ]


DONE = "%done = f32[32] all-gather-done(%start)"


@pytest.mark.parametrize(
    ("line", "op"),
    [
        ("%x = f32[8,8] dot(%q, %q), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "matmul"),
        ("%x = f32[8,8] convolution(%q, %q), dim_labels=bf_io->bf", "matmul"),
        ('%x = (f32[8,8], s8[64]) custom-call(%q, %q), custom_call_target="__cublas$gemm"', "matmul"),
        ('%x = f32[8,8] custom-call(%q), custom_call_target="TopK"', "custom-call"),
        ("%x = f32[8,8] fusion(%q, %q), kind=kOutput, calls=%outer", "matmul"),
        ("%x = f32[8,8] fusion(%q, %q), kind=kLoop, calls=%elsewhere", "fusion"),
        ("%x = f32[8,8] add(%q, %q)", "add"),
        ("%x = f32[8] all-reduce(%p), to_apply=%sum, " + GROUPS, "all-reduce"),
        ("%x = f32[] reduce(%p, %zero), dimensions={0}, to_apply=%sum", "reduce"),
    ],
)
def test_work(line, op):
    assert overlapped(f"%start = {GATHERED}", line, DONE)[0] == (True, [("x", op)])


@pytest.mark.parametrize(
    "line",
    [
        "%x = f32[8] parameter(2)",
        "%x = f32[] constant(0)",
        "%x = (f32[8], f32[8]) tuple(%p, %p)",
        "%x = f32[8] get-tuple-element(%t), index=0",
        "%x = f32[64] bitcast(%q)",
        "%x = s32[] add(%i, %j)",
        "%x = u32[1]{0:T(128)} clamp(%i, %j, %k)",
        "%x = (f32[8], f32[8], u32[]) copy-start(%p)",
        "%x = f32[8] copy-done(%c)",
        "%x = ((f32[8]), f32[4], s32[]) slice-start(%p), slice={[0:4]}",
        '%x = f32[8,8] custom-call(), custom_call_target="AllocateBuffer"',
        '%x = f32[8,8] custom-call(%p, %p), custom_call_target="ConcatBitcast"',
    ],
)
def test_no_work(line):
    assert overlapped(f"%start = {GATHERED}", line, DONE) == [(True, [])]


def test_work_outside_is_not_beside_it():
    lines = ["%early = f32[8,8] add(%q, %q)", f"%start = {GATHERED}", DONE, "%late = f32[8,8] add(%q, %q)"]
    assert overlapped(*lines) == [(True, [])]


def test_a_blocking_start():
    start = f'%start = {GATHERED}, backend_config={{"collective_backend_config":{{"is_sync":true}}}}'
    assert overlapped(start, "%x = f32[8,8] add(%q, %q)", DONE) == [(False, [])]


def test_async_wrapper_with_updates():
    found = overlapped(
        "%s = ((f32[8]), f32[32], u32[]) async-start(%p), calls=%gathering",
        "%x = f32[8,8] add(%q, %q)",
        "%u = ((f32[8]), f32[32], u32[]) async-update(%s)",
        "%y = f32[8,8] fusion(%q, %q), kind=kOutput, calls=%product",
        "%done = f32[32] async-done(%u)",
        "%z = f32[8,8] add(%q, %q)",
        helpers=HELPERS + GATHERING,
    )
    assert found == [(True, [("x", "add"), ("y", "matmul")])]


def test_a_call_that_the_sparse_cores_run():
    found = overlapped(
        '%s = ((f32[8]), f32[32]) call-start(%p), async_execution_thread="sparsecore", to_apply=%gathering',
        '%w = token[] custom-call(), custom_call_target="PrepareAsyncCallDone"',
        "%x = f32[8,8] add(%q, %q)",
        "%done = f32[32] call-done(%s)",
        helpers=HELPERS + GATHERING,
    )
    assert found == [(True, [("x", "add")])]


def test_two_at_a_time():
    other = "%other = f32[8] all-reduce-start(%p), to_apply=%sum, " + GROUPS
    lines = [f"%start = {GATHERED}", other, "%x = f32[8,8] add(%q, %q)", DONE]
    lines.append("%end = f32[8] all-reduce-done(%other)")
    assert overlapped(*lines) == [(True, [("other", "all-reduce"), ("x", "add")]), (True, [("x", "add")])]


def test_a_start_without_an_end():
    assert overlapped(f"%start = {GATHERED}", "%x = f32[8,8] add(%q, %q)") == [(True, [])]


def test_a_loop_that_ends_what_its_iteration_before_began():
    loop = f"""
%body (s: (f32[8,8], (f32[8], f32[32]), f32[8])) -> (f32[8,8], (f32[8], f32[32]), f32[8]) {{
  %s = (f32[8,8], (f32[8], f32[32]), f32[8]) parameter(0)
  %q = f32[8,8] get-tuple-element(%s), index=0
  %under_way = (f32[8], f32[32]) get-tuple-element(%s), index=1
  %p = f32[8] get-tuple-element(%s), index=2
  %before = f32[8,8] add(%q, %q)
  %done = f32[32] all-gather-done(%under_way)
  %neither = f32[8,8] add(%q, %q)
  %start = {GATHERED}
  %after = f32[8,8] add(%q, %q)
  ROOT %t = (f32[8,8], (f32[8], f32[32]), f32[8]) tuple(%before, %start, %p)
}}
"""
    line = (
        '%w = (f32[8,8]) while(%t), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"3"}}'
    )
    assert overlapped(line, helpers=loop) == [(True, [("after", "add"), ("before", "add")])]


TPU = '"collective_algorithm_config":{%s,"debug":"\\nType: 1D {colors:2} \\"x\\""}'
GPU = '"collective_backend_config":{"is_sync":true,"backend":"%s","kernel_strategy":"KERNEL_STRATEGY_%s"}'


@pytest.mark.parametrize(
    ("config", "algorithm"),
    [
        (
            TPU % '"emitter":"RotatedPincerEmitter","strategy":"UniDirection1DRingStrategy"',
            "rotated pincer, uni direction 1D ring",
        ),
        (
            TPU % '"emitter":"RotatedPincerEmitter","strategy":"UniDirectionNDRingStrategy"',
            "rotated pincer, uni direction ND ring",
        ),
        (TPU % '"emitter":"2DAllGatherNonMajorDim"', "2D all gather non major dim"),
        (GPU % ("DEFAULT", "DEFAULT"), ""),
        (GPU % ("NVSHMEM", "TRITON_TWO_SHOT"), "nvshmem, triton two shot"),
        ('"flag_configs":[]', ""),
        ('"collective_algorithm_config":{"emitter":"Cut', ""),
    ],
)
def test_compilers_words(config, algorithm):
    line = f"%a = f32[8] all-reduce(%p), backend_config={{{config}}}"
    assert algorithm_of(line) == algorithm
    assert algorithm_of(line[:10]) == ""
