"""A target's answer to a problem or a collective, pass by pass too; what of it leaves a slice or a node."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardviz.errors import CompilerError, ShardvizError, TargetError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.hardware.placement import Placement
    from shardviz.hlo import Collective, CollectiveMatmul
    from shardviz.hlo.dumps import PassStage
    from shardviz.hlo.mlir.collectives import ShardyMove
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh, PartitionSpec
    from shardviz.timeline.program_timeline import MemoryReport
    from shardviz.timeline.scheduler import CompilerSchedule


@dataclass(frozen=True)
class TargetResult:
    """One target's answer to one problem.

    `status` is "ok", "error" (the compiler refused: `error` and `hint` say why) or "unavailable" (not
    installed, or too small for the mesh). `collectives` are in program order; `partitioned` those right after
    SPMD partitioning (XLA targets; None elsewhere). `typeof` is what `jax.typeof` says of each argument and
    result under Explicit axes: (name, text). `text` is the module that was read; `elapsed_s` the seconds in
    the compiler, earlier where it `is_cached` on disk. `placement` is where a TPU's or GPU's devices stand.
    `schedule` is the compiler's own simulation and `memory` its account of one device's memory, None where
    they were not asked for or it left none. `splits` is how Shardy splits what each statement of a program
    makes: (name, spec); `moves` are those of a problem that only copies or transposes an array."""

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
    is_cached: bool = False


@dataclass(frozen=True)
class ExecutionResult:
    """The result of a collective, or of a plan, that JAX ran; `status` and `elapsed_s` as in `TargetResult`.

    `shards` is every device's result, by mesh position. `program` is the call that ran, and `note` says what
    stood in for an operation that the platform lacks. Of a plan `steps` has what every device holds after
    each step, and `on_one_device` the results of its program on one device."""

    target: str
    status: str
    shards: NDArray[Any] | None = None
    program: str = ""
    note: str = ""
    elapsed_s: float = 0.0
    error: str = ""
    hint: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    steps: tuple[NDArray[Any], ...] | None = None
    on_one_device: tuple[NDArray[Any], ...] = ()


@dataclass(frozen=True)
class HeldArray:
    """The parts of an array that the devices of a mesh hold, as JAX's `NamedSharding` says, or the `error`
    with which it refused. `devices` has for each mesh position the device's id and (start, stop) of every
    dimension; `bits` are those of one element."""

    shard_shape: tuple[int, ...] = ()
    bits: int = 0
    devices: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()
    error: str = ""


def without_answer(target: str, error: ShardvizError) -> TargetResult:
    """In the place of an answer: "unavailable" for a `TargetError`, "error" for any other."""
    status = "unavailable" if isinstance(error, TargetError) else "error"
    return TargetResult(target, status, error=error.message, hint=error.hint)


def bytes_sent(collectives: Iterable[Collective]) -> int:
    """The least bytes that one device sends in all of them; a loop of unknown length counts once."""
    return sum(one.wire_bytes * (1 if one.count is None else one.count) for one in collectives)


@dataclass(frozen=True)
class PassTrace:
    """One target's answer to one problem, and the stages of its compilation; none where it gave no answer."""

    compiled: TargetResult
    stages: tuple[PassStage, ...] = ()


def read_traced(compiled: TargetResult, folder: str, problem: Problem) -> PassTrace:
    """The stages of the compilation whose dumps stand in `folder`. Raises `CompilerError` when none do."""
    from shardviz.hlo.dumps import Dump, dump_files, read_passes

    module = re.search(r"^\s*(?:HloModule |module @)([^\s,{]+)", compiled.text, re.MULTILINE)
    if compiled.status != "ok" or module is None:
        return PassTrace(compiled)
    paths = [path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()]
    dumps = [
        Dump(file.path, Path(folder, file.path).read_text(encoding="utf-8", errors="replace"))
        for file in dump_files(paths, module[1])
    ]
    if not dumps:
        missing = f"the {compiled.target} compiler left no dump of its passes"
        raise CompilerError(missing, "look at XLA_FLAGS: a flag of the user's may switch the dumps off")
    mesh, placement = problem.mesh, compiled.placement
    placed = (mesh,) if placement is None else (placement.on(mesh), placement.slices)
    return PassTrace(compiled, read_passes(dumps, *placed))


def traffic_of(compiled: TargetResult, mesh: Mesh) -> dict[str, list[Collective]]:
    """The collectives of an answer by where their groups lie: "between" slices or nodes each group has one
    device of each that it reaches, "inside" one all of them. Empty on one slice, or where nobody knows."""
    placement = compiled.placement
    if placement is None or placement.units < 2:
        return {}
    parts: dict[str, list[Collective]] = {"between": [], "both": [], "inside": []}
    for one in compiled.collectives:
        # For each group, the slice or node of each of its devices.
        places = dict(zip(placement.ids if one.groups else count(), placement.places, strict=False))
        groups = one.groups or mesh.groups(one.axes)
        units = [[places[device].slice for device in group if device in places] for group in groups]
        if one.between_slices:
            part = "between"
        elif all(len({*own}) < 2 for own in units):
            part = "inside"
        else:
            part = "between" if all(len({*own}) == len(own) for own in units) else "both"
        if one.wire_bytes:
            parts[part].append(one)
    return parts
