"""The seconds of Shardy's answer by the same prices: collectives and local work, one after the other."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from shardviz.hardware.collective_time import TIMED, collective_time
from shardviz.hardware.machine import PlacedMesh
from shardviz.planner.problem import Problem, Statement
from shardviz.planner.problem.functions import local_work
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh, PartitionSpec

_SHARDING = re.compile(r"<@\w+, \[(.*?)\](?:, \w+=\{[^}]*\})*>")
_ARGUMENT = re.compile(
    r"(%arg\d+): tensor<([^>]*)> \{[^}]*?sdy\.sharding = #sdy\.sharding(<@.*?\](?:, \w+=\{[^}]*\})*>)"
)
_VALUE = re.compile(r"^\s*(%\w+) = (\S+?)[ (](.*)$", re.MULTILINE)
_CONTRACTED = re.compile(r"contracting_dims = \[([^\]]*)\] x")


def shardy_seconds(answer: TargetResult, placed: PlacedMesh, problem: Problem) -> float:
    """Seconds of all steps; slices, and transposes and copies within a product, take none, in favour of
    Shardy."""
    bandwidth = placed.machine.device.hbm_bandwidth or math.inf
    found = 0.0
    for one in answer.collectives:
        if one.op in TIMED and one.axes:
            in_order = one.op == "collective-permute"
            time = collective_time(one.op, one.bytes, placed.group_levels(one.axes, in_order=in_order))
            moved = _bytes(one.operand_shape, one.dtype) + _bytes(one.result_shape, one.dtype)
            found += max(time.seconds, moved / bandwidth)
    found += math.fsum(traffic / bandwidth for traffic in _pointwise_traffic(answer, problem))
    # Each function has names of its own.
    functions = answer.text.split("func.func ")
    return found + math.fsum(
        seconds for text in functions for seconds in _products_and_sums(text, placed, problem.mesh)
    )


def _pointwise_traffic(answer: TargetResult, problem: Problem) -> Iterator[int]:
    """Bytes that a device reads and writes for each statement without products and sums: it copies, adds, or
    takes a function of each element. Counted where one of its arrays is split most."""
    specs = {array.name: array.decided_spec for array in problem.arguments} | dict(answer.splits)
    if answer.result_spec is not None:
        specs.setdefault(problem.result.name, answer.result_spec)
    for part in problem.parts:
        if part.einsum.contracted or (part.function == "multiply" and len(part.operands) > 1):
            continue
        # Of what it does not split Shardy says nothing.
        split = [(each.dims, specs.get(each.name)) for each in (*part.operands, part.result)]
        yield min(
            _traffic(part, dims, spec or PartitionSpec.replicated(len(dims)), problem.mesh)
            for dims, spec in split
        )


def _traffic(part: Statement, dims: tuple[str, ...], spec: PartitionSpec, mesh: Mesh) -> int:
    """Bytes of all arrays of a statement that splits its work as an array with these dimensions is split."""
    cut = dict(zip(dims, spec.parts(mesh), strict=True))
    *operands, result = (
        tuple(-(-size // cut.get(dim, 1)) for dim, size in zip(array.dims, array.shape, strict=True))
        for array in (*part.operands, part.result)
    )
    return local_work(part, operands, result)[1]


def _products_and_sums(text: str, placed: PlacedMesh, mesh: Mesh) -> Iterator[float]:
    device = placed.machine.device
    held: dict[str, tuple[int, ...]] = {}
    for name, kind, sharding in _ARGUMENT.findall(text):
        held[name] = _local(kind, sharding, mesh)
    for name, op, rest in _VALUE.findall(text):
        operands = re.findall(r"%\w+", rest.split(" : ")[0])
        kind = re.findall(r"tensor<([^>]*)>", rest)[-1]
        placed_as = _SHARDING.search(rest)
        # What Shardy does not split has no sharding.
        held[name] = _shape(kind) if placed_as is None else _local(kind, placed_as[0], mesh)
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
