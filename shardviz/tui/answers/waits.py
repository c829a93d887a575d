"""What is said of an answer that is not here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from shardviz.render.programs.target_status import Wait

if TYPE_CHECKING:
    from shardviz.tui.answers.answer import Answer, TracedAnswer

CANCELLED = "cancelled; r asks again"
NEXT = "waits for its turn"
LATER = "waits for a pause in typing; r asks now"


def wait_of(answer: Answer | TracedAnswer) -> Wait:
    """An answer that is not here, as it stands now."""
    name = answer.target.name
    if answer.state == "asked":
        return Wait(name, answer.stage or "asked", max(0.0, time.monotonic() - answer.since))
    if answer.state == "cancelled":
        return Wait(name, CANCELLED)
    return Wait(name, NEXT if answer.target.lane == "simulated" else LATER)
