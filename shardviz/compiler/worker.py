"""Questions to compilers, from any thread; the compilers run elsewhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shardviz.compiler.child_process import simulated_environment
from shardviz.compiler.lane import Lane
from shardviz.compiler.messages import About, AskAbout, Output, Reply, RunOutput
from shardviz.compiler.pending import Cancelled, Pending

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    from shardviz.collectives import Operation
    from shardviz.compiler.compiled import Compiled
    from shardviz.compiler.ran import Ran
    from shardviz.compiler.targets import Target
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh

TIME_LIMIT_S = 300.0
CACHED_ANSWERS = 512


class Worker:
    """The client of the child processes. Use it as a context manager: leaving kills every child.

    There is one child for simulated devices (shardy, cpu) and, once asked for, one for the real ones, since
    a process can have JAX set up for one or the other. Each answers one request at a time, in order.
    Answers are kept by problem, target and the child's versions. `time_limit` is in seconds per request.
    """

    def __init__(self, time_limit: float = TIME_LIMIT_S) -> None:
        self._time_limit = time_limit
        self._lanes: dict[bool, Lane] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._answers: dict[tuple[object, ...], Compiled] = {}

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, real: bool = False) -> None:
        """Start a child now, so that it loads JAX while something else happens. Returns at once."""
        self._lane(real)

    def submit(
        self, problem: Problem, target: Target, on_progress: Callable[[str], None] | None = None
    ) -> Pending[Compiled]:
        """Ask a target about a problem. `on_progress` is called with each stage, from another thread.

        Raises `TargetError` for what `check_mesh` and `check_axis_types` refuse.
        """
        # Loaded only here: `start` comes first, and the child should load JAX at once.
        from shardviz.compiler.question import question_for
        from shardviz.compiler.reading import read_output
        from shardviz.compiler.targets import check_axis_types, check_mesh

        check_axis_types(problem)
        check_mesh(target, problem.mesh)
        lane = self._lane(target.name == "real")

        def finish(output: Reply) -> Compiled:
            assert isinstance(output, Output)
            answer = read_output(output, problem, target.name, lane.versions)
            self._remember(problem, answer)
            return answer

        pending: Pending[Compiled] = Pending(
            question_for(problem, target.name), finish, lane.withdraw, on_progress
        )
        with self._lock:
            known = self._answers.get((problem, target.name, lane.versions))
        if known is not None:
            pending.settle(known)
        else:
            lane.submit(pending)
        return pending

    def ask(self, problem: Problem, target: Target) -> Compiled:
        """Ask and wait. Raises `TargetError`, or `CompilerError` when the compiler dies or takes too long."""
        return self.submit(problem, target).result()

    def run(
        self,
        operation: Operation,
        mesh: Mesh,
        shards: NDArray[Any],
        target: Target,
        on_progress: Callable[[str], None] | None = None,
    ) -> Pending[Ran]:
        """Have JAX run a collective. `shards` has the mesh's devices by position as its first dimension.

        Raises `QuestionError` for what the operation refuses, and `TargetError` for a target that runs
        nothing or can never have as many devices.
        """
        from shardviz.compiler.ran import ran, run_request

        request = run_request(operation, mesh, shards, target)
        lane = self._lane(target.name == "real")

        def finish(output: Reply) -> Ran:
            assert isinstance(output, RunOutput)
            return ran(output, mesh, target.name, lane.versions)

        pending: Pending[Ran] = Pending(request, finish, lane.withdraw, on_progress)
        lane.submit(pending)
        return pending

    def about(self) -> About:
        """Versions and devices as JAX itself reports them on this machine, from the `real` child."""

        def finish(about: Reply) -> About:
            assert isinstance(about, About)
            return about

        lane = self._lane(real=True)
        pending: Pending[About] = Pending(AskAbout(), finish, lane.withdraw)
        lane.submit(pending)
        return pending.result()

    def pids(self) -> tuple[int, ...]:
        """Process ids of the children that run now."""
        return tuple(lane.pid for lane in self._lanes.values() if lane.pid is not None)

    def kill(self) -> None:
        """Kill the children and no more, for a signal handler: nothing is waited for."""
        for lane in [*self._lanes.values()]:
            lane.kill()

    def close(self) -> None:
        """Kill the children and wait for them; requests without an answer end as `Cancelled`."""
        with self._lock:
            self._closed = True
            lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            lane.close()

    def _lane(self, real: bool) -> Lane:
        with self._lock:
            if self._closed:
                raise Cancelled("the worker was closed")
            if real not in self._lanes:
                environment = dict(os.environ) if real else simulated_environment(os.environ)
                self._lanes[real] = Lane(environment, self._time_limit)
            return self._lanes[real]

    def _remember(self, problem: Problem, answer: Compiled) -> None:
        with self._lock:
            self._answers[problem, answer.target, answer.versions] = answer
            while len(self._answers) > CACHED_ANSWERS:
                del self._answers[next(iter(self._answers))]
