"""Timelines: operations on lanes, loops, totals and live memory; and profiles: devices, steps, collectives as
they ran, stragglers, and a step as a timeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shardviz.documents.fields import Beside, DocumentKind

if TYPE_CHECKING:
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.reports.program_report import TimesAnswer
    from shardviz.timeline.program_timeline import ProgramTimeline

TIMELINE_KIND = DocumentKind("programs", "timeline")
PROFILE = DocumentKind("timelines", "profile")


def told_times(cost: PlanCost, answers: Iterable[TimesAnswer]) -> list[Beside]:
    """The plan's times, and those of each answer by each of its tellers."""
    from shardviz.timeline.of_plan import plan_timeline

    def told(target: str, teller: str, timeline: ProgramTimeline | None, **more: object) -> Beside:
        return Beside(target=target, teller=teller, timeline=timeline, **{"error": "", "causes": (), **more})

    tellers = [told("plan", "plan", plan_timeline(cost))]
    for answer in answers:
        times = answer.times
        if times is None:
            tellers.append(told(answer.target, "model", None, error=answer.error and answer.error.message))
            continue
        tellers.append(told(answer.target, "model", times.model))
        if times.scheduler is not None:
            causes = () if times.comparison is None else times.comparison.causes
            tellers.append(told(answer.target, "scheduler", times.scheduler, causes=causes))
    return tellers


def _communication(timeline: ProgramTimeline) -> Iterable[tuple[str, float, float]]:
    exposed = dict(timeline.exposed_seconds)
    return ((lane, seconds, exposed.get(lane, 0.0)) for lane, seconds in timeline.communication_seconds)


SOURCES = {"communication": _communication}
