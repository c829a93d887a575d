"""The train step of a problem: its backward pass and its optimizer, with every result's sharding decided."""

from __future__ import annotations

from dataclasses import replace

from shardviz.planner.planner import plan
from shardviz.planner.problem import Problem
from shardviz.planner.problem.training import Training, parse_training
from shardviz.planner.training.backward import backward_statements


def train_step(problem: Problem, *, backward: bool, remat: str, optimizer: str) -> Problem:
    """The problem that a user asked in the words of the command line: with its backward pass, or as it is.

    Raises what `parse_training` and `with_backward` raise.
    """
    training = parse_training(backward, remat, optimizer, problem.mesh)
    return problem if training is None else with_backward(problem, training)


def with_backward(problem: Problem, training: Training) -> Problem:
    """The train step of a forward problem: its statements, then those of the gradients and the optimizer.

    The gradient of each result is an argument, split as the result. All arguments of floating point have
    gradients: those of `Problem.parameters` are used by the optimizer; without one, and for the other
    arguments, they are returned, split as their arguments. A constraint on an intermediate holds for its
    gradient too, as in JAX. Where the sharding of the last result is open, it is that of the first argument
    in a stack of layers, else that in which the plan of the forward pass leaves it.

    Raises `QuestionError` where another result's sharding is open, and where no result depends on an argument
    of floating point.
    """
    *others, last = problem.parts
    if last.result.spec is None:
        first = problem.arguments[0]
        is_stack = problem.layers > 1 and first.shape == last.result.shape
        spec = first.spec if is_stack else plan(problem).result_spec
        problem = replace(problem, parts=(*others, replace(last, result=last.result.with_spec(spec))))
    return backward_statements(problem, training)
