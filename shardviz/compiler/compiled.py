"""What a target answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import ShardvizError, TargetError

if TYPE_CHECKING:
    from shardviz.hardware import Placement
    from shardviz.hlo import Collective, CollectiveMatmul
    from shardviz.sharding import PartitionSpec


@dataclass(frozen=True)
class Compiled:
    """One target's answer to one problem.

    `status` is "ok", "error" (the compiler refused: `error` and `hint` say why) or "unavailable" (not
    installed, or too small for the mesh). `collectives` are in program order. `partitioned` are those right
    after SPMD partitioning, before the backend rewrote them (XLA targets; None elsewhere).
    `typeof` is what `jax.typeof` says of each argument and result under Explicit axes: (name, text).
    `text` is the module that was read; `elapsed_s` the seconds from request to answer in the compiler.
    `placement` is where the mesh's devices stand on a TPU or GPU target; None elsewhere.
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


def without_answer(target: str, error: ShardvizError) -> Compiled:
    """In the place of an answer: "unavailable" for a `TargetError`, "error" for any other."""
    status = "unavailable" if isinstance(error, TargetError) else "error"
    return Compiled(target, status, error=error.message, hint=error.hint)
