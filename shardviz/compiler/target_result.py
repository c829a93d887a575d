"""A target's answer to a problem or a collective, and how much of its traffic leaves a slice or a node."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from shardviz.errors import ShardvizError, TargetError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from shardviz.hardware import Placement
    from shardviz.hlo import Collective, CollectiveMatmul
    from shardviz.hlo.mlir.reshard_moves import ShardyMove
    from shardviz.sharding import Mesh, PartitionSpec
    from shardviz.timeline.compiler_schedule import CompilerSchedule
    from shardviz.timeline.memory import MemoryReport


@dataclass(frozen=True)
class TargetResult:
    """One target's answer to one problem.

    `status` is "ok", "error" (the compiler refused: `error` and `hint` say why) or "unavailable" (not
    installed, or too small for the mesh). `collectives` are in program order. `partitioned` are those right
    after SPMD partitioning, before the backend rewrote them (XLA targets; None elsewhere).
    `typeof` is what `jax.typeof` says of each argument and result under Explicit axes: (name, text).
    `text` is the module that was read; `elapsed_s` the seconds from request to answer in the compiler.
    `placement` is where the mesh's devices stand on a TPU or GPU target; None elsewhere.
    `schedule` is the compiler's own simulation (`shardviz.timeline.scheduler` draws it), None where it was
    not asked for or the compiler left none. `memory` is the compiler's account of one device's memory
    (`shardviz.timeline.compiler_memory.on_clock` gives it a timeline's seconds), None where it was not asked
    for; a program that does not fit has status "error", and `memory` without being asked for.
    `splits` is how Shardy splits what each statement of a program makes: (name, spec); `moves` are those by
    which it reshards the array of a problem that only copies or transposes one.
    """

    target: str
    status: str
    collectives: tuple[Collective, ...] = ()
    result_spec: PartitionSpec | None = None
    partitioned: tuple[Collective, ...] | None = None
    typeof: tuple[tuple[str, str], ...] = ()
    text: str = ""
    elapsed_s: float = 0.0
    error: str = ""
    hint: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    collective_matmuls: tuple[CollectiveMatmul, ...] = ()
    placement: Placement | None = None
    schedule: CompilerSchedule | None = None
    memory: MemoryReport | None = None
    splits: tuple[tuple[str, PartitionSpec], ...] = ()
    moves: tuple[ShardyMove, ...] = ()


@dataclass(frozen=True)
class ExecutionResult:
    """The result of a collective that JAX ran; `status` as in `TargetResult`.

    `shards` is every device's result, by mesh position; None where there is none. `program` is the call
    that ran, and `note` says what stood in for an operation that the platform lacks. `elapsed_s` are the
    seconds from request to answer in the child.
    """

    target: str
    status: str
    shards: NDArray[Any] | None = None
    program: str = ""
    note: str = ""
    elapsed_s: float = 0.0
    error: str = ""
    hint: str = ""
    versions: tuple[tuple[str, str], ...] = ()


def without_answer(target: str, error: ShardvizError) -> TargetResult:
    """In the place of an answer: "unavailable" for a `TargetError`, "error" for any other."""
    status = "unavailable" if isinstance(error, TargetError) else "error"
    return TargetResult(target, status, error=error.message, hint=error.hint)


@dataclass(frozen=True)
class Traffic:
    """The collectives of an answer by where their groups lie, in terms of a `unit`, "slice" or "node".

    The groups of those in `between` have one device of each unit that they reach, so that all bytes cross
    its edge; the groups of those in `inside` lie in one unit; those in `both` do some of each.
    """

    unit: str
    between: tuple[Collective, ...]
    both: tuple[Collective, ...]
    inside: tuple[Collective, ...]


def traffic_of(compiled: TargetResult, mesh: Mesh) -> Traffic | None:
    """The parts of the traffic; None where all devices are in one slice or node, or nobody knows."""
    placement = compiled.placement
    if placement is None or len({place.slice for place in placement.places}) < 2:
        return None
    parts: dict[str, list[Collective]] = {"between": [], "both": [], "inside": []}
    for one in compiled.collectives:
        if one.wire_bytes:
            parts["between" if one.between_slices else _part(one, placement, mesh)].append(one)
    return Traffic("slice" if placement.torus else "node", *map(tuple, parts.values()))


def bytes_sent(collectives: Iterable[Collective]) -> int:
    """The least bytes that one device sends in all of them; a loop of unknown length counts once."""
    return sum(one.wire_bytes * (1 if one.count is None else one.count) for one in collectives)


def _part(one: Collective, placement: Placement, mesh: Mesh) -> str:
    """Which part of the traffic a collective is."""
    groups = [*_units_of_groups(one, placement, mesh)]
    if all(len({*units}) < 2 for units in groups):
        return "inside"
    return "between" if all(len({*units}) == len(units) for units in groups) else "both"


def _units_of_groups(one: Collective, placement: Placement, mesh: Mesh) -> Iterable[list[int]]:
    """For each group, the slice or node of each of its devices."""
    if one.groups:
        home = dict(zip(placement.ids, placement.places, strict=True))
        return [[home[id].slice for id in group if id in home] for group in one.groups]
    units: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for position, place in enumerate(placement.places):
        units[_group(position, one.axes, mesh)].append(place.slice)
    return units.values()


def _group(position: int, axes: tuple[str, ...], mesh: Mesh) -> tuple[int, ...]:
    """The coordinates that devices of one group over `axes` have in common: all but those along `axes`."""
    coordinates: list[int] = []
    for number, (name, size) in enumerate(zip(mesh.axis_names, mesh.axis_sizes, strict=True)):
        coordinate = position // prod(mesh.axis_sizes[number + 1 :]) % size
        for axis in axes:
            base, _, part = axis.partition(":(")
            if base == name:
                before, _, count = part.partition(")") if part else ("1", "", str(size))
                inner = size // (int(before) * int(count))
                coordinate -= coordinate // inner % int(count) * inner
        coordinates.append(coordinate)
    return tuple(coordinates)
