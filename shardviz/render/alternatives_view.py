"""The plans that others would choose, beside the one that is shown: what each of them saves and costs."""

from __future__ import annotations

import math

from rich.text import Text

from shardviz.planner.plan import Plan
from shardviz.planner.pricing.costs import AlternativeName, PlanCost
from shardviz.planner.pricing.priced_plan import PricedPlan
from shardviz.planner.programs.tree_planner import is_only_reshard
from shardviz.render.caption import collectives_text
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.units import human_bytes

INDENT, HOW_INDENT = 1, 4
LEADS: dict[AlternativeName, str] = {
    "textbook": "The textbook's plan",
    "fewest bytes": "The plan with the fewest bytes",
    "fastest": "The fastest plan",
}
NEGLIGIBLE = 0.005
"""Figures that differ by a smaller part are the same to a reader."""


def alternatives_view(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The plan's way to divide the work, where another would be faster; each alternative: its name, what it
    costs more or less than the plan, and its collectives; then how far the plan may be from the best, where
    that is not proved to be it."""
    lines = sentence(division_words(cost.plan), width, INDENT)
    for each in cost.alternatives:
        found = " found" if each.name == "fastest" and not each.plan.optimal else ""
        words = f"{LEADS[each.name]}{found} {comparison_words(each.cost, cost)}"
        if each.name == "fastest" and cost.plan.objective == "given":
            words = faster_words(each.cost, cost)
        lines += sentence(words, width, INDENT)
        lines += sentence(collectives_text(each.plan, palette).plain, width, HOW_INDENT, style="dim")
    return lines + sentence(bound_words(cost), width, INDENT)


def division_words(plan: Plan) -> str:
    """A plan's way to divide the work, where it is not known to be the fastest or others would divide it as
    the given arrays are divided; "" of a reshard, which has none."""
    if plan.objective == "bytes" or plan.teller == "shardy" or is_only_reshard(plan.question):
        return ""
    if plan.as_given is not None:
        longer = _change(plan.as_given, 1, "longer", "less")
        return f"The work is not divided as the given arrays are: that would take {longer}."
    if plan.objective == "time" or plan.optimal:
        return ""
    return "The work is divided as the given arrays are, as compilers and textbooks do."


def faster_words(other: PricedPlan, own: PricedPlan) -> str:
    """``A plan that divides the work differently is 22 % faster (38 % more bytes, 50 % more memory): each
    device moves 43 % less through HBM.``"""
    figures = [
        f"{_change(theirs, ours, 'more', less)} {what}"
        for theirs, ours, less, what in (
            (other.wire_bytes, own.wire_bytes, "fewer", "bytes"),
            (other.flops, own.flops, "fewer", "FLOPs"),
            (other.peak_bytes, own.peak_bytes, "less", "memory"),
        )
        if ours and not _is_alike(theirs, ours)
    ]
    if other.wire_bytes and not own.wire_bytes:
        figures.insert(0, f"{human_bytes(other.wire_bytes)} sent, where this plan sends nothing")
    beside = f" ({', '.join(figures)})" if figures else ""
    ratio = own.serial_seconds / other.serial_seconds
    faster = f"{_times(ratio, 1)} as fast" if ratio >= 2 else f"{_percent(100 - 100 / ratio)} % faster"
    return f"A plan that divides the work differently is {faster}{beside}: {_saving_words(other, own)}."


def _saving_words(other: PricedPlan, own: PricedPlan) -> str:
    """The reason why another plan is faster, by the largest part of the seconds that it saves."""
    computes = own.compute_seconds - other.compute_seconds
    if computes < own.communication_seconds - other.communication_seconds:
        less = _change(other.communication_seconds, own.communication_seconds, "more", "less")
        return f"its collectives take {less} time"
    if other.flops < own.flops and not _is_alike(other.flops, own.flops):
        return f"each device computes {_change(other.flops, own.flops, 'more', 'less')}"
    return f"each device moves {_change(other.hbm_bytes, own.hbm_bytes, 'more', 'less')} through HBM"


def bound_words(cost: PlanCost) -> str:
    """``The search was not exhaustive; this plan takes at most 1.3 × the least time.``; "" where the best
    one is known: this, or the fastest."""
    plan = cost.plan
    by_time = plan.objective != "bytes"
    faster = [each.plan for each in cost.alternatives if by_time and each.name == "fastest"]
    if any(each is not None and each.optimal for each in (plan, plan.faster, *faster)):
        return ""
    if plan.at_most is None:
        better = "a faster plan" if by_time else "a plan that sends less"
        return f"The search was not exhaustive; {better} may exist."
    does, what = ("takes", "time") if by_time else ("sends", "bytes")
    most = _at_most(plan.at_most)
    return f"The search was not exhaustive; this plan {does} at most {most} × the least {what}."


def comparison_words(other: PricedPlan, own: PricedPlan) -> str:
    """``sends 56 % less, computes 4 ×, takes 2.9 ×``: the other plan beside one's own."""
    words = [_sent_words(other.wire_bytes, own.wire_bytes)]
    if not _is_alike(other.flops, own.flops):
        words.append(f"computes {_change(other.flops, own.flops, 'more', 'less')}")
    if not (other.unknown or own.unknown):
        theirs, ours = other.serial_seconds, own.serial_seconds
        alike = not ours or _is_alike(theirs, ours)
        words.append("takes as long" if alike else f"takes {_change(theirs, ours, 'longer', 'less')}")
    if own.peak_bytes and not _is_alike(other.peak_bytes, own.peak_bytes):
        words.append(f"holds {_change(other.peak_bytes, own.peak_bytes, 'more', 'less')}")
    return ", ".join(words)


def _sent_words(other: int, own: int) -> str:
    if other == own:
        return "sends as much"
    if not own:
        return f"sends {human_bytes(other)} where this plan sends nothing"
    return f"sends {_change(other, own, 'more', 'less')}" if other else "sends nothing"


def _is_alike(other: float, own: float) -> bool:
    return abs(other - own) <= NEGLIGIBLE * own


def _at_most(ratio: float) -> str:
    """``1.35``, ``12.4``, ``1,235``: never less than the ratio."""
    unit = 100 if ratio < 10 else 10 if ratio < 100 else 1
    return f"{math.ceil(round(ratio * unit, 6)) / unit:,.15g}"


def _change(other: float, own: float, more: str, less: str) -> str:
    """``56 % less``, ``12 % more``; from twice on ``4 ×``; ``more`` than nothing."""
    if not own:
        return more
    if other >= 2 * own:
        return _times(other, own)
    percent = abs(other / own - 1) * 100
    return f"{_percent(percent)} % {more if other > own else less}"


def _percent(value: float) -> str:
    """``56``; ``0.2`` and ``99.6`` where a whole number would say nothing or everything."""
    near = min(value, 100 - value)
    digits = max(0, math.ceil(-math.log10(2 * near))) if near > 0 else 0
    return f"{value:.{digits}f}"


def _times(other: float, own: float) -> str:
    ratio = other / own
    return f"{ratio:,.0f} ×" if ratio >= 10 or ratio == round(ratio) else f"{ratio:.2g} ×"
