"""The application's questions to the compilers: asked while a person edits, and kept with their answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from textual.message import Message

from shardviz.compiler.requests import Cancelled
from shardviz.errors import CompilerError, ShardvizError
from shardviz.lazy_names import LazyImports
from shardviz.reports.target_result import ExecutionResult, PassTrace, TargetResult, without_answer
from shardviz.targets import TARGETS, Target, parse_targets

with LazyImports():
    from shardviz.collectives import frames
    from shardviz.compiler import worker as worker_client
    from shardviz.stepping import collective_run, plan_run

if TYPE_CHECKING:
    from concurrent.futures import Future

    from shardviz.compare import Difference
    from shardviz.compiler import CompilerRequest, Worker
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.planner.plan import Plan
    from shardviz.stepping.question import CollectiveQuestion


State = Literal["waiting", "asked", "answered", "failed", "cancelled"]
"""Waiting for a pause in typing, or for its turn; asked; answered; failed; or cancelled before that."""

T = TypeVar("T")


@dataclass(frozen=True)
class ShownReply(Generic[T]):
    """A reply of a target about the problem on screen, as far as it is known. `state`: "waiting" until asked
    (a pause in typing, or a key), "asked" since `since` (`time.monotonic`), with the compiler's `stage`;
    "answered" with an `answer`; "failed" with an `error`; "cancelled"."""

    target: Target
    state: State = "waiting"
    stage: str = ""
    since: float = 0.0
    answer: T | None = None
    error: ShardvizError | None = None


@dataclass(frozen=True)
class ShownAnswer(ShownReply["TargetResult"]):
    """A target's answer to the problem, with its `differences` from `plan`. It is never "failed": a compiler
    that died has an answer of status "error"."""

    differences: tuple[Difference, ...] = ()
    plan: Plan | None = None

    @property
    def compiled(self) -> TargetResult | None:
        """The answer, whose status may be "error" or "unavailable"."""
        return self.answer


PAUSES_S = {"shardy": 0.0, "cpu": 0.15}
PAUSE_S = 1.0
"""Seconds without an edit until a target is asked: by its name, and any other."""
KEPT = {"answer": 256, "passes": 8, "verdict": 16}
"""The number of queries that are kept with their answers: after an undo they are here at once."""

Key = tuple[str, Hashable, str]
"""The kind of question ("answer", "passes" or "verdict"), its subject, and the target's name."""

Known = TypeVar("Known", bound=ShownReply[Any])


Send = Callable[[Callable[[str], None]], "CompilerRequest[Any]"]
"""Asks a worker, which calls the function at each stage of its compiler."""
Read = Callable[[Any], dict[str, Any]]
"""The fields of what is then known, made of a reply."""


class _Query(Generic[Known]):
    """One question, `waiting` at first. `is_settled`: it would be replied the same again."""

    def __init__(self, waiting: Known, send: Send, read: Read, notify: Callable[[], None]) -> None:
        self._known, self._read, self._notify = waiting, read, notify
        self.is_settled = False
        self.request: CompilerRequest[Any] | None = None
        try:
            self.request = send(lambda _stage: notify())
        except Exception as error:
            self._fail(error)
        else:
            self.request.add_done_callback(self._end)

    @property
    def known(self) -> Known:
        known, request = self._known, self.request
        if known.state == "waiting" and request is not None and request.began is not None:
            return replace(known, state="asked", stage=request.stage, since=request.began)
        return known

    def read(self, reply: object) -> None:
        """Read the reply, also once more where what it is compared with has changed."""
        self._known = replace(self._known, state="answered", **self._read(reply))

    def _end(self, request: Future[Any]) -> None:
        try:
            self.read(request.result())
            self.is_settled = True
        except Exception as error:
            self._fail(error)
        self._notify()

    def _fail(self, error: Exception) -> None:
        if not isinstance(error, ShardvizError):
            error = CompilerError(f"the answer cannot be read: {error!r}")
        if isinstance(error, Cancelled):
            self._known = replace(self._known, state="cancelled")
        elif isinstance(self._known, ShownAnswer):
            self.read(without_answer(self._known.target.name, error))
        else:
            self._known = replace(self._known, state="failed", error=error)


class CompilerQueries:
    """Shardy is asked at once, the CPU's compiler next, slower targets after a pause or on demand.

    Targets with a machine are asked for their schedule and memory as well, so that Time has them at once. It
    sends `Changed`, by `tell`, when more is known. A `worker` that is given is left open by `close`. The
    methods are for the screen's thread, and none waits for a compiler."""

    class Changed(Message):
        """More is known, or less. Of several that wait, the last says it all."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, CompilerQueries.Changed)

    def __init__(self, tell: Callable[[Message], object], worker: Worker | None = None) -> None:
        self._tell = tell
        self._worker = worker
        self._is_ours = worker is None
        self._is_closed = False
        self._queries: dict[Key, _Query[Any]] = {}
        self._wanted: set[Key] = set()
        self._scene: ResolvedProblem | None = None
        self._edited = -math.inf

    @property
    def worker(self) -> Worker:
        """The compilers' client, made when it is first needed. Raises `Cancelled` after `close`."""
        if self._is_closed:
            raise Cancelled("the application was closed")
        if self._worker is None:
            self._worker = worker_client.Worker()
        return self._worker

    @property
    def answers(self) -> Mapping[str, ShownAnswer]:
        """The answers to the problem on screen, by target name, in the order of the draft."""
        if (scene := self._scene) is None:
            return {}
        answers = {}
        for target in scene.targets:
            query = self._queries["answer", scene.problem, target.name]
            if query.is_settled and query.known.plan is not scene.plan and query.request is not None:
                query.read(query.request.result())
            answers[target.name] = query.known
        return answers

    def start(self) -> None:
        self.worker.start()

    def ask(self, scene: ResolvedProblem) -> None:
        """Ask about the problem of another scene, and forget what is no longer asked."""
        self._scene, self._edited = scene, time.monotonic()
        names = [target.name for target in scene.targets]
        self._drop(lambda key: key[0] != "verdict" and (key[1] != scene.problem or key[2] not in names))
        for target in scene.targets:
            self._ask(scene, target)
        for what, kept in KEPT.items():
            for key in [key for key in self._queries if key[0] == what and key not in self._wanted][:-kept]:
                del self._queries[key]
        self._notify()

    def ask_now(self, target: str = "") -> None:
        """Ask a target now (all, without a name), without a pause; also where it was cancelled, or its
        compiler failed."""
        if (scene := self._scene) is None:
            return
        self._edited = -math.inf
        open_now = (key for key, query in self._queries.items() if not query.is_settled)
        waiting = {key for key in open_now if self._queries[key].known.state != "asked"}
        self._drop(lambda key: key in waiting and target in ("", key[2]))
        for one in scene.targets:
            self._ask(scene, one)
        # The panes of passes and of a verdict ask for them again.
        self._notify()

    def traced(self, target: str) -> ShownReply[PassTrace]:
        """The passes of one of the scene's targets; they are asked for where nobody has. What was
        cancelled or has failed is asked again after `ask_now`, as is a verdict."""
        scene = self._scene
        asked = next((known for known in scene.targets if known.name == target), None) if scene else None
        if scene is None or asked is None:
            return ShownReply(parse_targets(target)[0])
        return self._want(
            ("passes", scene.problem, target),
            ShownReply[PassTrace](asked),
            lambda told: self.worker.trace(scene.problem, asked, told, turn=(self._due(target), 2)),
            lambda traced: {"answer": traced},
        )

    def verified(self, question: CollectiveQuestion | plan_run.PlanRun) -> ShownReply[collective_run.Verdict]:
        """JAX's verdict on a collective or a plan, known by its identity; it is asked for where nobody has,
        and another is dropped."""
        key, target = ("verdict", id(question), ""), TARGETS["cpu"]
        self._drop(lambda other: other[0] == "verdict" and other != key)

        def send(on_progress: Callable[[str], None]) -> CompilerRequest[ExecutionResult]:
            run: Callable[..., CompilerRequest[ExecutionResult]] = getattr(self.worker, question.jax_call)
            return run(*question.for_jax(), target, on_progress, turn=(self._due("cpu"), 2))

        def read(ran: ExecutionResult) -> dict[str, Any]:
            if isinstance(question, plan_run.PlanRun):
                return {"answer": question.compared(ran)}
            simulated = frames.Frames(question.schedule, question.operation, question.mesh, question.shards)
            return {"answer": collective_run.compare_with_jax(question, simulated, ran)}

        return self._want(key, ShownReply[collective_run.Verdict](target), send, read)

    def cancel(self) -> bool:
        """Cancel what is under way or waits; False where there is nothing."""
        requests = [query.request for query in self._queries.values() if query.request is not None]
        stopped = [request.cancel() for request in requests if not request.done()]
        if stopped:
            self._notify()
        return bool(stopped)

    def kill(self) -> None:
        """End the compilers' processes for a signal handler: without a lock, and nothing is waited for."""
        if self._worker is not None and self._is_ours:
            self._worker.kill()

    def close(self) -> None:
        self._is_closed = True
        self.cancel()
        if self._worker is not None and self._is_ours:
            self._worker.close()

    def _ask(self, scene: ResolvedProblem, target: Target) -> None:
        problem, name = scene.problem, target.name

        def send(on_progress: Callable[[str], None]) -> CompilerRequest[TargetResult]:
            turn, has_costs = (self._due(name), int(name != "shardy")), target.machine is not None
            return self.worker.submit(problem, target, on_progress, turn=turn, with_costs=has_costs)

        def read(compiled: TargetResult) -> dict[str, Any]:
            from shardviz.compare import differences

            # The plan may be another one by now.
            now = self._scene
            plan = now.plan if now is not None and now.problem == problem else scene.plan
            return {"answer": compiled, "differences": differences(plan, compiled), "plan": plan}

        key = "answer", problem, name
        self._want(key, ShownAnswer(target), send, read)

    def _want(self, key: Key, waiting: Known, send: Send, read: Read) -> Known:
        """The answer to a question as far as it is known; the question is sent where it has to be."""
        query: _Query[Known] | None = self._queries.pop(key, None)
        is_kept = query is not None and (
            key in self._wanted or query.is_settled or (query.request is not None and query.request.keep())
        )
        if query is None or not is_kept:
            query = _Query(waiting, send, read, self._notify)
        self._queries[key] = query
        self._wanted.add(key)
        return query.known

    def _drop(self, is_old: Callable[[Key], bool]) -> None:
        for key in filter(is_old, [*self._wanted]):
            self._wanted.remove(key)
            if (request := self._queries[key].request) is not None:
                request.drop()

    def _due(self, target: str) -> float:
        """When a target may be asked: after a pause for another edit."""
        return self._edited + PAUSES_S.get(target, PAUSE_S)

    def _notify(self) -> None:
        if not self._is_closed:
            self._tell(self.Changed())
