"""Seconds on a machine, of plans and of collectives: their bound, what overlap hides, the best mesh."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import fsum
from typing import TYPE_CHECKING, get_args

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answers import NUMBER, PERCENT, SECONDS, AnswerKind, ComputedAnswer
from shardviz.lessons.measures.plan import OPS
from shardviz.lessons.measures.subject import resolve_once, walk_of
from shardviz.planner.pricing.costs import PlanCost, price
from shardviz.planner.pricing.priced_steps import COMPUTE, HBM, LATENCY, PricedStep
from shardviz.planner.problem import Phase
from shardviz.strict_table import closest

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem

PHASES: tuple[Phase, ...] = get_args(Phase)
PARTS = ("einsum", *OPS, *PHASES)
"""The steps of a plan that have a time of their own: by operation, or by phase of a train step."""
BOUNDS = ("compute", "memory", "network", "latency")


def seconds(resolved: ResolvedProblem, part: str = "") -> ComputedAnswer:
    """The time of the form's collective, by its algorithm; else of the plan in all its layers, one step after
    the other: of all its steps, or of those of an operation or a phase."""
    if part and part not in PARTS:
        raise QuestionError(f"a plan has no steps {quote(part, 30)}", closest(part, PARTS))
    if resolved.collective is not None and not part:
        return SECONDS.answer(Fraction(walk_of(resolved).timeline.seconds))
    cost = priced(resolved)
    taken = fsum(each.seconds or 0.0 for each in cost.steps if _belongs(each, part, cost))
    return SECONDS.answer(Fraction(taken * cost.layers))


def overlapped(resolved: ResolvedProblem) -> ComputedAnswer:
    """The longer of computing and sending, in a train step of each pass: the time where one hides as much of
    the other as it can."""
    cost = priced(resolved)
    return SECONDS.answer(Fraction(cost.overlapped_seconds * cost.layers))


def step(resolved: ResolvedProblem) -> ComputedAnswer:
    """The time where only what parameters and their gradients send overlaps, as `search` has it."""
    cost = priced(resolved)
    return SECONDS.answer(Fraction(cost.step_seconds * cost.layers))


def exposed(resolved: ResolvedProblem) -> ComputedAnswer:
    """The time by which sending takes longer than computing, so that no overlap hides it."""
    cost = priced(resolved)
    return SECONDS.answer(Fraction((cost.overlapped_seconds - cost.compute_seconds) * cost.layers))


def bound(resolved: ResolvedProblem) -> ComputedAnswer:
    """The bound of the plan's longest step of the longer side: `BOUNDS`."""
    found = priced(resolved).bound
    own = {COMPUTE: "compute", HBM: "memory", LATENCY: "latency"}
    return _BOUND.answer(own.get(found, "network"))


def threshold(resolved: ResolvedProblem, dim: str) -> ComputedAnswer:
    """The least size of a dimension with which every step of the plan is compute bound."""
    known = {each.dim: each for each in priced(resolved).thresholds}
    if dim not in known:
        raise QuestionError(f"dimension {quote(dim, 30)} has no threshold", closest(dim, tuple(known)))
    least = known[dim].least
    if least is None:
        raise QuestionError(f"the plan is not compute-bound at any size of {dim}", "take another problem")
    return NUMBER.answer(least)


def utilisation(resolved: ResolvedProblem) -> ComputedAnswer:
    """The share of the peak FLOP/s that the plan reaches, one step after the other."""
    found = priced(resolved).serial_utilisation
    if found is None:
        raise QuestionError("the peak is not known", "take a machine and a dtype with a published peak")
    return PERCENT.answer(Fraction(found))


def fastest(resolved: ResolvedProblem, *meshes: str) -> ComputedAnswer:
    """The mesh, of some, on which the plan takes the least time: of a train step with its overlap, as `step`
    has it."""
    if len(meshes) < 2:
        raise QuestionError("fastest compares meshes", "write for example fastest X=4,Y=2 X=2,Y=4")
    taken = seconds if resolved.problem.training is None else step
    times = [taken(resolve_once(replace(resolved.draft, mesh=mesh))) for mesh in meshes]
    values = [SECONDS.read(each.text) for each in times]
    best = min(values)
    if values.count(best) > 1:
        raise QuestionError("several meshes take the same time", "take other meshes")
    return _MESH.answer(_mesh(meshes[values.index(best)]))


def priced(resolved: ResolvedProblem) -> PlanCost:
    """The plan with its cost on the problem's machine. Raises `QuestionError` where that is not known."""
    cost = price(resolved.plan, resolved.placed)
    if cost.unknown:
        raise QuestionError(cost.missing_figure, "take another machine, or another dtype")
    return cost


def _belongs(step: PricedStep, part: str, cost: PlanCost) -> bool:
    """Return whether a step is of an operation or a phase, or of the plan where none is named."""
    if part in PHASES:
        return cost.plan.problem.parts[step.step.part].phase == part
    return not part or step.step.op == part


def _read_bound(text: str) -> str:
    found = text.strip().lower()
    if found not in BOUNDS:
        raise QuestionError(f"{quote(text, 30)} is not a bound", f"there are {', '.join(BOUNDS)}")
    return found


def _mesh(text: str) -> str:
    """A mesh as it is shown, axes of one device included: they tell what was chosen."""
    from shardviz.notation import parse_mesh

    return ", ".join(f"{name}={size}" for name, size in parse_mesh(text).shape.items())


_BOUND = AnswerKind(_read_bound, str)
_MESH = AnswerKind(_mesh, str)
