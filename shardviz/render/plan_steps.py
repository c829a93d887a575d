"""The rows of a plan's steps, which all tables of steps are made of, and the words of a train step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rich.text import Text

from shardviz.planner.plan import LOCAL_OPS, Plan, Step
from shardviz.planner.pricing.priced_steps import HBM, IN_PLACE, PricedStep
from shardviz.planner.problem import Problem
from shardviz.planner.problem.problem import value_pieces
from shardviz.render.caption import axes_text, spec_text
from shardviz.render.palette import Palette
from shardviz.units import exact_bytes, flops, human_bytes, seconds


@dataclass(frozen=True)
class StepRow:
    """A step of a plan, or all steps in a row that update one parameter, of which `step` is the last.

    `number` is ``2``, or ``7–9``. `operation` is ``psum Out over Y`` or ``einsum bd,df->bf``; of a statement
    of a program and of an update ``Y = silu(H)``, of which `value` stands after the sign. `becomes` is the
    array as the step leaves it. `priced` are its prices, where it has any.
    """

    number: str
    step: Step
    operation: Text
    becomes: Text
    value: str = ""
    is_update: bool = False
    priced: Sequence[PricedStep] = ()

    @property
    def is_moving(self) -> bool:
        return self.step.op not in LOCAL_OPS

    @property
    def is_in_place(self) -> bool:
        return not self.is_update and self.priced[0].convention == IN_PLACE

    @property
    def seconds(self) -> float | None:
        """The time of all its steps; None where one of them has none."""
        known = [each.seconds for each in self.priced if each.seconds is not None]
        return sum(known) if len(known) == len(self.priced) else None

    @property
    def time(self) -> str:
        if self.is_in_place:
            return "in place"
        return "unknown" if self.seconds is None else seconds(self.seconds)

    @property
    def bound(self) -> str:
        """The resource or the axes by which its time is bound; an update only reads and writes memory."""
        if self.seconds is None or self.is_in_place:
            return ""
        return HBM if self.is_update else self.priced[0].bound

    @property
    def size(self) -> str:
        """The bytes of a collective."""
        return exact_bytes(self.step.bytes) if self.is_moving else ""

    @property
    def moved(self) -> str:
        """The figure that bounds its time: bytes sent, bytes of memory, or work."""
        last = self.priced[-1]
        if last.is_collective:
            return f"{human_bytes(last.wire_bytes)} sent"
        if self.is_update or last.bound == HBM:
            return f"{human_bytes(sum(each.hbm_bytes for each in self.priced))} of HBM"
        return flops(last.flops)


def step_rows(plan: Plan, palette: Palette, priced: Sequence[PricedStep] = ()) -> dict[int, StepRow]:
    """The row of each step by its number, from 1; all steps that update one parameter are one, by the number
    of the last."""
    runs = update_runs(plan)
    rows = {}
    for number in range(1, len(plan.steps) + 1):
        row, run = step_row(plan, number, palette, priced), runs.get(number)
        if run is None:
            rows[number] = row
        elif number == run[-1]:
            value = update_text(plan, number)
            rows[number] = replace(
                row,
                number=f"{run[0]}–{number}",
                operation=Text(value),
                value=value,
                is_update=True,
                priced=priced[run[0] - 1 : number],
            )
    return rows


def step_row(plan: Plan, number: int, palette: Palette, priced: Sequence[PricedStep] = ()) -> StepRow:
    """The row of one step."""
    step, problem, value = plan.steps[number - 1], plan.problem, ""
    arrays = (array for part in problem.parts for array in (*part.operands, part.result))
    dims = next(array.dims for array in arrays if array.name == step.array)
    if step.einsum is not None and not problem.is_chain:
        pieces, part = value_pieces(problem.parts[step.part]), problem.parts[step.part]
        value = "".join(each if isinstance(each, str) else part.operands[each].name for each in pieces)
        operation = Text.assemble((step.array, "bold"), f" = {value}")
    elif step.einsum is not None:
        operation = Text.assemble((step.op, "bold"), f" {step.einsum}")
    else:
        operation = Text.assemble((step.op, "bold"), f" {step.array}")
        if step.axes:
            operation.append(" over ").append_text(axes_text(step.axes, problem.mesh, palette))
    becomes = spec_text(step.array, dims, step.to_spec, problem.mesh, palette)
    return StepRow(f"{number}", step, operation, becomes, value, False, priced[number - 1 : number])


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
