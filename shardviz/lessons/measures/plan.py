"""Plans: what is sent, how often, for which einsum, and what comes out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answer import Answer
from shardviz.lessons.measures.kinds import BYTES, COLLECTIVES, NUMBER, Sent
from shardviz.lessons.measures.subject import walk_of
from shardviz.lessons.table import closest

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.planner import Plan

OPS = ("all_gather", "psum", "psum_scatter", "all_to_all", "ppermute")
"""What a plan can send."""


def sent_by(plan: Plan) -> tuple[Sent, ...]:
    """The collectives of a plan, in order; axes of one device are left out."""
    shape = plan.problem.mesh.shape
    return tuple(
        (step.op, step.array, tuple(sorted(axis for axis in step.axes if shape[axis] > 1)))
        for step in plan.collectives
    )


def collectives(scene: ResolvedProblem) -> Answer:
    """All that the plan sends, in order."""
    return COLLECTIVES.answer(sent_by(scene.plan))


def count(scene: ResolvedProblem, op: str) -> Answer:
    """How many collectives of a kind the plan has."""
    _check_op(op)
    return NUMBER.answer(sum(step.op == op for step in scene.plan.collectives))


def case(scene: ResolvedProblem) -> Answer:
    """Which of the four cases a matmul is."""
    found = re.fullmatch(r"case (\d)(?: over [^,]+(?:, \w+)*)?", scene.plan.cases[0])
    if found is None or len(scene.plan.cases) > 1 or ", case" in scene.plan.cases[0]:
        several = "; ".join(scene.plan.cases)
        raise QuestionError(f"this is not one case alone, but {several}", "take one einsum that is one case")
    return NUMBER.answer(int(found[1]))


def line(scene: ResolvedProblem, op: str) -> Answer:
    """Which einsum of a chain, from 1, has the first collective of a kind: sums belong to the einsum that
    leaves them, and what else is sent to the one that uses the array next, if one does."""
    _check_op(op)
    done = 0
    for step in scene.plan.steps:
        done += step.op == "einsum"
        if step.op == op:
            made_here = op in ("psum", "psum_scatter") or done == len(scene.problem.parts)
            return NUMBER.answer(done if made_here else done + 1)
    raise QuestionError(f"the plan has no {op}", "ask for another operation, or another problem")


def sent(scene: ResolvedProblem) -> Answer:
    """The bytes that one device sends: for the draft's collective by its algorithm, that which sends most;
    for a plan, at least."""
    if scene.collective is not None:
        return BYTES.answer(int(walk_of(scene).timeline.device_bytes))
    return BYTES.answer(scene.plan.wire_bytes)


def _check_op(op: str) -> None:
    if op not in OPS:
        raise QuestionError(f"no plan has {quote(op, 30)}", closest(op, OPS))
