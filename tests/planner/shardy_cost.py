"""What Shardy's answer costs by the same prices: its collectives, products and sums, one after the other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from shardviz.compiler.target_result import TargetResult
from shardviz.hardware.collective_time import TIMED, collective_time
from shardviz.hardware.machine import PlacedMesh
from shardviz.sharding import Mesh

_SHARDING = re.compile(r"<@\w+, \[(.*?)\](?:, \w+=\{[^}]*\})*>")
_ARGUMENT = re.compile(
    r"(%arg\d+): tensor<([^>]*)> \{[^}]*?sdy\.sharding = #sdy\.sharding(<@.*?\](?:, \w+=\{[^}]*\})*>)"
)
_VALUE = re.compile(r"^\s*(%\w+) = (\S+?)[ (](.*)$", re.MULTILINE)
_CONTRACTED = re.compile(r"contracting_dims = \[([^\]]*)\] x")


def shardy_seconds(answer: TargetResult, placed: PlacedMesh, mesh: Mesh) -> float:
    """Seconds of all steps; transposes, slices and copies take none, in favour of Shardy."""
    bandwidth = placed.machine.device.hbm_bandwidth or math.inf
    found = 0.0
    for one in answer.collectives:
        if one.op in TIMED and one.axes:
            in_order = one.op == "collective-permute"
            time = collective_time(one.op, one.bytes, placed.group_levels(one.axes, in_order=in_order))
            moved = _bytes(one.operand_shape, one.dtype) + _bytes(one.result_shape, one.dtype)
            found += max(time.seconds, moved / bandwidth)
    return found + math.fsum(_local_seconds(answer.text, placed, mesh))


def _local_seconds(text: str, placed: PlacedMesh, mesh: Mesh) -> Iterator[float]:
    device = placed.machine.device
    held: dict[str, tuple[int, ...]] = {}
    for name, kind, sharding in _ARGUMENT.findall(text):
        held[name] = _local(kind, sharding, mesh)
    for name, op, rest in _VALUE.findall(text):
        operands = re.findall(r"%\w+", rest.split(" : ")[0])
        kind = re.findall(r"tensor<([^>]*)>", rest)[-1]
        placed_as = _SHARDING.search(rest)
        if placed_as is not None:
            held[name] = _local(kind, placed_as[0], mesh)
        else:
            same = [held[each] for each in operands if each in held and len(held[each]) == len(_shape(kind))]
            held[name] = same[0] if same else _shape(kind)
        dtype = kind.rpartition("x")[2]
        flops = 0
        if op == "stablehlo.dot_general":
            contracted = _CONTRACTED.search(rest)
            summed = [int(dim) for dim in contracted[1].split(",") if dim.strip()] if contracted else []
            products = math.prod(held[name]) * math.prod(held[operands[0]][dim] for dim in summed)
            flops = 2 * products if summed else 0
        elif op == "stablehlo.reduce":
            operands = operands[:1]
        else:
            continue
        moved = sum(_bytes(held[each], dtype) for each in (*operands[:2], name))
        peak = device.flops_per_second(dtype) or max(peak for _, peak in device.peak)
        yield max(flops / peak, moved / (device.hbm_bandwidth or math.inf))


def _shape(kind: str) -> tuple[int, ...]:
    return tuple(map(int, kind.split("x")[:-1]))


def _local(kind: str, sharding: str, mesh: Mesh) -> tuple[int, ...]:
    """The shape of a device's piece."""
    found = _SHARDING.search(sharding)
    assert found is not None
    parts = [
        math.prod(mesh.axis_size(axis + rest) for axis, rest in re.findall(r'"(\w+)"((?::\(\d+\)\d+)?)', dim))
        for dim in re.findall(r"\{([^}]*)\}", found[1])
    ]
    return tuple(-(-size // cut) for size, cut in zip(_shape(kind), parts, strict=True))


def _bytes(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape) * {"bf16": 2, "f32": 4, "i8": 1, "s8": 1}[dtype]
