"""The memory that a device needs to run a plan, and what it is for in a train step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answers import BYTES, ComputedAnswer
from shardviz.planner.pricing.costs import price
from shardviz.strict_table import closest

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem

PURPOSES = ("parameters", "gradients", "optimizer", "activations")


def peak(resolved: ResolvedProblem) -> ComputedAnswer:
    """The most bytes that a device holds at once, in all layers."""
    return BYTES.answer(price(resolved.plan, resolved.placed).layers_peak_bytes)


def memory(resolved: ResolvedProblem, purpose: str) -> ComputedAnswer:
    """Bytes of a device in a train step that serve one of `PURPOSES`."""
    if purpose not in PURPOSES:
        raise QuestionError(f"no memory is for {quote(purpose, 30)}", closest(purpose, PURPOSES))
    found = price(resolved.plan, resolved.placed).training_memory
    if found is None:
        raise QuestionError("only a train step has this memory", 'write backward = "yes" in the setup')
    return BYTES.answer(getattr(found, purpose))
