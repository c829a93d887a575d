"""The plan that a textbook would give for a problem, with the reason of every step.

Standard library only. Names are imported when they are first used: a picture of the arrays needs no planner.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from shardviz.lazy_names import lazy_names

if TYPE_CHECKING:
    from shardviz.planner.plan import Plan as Plan, Step as Step
    from shardviz.planner.planner import Planner as Planner, plan as plan
    from shardviz.planner.problem import Problem as Problem, Statement as Statement
    from shardviz.planner.problem.reading import problem_from_text as problem_from_text
    from shardviz.planner.ranking import Candidate as Candidate, rank as rank
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "plan": "Plan Step",
            "planner": "Planner plan",
            "problem": "Problem Statement",
            "problem.reading": "problem_from_text",
            "ranking": "Candidate rank",
        },
    )
    # A module gives its package its name when it is loaded, and this one has the name of the function.
    import_module("shardviz.planner.plan")
    del plan
