"""Traces of TPUs and GPUs, written by the names that XLA documents and as real ones are: none of these
devices is here.

Names of planes, lines and stats are those of XLA's ``tsl/profiler/utils/xplane_schema.cc``; jaxlib's own
protocol buffer makes the bytes of them. Times of events are microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

MICRO = 1_000_000
"""Picoseconds in a microsecond."""


class Event(NamedTuple):
    """An event of a line, with its own stats and those that all events of its name have."""

    name: str
    start: float
    end: float
    stats: Mapping[str, int | str] = {}
    shared: Mapping[str, int | str] = {}


Lines = Mapping[str, Sequence[Event]]


def xspace(
    planes: Mapping[str, Lines],
    host: str = "vm",
    timestamp_ns: int = 1000,
    core_ids: Mapping[str, int] = MappingProxyType({}),
) -> bytes:
    """A profile of these planes, each with the events of its lines by the lines' names; `core_ids` are the
    numbers among all hosts' devices, of those planes that tell them."""
    from jax.profiler import ProfileData

    text = "".join(_plane(name, lines, timestamp_ns, core_ids.get(name)) for name, lines in planes.items())
    return ProfileData.text_proto_to_serialized_xspace(f'{text} hostnames: "{host}"')


def _plane(name: str, lines: Lines, timestamp_ns: int, core_id: int | None) -> str:
    events: dict[str, int] = {}
    stats: dict[str, int] = {}
    shared: dict[str, Mapping[str, int | str]] = {}

    def stat(key: str, value: int | str) -> str:
        number = stats.setdefault(key, len(stats) + 1)
        said = f'str_value: "{value}"' if isinstance(value, str) else f"int64_value: {value}"
        return f"stats {{ metadata_id: {number} {said} }}"

    parts = []
    for line, found in lines.items():
        rows = []
        for each in found:
            number = events.setdefault(each.name, len(events) + 1)
            shared.setdefault(each.name, each.shared)
            own = " ".join(stat(key, value) for key, value in each.stats.items())
            start, length = round(each.start * MICRO), round((each.end - each.start) * MICRO)
            times = f"offset_ps: {start} duration_ps: {length}"
            rows.append(f"events {{ metadata_id: {number} {times} {own} }}")
        parts.append(f'lines {{ name: "{line}" timestamp_ns: {timestamp_ns} {" ".join(rows)} }}')
    for each, number in events.items():
        said = " ".join(stat(key, value) for key, value in shared[each].items())
        escaped = each.replace('"', '\\"')
        parts.append(f'event_metadata {{ key: {number} value {{ id: {number} name: "{escaped}" {said} }} }}')
    if core_id is not None:
        # ``CoreDetails``: global_chip_id and global_core_id, of which a 0 is left out.
        details = f"\\050\\{core_id:03o}\\060\\{core_id:03o}" if core_id else ""
        number = stats.setdefault("core_details", len(stats) + 1)
        parts.append(f'stats {{ metadata_id: {number} bytes_value: "{details}" }}')
    for each, number in stats.items():
        parts.append(f'stat_metadata {{ key: {number} value {{ id: {number} name: "{each}" }} }}')
    return f'planes {{ name: "{name}" {" ".join(parts)} }}\n'


TPU_TEXT = Path(__file__).with_name("tpu.txt").read_text(encoding="utf-8")
"""The program of `tpu_plane`."""
HLO_LINES = {
    found[1]: found[0] for found in re.finditer(r"%(\S+) = \S.*?(?=, metadata|$)", TPU_TEXT, re.MULTILINE)
}
"""A TPU's name of an operation is its whole line."""


def tpu_plane(late: float = 0.0, runs: int = 2) -> Lines:
    """A TPU that runs `TPU_TEXT` every 200 µs, and in each run arrives `late` µs later at the all-reduce.

    The gather takes 10 to 60 µs of a run; the fusion runs beside it from 12 to 32, and its end is waited for
    from 40 on. Then 40 µs of matmul, and the reduction until 130 on every device.
    """
    ops, modules, steps, asynchronous = [], [], [], []
    for run in range(runs):
        begin = 200.0 * run

        def op(name: str, start: float, end: float, begin: float = begin) -> Event:
            shared = {"hlo_category": "x", "flops": 7, "program_id": 5}
            return Event(HLO_LINES[name], begin + start, begin + end, {}, shared)

        ops += [
            op("all-gather-start.1", 10, 12),
            op("fusion.1", 12, 32),
            op("all-gather-done.1", 40, 60),
            op("convolution.2", 60, 100 + late),
            op("all-reduce.3", 100 + late, 130),
        ]
        asynchronous.append(op("all-gather-start.1", 10, 60))
        modules.append(Event("jit_step(5)", begin + 10, begin + 130, {"run_id": 70 + run}))
        steps.append(Event(str(run), begin, begin + 150, {"step_num": run}))
    return {"Steps": steps, "XLA Modules": modules, "XLA Ops": ops, "Async XLA Ops": asynchronous}


def gpu_plane(late: float = 0.0) -> Lines:
    """A GPU that runs `TPU_TEXT` once: a stream that computes and one of NCCL."""

    def kernel(name: str, op: str, start: float, end: float) -> Event:
        return Event(name, start, end, {"hlo_op": op, "hlo_module": "jit_step", "correlation_id": 1})

    return {
        "Stream #16(Compute)": [
            kernel("loop_add_fusion", "fusion.1", 12, 32),
            kernel("gemm_fusion_dot", "convolution.2", 60, 100 + late),
            Event("MemcpyD2D", 131, 140, {"memcpy_details": "x"}),
        ],
        "Stream #20(Collective)": [
            kernel("ncclDevKernel_AllGather_RING_LL", "all-gather-start.1", 10, 60),
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all-reduce.3", 100 + late, 130),
        ],
        "Source code": [Event("step.py:12", 0, 150)],
    }


PAIRS = "[4,2]<=[2,4]T(1,0)"
"""Device i with device i + 4."""
_REST = "use_global_device_ids=true, to_apply=%add"
_ARRAY = "f32[1024,1280]{1,0:T(8,128)}"
_ON_HOST = "f32[1024,1280]{1,0:T(8,128)S(5)}"
_SENT = f"({_ON_HOST}, {_ARRAY}, u32[]{{:S(2)}})"
_FETCHED = f"({_ARRAY}, {_ON_HOST}, u32[]{{:S(2)}})"
OFFLOAD = {
    "all-reduce": f"%all-reduce = {_ARRAY} all-reduce({_ARRAY} %p), channel_id=1, replica_groups={PAIRS}, "
    f"{_REST}",
    "copy-start": f"%copy-start = {_FETCHED} copy-start({_ON_HOST} %p)",
    "copy-done": f"%copy-done = {_ARRAY} copy-done({_FETCHED} %copy-start)",
    "fusion": f"%fusion = {_ARRAY} fusion({_ARRAY} %copy-done), kind=kLoop, calls=%fused",
    "copy-start.1": f"%copy-start.1 = {_SENT} copy-start({_ARRAY} %fusion)",
    "copy-done.1": f"%copy-done.1 = {_ON_HOST} copy-done({_SENT} %copy-start.1)",
}
"""The texts of the operations of `offload_plane`, as its events have them."""
PSUM_TEXT = f"""HloModule jit_psum, is_scheduled=true, num_partitions=8

%add (a: f32[], b: f32[]) -> f32[] {{
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}}

ENTRY %main (p: f32[1024,1280]) -> f32[1024,1280] {{
  %p = {_ARRAY} parameter(0)
  ROOT %all-reduce = {_ARRAY} all-reduce(%p), channel_id=1, replica_groups={{}}, {_REST}
}}
"""
"""Its first program as today's jaxlib prints what the older XLA has stored: without the groups."""
OFFLOAD_TEXT = f"""HloModule jit_f, is_scheduled=true, num_partitions=8

%fused (q: f32[1024,1280]) -> f32[1024,1280] {{
  %q = {_ARRAY} parameter(0)
  ROOT %twice = {_ARRAY} add(%q, %q)
}}

ENTRY %main (p: f32[1024,1280]) -> f32[1024,1280] {{
  %p = {_ON_HOST} parameter(0)
  %copy-start = {_FETCHED} copy-start(%p)
  %copy-done = {_ARRAY} copy-done(%copy-start)
  %fusion = {_ARRAY} fusion(%copy-done), kind=kLoop, calls=%fused
  %copy-start.1 = {_SENT} copy-start(%fusion)
  ROOT %copy-done.1 = {_ON_HOST} copy-done(%copy-start.1)
}}
"""


def offload_plane(number: int, late: float = 0.0) -> Lines:
    """A TPU as in the profile of four chips of a v6e with eight, of a program that keeps its arrays on the
    host: three sums, then twice 200 µs from the host, 20 of compute and 170 to the host.

    What that profile taught:

    - only the first TPU has events on its line of asynchronous operations: on the others a transfer is what
      lies between its start and its done, and three quarters of all time is in ``copy-done``;
    - ``run_id`` counts per device: the first TPU ran two programs more;
    - a run of a module begins up to 340 ms before its first operation, as the devices meet before it;
    - an event's text has the groups that the stored module has lost;
    - ``core_details`` has the devices' own numbers, here 4 to 7, while the planes count from 0;
    - now and then operations are written with one and the same time, and a done before its start.
    """
    ops: list[Event] = []
    modules = [Event("jit_full(3)", 0, 10, {"run_id": 1})] if number == 0 else []
    run_id = len(modules)

    def op(name: str, start: float, end: float) -> Event:
        return Event(OFFLOAD[name], start, end)

    for begin in (100.0, 300.0, 500.0):
        run_id += 1
        modules.append(Event("jit_psum(8)", begin - 5 * number, begin + 130, {"run_id": run_id}))
        ops.append(op("all-reduce", begin + late, begin + 120))
    asynchronous = []
    for begin in (1000.0, 1400.0):
        run_id += 1
        modules.append(Event("jit_f(9)", begin, begin + 390, {"run_id": run_id}))
        ops += [op("copy-start", begin, begin + 1), op("copy-done", begin + 1, begin + 200)]
        if number == 2 and begin == 1000.0:
            at = begin + 200
            ops += [op("copy-done.1", at, at + 190), op("fusion", at, at), op("copy-start.1", at, at)]
        else:
            ops += [op("fusion", begin + 200, begin + 220), op("copy-start.1", begin + 220, begin + 221)]
            ops.append(op("copy-done.1", begin + 221, begin + 390))
        if number == 0:
            asynchronous.append(op("copy-start", begin, begin + 200))
            asynchronous.append(op("copy-start.1", begin + 220, begin + 390))
    return {"XLA Modules": modules, "XLA Ops": ops, "Async XLA Ops": asynchronous}


def rocm_planes() -> dict[str, Lines]:
    """Two GPUs as in ROCm's profiles of eight MI300X, and their host.

    What those taught: the calls that launch kernels name the ``hlo_op`` on the host's threads, with a
    ``device_id`` and without a ``device_ordinal``; copies are kernels of ROCm's runtime in one release and
    ``CopyDeviceToDevice`` on streams of their own in another, without an ``hlo_op``.
    """
    told = {"hlo_op": "fusion.1", "hlo_module": "jit_conv", "program_id": 15, "correlation_id": 3}
    matmul = {**told, "hlo_op": "cudnn-conv.1", "correlation_id": 4}
    return {
        "/device:GPU:0": {
            "Stream #17(Kernel)": [Event("__amd_rocclr_copyBuffer.kd", 0, 10, {"correlation_id": 1})],
            "Stream #16(Kernel)": [
                Event("fusion_1.kd", 20, 50, told),
                Event("Cijk_Ailk_Bljk_BBS_BH_MT256x128x64", 50, 100, matmul),
            ],
        },
        "/device:GPU:1": {
            "Stream #8(MemcpyOther)": [Event("CopyDeviceToDevice", 0, 30, {"correlation_id": 2})],
            "Stream #1(Kernel)": [Event("fusion_1", 20, 60, told)],
        },
        "/device:GPU:2": {},
        "/host:CPU": {
            "Host Threads/583": [
                Event("hipModuleLaunchKernel", 5, 6, {**told, "device_id": 47645}),
                Event("hipExtModuleLaunchKernel", 7, 8, {**matmul, "device_id": 47645}),
                Event("hipMemcpyDtoDAsync", 1, 2, {"correlation_id": 1, "device_id": 47645}),
            ]
        },
    }
