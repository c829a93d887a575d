"""One question to a compilers' process: what is to be sent, and what becomes of the reply."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shardviz.tui.answers.answer import Answer, TracedAnswer, Verification

if TYPE_CHECKING:
    from shardviz.compiler import Pending, Target, Worker
    from shardviz.compiler.messages import LaneName
    from shardviz.errors import ShardvizError
    from shardviz.planner import Plan
    from shardviz.stepping.question import CollectiveQuestion

Known = TypeVar("Known", Answer, TracedAnswer, Verification)
Told = Callable[[str], None]


class Errand(ABC, Generic[Known]):
    """A question to the child process of `lane`, to be sent from `due` on (`time.monotonic`).

    `known` is what is known of its answer. `unwanted_since` is when the screen went on to something else,
    None while it is wanted. Of those that are due, the lowest `rank` goes first. `settled`: the child has
    replied, and would reply the same again. An errand is run once.
    """

    def __init__(self, lane: LaneName, known: Known, due: float, rank: int) -> None:
        self.lane = lane
        self.known: Known = known
        self.due = due
        self.rank = rank
        self.unwanted_since: float | None = None
        self.settled = False
        self.pending: Pending[Any] | None = None

    @abstractmethod
    def send(self, worker: Worker, told: Told) -> Pending[Any]:
        """Ask; `told` is called with each stage. Raises `ShardvizError`."""

    @abstractmethod
    def answered(self, reply: Any) -> Known:
        """What is known after a reply. Raises `ShardvizError`."""

    @abstractmethod
    def failed(self, error: ShardvizError) -> Known:
        """What is known where there will be no reply."""

    def begin(self) -> None:
        """It is being asked now."""
        self.known = replace(self.known, state="asked", stage="", since=time.monotonic())

    def stage(self, stage: str) -> None:
        """The child says what it is doing."""
        self.known = replace(self.known, stage=stage)

    def cancelled(self) -> None:
        """It will not be asked, or not be listened to."""
        self.known = replace(self.known, state="cancelled")


class AskTarget(Errand[Answer]):
    """What a target makes of a plan's problem, and where that differs from the plan."""

    def __init__(self, plan: Plan, target: Target, due: float) -> None:
        super().__init__(target.lane, Answer(target, "waiting"), due, rank=int(target.name != "shardy"))
        self._plan, self._target = plan, target

    def send(self, worker: Worker, told: Told) -> Pending[Any]:
        return worker.submit(self._plan.problem, self._target, told)

    def answered(self, reply: Any) -> Answer:
        from shardviz.compare import differences

        return Answer(self._target, "answered", compiled=reply, differences=differences(self._plan, reply))

    def failed(self, error: ShardvizError) -> Answer:
        from shardviz.compiler.target_result import without_answer

        return Answer(self._target, "answered", compiled=without_answer(self._target.name, error))


class TraceTarget(Errand[TracedAnswer]):
    """A target's compilation of a plan's problem, pass by pass."""

    def __init__(self, plan: Plan, target: Target, due: float) -> None:
        super().__init__(target.lane, TracedAnswer(target, "waiting"), due, rank=2)
        self._plan, self._target = plan, target

    def send(self, worker: Worker, told: Told) -> Pending[Any]:
        return worker.trace(self._plan.problem, self._target, told)

    def answered(self, reply: Any) -> TracedAnswer:
        return TracedAnswer(self._target, "answered", traced=reply)

    def failed(self, error: ShardvizError) -> TracedAnswer:
        return TracedAnswer(self._target, "failed", error=error)


class Verify(Errand[Verification]):
    """A collective that JAX runs on simulated devices, and its results beside ours."""

    def __init__(self, question: CollectiveQuestion, due: float) -> None:
        super().__init__("simulated", Verification("waiting"), due, rank=2)
        self.question = question

    def send(self, worker: Worker, told: Told) -> Pending[Any]:
        from shardviz.compiler import TARGETS
        from shardviz.stepping.verdict import ask_jax

        return ask_jax(worker, self.question, TARGETS["cpu"], told)

    def answered(self, reply: Any) -> Verification:
        from shardviz.collectives import Frames
        from shardviz.stepping.verdict import compare_with_jax

        question = self.question
        frames = Frames(question.schedule, question.operation, question.layout.mesh, question.shards)
        return Verification("answered", verdict=compare_with_jax(question, frames, reply))

    def failed(self, error: ShardvizError) -> Verification:
        return Verification("failed", silence=f"not verified by JAX: {error.message}")
