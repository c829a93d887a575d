"""The planner's part of an explanation: the question as a picture, then the plan in words."""

from __future__ import annotations

from rich.text import Text

from shardviz.planner.plan import Plan
from shardviz.render.palette import Palette
from shardviz.render.plans.plan_view import plan_view
from shardviz.render.plans.question_view import headline, question_view


def explain_view(plan: Plan, width: int, palette: Palette, with_pictures: bool = True) -> list[Text]:
    """Headline, pictures unless they are left out, shares, and the plan, with blank lines between."""
    return [
        *headline(plan.problem, width, palette),
        Text(),
        *question_view(plan, width, palette, with_pictures),
        Text(),
        *plan_view(plan, width, palette),
    ]
