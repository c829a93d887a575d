"""Plans of the problems on screen: quick ones at once, others when another process has made them. A thread
that plans would hold the interpreter lock, so that each key waits for it, and could not be stopped."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from shardviz.compiler.requests import Cancelled, CompilerRequest, RequestScheduler
from shardviz.errors import CompilerError, ShardvizError
from shardviz.forms.resolve import planned
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.compiler import child_process, messages
    from shardviz.planner import planner
    from shardviz.planner.pricing import costs

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.plan import Plan
    from shardviz.planner.problem import Problem
    from shardviz.reports.target_result import TargetResult

    Key = tuple[Problem, PlacedMesh]

T = TypeVar("T")

PLANNERS_CHILD = __name__


class PlanningProcess:
    """Calls one function at a time, in the order of `submit`; the process starts with the first. To cancel
    the request for a call stops it, also where it has begun."""

    def __init__(self) -> None:
        self._scheduler = RequestScheduler(self._stop)
        self._child: child_process.ChildProcess | None = None
        self._lock = threading.Lock()
        # Linux ends the child when the thread that started it ends: one thread serves them all.
        self._thread = threading.Thread(target=self._serve, name="shardviz-planning", daemon=True)
        self._thread.start()

    def submit(
        self, function: Callable[..., T], *arguments: object, pause_s: float = 0.0
    ) -> CompilerRequest[T]:
        """Call a function of a module, after a pause in seconds. Function, arguments and result are
        pickled."""
        turn = time.monotonic() + pause_s, 0
        request = CompilerRequest[T]((function, arguments), subject="the planner", turn=turn)
        self._scheduler.add(request)
        return request

    def kill(self) -> None:
        """Kill the process for a signal handler: without a lock, and nothing is waited for."""
        if (child := self._child) is not None:
            child.kill()

    def close(self) -> None:
        self._scheduler.close()
        with self._lock:
            self.kill()

    def _stop(self, request: CompilerRequest[Any]) -> None:
        with self._lock:
            if request is self._scheduler.current:
                self.kill()

    def _serve(self) -> None:
        while (request := self._scheduler.next()) is not None:
            try:
                self._answer(request)
            except (EOFError, OSError):
                request.fail(self._death())
        self._death()

    def _answer(self, request: CompilerRequest[Any]) -> None:
        with self._lock:
            if request.done():
                return
            if self._child is None or not self._child.alive():
                self._child = child_process.ChildProcess(PLANNERS_CHILD, os.environ)
            child = self._child
        child.send(request.call)
        answer = child.receive()
        if isinstance(answer, ShardvizError):
            request.fail(answer)
        else:
            request.settle(answer)

    def _death(self) -> ShardvizError:
        """The error of a call whose process has ended, which nobody hears of where that was cancelled."""
        with self._lock:
            child, self._child = self._child, None
        how, log = child.reap() if child is not None else ("was closed", "")
        said = f": {words}" if (words := child_process.stderr_tail(log)) else ""
        problem = f"the planner's process {how}{said}"
        return CompilerError(problem, "enter the problem again", log)


def main(read_fd: int, write_fd: int) -> None:
    """Serve the parent over two file descriptors: a function and its arguments go in, what it returns or the
    `ShardvizError` that it raises comes out. Any other error ends the process, with a traceback."""
    messages.end_with_parent()
    channel = messages.Channel(read_fd, write_fd)
    while True:
        try:
            call: Any = channel.receive()
        except EOFError:
            return
        function, arguments = call
        answer: object
        try:
            answer = function(*arguments)
        except ShardvizError as error:
            answer = error
        channel.send(answer)


def priced(plan: Plan, placed: PlacedMesh) -> costs.PlanCost:
    """The cost of a plan, with its totals and alternatives, which it keeps once they were asked for."""
    cost = costs.price(plan, placed)
    _ = cost.thresholds, cost.alternatives
    return cost


KEPT = 64
"""Plans that are kept: after an undo they are here at once."""
PAUSE_S = 0.15
"""Seconds without an edit until a plan that takes long is begun."""


class Plans:
    """For the screen's thread; no method waits. `on_found` is called, from any thread, when a plan is here
    that was not: `plan` returns it then."""

    def __init__(self, on_found: Callable[[], object]) -> None:
        self._on_found = on_found
        self._found: dict[Key, Plan | ShardvizError] = {}
        self._followed: set[Key] = set()
        self._calls: dict[str, tuple[Key, CompilerRequest[Plan]]] = {}
        """What is under way, by what it does: "plan" or "follow"."""
        self._pricing: CompilerRequest[costs.PlanCost] | None = None

    @cached_property
    def _process(self) -> PlanningProcess:
        return PlanningProcess()

    def plan(self, problem: Problem, placed: PlacedMesh) -> Plan | None:
        """The plan of the problem that is on screen now; None while it is made, in place of what was asked
        before. Raises `ShardvizError`."""
        key = problem, placed
        for what, (other, call) in [*self._calls.items()]:
            if call.done():
                self._take(what)
            elif other != key:
                call.cancel()
                del self._calls[what]
                self._followed.discard(other)
        result = self._found.pop(key, None)
        if result is None and planner.is_planned_quickly(problem):
            try:
                result = planned(problem, placed)
            except ShardvizError as error:
                result = error
        if result is None:
            if "plan" not in self._calls:
                self._begin("plan", key, self._process.submit(planned, problem, placed, pause_s=PAUSE_S))
            return None
        self._found[key] = result
        for old in [*self._found][:-KEPT]:
            del self._found[old]
            self._followed.discard(old)
        if isinstance(result, CompilerError):
            del self._found[key]  # its process has died: asked again, it may not
        if isinstance(result, ShardvizError):
            raise result
        return result

    def follow(self, plan: Plan, placed: PlacedMesh, answer: TargetResult) -> None:
        """Shardy answers so: have the plan replaced by one that does the same, if that costs less."""
        from shardviz.compare import adoption  # a package that the first frame does not need

        key, said = (plan.question, placed), (plan, answer.splits, answer.moves)
        if key in self._found and key not in self._followed and adoption.may_be_beaten(*said):
            self._followed.add(key)
            self._begin("follow", key, self._process.submit(adoption.cheaper_if_split, *said, placed))

    def price(self, plan: Plan, placed: PlacedMesh, on_cost: Callable[[costs.PlanCost], object]) -> None:
        """Call a function, in another thread, with what a plan costs and its alternatives, unless another
        plan is priced before that is known."""
        if self._pricing is not None:
            self._pricing.cancel()
        self._pricing = self._process.submit(priced, plan, placed)
        self._pricing.add_done_callback(lambda call: None if call.exception() else on_cost(call.result()))

    def kill(self) -> None:
        if "_process" in vars(self):
            self._process.kill()

    def close(self) -> None:
        if "_process" in vars(self):
            self._process.close()

    def _begin(self, what: str, key: Key, call: CompilerRequest[Plan]) -> None:
        self._calls[what] = key, call
        call.add_done_callback(
            lambda call: None if isinstance(call.exception(), Cancelled) else self._on_found()
        )

    def _take(self, what: str) -> None:
        """Keep the plan of a call that is done, or its error; of one that followed Shardy, a cheaper plan."""
        key, call = self._calls.pop(what)
        error = call.exception()
        if what == "plan":
            self._found[key] = error if isinstance(error, ShardvizError) else call.result()
        elif error is None and call.result().teller == "shardy":
            self._found[key] = call.result()
