"""Questions to compilers, from any thread; the compilers run elsewhere."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from shardviz.compiler.child_process import DumpFolders, environment_for
from shardviz.compiler.messages import ChildCall, ModuleQuestion, Output, Question, Versions
from shardviz.compiler.requests import AT_ONCE, Cancelled, CompilerRequest, Turn, settled
from shardviz.compiler.worker_process import WorkerProcess
from shardviz.devices.job import Job, JobAddress
from shardviz.errors import JobLost, ShardvizError, TargetError
from shardviz.lazy_names import LazyImports
from shardviz.reports.target_result import (
    ExecutionResult,
    HeldArray,
    PassTrace,
    TargetResult,
    read_traced,
    without_answer,
)
from shardviz.targets import TARGETS, ProcessName, Target, check_installed, check_mesh, check_question

with LazyImports():  # to start a compiler none of them is needed
    from shardviz.compiler import compile_cache, question, reading
    from shardviz.reports import program_report

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shardviz.collectives.operation import Operation
    from shardviz.devices.question import Case, Measurement, NoMeasurement
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem
    from shardviz.reports.lowered_module import LoweredModule, ProgramChange
    from shardviz.sharding import Mesh, ShardedArray


T = TypeVar("T")
Progress = Callable[[str], None] | None
TIME_LIMIT_S = 300.0


class Worker:
    """The client of the child processes, a context manager: leaving kills every child.

    There is one child for simulated devices (shardy, cpu) and, once asked for, one for the real ones, one for
    TPUs that are not here and one for such GPUs. Each answers one request at a time, within `time_limit`
    seconds. With the address of a `job` the child for the real devices is one of its processes, and all of
    these must make the same requests; `on_job_lost` is called, from a thread, where one is lost."""

    def __init__(
        self,
        time_limit: float = TIME_LIMIT_S,
        job: JobAddress | None = None,
        on_job_lost: Callable[[JobLost], None] | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._time_limit, self._environment = time_limit, environment
        self._job_address, self._on_job_lost = job, on_job_lost
        self._processes: dict[ProcessName, WorkerProcess] = {}
        self._lock = threading.Lock()
        self._closed = False
        # By problem, target and the child's versions, with true for those that have costs.
        self._answers: dict[tuple[object, ...], tuple[TargetResult, bool]] = {}
        self._folders = DumpFolders()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        words = error.message if isinstance(error, ShardvizError) else repr(error)
        self.close("" if error is None else f"has failed: {words}")

    def start(self, *targets: Target) -> None:
        """Start the children of some targets now (without any, the one for simulated devices), so that they
        load JAX while something else happens. Returns at once; what is not installed is not started."""
        for target in targets:
            with suppress(TargetError):
                check_installed(target)
                self._process(target.process).start()
        if not targets:
            self._process("simulated").start()

    def submit(
        self,
        problem: Problem,
        target: Target,
        on_progress: Progress = None,
        turn: Turn = AT_ONCE,
        with_costs: bool = False,
    ) -> CompilerRequest[TargetResult]:
        """Ask a target about a problem; `with_costs` for the answer's `schedule` and `memory` too, which
        takes the compiler up to 15 % longer. Raises `TargetError` for what `check_question` refuses, and
        `CompilerError` where there is no room for what a compiler writes."""
        missing = _missing(problem, target)
        if missing is not None:
            return settled(missing)
        with_costs = with_costs and target.name != "shardy"
        key = (problem, target.name, self._process(target.process).versions)
        with self._lock:
            known, knows_costs = self._answers.get(key, (None, False))
        if known is not None and knows_costs >= with_costs:
            return settled(known)

        def read(output: Output, _folder: str, versions: Versions) -> TargetResult:
            answer = reading.read_output(output, problem, target, versions)
            key = (problem, target.name, versions)
            with self._lock:
                if with_costs or key not in self._answers:
                    self._answers[key] = answer, with_costs
                while len(self._answers) > 512:
                    del self._answers[next(iter(self._answers))]
            return answer

        asked = replace(question.question_for(problem, target), dumps="costs" if with_costs else "")
        return self._compile("answer.answer", asked, target, read, on_progress, turn)

    def compile(
        self,
        program: LoweredModule,
        target: Target,
        options: Mapping[str, Any] | None = None,
        with_costs: bool = False,
        changes: Sequence[ProgramChange] = (),
    ) -> CompilerRequest[program_report.TargetProgram]:
        """Have a target compile a program of the user's, to which `changes` are made before, with options of
        its compiler. Raises `TargetError` where it has another number of devices than the target."""
        try:
            check_installed(target)
        except TargetError as error:
            return settled(program_report.without_program(target.name, error))

        def read(output: Output, _folder: str, versions: Versions) -> program_report.TargetProgram:
            return reading.read_program(output, program, target, versions, options or {})

        asked = question.module_question(program, target, options or {}, changes)
        asked = replace(asked, dumps="costs" if with_costs else "")
        return self._compile("answer.answer_program", asked, target, read)

    def ask(self, problem: Problem, target: Target, with_costs: bool = False) -> TargetResult:
        """Ask and wait. Raises `TargetError`, or `CompilerError` when the compiler dies or takes too long."""
        return self.submit(problem, target, with_costs=with_costs).result()

    def trace(
        self, problem: Problem, target: Target, on_progress: Progress = None, turn: Turn = AT_ONCE
    ) -> CompilerRequest[PassTrace]:
        """Ask a target about a problem, pass by pass; otherwise as `submit`."""
        missing = _missing(problem, target)
        if missing is not None:
            return settled(PassTrace(missing))

        def read(output: Output, folder: str, versions: Versions) -> PassTrace:
            answer = reading.read_output(output, problem, target, versions)
            return read_traced(answer, folder, problem)

        asked = replace(question.question_for(problem, target), dumps="passes")
        return self._compile("answer.answer", asked, target, read, on_progress, turn)

    def run(
        self,
        operation: Operation,
        mesh: Mesh,
        shards: NDArray[Any],
        target: Target,
        on_progress: Progress = None,
        turn: Turn = AT_ONCE,
    ) -> CompilerRequest[ExecutionResult]:
        """Have JAX run a collective; `shards` goes by mesh position first. Raises as `question.run_call`."""
        call = question.run_call(operation, mesh, shards, target)
        return self._run(call, operation.name, target, on_progress, turn)

    def run_plan(
        self,
        plan: Plan,
        shards: Sequence[NDArray[Any]],
        arguments: Sequence[NDArray[Any]],
        target: Target,
        on_progress: Progress = None,
        turn: Turn = AT_ONCE,
    ) -> CompilerRequest[ExecutionResult]:
        """Have JAX run a plan on its arguments' shards, as `run`, and on one device on the arguments."""
        call = question.plan_call(plan, shards, arguments, target)
        return self._run(call, "a plan", target, on_progress, turn)

    def _run(
        self, call: ChildCall, name: str, target: Target, on_progress: Progress, turn: Turn
    ) -> CompilerRequest[ExecutionResult]:
        process = self._process(target.process)

        def read(ran: ExecutionResult) -> ExecutionResult:
            return replace(ran, versions=process.versions)

        subject = f"{name} on {target.name} devices"
        return process.submit(CompilerRequest(call, read, subject, on_progress, turn))

    def measure(
        self, case: Case, mesh: Mesh, target: Target, runs: int
    ) -> CompilerRequest[Measurement | NoMeasurement]:
        """Have the devices of a target time a case, in so many runs or fewer. Raises as `run`."""
        question.check_runs(target, mesh)
        call = ChildCall("measuring.measure", (question.target_mesh(target, mesh), case, runs))
        subject = f"{case.op} on {target.name} devices"
        request = CompilerRequest(call, lambda output: reading.read_loop(output, case, mesh), subject)
        return self._process(target.process).submit(request)

    def _simulated(self, function: str, *arguments: object) -> CompilerRequest[Any]:
        """A call to the child for simulated devices, whose reply is the answer."""
        return self._process("simulated").submit(CompilerRequest(ChildCall(function, arguments)))

    def layout(self, array: ShardedArray, mesh: Mesh) -> CompilerRequest[HeldArray]:
        """Ask JAX which elements of an array, of which the spec is decided, the devices of a mesh hold.
        Raises `TargetError` for more devices than can be simulated."""
        check_mesh(TARGETS["cpu"], mesh)
        devices = question.target_mesh(TARGETS["cpu"], mesh, [array.decided_spec])
        return self._simulated("answer.layout", devices, array)

    def module_texts(self, protos: Sequence[bytes]) -> CompilerRequest[tuple[str, ...]]:
        """Ask XLA for the text of serialized modules; "" for one that it does not read."""
        return self._simulated("binary.module_texts", tuple(protos))

    def program_text(self, data: bytes, where: str) -> CompilerRequest[str]:
        """Ask for the text of a binary program, called `where` in messages. Raises `QuestionError`."""
        call = ChildCall("binary.text", (data, where))
        return self._process("simulated").submit(CompilerRequest(call, lambda reply: reply[0]))

    def lowered(self, data: bytes, where: str) -> CompilerRequest[LoweredModule]:
        """Have JAX read a StableHLO module, as text or in binary. Raises `QuestionError` for what is none."""
        return self._simulated("binary.lowered", data, where)

    def job(self, asked: str = "") -> CompilerRequest[Job]:
        """Join the job that the child for the real devices belongs to. What is `asked` in several requests is
        compared at once, as processes with fewer would be waited for."""
        process = self._process("real")

        def read(found: tuple[int, tuple[int, ...]]) -> Job:
            hosts = process.meeting.hosts if process.meeting is not None else (socket.gethostname(),)
            return Job(found[0], len(hosts), hosts, found[1])

        return process.submit(CompilerRequest(ChildCall("job.devices", (asked,)), read))

    def pids(self) -> tuple[int, ...]:
        """Process ids of the children that run now."""
        running = (process.pid for process in self._processes.values())
        return tuple(pid for pid in running if pid is not None)

    def kill(self) -> None:
        """Kill the children and remove what they leave, for a signal handler: nothing is waited for."""
        for process in tuple(self._processes.values()):
            process.kill()
        self._folders.remove_all()

    def close(self, failed: str = "") -> None:
        """Kill the children and wait for them; requests without an answer end as `Cancelled`. The others of a
        job are waited for or, where this process has `failed`, hear why. Raises `JobLost` where one of them
        was lost, and no request has said so."""
        with self._lock:
            self._closed = True
            processes, self._processes = self._processes, {}
        try:
            for process in processes.values():
                process.close(failed)
        finally:
            self._folders.remove_all()

    def _process(self, name: ProcessName) -> WorkerProcess:
        with self._lock:
            if self._closed:
                raise Cancelled("the worker was closed")
            if name not in self._processes:
                environment = environment_for(name, self._environment)
                in_job = (self._job_address, self._on_job_lost) if name == "real" else ()
                self._processes[name] = WorkerProcess(name, environment, self._time_limit, *in_job)
            return self._processes[name]

    def _compile(
        self,
        function: str,
        asked: Question | ModuleQuestion,
        target: Target,
        read: Callable[[Output, str, Versions], T],
        on_progress: Progress = None,
        turn: Turn = AT_ONCE,
    ) -> CompilerRequest[T]:
        """Have a child compile something, with a folder for what the compiler writes until that is read."""
        process, folder = self._process(target.process), self._folders.make()
        cached = compile_cache.entry(function, asked, target, self._environment)
        request = CompilerRequest(
            ChildCall(function, (replace(asked, folder=folder),)),
            lambda output: read(output, folder, cached.versions if cached is not None else process.versions),
            f"the {target.name} compiler",
            on_progress,
            turn,
            on_end=lambda: self._folders.remove(folder),
            compiles=target.name != "shardy",
            cached=cached,
        )
        return process.submit(request)


def _missing(problem: Problem, target: Target) -> TargetResult | None:
    """The answer of a target that is not installed, None where it is; raises as `Worker.submit`."""
    check_question(problem, (target,))
    try:
        check_installed(target)
    except TargetError as error:
        return without_answer(target.name, error)
    return None
