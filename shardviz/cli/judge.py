"""JAX as the judge: the same collective, run by JAX in a process of its own, and its results beside ours."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

import click

from shardviz.cli.exit_code import ExitCode
from shardviz.cli.interrupt import before_the_end
from shardviz.errors import CompilerError, ShardvizError, TargetError

if TYPE_CHECKING:
    from shardviz.compiler import Pending, Ran, Worker
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.stepping.question import CollectiveQuestion
    from shardviz.stepping.verdict import Verdict


class Judge:
    """Who verifies one collective. Leaving the context ends JAX's process."""

    def __init__(self, target: str | None, worker: Worker | None, chosen: bool, option: str = "--on") -> None:
        self.exit_code = ExitCode.FINE
        self.silence = ""
        """Why JAX says nothing, where it would have been asked."""
        self._target = target
        self._worker = worker
        self._chosen = chosen
        self._option = option
        self._pending: Pending[Ran] | None = None

    @classmethod
    def begin(cls, on: str | None, timeout: float, option: str = "--on") -> Judge:
        """Start JAX's process, so that it loads while we compute and draw.

        `on` is cpu, real or none; None is cpu where JAX is installed, and then nothing that goes wrong is
        an error. `timeout` is in seconds, `option` is where the command line says who verifies.
        """
        from importlib.util import find_spec

        if on == "none":
            return cls(None, None, True)
        if on is None and find_spec("jax") is None:
            _note("JAX is not installed: nothing is verified")
            return cls(None, None, False)
        from shardviz.compiler import TARGETS, Worker

        worker = Worker(timeout)
        before_the_end(worker.kill)
        worker.start(TARGETS[on or "cpu"])
        return cls(on or "cpu", worker, on is not None, option)

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._worker is not None:
            self._worker.close()

    def ask(self, question: CollectiveQuestion) -> None:
        """Send the collective and its numbers to JAX.

        Raises `TargetError` where there are no numbers, or more devices than the target has, and the
        target was chosen.
        """
        if self._worker is None or self._target is None:
            return
        from shardviz.compiler import TARGETS
        from shardviz.stepping.verdict import ask_jax

        try:
            self._pending = ask_jax(self._worker, question, TARGETS[self._target])
        except TargetError as error:
            if self._chosen:
                raise TargetError(error.message, self._reworded(error.hint)) from error
            self.silence = f"not verified by JAX: {error.message}"

    def verdict(self, walk: CollectiveRun) -> Verdict | None:
        """What JAX says of the walk, as soon as that is there; None where nobody asked or it cannot say.

        Raises `CompilerError` where it cannot say and was chosen.
        """
        if self._pending is None or self._target is None:
            return None
        from shardviz.cli.narration import narrated
        from shardviz.stepping.verdict import compare_with_jax

        try:
            verdict = compare_with_jax(walk.question, walk.frames, narrated(self._pending, self._target))
        except ShardvizError as error:
            if self._chosen:
                hint = self._reworded(error.hint)
                raise CompilerError(f"{self._target}: {error.message}", hint) from error
            _note(f"nothing is verified: {self._target}: {error.message}")
            return None
        if not verdict.agrees:
            self.exit_code = ExitCode.CHECK_FAILED
        return verdict

    def _reworded(self, hint: str) -> str:
        """A hint with the option that this command has."""
        return hint.replace("--on ", f"{self._option} ")


def _note(text: str) -> None:
    click.echo(f"shardviz: note: {text}", err=True)
