"""The collective that is played: a step of the plan or another one, its algorithm and its links."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from shardviz.errors import ShardvizError
from shardviz.forms.command_line import to_arguments
from shardviz.hardware.group_links import Links, group_links
from shardviz.hardware.topology import Topology, topology_for
from shardviz.lazy_names import LazyImports
from shardviz.stepping.plan_step import collective_steps, question_of_step

with LazyImports():
    from shardviz.stepping import collective_matmul, collective_run, plan_run

if TYPE_CHECKING:
    from shardviz.forms.form import ProblemForm
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.links import LinkLevel
    from shardviz.planner.plan import Plan
    from shardviz.stepping.question import CollectiveQuestion

LARGE = 2**14
"""A schedule of more sends is worked out beside the screen."""
KINDS = ("torus", "ring", "line", "switch")


class CollectiveChoice:
    """The choice, as far as a problem allows it. `fault` says why its collective cannot be played."""

    def __init__(self, resolved: ResolvedProblem) -> None:
        self._resolved = resolved
        self.step = 0
        """The step of the plan, from 1; 0 for the first that can be played."""
        self.base: CollectiveQuestion | None = None
        """The collective by its usual algorithm."""
        self.topology: str | None = None
        """The kind of links that a person has chosen; None for those of the machine."""
        self.fault: ShardvizError | None = None
        self.algorithm: str | None = None
        """The algorithm that a person has chosen; None for the usual one."""
        self._of: tuple[object, ...] = ()
        self._questions: dict[str | None, CollectiveQuestion] = {}
        self._levels: tuple[LinkLevel, ...] = ()
        self._run: tuple[Plan, plan_run.PlanRun] | None = None

    @property
    def collectives(self) -> list[int]:
        return collective_steps(self._resolved.plan)

    @property
    def is_own(self) -> bool:
        """True if it belongs to no plan."""
        return self._resolved.collective is not None

    def look(self, resolved: ResolvedProblem) -> Literal["same", "alike", "other"]:
        """Find the collective of a problem: "same" as before; "alike", the same operation on the same array,
        otherwise split or sized or on other links; or an "other" one, by its usual algorithm. The kind of
        links stays as it was chosen."""
        self._resolved = resolved
        numbers = self.collectives
        if self.step not in numbers:
            self.step = numbers[0] if numbers else 0
        # Questions hold arrays, so they are told apart by identity.
        of: tuple[object, ...] = (id(resolved.collective),)
        if resolved.collective is None:
            of = resolved.plan, self.step, resolved.placed.machine
        if of == self._of:
            return "alike" if self._find_links() else "same"
        before, self._of, self.base, self.fault, self._questions = self.base, of, None, None, {}
        try:
            if resolved.collective is not None:
                self.base = resolved.collective
            elif self.step:
                self.base = question_of_step(resolved.plan, self.step, None, resolved.placed)
        except ShardvizError as error:
            self.fault = error
        self._find_links()
        names = [(each.operation, each.layout.array.name) for each in (before, self.base) if each is not None]
        if len(names) == 2 and names[0] == names[1]:
            return "alike"
        self.algorithm = None
        return "other"

    @property
    def question(self) -> CollectiveQuestion | None:
        """The collective by the chosen algorithm; by the usual one where that does not suit it any more. It
        is the same object every time, since that is how a verdict on it is found."""
        if self.base is None:
            return None
        if self.algorithm not in self._questions:
            try:
                self._questions[self.algorithm] = with_algorithm(self.base, self.algorithm)
            except ShardvizError:
                self.algorithm = None
                self._questions[None] = self.base
        return self._questions[self.algorithm]

    def group_of(self, position: int) -> int:
        """The number of the group that the device at a place of the mesh does it with, from 0."""
        if self.base is None:
            return 0
        groups = self.base.layout.mesh.groups(self.base.operation.axes)
        return next((number for number, group in enumerate(groups) if position in group), 0)

    def next_algorithm(self, steps: int) -> None:
        """Choose the algorithm so many further on among those that can do it. Raises `QuestionError`."""
        from shardviz.collectives.algorithms import schedules_for

        if self.base is None:
            return
        names = [schedule.algorithm for schedule in schedules_for(self.base.schedule.pattern)]
        now = self.algorithm or self.base.schedule.algorithm
        index = names.index(now) if now in names else 0
        self.algorithm = names[(index + steps) % len(names)]

    def settled(self, draft: ProblemForm) -> ProblemForm | None:
        """The draft with the chosen algorithm in its own collective, to which it then belongs; None where a
        collective of the plan is played, or the draft has faults."""
        own = draft.collective
        if own is None or self.algorithm is None or self._resolved.faults:
            return None
        algorithm, self.algorithm = self.algorithm, None
        kept = tuple(parameter for parameter in own.parameters if parameter[0] != "pieces")
        return replace(draft, collective=replace(own, algorithm=algorithm, parameters=kept))

    def _find_links(self) -> bool:
        """Take the links of the machine; whether they are others than before."""
        before, placed = self._levels, self._resolved.placed
        self._levels = () if self.base is None else placed.published_levels(self.base.operation.axes)
        return self._levels != before

    def forget(self) -> bool:
        """Take the usual algorithm and links again; whether others had been chosen."""
        had = self.algorithm is not None or self.topology is not None
        self.algorithm = self.topology = None
        return had

    @property
    def links(self) -> Links:
        """The links of the group. Raises `QuestionError` where it is too large, or there is no collective."""
        return self._links(self.topology)

    def worked_out(self, question: CollectiveQuestion) -> collective_run.PreparedRun | ShardvizError:
        try:
            return collective_run.prepare_run(question, self.links)
        except ShardvizError as error:
            return error

    @property
    def links_of(self) -> str:
        """The machine whose links they are; empty where they are assumed."""
        machine = self._resolved.placed.machine
        return machine.name if self.topology is None and not machine.assumed else ""

    def next_links(self) -> None:
        """Choose the next of the machine's links, a torus, a ring, a line and a switch. Raises
        `QuestionError`."""
        kinds: dict[Topology, str | None] = {}
        for kind in (None, *KINDS):
            kinds.setdefault(self._links(kind).topology, kind)
        ways = [*kinds.values()]
        self.topology = ways[(ways.index(self.topology) + 1) % len(ways)] if self.topology in ways else None

    def _links(self, kind: str | None) -> Links:
        assert self.base is not None
        axes, dims = self.base.operation.axes, self.base.schedule.pattern.dims
        return group_links(self._resolved.placed, axes, dims, kind)

    def next_step(self, steps: int) -> None:
        numbers = self.collectives
        if numbers:
            index = numbers.index(self.step) if self.step in numbers else 0
            self.step = numbers[(index + steps) % len(numbers)]

    def matmul(self, run: collective_run.CollectiveRun) -> collective_matmul.BlockwiseMatmul | None:
        """The matmul of the plan that the collective can run beside; None where there is none."""
        if self.is_own or not self.step:
            return None
        return collective_matmul.matmul_of_step(self._resolved.plan, self._resolved.placed, self.step, run)

    @property
    def plan_run(self) -> plan_run.PlanRun:
        """The whole plan on small numbers; the same object for the same plan. Raises `QuestionError`."""
        plan = self._resolved.plan
        if self._run is None or self._run[0] is not plan:
            self._run = plan, plan_run.small_run(plan)
        return self._run[1]

    @property
    def command_line(self) -> str:
        """The command that shows the same; empty where nothing is shown."""
        if self.base is None:
            return ""
        arguments = to_arguments(self._resolved.shown, "step" if self.is_own else "explain")
        if not self.is_own:
            arguments += ["--step", str(self.step)]
        elif kind := self._kind:
            arguments += ["--topology", kind]
        if self.algorithm is not None:
            if "--algorithm" in arguments:
                index = arguments.index("--algorithm")
                del arguments[index : index + 2]
            arguments += ["--algorithm", self.algorithm]
        return shlex.join(["shardviz", *arguments])

    @property
    def _kind(self) -> str:
        """The command line's name of the links; empty for its usual ones and those without a name."""
        assert self.base is not None
        dims = self.base.schedule.pattern.dims
        if self.topology is None and not self._resolved.placed.machine.assumed:
            return ""
        shown = self._links(self.topology).topology
        same = (kind for kind in (None, *KINDS) if topology_for(kind, dims) == shown)
        return next(same, None) or ""


def is_large(question: CollectiveQuestion) -> bool:
    """True if working it out takes longer than a key press may."""
    schedule = question.schedule
    if not schedule.rounds:
        return False
    middle = schedule.round((schedule.rounds + 1) // 2)
    return schedule.rounds * max(1, len(middle)) * middle.span > LARGE


def with_algorithm(question: CollectiveQuestion, algorithm: str | None) -> CollectiveQuestion:
    """The same by another algorithm; None is the one that it has. Raises `QuestionError`."""
    from shardviz.collectives.algorithms import schedule_for

    if algorithm is None or algorithm == question.schedule.algorithm:
        return question
    pattern = question.schedule.pattern
    return replace(question, schedule=schedule_for(algorithm, pattern, None, question.operation.name))
