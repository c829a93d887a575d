"""A problem to the planner: its plan, all ways to split it, over sizes, beside another, and one step; and the
answers of compilers beside the plan: an answer that grows as they finish."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.notation.numbers import parse_range
from shardviz.planner import planner, ranking
from shardviz.planner.plan import LOCAL_OPS, Plan
from shardviz.planner.pricing.costs import PlanCost, Sweep, price, sweep
from shardviz.planner.problem.reading import problem_from_text
from shardviz.planner.problem.training import parse_training
from shardviz.planner.training import with_backward
from shardviz.targets.hardware import placed_for

with LazyImports():
    from shardviz.answers import requests
    from shardviz.hardware import machine_file
    from shardviz.reports import program_report
    from shardviz.stepping import collective_matmul, collective_run, plan_run, plan_step

if TYPE_CHECKING:
    from shardviz.compare import Difference
    from shardviz.hardware.machine import Machine, PlacedMesh
    from shardviz.planner.problem import Objective, Problem
    from shardviz.planner.ranking import Candidate
    from shardviz.reports.target_result import TargetResult
    from shardviz.sharding import Mesh
    from shardviz.targets import Target


def problem_of(
    text: str,
    mesh: Mesh,
    *,
    objective: Objective = "given",
    backward: bool = False,
    remat: str = "none",
    optimizer: str = "none",
    frozen: str | None = "",
    **words: Any,
) -> Problem:
    """The problem in the words of the options, with its backward pass if that is asked for; `words` are those
    of `problem_from_text`, which raises `QuestionError` for such as do not state one."""
    problem = replace(problem_from_text(text, mesh=mesh, **words), objective=objective)
    return train_step(problem, backward, remat, optimizer, frozen)


def train_step(problem: Problem, backward: bool, remat: str, optimizer: str, frozen: str | None) -> Problem:
    """A forward problem with its backward pass, if that is asked for. Raises `QuestionError`."""
    training = parse_training(backward, remat, optimizer, problem.mesh, frozen)
    return problem if training is None else with_backward(problem, training)


@dataclass(frozen=True)
class PricedProblem:
    """A problem on hardware: `machine` is the one that is named, else the first of the `targets` with figures
    prices it, else one that is assumed. Raises `QuestionError` for a machine that is not there, or cannot
    hold the mesh."""

    problem: Problem
    machine: str | Machine | None = None
    targets: tuple[Target, ...] = ()

    def __post_init__(self) -> None:
        _ = self.placed

    @cached_property
    def placed(self) -> PlacedMesh:
        """The mesh on the machine that prices the problem."""
        return self._place(self.problem.mesh)

    def _place(self, mesh: Mesh) -> PlacedMesh:
        return placed_for(self.machine, self.targets, mesh)

    @cached_property
    def plan(self) -> Plan:
        """The plan. Raises `QuestionError` for arrays of which nothing says how they are split."""
        return planner.plan(self.problem, self.placed)

    def cost(self) -> PlanCost:
        return price(self.plan, self.placed)

    def ranking(self) -> tuple[Candidate, ...]:
        """Every sharding worth considering. Raises `QuestionError` where there are too many."""
        return ranking.rank(self.problem, self.placed)

    def versus(self, other: Problem) -> tuple[PlanCost, PlanCost]:
        """The plan with its cost, and that of the same arrays split in another way."""
        return self.cost(), replace(self, problem=other).cost()

    def sweep(self, over: str) -> Sweep:
        """The cost over sizes of a dimension or of a mesh axis, ``b=1Ki:1Mi``. Raises `QuestionError` for a
        size that its axes do not divide, and where a time is not known."""
        return sweep(self.problem, parse_range(over), self._place)

    def played(self, number: int = 0) -> plan_run.PlanRun | None:
        """The plan on small numbers, for all steps, 0, or one that sends nothing; None for another, which has
        rounds."""
        own = self.plan.steps[number - 1 : number] if number > 0 else ()
        is_local = bool(own) and own[0].op in LOCAL_OPS
        return plan_run.small_run(self.plan) if is_local or not number else None

    def step(self, number: int | None = None, algorithm: str | None = None, **links: str | None) -> PlanStep:
        """A step of the plan, as `step_of` has it."""
        return step_of(self.plan, self.placed, number, algorithm, **links)


@dataclass(frozen=True)
class PlanStep:
    """Step `number` of a plan, and the `run` of its collective in one piece."""

    plan: Plan
    placed: PlacedMesh
    number: int
    run: collective_run.CollectiveRun

    @cached_property
    def fastest(self) -> collective_run.CollectiveRun:
        """The run in as many pieces as take the least time."""
        return collective_run.pipelined(self.run)

    def matmul(self) -> collective_matmul.BlockwiseMatmul:
        """The blocks of the matmul beside it, as they are multiplied while it moves them. Raises
        `QuestionError` where there is none."""
        matmul = collective_matmul.matmul_of_step(self.plan, self.placed, self.number, self.run)
        if matmul is None:
            raise QuestionError(
                f"no matmul can run beside step {self.number}",
                "a gather of an operand just before an einsum has one, and a sum of its result just after it",
            )
        return matmul


def step_of(
    plan: Plan,
    placed: PlacedMesh,
    number: int | None = None,
    algorithm: str | None = None,
    latency: str | None = None,
    bandwidth: str | None = None,
) -> PlanStep:
    """A step of a plan as a collective, by default the only one; by its usual algorithm and on the machine's
    own links where none are named. Raises `QuestionError` for a step that does not exist or sends nothing,
    and for none of several."""
    if number is None:
        places = plan_step.collective_steps(plan)
        if len(places) != 1:
            named = ", ".join(f"{index} ({plan.steps[index - 1].op})" for index in places)
            problem = f"a collective's rounds are wanted, and this plan has {len(places) or 'no'} collectives"
            none = "split a summed dimension, or step through one"
            raise QuestionError(problem, f"choose one with --step: {named}" if places else none)
        number = places[0]
    question = plan_step.question_of_step(plan, number, algorithm, placed)
    return PlanStep(plan, placed, number, collective_run.run_on(question, placed, None, latency, bandwidth))


@dataclass(frozen=True)
class ExplainAnswer:
    """A plan with its cost, and the results of targets so far, `compiled`, in the order of the targets."""

    question: PricedProblem
    cost: PlanCost
    compiled: tuple[TargetResult, ...] = ()

    @classmethod
    def planned(cls, question: PricedProblem) -> Self:
        """The plan of a question, before any target has answered."""
        return cls(question, question.cost())

    @property
    def plan(self) -> Plan:
        return self.cost.plan

    @property
    def problem(self) -> Problem:
        return self.plan.problem

    def waits_for(self, targets: Collection[str]) -> bool:
        """Return whether one of these targets, which has not answered yet, may bring a cheaper plan."""
        answered = {result.target for result in self.compiled}
        return not self.plan.optimal and "shardy" in targets and "shardy" not in answered

    def with_result(self, result: TargetResult) -> Self:
        """The answer with one more result. A plan that splits as Shardy does replaces one that costs more."""
        answer = replace(self, compiled=(*self.compiled, result))
        if result.target != "shardy" or self.plan.optimal:
            return answer
        from shardviz.compare.adoption import cheaper_plan

        plan = cheaper_plan(self.plan, [result], self.question.placed)
        return answer if plan is self.plan else replace(answer, cost=price(plan, self.question.placed))

    @cached_property
    def told(self) -> tuple[tuple[TargetResult, tuple[Difference, ...]], ...]:
        """Each target's result, and where it differs from the plan."""
        return told_of(self.plan, self.compiled)

    @property
    def differences(self) -> tuple[Difference, ...]:
        return tuple(difference for _, differences in self.told for difference in differences)

    def target(self, name: str) -> TargetResult:
        """The result of one target. Raises `QuestionError` for one that was not asked."""
        return requests.answer_of(name, self.compiled)

    def times(self, result: TargetResult, machine: str | Machine | None = None) -> program_report.TimesAnswer:
        """When each operation of a target's program runs, on its own hardware or a machine that is named."""
        named = machine_file.named_machine(machine) if isinstance(machine, str) else machine
        return program_report.answer_times(result, self.problem.mesh, named)


def told_of(
    plan: Plan, results: Iterable[TargetResult]
) -> tuple[tuple[TargetResult, tuple[Difference, ...]], ...]:
    """Each result, and where it differs from a plan."""
    from shardviz.compare import differences

    return tuple((result, differences(plan, result)) for result in results)
