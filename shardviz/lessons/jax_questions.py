"""The questions of a lesson that JAX can answer too, and where the answers that it gave disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz import compare
from shardviz.hardware.measured import COLLECTIVES
from shardviz.lessons.measures.subject import array_named, collective_of, resolve_once
from shardviz.sharding import Layout

if TYPE_CHECKING:
    from shardviz.forms.form import ProblemForm
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.lessons.lesson import Lesson
    from shardviz.planner.plan import Plan
    from shardviz.reports.target_result import HeldArray, TargetResult
    from shardviz.sharding import Mesh, ShardedArray
    from shardviz.stepping.collective_run import Verdict
    from shardviz.stepping.question import CollectiveQuestion

OF_ONE_ARRAY = ("shard_shape", "slices", "holders", "replicas", "bytes", "shard_bytes", "loads")
"""Measures of who holds what of an array, their first argument, without which `shard_bytes` is of all."""
OF_PLANS = ("collectives", "count", "line", "sent")
"""Measures of what a plan sends."""
OF_TIMES = ("seconds", "overlapped", "step", "exposed", "bound", "flops")
"""Measures of work and seconds: JAX knows only what is sent, the plan's collectives or the form's own."""
SAME_MOVES = {"promoted_dtype", "narrowed_dtype", "padded", *compare.SAME_TRAFFIC} - {"only_other_result"}
"""Codes of differences with which the same collectives run over the same axes, to the same result."""


@dataclass(frozen=True, kw_only=True)
class _LessonQuestion:
    """A question about a key of a lesson's file; with `is_of_answer` it gives a prediction's answer."""

    key: str
    is_of_answer: bool = False


@dataclass(frozen=True, kw_only=True)
class ArraysQuestion(_LessonQuestion):
    """Which elements every device of `mesh` holds of `arrays`."""

    mesh: Mesh
    arrays: tuple[ShardedArray, ...]

    def disagreement(self, held: Sequence[HeldArray]) -> str:
        """Where JAX says otherwise; empty where it agrees."""
        if refusals := [array.error for array in held if array.error]:
            return f"JAX refuses it: {refusals[0]}"
        for array, held_array in zip(self.arrays, held, strict=True):
            ours = [(device.id, device.slices) for device in Layout(array, self.mesh)]
            for (device, slices), (_, theirs) in zip(ours, held_array.devices, strict=True):
                if slices != theirs:
                    return f"device {device} holds {slices} of {array.name}; JAX gives it {theirs}"
        return ""


@dataclass(frozen=True, kw_only=True)
class RunQuestion(_LessonQuestion):
    """A collective that JAX runs on the same numbers."""

    question: CollectiveQuestion

    def disagreement(self, verdict: Verdict) -> str:
        """Where JAX's numbers are others; empty where they are ours."""
        if verdict.agrees:
            return ""
        mesh, result = self.question.layout.mesh, verdict.verification
        where = "" if result.device is None else f"; device {mesh.device_id(result.device)} first"
        return f"JAX ends with {result.theirs or result.note} where ours is {result.ours}{where}"


@dataclass(frozen=True, kw_only=True)
class PlanQuestion(_LessonQuestion):
    """A plan of which Shardy, or XLA for simulated devices, must insert the same collectives. To the measure
    `ask`, of ``result_spec`` only the result's split is asked; and of ``count`` in a train step the number of
    one kind: compilers may send other things beside it."""

    plan: Plan
    ask: str = ""

    def disagreement(self, answers: Sequence[TargetResult]) -> str:
        """Why none of the answers agrees; empty where one does."""
        reasons = [self._reason(answer) for answer in answers]
        return "" if not all(reasons) else "; ".join(dict.fromkeys(reasons))

    def _reason(self, answer: TargetResult) -> str:
        if answer.status != "ok":
            return f"{answer.target} gives no answer: {answer.error}"
        name, *arguments = self.ask.split() or [""]
        if name == "result_spec":
            ours, theirs = self.plan.result_spec, answer.result_spec
            same = ours == theirs
            return "" if same else f"the result is split as {ours}; {answer.target} leaves it as {theirs}"
        if name == "count" and self.plan.problem.training is not None:
            number = sum(step.op == arguments[0] for step in self.plan.collectives)
            jax_count = sum(collective.op == COLLECTIVES[arguments[0]] for collective in answer.collectives)
            return "" if number == jax_count else f"the answer is {number}; JAX gives {jax_count}"
        differences = compare.differences(self.plan, answer)
        return next((one.message.rstrip(".") for one in differences if one.code not in SAME_MOVES), "")


JaxQuestion = ArraysQuestion | RunQuestion | PlanQuestion


def jax_questions(lesson: Lesson) -> list[JaxQuestion]:
    """The questions to JAX about a lesson whose answers can be computed: as far as JAX knows it what each
    prediction's answer follows from, the collectives of setup and solution, what the goal wants to be held
    and to be sent."""
    questions: list[JaxQuestion] = []
    for key, prediction in lesson.questions.items():
        questions += _of_measure(f"{key}.ask", prediction.ask, prediction.draft)
    for key, draft in (("setup.collective", lesson.setup), ("solution.collective", lesson.solution)):
        questions += _of_run(key, resolve_once(draft).collective)
    solution = resolve_once(lesson.solution)
    for name in lesson.goal.holds or ():
        questions += _of_arrays(f"goal.holds.{name}", solution, [array_named(solution, name)])
    if lesson.goal.collectives is not None:
        questions.append(PlanQuestion(key="goal.collectives", plan=solution.plan))
    return questions


def _of_measure(key: str, ask: str, draft: ProblemForm) -> Iterator[JaxQuestion]:
    name, *arguments = ask.split()
    resolved = resolve_once(draft)
    if name in (*OF_ONE_ARRAY, "devices", "device", "coordinates", "crossing"):
        is_named = name in OF_ONE_ARRAY and arguments
        arrays = (array_named(resolved, arguments[0]),) if is_named else resolved.problem.arguments
        yield from _of_arrays(key, resolved, arrays, is_of_answer=True)
    elif name in ("result", "rounds", "held"):  # of rounds JAX knows only where they lead
        yield from _of_run(key, collective_of(resolved), is_of_answer=name == "result")
    elif name in OF_TIMES and resolved.collective is not None:
        yield from _of_run(key, resolved.collective)
    else:
        # In a train step compilers may send other things beside.
        of_plans = (*OF_PLANS, *OF_TIMES) if resolved.problem.training is None else ("collectives", "count")
        if name == "result_spec" or (name in of_plans and resolved.collective is None):
            is_of_answer = name in (*OF_PLANS, "result_spec")
            yield PlanQuestion(key=key, plan=resolved.plan, ask=ask, is_of_answer=is_of_answer)


def _of_arrays(
    key: str, resolved: ResolvedProblem, arrays: Sequence[ShardedArray], is_of_answer: bool = False
) -> Iterator[ArraysQuestion]:
    """Nothing where JAX's layouts refuse one of the arrays: partial sums, and parts of different sizes."""
    mesh = resolved.problem.mesh
    layouts = [Layout(array, mesh) for array in arrays]
    if not any(layout.uneven or layout.spec.unreduced for layout in layouts):
        yield ArraysQuestion(key=key, is_of_answer=is_of_answer, mesh=mesh, arrays=tuple(arrays))


def _of_run(
    key: str, question: CollectiveQuestion | None, is_of_answer: bool = False
) -> Iterator[RunQuestion]:
    """Nothing where there is no collective, or none with numbers."""
    if question is not None and question.shards is not None:
        yield RunQuestion(key=key, is_of_answer=is_of_answer, question=question)
