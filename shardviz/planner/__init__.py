"""The plan that a textbook would give for a problem, with the reason of every step.

Standard library only.
"""

from shardviz.planner.plan import Plan, Step
from shardviz.planner.planner import Planner, plan
from shardviz.planner.problem import Statement, Problem
from shardviz.planner.problem import problem_from_text
from shardviz.planner.ranking import Candidate, rank

__all__ = [
    "Candidate",
    "Plan",
    "Planner",
    "Problem",
    "Statement",
    "Step",
    "plan",
    "problem_from_text",
    "rank",
]
