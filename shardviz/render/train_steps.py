"""The words of a train step: its phases, and the optimizer's steps for a parameter as one line."""

from __future__ import annotations

from itertools import groupby

from shardviz.planner.plan import Plan, Step
from shardviz.planner.problem import Problem


def training_words(problem: Problem) -> str:
    """``, backward, remat dots, adam``; nothing for a forward pass."""
    training = problem.training
    if training is None:
        return ""
    remat = "" if training.remat == "none" else f", remat {training.remat}"
    return f", backward{remat}" + (f", {training.optimizer}" if training.optimizer else "")


def phase_heading(plan: Plan, number: int) -> str:
    """The phase that begins with a step, from 1; "" where none does. What is computed again is a part of the
    backward pass."""

    def phase(step: Step) -> str:
        own = plan.problem.parts[step.part].phase
        return "backward" if own == "recomputed" else own

    here = phase(plan.steps[number - 1])
    if plan.problem.training is None or (number > 1 and phase(plan.steps[number - 2]) == here):
        return ""
    return here


def update_runs(plan: Plan) -> dict[int, range]:
    """By the number of each step, from 1, those in a row that update the same parameter as it does."""
    found: dict[int, range] = {}
    for _, run in groupby(enumerate(plan.steps, 1), lambda pair: _updated(plan, pair[1])):
        numbers = [number for number, step in run if _updated(plan, step)]
        found |= dict.fromkeys(numbers, range(numbers[0], numbers[-1] + 1)) if numbers else {}
    return found


def _updated(plan: Plan, step: Step) -> str:
    """The parameter whose optimizer's statement the step is; "" for all others."""
    part = plan.problem.parts[step.part]
    return part.source if part.phase == "optimizer" and step.einsum is not None else ""


def update_text(plan: Plan, number: int) -> str:
    """``adam(W1, dW1)``, for a step of the optimizer."""
    training, problem = plan.problem.training, plan.problem
    assert training is not None
    assert training.optimizer is not None
    name = _updated(plan, plan.steps[number - 1])
    return f"{training.optimizer.rule}({name}, {dict(problem.gradients)[name]})"


def state_words(problem: Problem) -> str:
    """``adam keeps a copy in f32 and two moments in f32 of each parameter, split as it is and over data``;
    nothing where there is no such state."""
    optimizer = None if problem.training is None else problem.training.optimizer
    if optimizer is None:
        return ""
    trained = {part.source for part in problem.parts if part.phase == "optimizer"}
    dtypes = {array.dtype for array in problem.arguments if array.name in trained}
    kept = []
    if optimizer.master and dtypes != {optimizer.master}:
        kept.append(f"a copy in {optimizer.master}")
    if optimizer.rule == "adam":
        kept.append(f"two moments in {optimizer.moments}")
    if not kept:
        return ""
    arrays = {array.name: array for array in problem.arguments}
    pairs = [
        (arrays[part.source].decided_spec.axes, arrays[old].decided_spec.axes)
        for old, new in problem.updates
        for part in problem.parts
        if part.result.name == new
    ]
    more = [axis for axis in optimizer.over if any(axis in own and axis not in its for its, own in pairs)]
    split = "split as it is" + "".join(f" and over {axis}" for axis in more)
    return f"{optimizer.rule} keeps {' and '.join(kept)} of each parameter, {split}"


def state_names(problem: Problem) -> set[str]:
    """The optimizer's state before and after the step, which `state_words` says."""
    trained = {part.source for part in problem.parts if part.phase == "optimizer"}
    return {name for pair in problem.updates if pair[0] not in trained for name in pair}
