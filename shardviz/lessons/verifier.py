"""JAX, which computes the answers of a lesson too and runs its programs, and where it disagrees."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from shardviz import compare
from shardviz.collectives.frames import Frames
from shardviz.compiler.child_process import simulated_environment, stderr_tail
from shardviz.errors import ShardvizError, TargetError
from shardviz.hardware.measured import COLLECTIVES
from shardviz.lessons.measures.subject import array_named, collective_of, resolve_once
from shardviz.lessons.writing import check_written
from shardviz.sharding import Layout, Mesh, PartitionSpec, ShardedArray
from shardviz.stepping.collective_run import Verdict, compare_with_jax
from shardviz.targets import TARGETS

if TYPE_CHECKING:
    from shardviz.compiler import Worker
    from shardviz.forms.form import ProblemForm
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.lessons.lesson import Lesson
    from shardviz.planner.plan import Plan
    from shardviz.reports.target_result import HeldArray, TargetResult
    from shardviz.stepping.question import CollectiveQuestion

TIME_LIMIT_S = 60.0
"""The time limit of one question to JAX, and of one program."""
MAX_BYTES = 16_000_000
"""No file that a program writes may be longer, what it prints included."""

OF_ONE_ARRAY = ("shard_shape", "slices", "holders", "replicas", "bytes", "shard_bytes", "loads")
"""Measures of who holds what of an array, their first argument, without which `shard_bytes` is of all."""
OF_PLANS = ("collectives", "count", "line", "sent")
"""Measures of what a plan sends."""
OF_TIMES = ("seconds", "overlapped", "step", "exposed", "bound", "flops")
"""Measures of work and seconds: JAX knows only what is sent, the plan's collectives or the form's own."""
SAME_MOVES = {"promoted_dtype", "narrowed_dtype", "padded", *compare.SAME_TRAFFIC} - {"only_other_result"}
"""Codes of differences with which the same collectives run over the same axes, to the same result."""


Disagreement = Callable[[], str]
"""Waits for JAX and returns where it disagrees; empty where it agrees."""


class Asked(NamedTuple):
    """A question to JAX: the key that it is about, and whether JAX says the answer of a prediction itself."""

    key: str
    disagreement: Disagreement
    is_of_answer: bool = False


@dataclass(frozen=True, kw_only=True)
class JaxQuestion(ABC):
    """A question about a key of a lesson's file; with `is_of_answer` it gives a prediction's answer."""

    key: str
    is_of_answer: bool = False

    @abstractmethod
    def ask(self, worker: Worker) -> Disagreement:
        """Ask at once, and wait when the answer is wanted. Raises `TargetError` where nobody can answer."""


@dataclass(frozen=True, kw_only=True)
class ArraysQuestion(JaxQuestion):
    """Which elements every device of `mesh` holds of `arrays`."""

    mesh: Mesh
    arrays: tuple[ShardedArray, ...]

    def ask(self, worker: Worker) -> Disagreement:
        layouts = [worker.layout(array, self.mesh) for array in self.arrays]
        return lambda: self.disagreement([layout.result() for layout in layouts])

    def disagreement(self, held: Sequence[HeldArray]) -> str:
        """Where JAX says otherwise; empty where it agrees."""
        if refusals := [array.error for array in held if array.error]:
            return f"JAX refuses it: {refusals[0]}"
        for array, held_array in zip(self.arrays, held, strict=True):
            ours = [(device.id, device.slices) for device in Layout(array, self.mesh)]
            for (device, slices), (_, theirs) in zip(ours, held_array.devices, strict=True):
                if slices != theirs:
                    return f"device {device} holds {slices} of {array.name}; JAX gives it {theirs}"
        return ""


@dataclass(frozen=True, kw_only=True)
class RunQuestion(JaxQuestion):
    """A collective that JAX runs on the same numbers."""

    question: CollectiveQuestion

    def ask(self, worker: Worker) -> Disagreement:
        asked = self.question
        run = worker.run(*asked.for_jax(), TARGETS["cpu"])
        frames = Frames(asked.schedule, asked.operation, asked.layout.mesh, asked.shards)
        return lambda: self.disagreement(compare_with_jax(asked, frames, run.result()))

    def disagreement(self, verdict: Verdict) -> str:
        """Where JAX's numbers are others; empty where they are ours."""
        if verdict.agrees:
            return ""
        mesh, result = self.question.layout.mesh, verdict.verification
        where = "" if result.device is None else f"; device {mesh.device_id(result.device)} first"
        return f"JAX ends with {result.theirs or result.note} where ours is {result.ours}{where}"


@dataclass(frozen=True, kw_only=True)
class PlanQuestion(JaxQuestion):
    """A plan of which Shardy, or XLA for simulated devices, must insert the same collectives. For the measure
    ``result_spec`` only the result's split is asked; for ``count`` in a train step the number of one kind:
    compilers may send other things beside it."""

    plan: Plan
    measure: str = ""

    def ask(self, worker: Worker) -> Disagreement:
        first = worker.submit(self.plan.problem, TARGETS["shardy"])

        def of_either() -> str:
            answers = [first.result()]
            with suppress(TargetError):
                if self.disagreement(answers):
                    answers.append(worker.submit(self.plan.problem, TARGETS["cpu"]).result())
            return self.disagreement(answers)

        return of_either

    def disagreement(self, answers: Sequence[TargetResult]) -> str:
        """Why none of the answers agrees; empty where one does."""
        reasons = [self._reason(answer) for answer in answers]
        return "" if not all(reasons) else "; ".join(dict.fromkeys(reasons))

    def _reason(self, answer: TargetResult) -> str:
        if answer.status != "ok":
            return f"{answer.target} gives no answer: {answer.error}"
        name, *arguments = self.measure.split() or [""]
        if name == "result_spec":
            ours, theirs = self.plan.result_spec, answer.result_spec
            same = ours == theirs
            return "" if same else f"the result is split as {ours}; {answer.target} leaves it as {theirs}"
        if name == "count" and self.plan.problem.training is not None:
            number = sum(step.op == arguments[0] for step in self.plan.collectives)
            jax_count = sum(collective.op == COLLECTIVES[arguments[0]] for collective in answer.collectives)
            return "" if number == jax_count else f"the answer is {number}; JAX gives {jax_count}"
        differences = compare.differences(self.plan, answer)
        return next((one.message.rstrip(".") for one in differences if one.code not in SAME_MOVES), "")


def jax_questions(lesson: Lesson) -> list[JaxQuestion]:
    """The questions to JAX about a lesson whose answers can be computed: as far as JAX knows it what each
    prediction's answer follows from, the collectives of setup and solution, what the goal wants to be held
    and to be sent."""
    questions: list[JaxQuestion] = []
    for key, prediction in lesson.questions.items():
        questions += _of_measure(f"{key}.ask", prediction.ask, prediction.draft)
    for key, draft in (("setup.collective", lesson.setup), ("solution.collective", lesson.solution)):
        questions += _of_run(key, resolve_once(draft).collective)
    solution = resolve_once(lesson.solution)
    for name in lesson.goal.holds or ():
        questions += _of_arrays(f"goal.holds.{name}", solution, [array_named(solution, name)])
    if lesson.goal.collectives is not None:
        questions.append(PlanQuestion(key="goal.collectives", plan=solution.plan))
    return questions


def _of_measure(key: str, ask: str, draft: ProblemForm) -> Iterator[JaxQuestion]:
    name, *arguments = ask.split()
    resolved = resolve_once(draft)
    if name in (*OF_ONE_ARRAY, "devices", "device", "coordinates", "crossing"):
        is_named = name in OF_ONE_ARRAY and arguments
        arrays = (array_named(resolved, arguments[0]),) if is_named else resolved.problem.arguments
        yield from _of_arrays(key, resolved, arrays, is_of_answer=True)
    elif name in ("result", "rounds", "held"):  # of rounds JAX knows only where they lead
        yield from _of_run(key, collective_of(resolved), is_of_answer=name == "result")
    elif name in OF_TIMES and resolved.collective is not None:
        yield from _of_run(key, resolved.collective)
    else:
        # In a train step compilers may send other things beside.
        of_plans = (*OF_PLANS, *OF_TIMES) if resolved.problem.training is None else ("collectives", "count")
        if name == "result_spec" or (name in of_plans and resolved.collective is None):
            is_of_answer = name in (*OF_PLANS, "result_spec")
            yield PlanQuestion(key=key, plan=resolved.plan, measure=ask, is_of_answer=is_of_answer)


def _of_arrays(
    key: str, resolved: ResolvedProblem, arrays: Sequence[ShardedArray], is_of_answer: bool = False
) -> Iterator[ArraysQuestion]:
    """Nothing where JAX's layouts refuse one of the arrays: partial sums, and parts of different sizes."""
    mesh = resolved.problem.mesh
    layouts = [Layout(array, mesh) for array in arrays]
    if not any(layout.uneven or layout.spec.unreduced for layout in layouts):
        yield ArraysQuestion(key=key, is_of_answer=is_of_answer, mesh=mesh, arrays=tuple(arrays))


def _of_run(
    key: str, question: CollectiveQuestion | None, is_of_answer: bool = False
) -> Iterator[RunQuestion]:
    """Nothing where there is no collective, or none with numbers."""
    if question is not None and question.shards is not None:
        yield RunQuestion(key=key, is_of_answer=is_of_answer, question=question)


class LessonVerifier:
    """JAX, which computes the answers of lessons too and runs their programs; `close` ends its processes."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.programs = Programs(simulated_environment(os.environ), TIME_LIMIT_S)
        first = ShardedArray("A", ("i",), (2,), "f32", PartitionSpec(((),)))
        self._first = worker.layout(first, Mesh(("X",), (2,)))

    def close(self) -> None:
        self.programs.close()
        self._worker.close()

    def silence(self) -> str:
        """The reason why JAX cannot be asked here, as soon as that is known; empty where it can."""
        try:
            self._first.result()
        except ShardvizError as error:
            return error.message
        return ""

    def ask(self, lesson: Lesson) -> list[Asked]:
        """Send all questions about a lesson at once. What nobody here can answer, as of a mesh with too many
        devices, is left out."""
        asked = []
        for question in jax_questions(lesson):
            with suppress(TargetError):
                asked.append(Asked(question.key, question.ask(self._worker), question.is_of_answer))
        if lesson.program:
            asked.append(Asked("program", self.programs.start(lesson.program).result))
        if (writing := lesson.writing) is not None:
            check = partial(check_written, lesson, worker=self._worker)
            passes = "it passes already"
            asked.append(Asked("write.starter", lambda: "" if check(writing.starter).wrong else passes))
            asked.append(Asked("write.solution", lambda: check(writing.solution).wrong))
        return asked


_RUN = f"""\
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, ({MAX_BYTES}, {MAX_BYTES}))
runpy.run_path("program.py", run_name="__main__")
"""


class Programs:
    """Programs that run one after the other, each in a process and a folder of its own."""

    def __init__(self, environment: Mapping[str, str], time_limit: float = TIME_LIMIT_S) -> None:
        self._environment = environment
        self._time_limit = time_limit
        self._pool = ThreadPoolExecutor(1)
        self._running: subprocess.Popen[bytes] | None = None
        self._is_over = False

    def start(self, program: str) -> Future[str]:
        """Run a program after those before it; the result is why it failed, empty where it did not."""
        return self._pool.submit(self._run, program)

    def close(self) -> None:
        """End what runs, and wait for its end."""
        self.kill()
        self._pool.shutdown(cancel_futures=True)

    def kill(self) -> None:
        """End what runs, with all that it started; for a signal handler too: nothing is waited for."""
        self._is_over = True
        if self._running is not None:
            _end(self._running)

    def _run(self, program: str) -> str:
        with tempfile.TemporaryDirectory(prefix="shardviz-") as name:
            folder = Path(name)
            (folder / "program.py").write_text(program, encoding="utf-8")
            with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
                # A session of its own, so that whatever it starts can be ended with it.
                process = self._running = subprocess.Popen(
                    [sys.executable, "-c", _RUN],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    cwd=folder,
                    env=self._environment,
                    start_new_session=True,
                )
            if self._is_over:
                _end(process)
            try:
                code = process.wait(self._time_limit)
            except subprocess.TimeoutExpired:
                return f"it was stopped after {self._time_limit:g} s"
            finally:
                _end(process)
                process.wait()
            printed, said = ((folder / stream).read_bytes() for stream in ("out", "err"))
            if len(printed) + len(said) >= MAX_BYTES:
                return f"it prints more than {MAX_BYTES:,} bytes"
            if code:
                words = stderr_tail(said.decode(errors="replace"))
                return f"it ended with {code}{f': {words}' if words else ''}"
            return "" if printed.strip() else "it prints nothing"


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
