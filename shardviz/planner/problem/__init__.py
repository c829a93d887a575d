"""The question: statements, how their arrays are split, and how all that is read from text."""

from shardviz.planner.problem.problem import Objective, PaddedDim, Phase, Problem, Statement
from shardviz.planner.problem.reading import problem_from_text

__all__ = ["Objective", "PaddedDim", "Phase", "Problem", "Statement", "problem_from_text"]
