"""The arrays, devices and collectives of a problem, which measures are about."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.forms.form import ProblemForm
from shardviz.forms.resolve import ResolvedProblem, resolve
from shardviz.lazy_names import LazyImports
from shardviz.lessons.measures.answers import whole_number
from shardviz.sharding import Layout, Mesh, ShardedArray

with LazyImports():
    from shardviz.stepping import collective_run, plan_step

if TYPE_CHECKING:
    from shardviz.stepping.question import CollectiveQuestion


@lru_cache(maxsize=32)  # the predictions of a lesson ask about few drafts, again and again
def resolve_once(draft: ProblemForm) -> ResolvedProblem:
    """The problem of a form without errors; raises the first one as a `ShardvizError`."""
    return resolve(draft)


def array_named(resolved: ResolvedProblem, name: str) -> ShardedArray:
    """An array as it is split: as the problem says, or as the plan decides. An intermediate is as the einsum
    that makes it leaves it. Raises `QuestionError` for another name."""
    arrays = [array for part in resolved.problem.parts for array in (*part.operands, part.result)]
    known = list(dict.fromkeys(array.name for array in arrays))
    named_array = next((array for array in arrays if array.name == name), None)
    if named_array is None:
        raise QuestionError(f"there is no array {quote(name, 30)}", f"there are {', '.join(known)}")
    if named_array.spec is not None:
        return named_array
    if name == resolved.problem.result.name:
        return named_array.with_spec(resolved.plan.result_spec)
    steps = [step for step in resolved.plan.steps if step.array == name]
    return named_array.with_spec(steps[-1].to_spec)


def layout_named(resolved: ResolvedProblem, name: str) -> Layout:
    return Layout(array_named(resolved, name), resolved.problem.mesh)


def position_of(mesh: Mesh, text: str) -> int:
    """The place in the mesh of the device with a number; raises `QuestionError` for none of its devices."""
    device = whole_number(text)
    if device >= mesh.size:
        raise QuestionError(f"there is no device {device}", f"they go from 0 to {mesh.size - 1}")
    return device if mesh.device_order is None else mesh.device_order.index(device)


def collective_of(resolved: ResolvedProblem) -> CollectiveQuestion:
    """The collective of the draft, or else the only one of its plan. Raises `QuestionError`."""
    if resolved.collective is not None:
        return resolved.collective
    sent = plan_step.collective_steps(resolved.plan)
    if len(sent) != 1:
        problem = f"the plan has {len(sent)} collectives, and one is asked about"
        raise QuestionError(problem, "give the setup a collective, or take a problem whose plan has one")
    return plan_step.question_of_step(resolved.plan, sent[0], None, resolved.placed)


def walk_of(resolved: ResolvedProblem) -> collective_run.CollectiveRun:
    """`collective_of`, step by step."""
    return collective_run.run_on(collective_of(resolved), resolved.placed)
