"""What is known of an answer: on its way, or here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.compiler import PassTrace, Target, TargetResult
    from shardviz.errors import ShardvizError
    from shardviz.stepping.verdict import Verdict

State = Literal["waiting", "asked", "answered", "failed", "cancelled"]
"""Waiting for a pause in typing, or for its turn; asked; answered; failed; or cancelled before that."""


@dataclass(frozen=True)
class Answer:
    """What is known of a target's answer to the problem on screen.

    `state`: "waiting" until asked (a pause in typing, or a key), "asked" since `since` (`time.monotonic`),
    with the compiler's `stage`; "answered" with `compiled`, whose status may be "error" or "unavailable";
    "cancelled". It is never "failed": a compiler that died has an answer of status "error".
    """

    target: Target
    state: State
    stage: str = ""
    since: float = 0.0
    compiled: TargetResult | None = None
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True)
class TracedAnswer:
    """What is known of a target's passes for the problem on screen; as `Answer`.

    "answered" with `traced`, whose `compiled` may have status "error" or "unavailable"; "failed" with an
    `error`.
    """

    target: Target
    state: State
    stage: str = ""
    since: float = 0.0
    traced: PassTrace | None = None
    error: ShardvizError | None = None


@dataclass(frozen=True)
class Verification:
    """What is known of JAX's verdict on a collective; as `Answer`.

    "answered" with `verdict`; "failed" where JAX says nothing, and `silence` is a sentence that tells why.
    """

    state: State
    stage: str = ""
    since: float = 0.0
    verdict: Verdict | None = None
    silence: str = ""
