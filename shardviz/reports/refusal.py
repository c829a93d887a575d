"""A program whose shardings JAX refuses, and changes of its source that JAX accepts."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.errors import QuestionError
from shardviz.reports.lowered_module import LoweredModule


@dataclass(frozen=True)
class SourceChange:
    """An expression to write at the refused place. JAX was asked again: `lowered` is the program with it, or
    `then` is what JAX refuses next, in another line. `note` says what it changes beside the shardings."""

    code: str
    note: str = ""
    lowered: LoweredModule | None = None
    then: str = ""


class ShardingRefusal(QuestionError):
    """JAX refuses a program for its shardings at a `place`, in its own `words`, whole; `source` is the user's
    expression, and `types` those of its arrays, ``f32[64_X, 512]``. The `changes` were tried; those that JAX
    refuses at the same place are left out."""

    place = words = source = ""
    types: tuple[str, ...] = ()
    changes: tuple[SourceChange, ...] = ()
