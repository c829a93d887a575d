"""The answers of compilers to a problem, beside its plan: an answer that grows as they finish."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

from shardviz.answers.requests import answer_of
from shardviz.errors import QuestionError
from shardviz.hardware.machine_file import named_machine
from shardviz.lazy_names import LazyImports
from shardviz.planner.pricing.costs import PlanCost, price

with LazyImports():
    from shardviz.reports import program_report

if TYPE_CHECKING:
    from shardviz.answers.plans import PricedProblem
    from shardviz.compare import Difference
    from shardviz.hardware.machine import Machine
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem
    from shardviz.reports.program_report import TargetTimes, TimesAnswer
    from shardviz.reports.target_result import TargetResult


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
        return answer_of(name, self.compiled)

    def times(self, result: TargetResult, machine: str | Machine | None = None) -> TimesAnswer:
        """When each operation of a target's program runs, on its own hardware or a machine that is named."""
        named = named_machine(machine) if isinstance(machine, str) else machine
        return program_report.answer_times(result, self.problem.mesh, named)

    def target_times(self, result: TargetResult, machine: str | Machine | None = None) -> TargetTimes:
        """As `times`. Raises `QuestionError` where there are none."""
        answer = self.times(result, machine)
        if answer.times is None:
            raise answer.error or QuestionError(f"{answer.target} has no times")
        return answer.times


def told_of(
    plan: Plan, results: Iterable[TargetResult]
) -> tuple[tuple[TargetResult, tuple[Difference, ...]], ...]:
    """Each result, and where it differs from a plan."""
    from shardviz.compare import differences

    return tuple((result, differences(plan, result)) for result in results)
