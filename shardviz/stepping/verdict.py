"""The same collective run by JAX, and its results compared with ours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.errors import CompilerError

if TYPE_CHECKING:
    from shardviz.collectives import Frames
    from shardviz.collectives.verification import VerificationResult
    from shardviz.reports.target_result import ExecutionResult
    from shardviz.stepping.question import CollectiveQuestion


@dataclass(frozen=True)
class Verdict:
    """The same collective as JAX ran it, and its values beside ours.

    `smaller` are the elements of the array that stood for the one asked for, which is too large to be
    followed with numbers; 0 where JAX ran the one asked for.
    """

    ran: ExecutionResult
    verification: VerificationResult
    smaller: int = 0

    @property
    def agrees(self) -> bool:
        """Nothing differs but by the order of additions."""
        return self.verification.verdict != "different"


def compare_with_jax(question: CollectiveQuestion, frames: Frames, ran: ExecutionResult) -> Verdict:
    """A comparison of JAX's results with ours. `frames` are those of the question, with its numbers.

    Raises `CompilerError` where JAX has no results.
    """
    from shardviz.collectives.verification import verify

    if ran.shards is None:
        raise CompilerError(ran.error, ran.hint)
    before, after = frames.before, frames.after
    assert before is not None
    assert after is not None
    found = verify(question.operation, question.layout.mesh, before, after, ran.shards)
    return Verdict(ran, found, question.layout.array.elements if question.is_smaller else 0)
