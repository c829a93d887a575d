"""What a plan sends, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from shardviz.lessons.measures.kinds import Sent, collectives
from shardviz.lessons.measures.plan import sent_by
from shardviz.planner.plan import LOCAL_OPS

if TYPE_CHECKING:
    from shardviz.planner import Plan

_VERBS = {
    "all_gather": ("gathers", "gather"),
    "psum": ("sums", "sum"),
    "psum_scatter": ("sums and scatters", "sum and scatter"),
    "all_to_all": ("exchanges parts of", "exchange parts of"),
    "ppermute": ("permutes", "permute"),
}


def plan_difference(plan: Plan, wanted: Sequence[str]) -> str | None:
    """The first collective of a plan that is not the wanted one; `wanted` has texts: all_gather A X."""
    wishes = [each for text in wanted for each in collectives(text)]
    numbers = [number for number, step in enumerate(plan.steps, 1) if step.op not in LOCAL_OPS]
    for number, sent, wish in zip_longest(numbers, sent_by(plan), wishes):
        if sent == wish:
            continue
        more = "more " if wishes and wish is None else ""
        asked = f"nothing {more}to be sent" if wish is None else f"to {_words(wish, 1)}"
        if sent is None:
            sends = "sends nothing more" if numbers else "sends nothing"
            return f"the plan {sends}; the goal wants {asked}"
        return f"step {number} {_words(sent, 0)}; the goal wants {asked}"
    return None


def _words(sent: Sent, form: int) -> str:
    op, array, axes = sent
    return f"{_VERBS[op][form]} {array} over {', '.join(axes)}"
