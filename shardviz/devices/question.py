"""A measurement: operations over axes of a mesh, their sizes, and a row of what was measured, with the
columns of nccl-tests, for which a machine predicts a time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from shardviz.errors import QuestionError, quote
from shardviz.hardware.links import UnpublishedLinkError
from shardviz.hardware.measured import COLLECTIVES
from shardviz.hardware.quantities import PAYLOAD
from shardviz.sharding import Mesh, array_bytes, canonical_dtype
from shardviz.strict_table import closest

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh


LOCAL = ("matmul", "copy")
"""What every device does by itself: a product of square matrices; memory that is read and written."""
OPERATIONS = (*COLLECTIVES, *LOCAL)
SHARED = ("all_gather", "psum_scatter", "all_to_all")
"""The collectives that deal with a part of the bytes for each member."""
DTYPES = (
    *("bf16", "f16", "f32", "f64", "f8e4m3fn", "f8e5m2"),
    *("s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"),
)
MAX_SIZES = 64
MAX_BYTES = 2**44
"""Bytes of one array of one device: more than any device has."""
RANGE_HINT = "write sizes as in 4KiB:256MiB, by twos, 4KiB:256MiB:4, by fours, or 4KiB,1MiB"


@dataclass(frozen=True)
class Case:
    """One operation of one size: `op` is JAX's name, or one of `LOCAL`, over the groups along `axes`, each of
    `group_size` devices. `size` are the bytes of the larger of a device's operand and result, of a matmul and
    a copy those of the operand; `count` the elements that nccl-tests counts: of a gather, a scatter or an
    exchange those of one member's part. `side` is that of a matmul's matrices."""

    op: str
    axes: tuple[str, ...]
    group_size: int
    size: int
    count: int
    dtype: str
    side: int = 0

    @property
    def is_collective(self) -> bool:
        return self.op in COLLECTIVES

    @property
    def group(self) -> tuple[str, tuple[str, ...]]:
        """The operation and its axes, which rows of all sizes share."""
        return self.op, self.axes

    @property
    def flops(self) -> int:
        """Operations of one device: a multiplication and an addition count two."""
        return 2 * self.side**3

    @property
    def bus_factor(self) -> float:
        """The bytes that pass the bus of a device over `size`: by nccl-tests' PERFORMANCE.md what makes
        collectives comparable with the links, of a copy what is read and written."""
        n = self.group_size
        factors = {"psum": 2 * (n - 1) / n, "ppermute": 1.0, "copy": 2.0, "matmul": 3.0}
        return factors.get(self.op, (n - 1) / n)


@dataclass(frozen=True)
class MeasureQuestion:
    """Operations over the axes in `groups` of a mesh, each with all of the `sizes`, `runs` times."""

    operations: tuple[str, ...]
    mesh: Mesh
    groups: tuple[tuple[str, ...], ...]
    sizes: tuple[int, ...]
    dtype: str
    runs: int

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The rows, by operation, axes and size; sizes that make equal arrays are one."""
        every = (
            self._case(op, axes, size)
            for op in self.operations
            for axes in (self.groups if op in COLLECTIVES else ((),))
            for size in self.sizes
        )
        return tuple(dict.fromkeys(every))

    def _case(self, op: str, axes: tuple[str, ...], size: int) -> Case:
        element_bytes = array_bytes((1,), self.dtype)
        if op == "matmul":
            side = max(1, math.isqrt(size // element_bytes))
            return Case(op, (), 1, side * side * element_bytes, side * side, self.dtype, side)
        members = self.mesh.group_size(axes) if axes else 1
        parts = members if op in SHARED else 1
        count = max(1, size // element_bytes // parts)
        return Case(op, axes, members, count * parts * element_bytes, count, self.dtype)


def measure_question(
    operations: str, mesh: Mesh, axes: Sequence[str], sizes: str, dtype: str, runs: int
) -> MeasureQuestion:
    """Read what a user has typed: operations with commas between them, groups of `axes` (none: each axis, and
    all of them), sizes as a range. Raises `QuestionError`."""
    canonical = canonical_dtype(dtype)
    if canonical not in DTYPES:
        raise QuestionError(f"{canonical} cannot be measured", f"measure {', '.join(DTYPES)}")
    named = parse_operations(operations)
    has_collectives = any(op in COLLECTIVES for op in named)
    if axes and not has_collectives:
        problem = f"{' and '.join(named)} runs on each device alone, over no axis"
        raise QuestionError(problem, "leave out --axis")
    wide = tuple(axis for axis, size in mesh.shape.items() if size > 1)
    usual = tuple(dict.fromkeys((*((axis,) for axis in wide), *[wide] * bool(wide))))
    groups = tuple(dict.fromkeys(_axes(axis, mesh) for axis in axes)) if axes else usual
    if has_collectives and not groups:
        problem = f"the mesh {mesh} has one device, which sends nothing"
        raise QuestionError(problem, "measure matmul,copy, or simulate devices: --devices 8")
    return MeasureQuestion(named, mesh, groups, parse_sizes(sizes), canonical, runs)


def parse_operations(text: str) -> tuple[str, ...]:
    """Read ``psum,all_gather``. Raises `QuestionError` for an unknown one."""
    named = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    for name in named:
        if name not in OPERATIONS:
            raise QuestionError(f"{quote(name, 30)} cannot be measured", closest(name, OPERATIONS))
    return named


def parse_sizes(text: str) -> tuple[int, ...]:
    """Read sizes in bytes: ``4KiB:256MiB``, ``4KiB:256MiB:4``, ``4KiB,1MiB``. Raises `QuestionError`."""
    sizes: set[int] = set()
    for piece in text.split(","):
        first, *rest = piece.split(":")
        low = _bytes(first)
        high = _bytes(rest[0]) if rest else low
        factor = rest[1].strip() if len(rest) == 2 else "2"
        if len(rest) > 2 or not factor.isdecimal() or not 2 <= int(factor[:9]) <= 2**20:
            raise QuestionError(f"{quote(piece.strip(), 40)} is not a range of sizes", RANGE_HINT)
        if high < low:
            problem = f"{rest[0].strip()} is less than {first.strip()}"
            raise QuestionError(problem, "begin with the smaller size")
        while low <= high and len(sizes) <= MAX_SIZES:
            sizes.add(low)
            low *= int(factor)
    if len(sizes) > MAX_SIZES:
        raise QuestionError(f"{quote(text, 40)} has more than {MAX_SIZES} sizes", "use a larger factor")
    return tuple(sorted(sizes))


def _bytes(text: str) -> int:
    size = PAYLOAD.parse(text)
    if not 1 <= size <= MAX_BYTES:
        raise QuestionError(f"a size of {text.strip()} cannot be measured", "sizes are from 1B to 16TiB")
    return int(size)


def _axes(text: str, mesh: Mesh) -> tuple[str, ...]:
    """The axes of one group, in the order of the mesh, as a group has its members in any order."""
    named = [name.strip() for name in text.split(",")]
    for name in named:
        if name not in mesh.axis_names:
            problem = f"the mesh {mesh} has no axis {quote(name, 30)}"
            raise QuestionError(problem, closest(name, mesh.axis_names))
    axes = tuple(axis for axis in mesh.axis_names if axis in named)
    if mesh.group_size(axes) == 1:
        problem = f"{' and '.join(axes)} has one device, which sends nothing"
        raise QuestionError(problem, "choose another axis")
    return axes


@dataclass(frozen=True)
class Measurement:
    """The seconds of each run of a case, by the `clock` of the device, from its profile, or by the wall's.
    `wrong` are the elements of all devices that are not the exact result, None where rounding leaves none
    exact. `note` says what the compiler made of it unasked, and `device` what JAX calls the devices."""

    case: Case
    seconds: tuple[float, ...]
    clock: Literal["wall", "device"] = "wall"
    wrong: int | None = None
    note: str = ""
    device: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def most(self) -> float:
        return max(self.seconds)

    @property
    def noise(self) -> float | None:
        """The middle half of the runs, from its fastest to its slowest, over the median; None of one run."""
        if len(self.seconds) < 2:
            return None
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / self.median

    @property
    def algorithm_bandwidth(self) -> float:
        """nccl-tests' algbw: size over time, in bytes a second."""
        return self.case.size / self.median

    @property
    def bus_bandwidth(self) -> float:
        """nccl-tests' busbw, in bytes a second; see `Case.bus_factor`."""
        return self.algorithm_bandwidth * self.case.bus_factor

    @property
    def flops_per_second(self) -> float | None:
        """Of a matmul, on each device."""
        return self.case.flops / self.median if self.case.flops else None


@dataclass(frozen=True)
class NoMeasurement:
    """A case that does not fit into the memory of the devices; the reason is a sentence."""

    case: Case
    reason: str


def predicted_seconds(case: Case, placed: PlacedMesh) -> float | None:
    """Seconds by the machine's formulas, or by what was measured on it; None where it lacks a figure."""
    bound = bound_seconds(case, placed)
    if bound is None:
        return None
    if case.op == "matmul":
        device, moved = placed.machine.device, case.size * case.bus_factor
        return max(bound, device.matmul_seconds(case.flops, moved, case.dtype) or 0.0)
    if not case.is_collective:
        return bound
    return placed.collective_time(COLLECTIVES[case.op], case.size, case.axes, in_rounds=True).seconds


def bound_seconds(case: Case, placed: PlacedMesh) -> float | None:
    """The seconds that the bytes need, without latency: on the links, or at the bandwidth that was measured;
    of a matmul and a copy those of the peak or the memory, the longer. None where a figure is lacking."""
    device = placed.machine.device
    if case.is_collective:
        try:
            return placed.collective_time(COLLECTIVES[case.op], case.size, case.axes).bandwidth_seconds
        except UnpublishedLinkError:
            return None
    bandwidth = device.hbm_bandwidth
    traffic = None if bandwidth is None else case.size * case.bus_factor / bandwidth
    if case.op == "copy":
        return traffic
    peak = device.flops_per_second(case.dtype)
    return None if peak is None else max(case.flops / peak, traffic or 0.0)
