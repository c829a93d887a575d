"""Memory of one device over a program: what is live when, the peak, and what holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class LiveBuffer:
    """An array that takes `bytes` of HBM.

    `name` is its instruction's, of an argument the user's where the text has it. `start` and `end` are
    seconds on the drawn clock between which it is live, None for the whole program; `first` and `last` the
    instructions, "" likewise. `source` is the user's line, or "".
    """

    name: str
    kind: Literal["argument", "output", "temporary", "constant"]
    shape: str
    bytes: int
    source: str = ""
    start: float | None = None
    end: float | None = None
    first: str = ""
    last: str = ""


@dataclass(frozen=True)
class MemoryReport:
    """Bytes of one device. `by` says who counted: the compiler, or an estimate from the text's order.

    `argument_bytes`, `output_bytes`, `alias_bytes` (outputs that reuse donated buffers) and
    `temporary_bytes` are as in `jax.stages.Compiled.memory_analysis`. `limit_bytes` is what the compiler
    allows, None where it is not known. `curve` has (seconds on the drawn clock, live bytes from then on),
    `peak_at` the seconds of the peak; both need a timeline (`on_clock`). `order` has the same by instruction:
    (name, live bytes while it runs), in the order in which they run. `buffers` are the largest at the peak,
    largest first.
    """

    by: Literal["compiler", "estimate"]
    argument_bytes: int
    output_bytes: int
    alias_bytes: int
    temporary_bytes: int
    peak_bytes: int
    limit_bytes: int | None
    buffers: tuple[LiveBuffer, ...] = ()
    curve: tuple[tuple[float, int], ...] = ()
    peak_at: float = 0.0
    order: tuple[tuple[str, int], ...] = ()

    @property
    def over_bytes(self) -> int:
        """By how much it does not fit; 0 where it does, or where the limit is not known."""
        return max(0, self.peak_bytes - self.limit_bytes) if self.limit_bytes is not None else 0
