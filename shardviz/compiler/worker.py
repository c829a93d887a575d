"""Questions to compilers, from any thread; the compilers run elsewhere."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardviz.compiler.child_process import environment_for
from shardviz.compiler.installed import check_installed
from shardviz.compiler.messages import About, AskAbout, LayoutOutput, Output, Reply, RunOutput
from shardviz.compiler.pending import Cancelled, Pending, settled
from shardviz.compiler.worker_process import WorkerProcess
from shardviz.errors import TargetError

if TYPE_CHECKING:
    from types import TracebackType

    from numpy.typing import NDArray

    from shardviz.collectives import Operation
    from shardviz.compiler.execution import ExecutionResult
    from shardviz.compiler.messages import LaneName
    from shardviz.compiler.pass_trace import DumpFolders, PassTrace
    from shardviz.compiler.target_result import TargetResult
    from shardviz.compiler.targets import Target
    from shardviz.planner.problem import Problem
    from shardviz.sharding import Mesh, ShardedArray

TIME_LIMIT_S = 300.0
CACHED_ANSWERS = 512


class Worker:
    """The client of the child processes. Use it as a context manager: leaving kills every child.

    There is one child for simulated devices (shardy, cpu) and, once asked for, one for the real ones, one for
    TPUs that are not here and one for such GPUs, since a process can have JAX set up for one of these. Each
    answers one request at a time, in order; they work at the same time.
    Answers are kept by problem, target and the child's versions. `time_limit` is in seconds per request.
    """

    def __init__(self, time_limit: float = TIME_LIMIT_S) -> None:
        self._time_limit = time_limit
        self._lanes: dict[LaneName, WorkerProcess] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._answers: dict[tuple[object, ...], TargetResult] = {}
        self._folders: DumpFolders | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, *targets: Target) -> None:
        """Start the children of some targets now (without any, the one for simulated devices), so that they
        load JAX while something else happens. Returns at once; what is not installed is not started."""
        for target in targets:
            with suppress(TargetError):
                check_installed(target)
                self._lane(target.lane)
        if not targets:
            self._lane("simulated")

    def submit(
        self, problem: Problem, target: Target, on_progress: Callable[[str], None] | None = None
    ) -> Pending[TargetResult]:
        """Ask a target about a problem. `on_progress` is called with each stage, from another thread.

        Raises `TargetError` for what `check_mesh` and `check_axis_types` refuse.
        """
        # Loaded only here: `start` comes first, and the child should load JAX at once.
        from shardviz.compiler.question import question_for
        from shardviz.compiler.reading import read_output

        missing = _missing(problem, target)
        if missing is not None:
            return settled(missing)
        lane = self._lane(target.lane)

        def finish(output: Reply) -> TargetResult:
            assert isinstance(output, Output)
            answer = read_output(output, problem, target, lane.versions)
            self._remember(problem, answer)
            return answer

        request = question_for(problem, target)
        pending: Pending[TargetResult] = Pending(request, finish, lane.withdraw, on_progress)
        with self._lock:
            known = self._answers.get((problem, target.name, lane.versions))
        if known is not None:
            pending.settle(known)
        else:
            lane.submit(pending)
        return pending

    def ask(self, problem: Problem, target: Target) -> TargetResult:
        """Ask and wait. Raises `TargetError`, or `CompilerError` when the compiler dies or takes too long."""
        return self.submit(problem, target).result()

    def trace(
        self, problem: Problem, target: Target, on_progress: Callable[[str], None] | None = None
    ) -> Pending[PassTrace]:
        """Ask a target about a problem, pass by pass; otherwise as `submit`. Such answers are not kept.

        Raises `CompilerError` as well, where there is no room for the compiler's dumps.
        """
        from shardviz.compiler.pass_trace import DumpFolders, PassTrace, read_traced
        from shardviz.compiler.question import question_for
        from shardviz.compiler.reading import read_output

        missing = _missing(problem, target)
        if missing is not None:
            return settled(PassTrace(missing))
        lane = self._lane(target.lane)
        with self._lock:
            folders = self._folders = self._folders or DumpFolders()
        folder = folders.make()

        def finish(output: Reply) -> PassTrace:
            assert isinstance(output, Output)
            return read_traced(read_output(output, problem, target, lane.versions), folder, problem)

        question = replace(question_for(problem, target), dump_to=folder)
        pending: Pending[PassTrace] = Pending(
            question, finish, lane.withdraw, on_progress, on_end=lambda: folders.remove(folder)
        )
        lane.submit(pending)
        return pending

    def run(
        self,
        operation: Operation,
        mesh: Mesh,
        shards: NDArray[Any],
        target: Target,
        on_progress: Callable[[str], None] | None = None,
    ) -> Pending[ExecutionResult]:
        """Have JAX run a collective. `shards` has the mesh's devices by position as its first dimension.

        Raises `QuestionError` for what the operation refuses, and `TargetError` for a target that runs
        nothing or can never have as many devices.
        """
        from shardviz.compiler.execution import ran, run_request

        request = run_request(operation, mesh, shards, target)
        lane = self._lane(target.lane)

        def finish(output: Reply) -> ExecutionResult:
            assert isinstance(output, RunOutput)
            return ran(output, mesh, target.name, lane.versions)

        pending: Pending[ExecutionResult] = Pending(request, finish, lane.withdraw, on_progress)
        lane.submit(pending)
        return pending

    def layout(self, array: ShardedArray, mesh: Mesh) -> Pending[LayoutOutput]:
        """Ask JAX which elements of an array, of which the spec is decided, the devices of a mesh hold.

        Raises `TargetError` for a mesh of more devices than can be simulated.
        """
        from shardviz.compiler.question import layout_request

        def finish(output: Reply) -> LayoutOutput:
            assert isinstance(output, LayoutOutput)
            return output

        lane = self._lane("simulated")
        pending: Pending[LayoutOutput] = Pending(layout_request(array, mesh), finish, lane.withdraw)
        lane.submit(pending)
        return pending

    def about(self) -> About:
        """Versions and devices as JAX itself reports them on this machine, from the `real` child."""

        def finish(about: Reply) -> About:
            assert isinstance(about, About)
            return about

        lane = self._lane("real")
        pending: Pending[About] = Pending(AskAbout(), finish, lane.withdraw)
        lane.submit(pending)
        return pending.result()

    def pids(self) -> tuple[int, ...]:
        """Process ids of the children that run now."""
        return tuple(lane.pid for lane in self._lanes.values() if lane.pid is not None)

    def kill(self) -> None:
        """Kill the children and remove what they leave, for a signal handler: nothing is waited for."""
        for lane in [*self._lanes.values()]:
            lane.kill()
        if self._folders is not None:
            self._folders.remove_all()

    def close(self) -> None:
        """Kill the children and wait for them; requests without an answer end as `Cancelled`."""
        with self._lock:
            self._closed = True
            lanes, self._lanes = self._lanes, {}
        for lane in lanes.values():
            lane.close()
        if self._folders is not None:
            self._folders.remove_all()

    def _lane(self, name: LaneName) -> WorkerProcess:
        with self._lock:
            if self._closed:
                raise Cancelled("the worker was closed")
            if name not in self._lanes:
                self._lanes[name] = WorkerProcess(name, environment_for(name, os.environ), self._time_limit)
            return self._lanes[name]

    def _remember(self, problem: Problem, answer: TargetResult) -> None:
        with self._lock:
            self._answers[problem, answer.target, answer.versions] = answer
            while len(self._answers) > CACHED_ANSWERS:
                del self._answers[next(iter(self._answers))]


def _missing(problem: Problem, target: Target) -> TargetResult | None:
    """The answer of a target that is not installed, None where it is.

    Raises `TargetError` for what `check_mesh` and `check_axis_types` refuse.
    """
    from shardviz.compiler.target_result import without_answer
    from shardviz.compiler.targets import check_axis_types, check_mesh

    check_axis_types(problem)
    check_mesh(target, problem.mesh)
    try:
        check_installed(target)
    except TargetError as error:
        return without_answer(target.name, error)
    return None
