"""Targets that are asked the same question together, and answer in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from shardviz.compiler.requests import settled
from shardviz.errors import CompilerError, JobLost, QuestionError, ShardvizError

if TYPE_CHECKING:
    from shardviz.compiler import CompilerRequest
    from shardviz.reports.program_report import TargetProgram
    from shardviz.reports.target_result import TargetResult
    from shardviz.targets import Target

T = TypeVar("T")
Answer = TypeVar("Answer", "TargetResult", "TargetProgram")


class TargetRequests(Generic[T]):
    """The requests of one question to several targets. Where a target has no answer, `without` makes one of
    its name and the reason. `wait` gives what a request ends with, and gets the target's name too."""

    def __init__(
        self, without: Callable[[str, ShardvizError], T], wait: Callable[[CompilerRequest[T], str], T]
    ) -> None:
        self._without, self._wait = without, wait
        self._pending: list[tuple[str, CompilerRequest[T]]] = []

    def ask(
        self,
        targets: Iterable[Target],
        submit: Callable[[Target], CompilerRequest[T]],
        refusal_of: Callable[[Exception], ShardvizError | None] = lambda _: None,
    ) -> None:
        """Send the question to all of some targets. An error of `submit` is the target's answer where it is a
        refusal, and raised where it is none; none is by default."""
        for target in targets:
            try:
                request = submit(target)
            except Exception as error:
                if (refusal := refusal_of(error)) is None:
                    raise
                request = settled(self._without(target.name, refusal))
            self._pending.append((target.name, request))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._pending]

    def answers(self) -> Iterator[T]:
        """The answers, each as soon as it and those before it are ready. Raises `JobLost`."""
        for name, request in self._pending:
            try:
                answer = self._wait(request, name)
            except JobLost:
                raise
            except CompilerError as error:
                answer = self._without(name, error)
            yield answer

    def cancel(self) -> None:
        for _, request in self._pending:
            request.cancel()


def answer_of(target: str, answers: Sequence[Answer]) -> Answer:
    """The answer of one target. Raises `QuestionError` for one that was not asked."""
    for answer in answers:
        if answer.target == target:
            return answer
    asked = ", ".join(answer.target for answer in answers) or "none"
    raise QuestionError(f"{target} was not asked", f"the targets that were asked: {asked}")
