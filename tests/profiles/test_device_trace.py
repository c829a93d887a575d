"""Operations by device, from traces of each platform."""

from __future__ import annotations

from pathlib import Path

import pytest
from jax.profiler import ProfileData

from shardviz.profiles.device_trace import (
    HBM_COPY,
    HOST_COPY,
    NO_RUN,
    PEER_COPY,
    SOME_COPY,
    DeviceTrace,
    ProgramRun,
    TraceEvent,
    TraceReading,
)
from shardviz.profiles.xplane import xplane_events
from tests.profiles.traces import MICRO, Event, gpu_plane, tpu_plane, xspace

pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__:DeprecationWarning")
"""jaxlib's own types say so on Python 3.13, and end the process where that is an error."""


def devices(data: bytes, host: str = "") -> list[DeviceTrace]:
    return TraceReading(xplane_events(data, lambda _: None)).devices(host)


def named(device: DeviceTrace) -> list[tuple[str, float, float]]:
    """The operations with their times in microseconds after the trace's beginning."""
    return [
        (device.instruction_table[number].name, start / MICRO - 1, end / MICRO - 1)
        for number, start, end in zip(device.instructions, device.starts, device.ends, strict=True)
    ]


def test_an_asynchronous_operation_of_a_cpu_ends_where_its_end_does(profiled_folder: Path) -> None:
    (file,) = profiled_folder.rglob("*.xplane.pb")
    begun, ended = {}, {}
    profile = ProfileData.from_file(str(file))
    for plane in profile.planes:
        for line in plane.lines:
            for event in line.events:
                stats = dict(event.stats)
                if "hlo_op" in stats:
                    begun[stats["_p"]] = (stats["device_ordinal"], event.name, event.start_ns, event.end_ns)
                elif event.name.startswith("end: "):
                    ended[stats["_c"]] = event.end_ns
    expected = sorted(
        (f"CPU {device}", name, start, max(end, ended.get(joined, 0.0)))
        for joined, (device, name, start, end) in begun.items()
    )
    ours = sorted(
        (device.name, device.instruction_table[number].name, start / 1000, end / 1000)
        for device in devices(file.read_bytes())
        for number, start, end in zip(device.instructions, device.starts, device.ends, strict=True)
    )
    assert [each[:2] for each in ours] == [each[:2] for each in expected]
    for mine, theirs in zip(ours, expected, strict=True):
        assert mine[2:] == pytest.approx(theirs[2:], abs=0.01)


@pytest.mark.parametrize("ends_first", [False, True])
def test_an_end_on_a_line_before_or_after_is_found(ends_first: bool) -> None:
    stats = {"hlo_op": "dot.1", "hlo_module": "jit_f", "run_id": 4, "device_ordinal": 2, "_p": 9}
    events = [
        TraceEvent("/host:CPU", "one", "dot.1", 10, 20, stats),
        TraceEvent("/host:CPU", "other", "end: dot.1", 90, 95, {"_c": 9}),
    ]
    (device,) = TraceReading(reversed(events) if ends_first else events).devices("")
    assert (device.name, [*device.starts], [*device.ends]) == ("CPU 2", [10], [95])


def test_runs_belong_to_the_steps_that_began_them(profiled_folder: Path) -> None:
    (file,) = profiled_folder.rglob("*.xplane.pb")
    for device in devices(file.read_bytes()):
        steps = {
            device.steps_of_runs[run]
            for run, number in zip(device.runs, device.instructions, strict=True)
            if device.instruction_table[number].name.startswith("all-reduce")
        }
        assert steps == {7, 8}


def test_a_tpu_names_operations_by_their_lines_and_runs_by_those_of_its_modules() -> None:
    (device,) = devices(xspace({"/device:TPU:1": tpu_plane(late=3)}), "worker-0")
    assert device.name == "worker-0 TPU 1"
    assert named(device)[:5] == [
        ("all-gather-start.1", 10, 12),
        ("fusion.1", 12, 32),
        ("all-gather-done.1", 40, 60),
        ("convolution.2", 60, 103),
        ("all-reduce.3", 103, 130),
    ]
    done = device.instruction_table[device.instructions[2]]
    assert (done.opcode, done.awaited, *done.program) == (
        "all-gather-done",
        "all-gather-start.1",
        "jit_step",
        5,
    )
    assert device.run_table == (ProgramRun(("jit_step", 5), 0), ProgramRun(("jit_step", 5), 1))
    assert [*device.runs] == [0] * 5 + [1] * 5 + [0, 1]
    assert [number for number, *_ in device.step_spans] == [0, 1]
    used = {device.instruction_table[number] for number in device.instructions}
    (spans,) = {each for each in used if each.is_async}
    assert spans.name == "all-gather-start.1"


def test_a_line_with_the_types_of_its_operands_and_a_number_of_64_bits() -> None:
    start = (
        "%copy-start.1 = (f32[5,256]{1,0:T(8,128)S(5)}, f32[5,256]{1,0:T(8,128)}, u32[]{:S(2)}) "
        "copy-start(f32[5,256]{1,0:T(8,128)} %fusion.2)"
    )
    done = (
        "%copy-done.1 = f32[5,256]{1,0:T(8,128)S(5)} copy-done((f32[5,256]{1,0:T(8,128)S(5)}, "
        "f32[5,256]{1,0:T(8,128)}, u32[]{:S(2)}) %copy-start.1)"
    )
    shared = {"program_id": 2**63 + 5 - 2**64}
    ops = [Event(start, 1, 2, {}, shared), Event(done, 8, 9, {}, shared)]
    for modules in ([Event(f"jit_f({2**63 + 5})", 0, 10)], []):
        (device,) = devices(xspace({"/device:TPU:0": {"XLA Modules": modules, "XLA Ops": ops}}))
        one, other = (device.instruction_table[number] for number in device.instructions)
        assert (one.name, one.opcode, one.awaited) == ("copy-start.1", "copy-start", "")
        assert (other.name, other.opcode, other.awaited) == ("copy-done.1", "copy-done", "copy-start.1")
        assert one.program[1] == other.program[1] == 2**63 + 5


def test_runs_without_a_number_are_counted() -> None:
    lines = {**tpu_plane()}
    lines["XLA Modules"] = [each._replace(stats={}) for each in lines["XLA Modules"]]
    (device,) = devices(xspace({"/device:TPU:0": lines}))
    assert [run.run_id for run in device.run_table] == [0, 1]


def test_a_gpu_names_the_operation_of_each_kernel() -> None:
    (device,) = devices(xspace({"/device:GPU:3": gpu_plane()}))
    assert device.name == "GPU 3"
    assert sorted(named(device)) == [
        ("MemcpyD2D", 131, 140),
        ("all-gather-start.1", 10, 60),
        ("all-reduce.3", 100, 130),
        ("convolution.2", 60, 100),
        ("fusion.1", 12, 32),
    ]
    opcodes = {each.name: each.opcode for each in device.instruction_table}
    assert opcodes["all-reduce.3"] == opcodes["all-gather-start.1"] == "nccl"
    assert opcodes["MemcpyD2D"] == HBM_COPY
    runs = {each[0]: run for each, run in zip(named(device), device.runs, strict=True)}
    assert {name for name, run in runs.items() if run == NO_RUN} == {"MemcpyD2D"}


@pytest.mark.parametrize(
    ("name", "opcode"),
    [
        ("MemcpyH2D", HOST_COPY),
        ("CopyHostToDevice", HOST_COPY),
        ("MemcpyD2D", HBM_COPY),
        ("__amd_rocclr_fillBufferAligned.kd", HBM_COPY),
        ("MemcpyP2P", PEER_COPY),
        ("MemcpyOther", SOME_COPY),
        ("__amd_rocclr_copyBuffer.kd", SOME_COPY),
        ("ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)", "nccl"),
        ("loop_memset_fusion", ""),
    ],
)
def test_what_runs_on_a_stream_beside_xlas_kernels(name: str, opcode: str) -> None:
    lines = {"Stream #8(MemcpyOther)": [Event(name, 0, 1, {"correlation_id": 1})]}
    (device,) = devices(xspace({"/device:GPU:0": lines}))
    assert [(each.name, each.opcode) for each in device.instruction_table] == [(name, opcode)]


def test_a_gpus_steps_are_the_times_of_the_marks() -> None:
    marks = {"python": [Event("train", 5, 140, {"step_num": 3}), Event("train", 140, 200, {"step_num": 4})]}
    (device,) = devices(xspace({"/device:GPU:0": gpu_plane(), "/host:CPU": marks}))
    assert [(number, start / MICRO - 1, end / MICRO - 1) for number, start, end in device.step_spans] == [
        (3, 5, 140),
        (4, 140, 200),
    ]


def test_a_form_without_ends_says_so() -> None:
    stats = {"hlo_op": "dot.1", "hlo_module": "jit_f", "run_id": 4, "device_ordinal": 0}
    reading = TraceReading([TraceEvent("/host:CPU", "one", "dot.1", 10, 20, stats)])
    assert reading.lacks_ends
