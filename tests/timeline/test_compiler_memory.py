"""The compiler's account of memory: XLA's reports as text, whole, damaged and missing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shardviz.timeline.compiler_memory import (
    does_not_fit,
    memory_over_limit,
    on_chip_misfit,
    read_memory,
    ways_to_fit,
)
from shardviz.timeline.of_program import on_clock
from shardviz.timeline.program_timeline import Lane, LiveBuffer, MemoryReport, ProgramTimeline, TimedOp

GIB = 2**30
SIZES = {"argument": 100, "output": 40, "alias": 0, "temporary": 60, "peak": 999}
ASSIGNMENT = """BufferAssignment:
allocation 0: size 100, parameter 0, shape |bf16[50]| at ShapeIndex {}:
 value: <1 param @0> (size=100,offset=0): bf16[50]{0:T(8,128)(2,1)}
allocation 1: size 40, output shape is |bf16[20]|, maybe-live-out:
 value: <2 fusion.9 @0> (size=40,offset=0): bf16[20]{0:T(8,128)(2,1)}
allocation 2: size 4096, color 1, preallocated-temp:
 value: <3 copy-start{0} @1> (size=4096,offset=0): bf16[2048]{0:T(8,128)(2,1)S(1)}
allocation 3: size 60, preallocated-temp:
 value: <4 all-gather.6 @0> (size=48,offset=0): bf16[24]{0:T(8,128)(2,1)}
 value: <5 fusion.2 @0> (size=10,offset=0): bf16[5]{0:T(8,128)(2,1)}
 value: <6 copy-start{} @0> (size=12,offset=48): (bf16[2048]{0:S(1)}, bf16[2048]{0}, u32[]{:S(2)})
allocation 4: size 7, constant:
 value: <7 constant.1 @0> (size=7,offset=0): s8[7]{0}
"""
LIVE_RANGES = """HloLiveRange (max 6):
  InstructionSequence:
    0:param
    1:copy-start
    2:all-gather.6
    3:copy-done
    4:fusion.2
    5:fusion.9
  BufferLiveRange:
    param{}:0-6
    copy-start{}:1-3
    copy-start{0}:1-5
    all-gather.6{}:2-4
    fusion.2{}:4-5
    fusion.9{}:5-6
  Live ranges at 4 (peak):
    all-gather.6{}: 48 bytes (cumulative: 48 bytes)
"""
MODULE = """HloModule jit_f, is_scheduled=true

FileNames
1 "layers.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=2 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}


ENTRY %main (param: bf16[50]) -> bf16[20] {
  %param = bf16[50]{0} parameter(0), metadata={op_name="W"}
  %all-gather.6 = bf16[24]{0} all-gather(%param), metadata={op_name="jit(f)/dot" stack_frame_id=1}
}
"""


def report(assignment: str = ASSIGNMENT, live: str = LIVE_RANGES, module: str = MODULE) -> MemoryReport:
    return read_memory(SIZES, assignment, live, module, 200)


def test_sizes_and_the_peak_of_hbm_alone():
    found = report()
    assert (found.by, found.argument_bytes, found.output_bytes, found.temporary_bytes) == (
        "compiler",
        100,
        40,
        60,
    )
    # What is allocated in HBM: on-chip memory is left out, and so is the other figure, which counts it.
    assert found.peak_bytes == 100 + 40 + 60 + 7
    assert (found.limit_bytes, found.over_bytes) == (200, 7)


@pytest.mark.parametrize(
    ("sizes", "peak"),
    [
        # Not all temporaries are live at once: the peak is less than the sum.
        ((100, 50, 0, 202, 285), 285),
        ((100, 50, 50, 202, 285), 285),
        # As measured with jaxlib 0.10 and 0.12, MiB: a CPU's peak lacks the temporaries, ...
        ((48, 16, 0, 456, 64), 520),
        ((48, 16, 16, 456, 48), 504),
        # (nearly all: here it has 20 bytes of 4 MiB),
        ((852_224, 786_468, 786_432, 4_277_096, 852_280), 5_129_356),
        # ... a TPU v5e's has on-chip memory, a v4's rounds less.
        ((64, 32, 0, 112, 248), 208),
        ((48, 16, 0, 129, 192), 192),
        ((8, 4, 0, 0, 12), 12),
    ],
)
def test_the_peak_is_that_of_the_compiler_where_it_can_be_one(sizes, peak):
    names = ("argument", "output", "alias", "temporary", "peak")
    assert read_memory(dict(zip(names, sizes, strict=True)), "", "", "").peak_bytes == peak


def test_what_is_live_by_the_reports_is_no_less_than_the_peak():
    live = max(live for _, live in report().order)
    for told, peak in ((live - 1, 207), (live, live), (206, 206), (208, 207)):
        assert read_memory(SIZES | {"peak": told}, ASSIGNMENT, LIVE_RANGES, MODULE).peak_bytes == peak


def test_live_bytes_by_instruction():
    always = 100 + 7
    assert report().order == (
        ("param", always),
        ("copy-start", always + 12),
        ("all-gather.6", always + 12 + 48),
        ("copy-done", always + 12 + 48),
        # The fusion writes over its operand.
        ("fusion.2", always + 48),
        ("fusion.9", always + 10 + 40),
    )


def test_the_largest_buffers_at_the_peak_with_lines_and_lifetimes():
    assert report().buffers == (
        LiveBuffer("W", "argument", "bf16[50]", 100, "W"),
        LiveBuffer(
            "all-gather.6", "temporary", "bf16[24]", 48, "layers.py:12", first="all-gather.6", last="fusion.2"
        ),
        LiveBuffer(
            "copy-start",
            "temporary",
            "(bf16[2048], bf16[2048], u32[])",
            12,
            first="copy-start",
            last="copy-done",
        ),
        LiveBuffer("constant.1", "constant", "s8[7]", 7),
    )


@pytest.mark.parametrize(
    ("said", "name"),
    [("params['w'][0]", "params['w'][0]"), ("jit(f)/transpose", "param"), ("f.py:7", "param"), ("", "param")],
)
def test_an_argument_has_the_users_name(said, name):
    assert report(module=MODULE.replace('op_name="W"', f'op_name="{said}"')).buffers[0].name == name


def test_a_newer_jaxlib_names_the_page_of_each_allocation():
    paged = re.sub(r"^(allocation \d+: size \d+), ", r"\1, page 0, ", ASSIGNMENT, flags=re.MULTILINE)
    assert paged != ASSIGNMENT
    assert report(assignment=paged) == report()


def test_on_a_clock():
    ops = [
        ("all-gather.6", 0.0, 3.0),
        ("fusion.2", 3.0, 4.0),
        ("fusion.9", 4.0, 6.0),
    ]
    timed = tuple(TimedOp(name, "fusion", 0, start, end, 1.0, "links") for name, start, end in ops)
    timeline = ProgramTimeline(
        "f", "v5e", (Lane("compute", "compute"),), timed, (), 6.0, 6.0, 0, (), (), 0, None
    )
    found = on_clock(report(), timeline)
    assert found.curve == ((0.0, 167), (3.0, 155), (4.0, 157))
    assert found.peak_at == 0.0
    gather = next(each for each in found.buffers if each.name == "all-gather.6")
    assert (gather.start, gather.end) == (0.0, 4.0)
    assert next(each for each in found.buffers if each.name == "W").start is None


def test_what_is_not_drawn_stands_where_the_work_before_it_ends():
    timed = (TimedOp("custom-call.1", "matmul", 0, 0.0, 6.0, 6.0, "compiler"),)
    timeline = ProgramTimeline(
        "f", "h100", (Lane("compute", "compute"),), timed, (), 6.0, 6.0, 6.0, (), (), 0, None
    )
    buffer = LiveBuffer("custom-call.1", "output", "bf16[20]", 40, first="custom-call.1", last="element")
    order = (("param", 100), ("custom-call.1", 140), ("element", 140))
    found = on_clock(replace(report(), buffers=(buffer,), order=order), timeline)
    assert (found.buffers[0].start, found.buffers[0].end) == (0.0, 6.0)


@pytest.mark.parametrize("without", ["live", "assignment", "module", "all"])
def test_a_report_that_is_missing(without):
    found = read_memory(
        SIZES,
        "" if without in ("assignment", "all") else ASSIGNMENT,
        "" if without in ("live", "all") else LIVE_RANGES,
        "" if without in ("module", "all") else MODULE,
    )
    assert found.argument_bytes == 100
    assert found.limit_bytes is None
    assert found.over_bytes == 0
    if without in ("assignment", "all"):
        assert (found.peak_bytes, found.buffers) == (200, ())
    else:
        assert found.peak_bytes == 207
        assert found.buffers[0].bytes == 100
    assert bool(found.order) == (without in ("assignment", "module"))


def test_reports_that_break_off_anywhere():
    for end in range(0, len(ASSIGNMENT), 3):
        assert report(assignment=ASSIGNMENT[:end]).peak_bytes in (100, 140, 200, 207)
    for end in range(0, len(LIVE_RANGES), 3):
        found = report(live=LIVE_RANGES[:end])
        assert found.peak_bytes == 207
        assert all(live <= 207 for _, live in found.order)
    for end in range(0, len(MODULE), 7):
        assert len(report(module=MODULE[:end]).buffers) == 4


MESSAGES = [
    "RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for "
    "HLO temporaries (18.00G) exceeds available HBM (15.75G). HLO module: jit__lambda.",
    "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (18.00G) "
    "exceeds available HBM (15.75G).",
]


@pytest.mark.parametrize("message", MESSAGES)
def test_what_does_not_fit_says_first_by_how_much(message):
    found = memory_over_limit(read_memory({}, "", "", ""), message)
    assert (found.peak_bytes, found.limit_bytes, found.over_bytes) == (18 * GIB, 15.75 * GIB, 2.25 * GIB)
    assert does_not_fit(found) == "does not fit: 2.25 GiB over 15.75 GiB of HBM"


def test_reports_are_more_exact_than_the_message():
    exact = ASSIGNMENT.replace("allocation 0: size 100,", f"allocation 0: size {18 * GIB - 5},")
    found = memory_over_limit(read_memory({}, exact, LIVE_RANGES, MODULE), MESSAGES[0])
    assert found.peak_bytes == 18 * GIB - 5 + 40 + 60 + 7
    said = does_not_fit(found)
    assert said.startswith("does not fit: 2.25 GiB over 15.75 GiB of HBM, 18 GiB needed; ")
    assert said.endswith("is W bf16[50]")


def test_a_message_about_other_memory_changes_nothing():
    vmem = (
        "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom: Ran out of memory in memory space vmem while "
        "allocating on stack for %add.5 = f32[8]{0} fusion(%x). Scoped allocation with size 20.00M and limit "
        "16.00M exceeded scoped vmem limit by 4.00M."
    )
    found = report()
    assert memory_over_limit(found, vmem) == found


def test_what_fits_says_nothing():
    assert does_not_fit(read_memory(SIZES, ASSIGNMENT, LIVE_RANGES, MODULE, 10_000)) == ""
    assert does_not_fit(read_memory(SIZES, ASSIGNMENT, LIVE_RANGES, MODULE)) == ""


def test_figures_are_in_the_unit_of_their_size():
    found = memory_over_limit(read_memory({}, "", "", ""), MESSAGES[0].replace("18.00G", "15.76G"))
    assert does_not_fit(found) == "does not fit: 10.24 MiB over 15.75 GiB of HBM"


def test_a_kernel_that_is_too_large_for_on_chip_memory_is_told_in_bytes():
    """The words of libtpu for a Pallas kernel."""
    message = (
        "RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom: Ran out of memory in memory space vmem while "
        "allocating on stack for %shard_map.12 = f32[2048,4096]{1,0:T(8,128)} custom-call(%param.1), "
        'custom_call_target="tpu_custom_call", metadata={op_name="jit(f)/shard_map/pallas_call"}. Scoped '
        "allocation with size 64.00M and limit 16.00M exceeded scoped vmem limit by 48.00M. It should not be "
    )
    held = replace(report(), buffers=(LiveBuffer("shard_map.12", "output", "f32[2048,4096]", 1, "k.py:6"),))
    assert on_chip_misfit(held, message) == (
        "shard_map.12 f32[2048,4096] (k.py:6) needs 64 MiB of on-chip memory (vmem), and 16 MiB are allowed",
        "give its kernel smaller blocks, or set the option xla_tpu_scoped_vmem_limit_kib=65536",
    )
    assert on_chip_misfit(held, MESSAGES[0]) == ("", "")


@pytest.mark.parametrize(
    ("sizes", "advice"),
    [
        ({"argument": 5, "temporary": 3, "output": 2}, "most are arguments: "),
        ({"argument": 5, "temporary": 6, "output": 5, "alias": 5}, "most are temporaries: "),
        ({"argument": 5, "temporary": 3, "output": 6}, "most are outputs: donate "),
        ({"argument": 5, "temporary": 3, "output": 6, "alias": 4}, "most are arguments: "),
    ],
)
def test_what_takes_most_says_what_helps(sizes, advice):
    assert ways_to_fit(read_memory(sizes, "", "", "")).startswith(advice)
