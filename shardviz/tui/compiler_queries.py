"""The application's questions to the compilers: asked while a person edits, and kept with their answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import InitVar, dataclass, replace
from functools import partial
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
    from shardviz.stepping.collective_run import Verdict
    from shardviz.stepping.plan_run import PlanRun
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


@dataclass(eq=False)
class _Query(Generic[Known]):
    """One question. `send` asks it, and `read` makes of a reply what is then known; of an error too, where
    `without` makes a reply of it. `is_settled`: it would be replied the same again."""

    _known: Known
    send: InitVar[Callable[[Callable[[str], None]], CompilerRequest[Any]]]
    _read: Callable[[Any], Known]
    _without: Callable[[ShardvizError], object] | None
    _notify: Callable[[], None]
    is_settled: bool = False
    request: CompilerRequest[Any] | None = None

    def __post_init__(self, send: Callable[[Callable[[str], None]], CompilerRequest[Any]]) -> None:
        try:
            self.request = send(lambda _stage: self._notify())
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

    def read_again(self) -> None:
        """Read the reply once more: what it is compared with has changed."""
        assert self.request is not None
        self._known = self._read(self.request.result())

    def _end(self, request: Future[Any]) -> None:
        try:
            self._known = self._read(request.result())
            self.is_settled = True
        except Exception as error:
            self._fail(error)
        self._notify()

    def _fail(self, error: Exception) -> None:
        if isinstance(error, Cancelled):
            self._known = replace(self._known, state="cancelled")
            return
        if not isinstance(error, ShardvizError):
            error = CompilerError(f"the answer cannot be read: {error!r}")
        if self._without is None:
            self._known = replace(self._known, state="failed", error=error)
        else:
            self._known = self._read(self._without(error))


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
        scene = self._scene
        if scene is None:
            return {}
        queries = {
            target.name: self._queries["answer", scene.problem, target.name] for target in scene.targets
        }
        for query in queries.values():
            if query.is_settled and query.known.plan is not scene.plan:
                query.read_again()
        return {name: query.known for name, query in queries.items()}

    def start(self) -> None:
        self.worker.start()

    def ask(self, scene: ResolvedProblem) -> None:
        """Ask about the problem of another scene, and forget what is no longer asked."""
        self._scene, self._edited = scene, time.monotonic()
        names = [target.name for target in scene.targets]
        for what, subject, name in [*self._wanted]:
            if what != "verdict" and (subject != scene.problem or name not in names):
                self._drop((what, subject, name))
        for target in scene.targets:
            self._ask(scene, target)
        for what, kept in KEPT.items():
            for key in [key for key in self._queries if key[0] == what and key not in self._wanted][:-kept]:
                del self._queries[key]
        self._notify()

    def ask_now(self, target: str = "") -> None:
        """Ask a target now (all, without a name), without a pause; also where it was cancelled, or its
        compiler failed."""
        scene = self._scene
        if scene is None:
            return
        self._edited = -math.inf
        for key in [*self._wanted]:
            query = self._queries[key]
            if target in ("", key[2]) and not query.is_settled and query.known.state != "asked":
                self._drop(key)
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
        waiting: ShownReply[PassTrace] = ShownReply(asked)
        return self._want(
            ("passes", scene.problem, target),
            waiting,
            lambda told: self.worker.trace(scene.problem, asked, told, turn=(self._due(target), 2)),
            lambda traced: replace(waiting, state="answered", answer=traced),
        )

    def verified(self, question: CollectiveQuestion | PlanRun) -> ShownReply[Verdict]:
        """JAX's verdict on a collective or a plan, known by its identity; it is asked for where nobody has,
        and another is dropped."""
        key = ("verdict", id(question), "")
        for other in [*self._wanted]:
            if other[0] == "verdict" and other != key:
                self._drop(other)
        waiting: ShownReply[Verdict] = ShownReply(TARGETS["cpu"])

        def send(on_progress: Callable[[str], None]) -> CompilerRequest[ExecutionResult]:
            run: Callable[..., CompilerRequest[ExecutionResult]] = getattr(self.worker, question.jax_call)
            return run(*question.for_jax(), waiting.target, on_progress, turn=(self._due("cpu"), 2))

        def read(ran: ExecutionResult) -> ShownReply[Verdict]:
            if isinstance(question, plan_run.PlanRun):
                return replace(waiting, state="answered", answer=question.compared(ran))
            mesh, shards = question.mesh, question.shards
            simulated = frames.Frames(question.schedule, question.operation, mesh, shards)
            verdict = collective_run.compare_with_jax(question, simulated, ran)
            return replace(waiting, state="answered", answer=verdict)

        return self._want(key, waiting, send, read)

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

        def read(compiled: TargetResult) -> ShownAnswer:
            from shardviz.compare import differences

            # The plan may be another one by now.
            now = self._scene
            plan = now.plan if now is not None and now.problem == problem else scene.plan
            compared = differences(plan, compiled)
            return ShownAnswer(target, "answered", answer=compiled, differences=compared, plan=plan)

        key = "answer", problem, name
        self._want(key, ShownAnswer(target), send, read, partial(without_answer, name))

    def _want(
        self,
        key: Key,
        waiting: Known,
        send: Callable[[Callable[[str], None]], CompilerRequest[Any]],
        read: Callable[[Any], Known],
        without: Callable[[ShardvizError], object] | None = None,
    ) -> Known:
        """The answer to a question as far as it is known; the question is sent where it has to be."""
        query: _Query[Known] | None = self._queries.pop(key, None)
        is_kept = query is not None and (
            key in self._wanted or query.is_settled or (query.request is not None and query.request.keep())
        )
        if query is None or not is_kept:
            query = _Query(waiting, send, read, without, self._notify)
        self._queries[key] = query
        self._wanted.add(key)
        return query.known

    def _drop(self, key: Key) -> None:
        self._wanted.remove(key)
        if (request := self._queries[key].request) is not None:
            request.drop()

    def _due(self, target: str) -> float:
        """When a target may be asked: after a pause for another edit."""
        return self._edited + PAUSES_S.get(target, PAUSE_S)

    def _notify(self) -> None:
        if not self._is_closed:
            self._tell(self.Changed())
