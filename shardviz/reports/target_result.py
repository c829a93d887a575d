"""A target's answer to a problem or a collective, and how much of its traffic leaves a slice or a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.errors import ShardvizError, TargetError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from shardviz.hardware import Placement
    from shardviz.hlo import Collective, CollectiveMatmul
    from shardviz.hlo.mlir.collectives import ShardyMove
    from shardviz.sharding import PartitionSpec
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


@dataclass(frozen=True)
class HeldArray:
    """The parts of an array that the devices of a mesh hold, as JAX's `NamedSharding` says.

    `devices` has for each mesh position the device's id and (start, stop) of every dimension; `bits` are
    those of one element. `error` has JAX's words where it refused, and then nothing else is there.
    """

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
