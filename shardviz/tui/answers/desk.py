"""Who asks the compilers, and keeps their answers: one for the application."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

from shardviz.compiler.pending import Cancelled
from shardviz.compiler.targets import check_mesh, parse_targets
from shardviz.errors import TargetError
from shardviz.tui.answers.answer import Answer, TracedAnswer, Verification
from shardviz.tui.answers.clerk import Clerk
from shardviz.tui.answers.errand import AskTarget, Errand, TraceTarget, Verify

if TYPE_CHECKING:
    from shardviz.compiler import Target, Worker
    from shardviz.compiler.messages import LaneName
    from shardviz.drafts.resolve import ResolvedProblem
    from shardviz.stepping.question import CollectiveQuestion

PAUSES_S = {"shardy": 0.0, "cpu": 0.15}
PAUSE_S = 1.0
"""How long nothing must have been edited until a target is asked: by its name, and any other."""
KEPT = {"answer": 256, "passes": 8, "verdict": 16}
"""What is kept of all that was asked: whoever undoes an edit has it at once."""

Key = tuple[str, Hashable, str]
"""What is asked ("answer", "passes" or "verdict"), about what, and whom."""


class Desk:
    """Asks Shardy at once, the CPU's compiler next, slower targets after a pause or on demand.

    `on_change` is called, from any thread, whenever something has changed of `answers`, `traced` or
    `verified`. A `worker` that is given is left open by `close`. No method waits for a compiler.
    """

    def __init__(self, on_change: Callable[[], object], worker: Worker | None = None) -> None:
        self._on_change = on_change
        self._worker = worker
        self._is_ours = worker is None
        self._is_closed = False
        self._worker_lock = threading.Lock()
        self._lock = threading.RLock()
        self._clerks: dict[LaneName, Clerk] = {}
        self._errands: dict[Key, Errand[Any]] = {}
        self._wanted: set[Key] = set()
        self._scene: ResolvedProblem | None = None
        self._edited = -math.inf

    @property
    def worker(self) -> Worker:
        """The compilers' client, made when it is first needed. Raises `Cancelled` after `close`."""
        with self._worker_lock:
            if self._worker is None:
                if self._is_closed:
                    raise Cancelled("the application was closed")
                from shardviz.compiler import Worker

                self._worker = Worker()
            return self._worker

    @property
    def answers(self) -> Mapping[str, Answer]:
        """The answers to the problem on screen, by target name, in the order of the draft."""
        scene = self._scene
        if scene is None:
            return {}
        with self._lock:
            return {
                target.name: self._errands["answer", scene.problem, target.name].known
                for target in scene.targets
            }

    def start(self) -> None:
        """Start the compilers' process behind the first screen."""

        def begin() -> None:
            self.worker.start()
            # What the first question needs is loaded while the process loads JAX.
            import shardviz.compiler.question
            import shardviz.compiler.reading  # noqa: F401

        threading.Thread(target=begin, name="shardviz-start", daemon=True).start()

    def ask(self, scene: ResolvedProblem) -> None:
        """The scene has changed: ask about its problem, and forget what is no longer asked."""
        names = [target.name for target in scene.targets]
        with self._lock:
            self._scene, self._edited = scene, time.monotonic()
            for what, subject, name in [*self._wanted]:
                if what != "verdict" and (subject != scene.problem or name not in names):
                    self._drop((what, subject, name))
            for target in scene.targets:
                self._ask(scene, target, self._edited + _pause(scene, target))
            self._forget()
        self._on_change()

    def ask_now(self, target: str = "") -> None:
        """Ask a target now (all, without a name), without a pause; also where it was cancelled, or its
        compiler failed."""
        scene = self._scene
        if scene is None:
            return
        with self._lock:
            self._edited = -math.inf
            for key in [*self._wanted]:
                errand = self._errands[key]
                if target in ("", key[2]) and not errand.settled and errand.known.state != "asked":
                    self._drop(key)
            for one in scene.targets:
                self._ask(scene, one, time.monotonic())
        # Who shows passes or a verdict asks for them again.
        self._on_change()

    def traced(self, target: str) -> TracedAnswer:
        """The passes of one of the scene's targets; they are asked for where nobody has.

        What was cancelled or has failed is asked again after `ask_now`.
        """
        scene = self._scene
        found = next((each for each in scene.targets if each.name == target), None) if scene else None
        if scene is None or found is None:
            return TracedAnswer(parse_targets(target)[0], "waiting")
        due = max(time.monotonic(), self._edited + _pause(scene, found))
        key = ("passes", scene.problem, target)
        known: TracedAnswer = self._want(key, lambda: TraceTarget(scene.plan, found, due)).known
        return known

    def verified(self, question: CollectiveQuestion) -> Verification:
        """JAX's verdict on a collective; it is asked for where nobody has, and another is no longer wanted.

        A question is known by its identity. What was cancelled is asked again after `ask_now`.
        """
        due = max(time.monotonic(), self._edited + PAUSES_S["cpu"])
        key = ("verdict", id(question), "")
        with self._lock:
            for other in [*self._wanted]:
                if other[0] == "verdict" and other != key:
                    self._drop(other)
            known: Verification = self._want(key, lambda: Verify(question, due)).known
            return known

    def cancel(self) -> bool:
        """Cancel what is under way or waits; False where there is nothing."""
        with self._lock:
            stopped = [each for each in self._errands.values() if each.known.state in ("waiting", "asked")]
            for errand in stopped:
                self._clerk(errand.lane).cancel(errand)
        if stopped:
            self._on_change()
        return bool(stopped)

    def kill(self) -> None:
        """End the compilers' processes for a signal handler: without a lock, and nothing is waited for."""
        if self._worker is not None and self._is_ours:
            self._worker.kill()

    def close(self) -> None:
        """End the compilers' processes."""
        with self._worker_lock:
            self._is_closed = True
        with self._lock:
            clerks = [*self._clerks.values()]
        for clerk in clerks:
            clerk.close()
        if self._worker is not None and self._is_ours:
            self._worker.close()

    def _ask(self, scene: ResolvedProblem, target: Target, due: float) -> None:
        key = ("answer", scene.problem, target.name)
        self._want(key, lambda: AskTarget(scene.plan, target, due))

    def _want(self, key: Key, errand: Callable[[], Errand[Any]]) -> Errand[Any]:
        """The errand of a key: the one that is known, or a new one on its clerk's agenda."""
        with self._lock:
            known = self._errands.pop(key, None)
            if known is None or not (
                key in self._wanted or known.settled or self._clerk(known.lane).keep(known)
            ):
                known = errand()
                self._clerk(known.lane).take(known)
            self._errands[key] = known
            self._wanted.add(key)
            return known

    def _drop(self, key: Key) -> None:
        """What has this key is no longer on screen."""
        self._wanted.remove(key)
        errand = self._errands[key]
        if not errand.settled:
            self._clerk(errand.lane).drop(errand)

    def _forget(self) -> None:
        """Keep the latest of what was asked."""
        for what, kept in KEPT.items():
            keys = [key for key in self._errands if key[0] == what and key not in self._wanted]
            for key in keys[:-kept]:
                del self._errands[key]

    def _clerk(self, lane: LaneName) -> Clerk:
        if lane not in self._clerks:
            self._clerks[lane] = Clerk(lambda: self.worker, self._on_change)
        return self._clerks[lane]


def _pause(scene: ResolvedProblem, target: Target) -> float:
    """How long to wait for another edit, in seconds; a target that does not fit says so at once."""
    try:
        check_mesh(target, scene.problem.mesh)
    except TargetError:
        return 0.0
    return PAUSES_S.get(target.name, PAUSE_S)
