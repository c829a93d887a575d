"""JAX as the judge: it runs the same collective, and its results are laid beside ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shardviz.errors import CompilerError, TargetError

if TYPE_CHECKING:
    from shardviz.collectives import Frames
    from shardviz.compiler import Pending, Ran, Target, Worker
    from shardviz.stepping.question import CollectiveQuestion
    from shardviz.stepping.verdict import Verdict


def ask_jax(
    worker: Worker, question: CollectiveQuestion, target: Target, told: Callable[[str], None] | None = None
) -> Pending[Ran]:
    """Send the collective and its numbers to JAX; `told` is called with each stage, from another thread.

    Raises `TargetError` where there are no numbers, or more devices than the target has.
    """
    from shardviz.stepping.device_numbers import MAX_COUNTED

    if question.shards is None:
        raise TargetError(
            f"the {question.layout.array.elements:,} elements are followed without numbers",
            f"take an array of up to {MAX_COUNTED:,}, or --on none",
        )
    return worker.run(question.operation, question.layout.mesh, question.shards, target, told)


def judged(question: CollectiveQuestion, frames: Frames, ran: Ran) -> Verdict:
    """What JAX's results say of ours. `frames` are those of the question, with its numbers.

    Raises `CompilerError` where JAX has no results.
    """
    from shardviz.collectives.verification import verify
    from shardviz.stepping.verdict import Verdict

    if ran.shards is None:
        raise CompilerError(ran.error, ran.hint)
    before, after = frames.before, frames.after
    assert before is not None
    assert after is not None
    return Verdict(ran, verify(question.operation, question.layout.mesh, before, after, ran.shards))
