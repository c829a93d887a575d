"""Plans of the problems on screen: quick ones at once, others when another process has made them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from textual.message import Message

from shardviz.errors import CompilerError, ShardvizError
from shardviz.forms.resolve import planned
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.planner import planner
    from shardviz.tui import planning

if TYPE_CHECKING:
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.plan import Plan
    from shardviz.planner.pricing.costs import PlanCost
    from shardviz.planner.problem import Problem
    from shardviz.reports.target_result import TargetResult

    Key = tuple[Problem, PlacedMesh]


class MessageReceiver(Protocol):
    """The application, as what works beside the screen knows it."""

    def post_message(self, message: Message, /) -> bool:
        """Send a message, from any thread."""


KEPT = 64
"""Plans that are kept: after an undo they are here at once."""
PAUSE_S = 0.15
"""Seconds without an edit until a plan that takes long is begun."""


class Plans:
    """For the screen's thread; no method waits. The application is sent `Found` when another plan is here."""

    class Found(Message):
        """A plan is here that was not: `plan` returns it now."""

    def __init__(self, app: MessageReceiver) -> None:
        self._app = app
        self._found: dict[Key, Plan | ShardvizError] = {}
        self._followed: set[Key] = set()
        self._asked: tuple[Key, Future[Plan]] | None = None
        self._following: tuple[Key, Future[Plan]] | None = None
        self._pricing: Future[PlanCost] | None = None

    @cached_property
    def _process(self) -> planning.PlanningProcess:
        return planning.PlanningProcess()

    def plan(self, problem: Problem, placed: PlacedMesh) -> Plan | None:
        """The plan of the problem that is on screen now; None while it is made, in place of what was asked
        before. Raises `ShardvizError`."""
        key = problem, placed
        self._take()
        found = self._found.pop(key, None)
        if found is None and planner.is_planned_quickly(problem):
            try:
                found = planned(problem, placed)
            except ShardvizError as error:
                found = error
        self._stop_others(key)
        if found is None:
            if self._asked is None:
                call = self._process.submit(planned, problem, placed, pause_s=PAUSE_S)
                self._asked = key, call
                call.add_done_callback(self._ended)
            return None
        self._found[key] = found
        for old in [*self._found][:-KEPT]:
            del self._found[old]
            self._followed.discard(old)
        if isinstance(found, CompilerError):
            del self._found[key]  # its process has died: asked again, it may not
        if isinstance(found, ShardvizError):
            raise found
        return found

    def follow(self, plan: Plan, placed: PlacedMesh, answer: TargetResult) -> None:
        """Shardy answers so: have the plan replaced by one that does the same, if that costs less."""
        from shardviz.compare import adoption  # a package that the first frame does not need

        key = plan.question, placed
        if (
            not adoption.may_be_beaten(plan, answer.splits, answer.moves)
            or key in self._followed
            or key not in self._found
        ):
            return
        self._followed.add(key)
        call = self._process.submit(adoption.cheaper_if_split, plan, answer.splits, answer.moves, placed)
        self._following = key, call
        call.add_done_callback(self._ended)

    def price(self, plan: Plan, placed: PlacedMesh, on_cost: Callable[[PlanCost], object]) -> None:
        """Call a function, in another thread, with what a plan costs and its alternatives, unless another
        plan is priced before that is known."""
        if self._pricing is not None:
            self._pricing.cancel()
        self._pricing = self._process.submit(planning.priced, plan, placed)
        self._pricing.add_done_callback(
            lambda call: None if call.cancelled() or call.exception() else on_cost(call.result())
        )

    def kill(self) -> None:
        """Kill the planning process for a signal handler."""
        if "_process" in vars(self):
            self._process.kill()

    def close(self) -> None:
        if "_process" in vars(self):
            self._process.close()

    def _ended(self, call: Future[Plan]) -> None:
        if not call.cancelled():
            self._app.post_message(self.Found())

    def _take(self) -> None:
        if self._asked is not None and self._asked[1].done():
            (key, call), self._asked = self._asked, None
            try:
                self._found[key] = call.result()
            except ShardvizError as error:
                self._found[key] = error
        if self._following is not None and self._following[1].done():
            (key, call), self._following = self._following, None
            if call.exception() is None and call.result().teller == "shardy":
                self._found[key] = call.result()

    def _stop_others(self, key: Key) -> None:
        if self._asked is not None and self._asked[0] != key:
            self._asked[1].cancel()
            self._asked = None
        if self._following is not None and self._following[0] != key:
            self._following[1].cancel()
            self._followed.discard(self._following[0])
            self._following = None
