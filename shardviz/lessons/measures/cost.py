"""Seconds and bytes on a machine, of plans, of collectives and of programs that ship compiled: what bounds
them, what overlap hides, the best mesh, what the memory is for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import fsum
from typing import TYPE_CHECKING, get_args

from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.lessons.measures.answers import BYTES, NUMBER, PERCENT, SECONDS, AnswerKind, ComputedAnswer
from shardviz.lessons.measures.plan import OPS
from shardviz.lessons.measures.subject import resolve_once, walk_of
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.pricing.priced_plan import COMPUTE, HBM, LATENCY, PricedStep
from shardviz.planner.problem import Phase
from shardviz.strict_table import closest

with LazyImports():
    from shardviz.timeline import of_program

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.machine import Machine
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import ProgramTimeline

PHASES: tuple[Phase, ...] = get_args(Phase)
PARTS = ("einsum", *OPS, *PHASES)
"""The steps of a plan that have a time of their own: by operation, or by phase of a train step."""
BOUNDS = ("compute", "memory", "network", "latency")
PURPOSES = ("parameters", "gradients", "optimizer", "activations")
FIGURES = ("total", "sending", "exposed")
"""Times of a compiled program."""


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
    values = [SECONDS.read(time.text) for time in times]
    best = min(values)
    if values.count(best) > 1:
        raise QuestionError("several meshes take the same time", "take other meshes")
    return _MESH.answer(_mesh(meshes[values.index(best)]))


def peak(resolved: ResolvedProblem) -> ComputedAnswer:
    """The most bytes that a device holds at once, in all layers."""
    return BYTES.answer(resolved.cost.layers_peak_bytes)


def memory(resolved: ResolvedProblem, purpose: str) -> ComputedAnswer:
    """Bytes of a device in a train step that serve one of `PURPOSES`."""
    if purpose not in PURPOSES:
        raise QuestionError(f"no memory is for {quote(purpose, 30)}", closest(purpose, PURPOSES))
    found = resolved.cost.training_memory
    if found is None:
        raise QuestionError("only a train step has this memory", 'write backward = "yes" in the setup')
    return BYTES.answer(getattr(found, purpose))


def compiled(resolved: ResolvedProblem, program: str, figure: str) -> ComputedAnswer:
    """A time of a compiled program on the problem's machine: in all; of its sending, hidden or not; and of
    that for which the device waits."""
    if program not in programs():
        raise QuestionError(f"there is no program {quote(program, 30)}", closest(program, programs()))
    if figure not in FIGURES:
        raise QuestionError(f"a program has no figure {quote(figure, 30)}", closest(figure, FIGURES))
    timeline = compiled_timeline(program, resolved.machine, resolved.problem.mesh)
    links = {lane.name for lane in timeline.lanes if lane.kind in ("axis", "network")}
    sending = fsum(taken for name, taken in timeline.communication_seconds if name in links)
    exposed = fsum(waited for name, waited in timeline.exposed_seconds if name in links)
    found = {"total": timeline.seconds, "sending": sending, "exposed": exposed}
    return SECONDS.answer(Fraction(found[figure]))


@cache
def compiled_timeline(program: str, machine: Machine, mesh: Mesh) -> ProgramTimeline:
    """The timeline of one of `programs`. Raises `QuestionError` for a mesh or a machine of another size."""
    text = (files("shardviz.lessons") / "compiled" / f"{program}.txt").read_text(encoding="utf-8")
    return of_program.timed_program(text, machine, mesh=mesh)[1]


@cache
def programs() -> tuple[str, ...]:
    """The names of the programs that ship with the lessons."""
    folder = files("shardviz.lessons") / "compiled"
    return tuple(sorted(file.name.removesuffix(".txt") for file in folder.iterdir()))


def priced(resolved: ResolvedProblem) -> PlanCost:
    """The plan with its cost on the problem's machine. Raises `QuestionError` where that is not known."""
    cost = resolved.cost
    if cost.unknown:
        raise QuestionError(cost.missing_figure, "take another machine, or another dtype")
    return cost


def _belongs(step: PricedStep, part: str, cost: PlanCost) -> bool:
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
    return ", ".join(f"{name}={size}" for name, size in parse_mesh(text).shape.items())


_BOUND = AnswerKind(_read_bound, str)
_MESH = AnswerKind(_mesh, str)
