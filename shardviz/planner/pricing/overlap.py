"""The communication that work can hide: that of its own pass.

A gradient exists only once the backward pass has come to it, so no work of the forward pass hides its sum;
what the forward pass gathers, it gathers before the backward pass begins. So "How to Scale Your Model", part
5, sets the all-reduces of data parallelism, of 4·D·F bytes in bf16, against the 8·B·D·F FLOPs of the backward
pass alone: a device is bound by compute from peak / bandwidth rows on. All 12·B·D·F FLOPs of the step would
say two thirds of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum

from shardviz.planner.problem import Phase

ROUNDING = 1e-9
"""The part by which two times that are equal may differ."""
Passes = tuple[float, float]
"""Seconds in the forward pass, and in what follows it: recomputation, the backward pass, the optimizer."""


def by_pass(times: Iterable[tuple[Phase, float]]) -> Passes:
    """The sums of seconds by the pass that their phase belongs to."""
    every = tuple(times)
    return (
        fsum(seconds for phase, seconds in every if phase == "forward"),
        fsum(seconds for phase, seconds in every if phase != "forward"),
    )


def overlapped(work: Passes, hidden: Passes) -> float:
    """Seconds of both passes, each as long as the longer of its work and of the communication beside it."""
    return sum(map(max, work, hidden))


def is_mostly_sent(work: Passes, hidden: Passes, waited: Passes = (0.0, 0.0)) -> bool:
    """Return whether communication is what takes longer: what nothing hides, and that of the passes in which
    it outlasts the work beside it, against the work of the others."""
    sent, local = sum(waited), 0.0
    for own, beside in zip(work, hidden, strict=True):
        if beside and beside >= own * (1 - ROUNDING):
            sent += beside
        else:
            local += own
    return sent > 0 and sent >= local * (1 - ROUNDING)
