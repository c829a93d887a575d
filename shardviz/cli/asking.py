"""The talk with the compilers: asked together, answered one after another, while stderr tells the wait."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

import click

from shardviz.cli.complaint import report
from shardviz.cli.exit_code import ExitCode
from shardviz.cli.interrupt import before_the_end
from shardviz.cli.narration import narrated
from shardviz.compiler import Target, check_axis_types, check_mesh, parse_targets
from shardviz.errors import CompilerError, TargetError

if TYPE_CHECKING:
    from shardviz.compiler import Compiled, Pending, Worker
    from shardviz.planner import Problem


class Conversation:
    """Questions to some targets about one problem. Leaving the context ends the compilers' processes."""

    def __init__(self, targets: tuple[Target, ...], worker: Worker | None, may_drop: bool) -> None:
        self.exit_code = ExitCode.FINE
        self._targets = targets
        self._worker = worker
        self._may_drop = may_drop
        self._pending: list[tuple[Target, Pending[Compiled]]] = []

    @classmethod
    def begin(cls, targets: str, timeout: float, may_drop: bool) -> Conversation:
        """Start the compilers' processes for the targets in the text, so that they load while we read.

        `timeout` is in seconds a target. `may_drop`: nobody chose the targets, so one that cannot hold the
        mesh is left out with a note. Raises `TargetError` for a text that `parse_targets` refuses.
        """
        asked = parse_targets(targets)
        if not asked:
            return cls((), None, may_drop)
        from shardviz.compiler import Worker

        worker = Worker(timeout)
        before_the_end(worker.kill)
        worker.start(*asked)
        return cls(asked, worker, may_drop)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.close()

    def ask(self, problem: Problem) -> None:
        """Send the problem to every target. Raises `TargetError` where none, or a chosen one, can take it."""
        if self._worker is None:
            return
        check_axis_types(problem)
        fitting = [target for target in self._targets if self._fits(target, problem)]
        self._pending = [(target, self._worker.submit(problem, target)) for target in fitting]

    @property
    def asked(self) -> list[str]:
        """The names of the targets that were asked."""
        return [target.name for target, _ in self._pending]

    def _fits(self, target: Target, problem: Problem) -> bool:
        try:
            check_mesh(target, problem.mesh)
        except TargetError as error:
            if not self._may_drop:
                raise
            click.echo(f"shardviz: note: {target.name} is left out: {error.message}", err=True)
            return False
        return True

    def answers(self) -> Iterator[Compiled]:
        """The answers in the order of the targets, each as soon as it and those before it are there.

        Where a compiler failed, the reason stands in its answer's place, and `exit_code` remembers it.
        """
        from shardviz.compiler.compiled import without_answer

        for number, (target, pending) in enumerate(self._pending):
            others = [(other.name, each) for other, each in self._pending[number + 1 :]]
            try:
                compiled = narrated(pending, target.name, others)
            except CompilerError as error:
                compiled = without_answer(target.name, error)
            if compiled.status == "error":
                self.exit_code = ExitCode.COMPILER
            elif compiled.status == "unavailable":
                self.exit_code = max(self.exit_code, ExitCode.QUESTION)
            if compiled.status != "ok" and not sys.stdout.isatty():
                # Whoever sent stdout elsewhere is told here as well.
                is_named = compiled.target in compiled.error.split()
                lead = "" if is_named else f"{compiled.target}: "
                report(f"{lead}{compiled.error}", compiled.hint)
            yield compiled
