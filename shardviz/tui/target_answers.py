"""The compilers' answers as the screens have them, on their way or here, and in the application's words."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from shardviz.forms.wording import as_sentence
from shardviz.render.programs.target_answers import Wait

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.errors import ShardvizError
    from shardviz.planner import Plan
    from shardviz.reports.target_result import PassTrace, TargetResult
    from shardviz.stepping.collective_run import Verdict
    from shardviz.targets import Target

State = Literal["waiting", "asked", "answered", "failed", "cancelled"]
"""Waiting for a pause in typing, or for its turn; asked; answered; failed; or cancelled before that."""

CANCELLED = "cancelled; r asks again"
NEXT = "waits for its turn"
LATER = "waits for a pause in typing; r asks now"


@dataclass(frozen=True)
class ShownAnswer:
    """A target's answer to the problem on screen, as far as it is known.

    `state`: "waiting" until asked (a pause in typing, or a key), "asked" since `since` (`time.monotonic`),
    with the compiler's `stage`; "answered" with `compiled`, whose status may be "error" or "unavailable";
    "cancelled". It is never "failed": a compiler that died has an answer of status "error". `differences`
    are those from `plan`.
    """

    target: Target
    state: State = "waiting"
    stage: str = ""
    since: float = 0.0
    compiled: TargetResult | None = None
    differences: tuple[Difference, ...] = ()
    plan: Plan | None = None


@dataclass(frozen=True)
class ShownPasses:
    """A target's passes for the problem on screen; as `ShownAnswer`.

    "answered" with `traced`, whose `compiled` may have status "error" or "unavailable"; "failed" with an
    `error`.
    """

    target: Target
    state: State = "waiting"
    stage: str = ""
    since: float = 0.0
    traced: PassTrace | None = None
    error: ShardvizError | None = None


@dataclass(frozen=True)
class Verification:
    """JAX's verdict on a collective; as `ShownAnswer`.

    "answered" with `verdict`; "failed" where JAX says nothing, and `silence` is a sentence that tells why.
    """

    state: State = "waiting"
    stage: str = ""
    since: float = 0.0
    verdict: Verdict | None = None
    silence: str = ""


def wait_of(answer: ShownAnswer | ShownPasses) -> Wait:
    """An answer that is not here, as it stands now."""
    name = answer.target.name
    if answer.state == "asked":
        return Wait(name, answer.stage or "asked", max(0.0, time.monotonic() - answer.since))
    if answer.state == "cancelled":
        return Wait(name, CANCELLED)
    return Wait(name, NEXT if answer.target.process == "simulated" else LATER)


def reworded(compiled: TargetResult) -> TargetResult:
    """The same answer; why it is none is said in sentences that name the application's fields and keys."""
    if compiled.status == "ok":
        return compiled
    return replace(compiled, error=as_sentence(compiled.error), hint=as_sentence(compiled.hint))
