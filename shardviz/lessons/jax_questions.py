"""The questions of a lesson that JAX can answer too, and where the answers that it gave disagree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from shardviz import compare
from shardviz.errors import QuestionError, quote
from shardviz.hardware.measured import COLLECTIVES
from shardviz.lessons.measures import compute
from shardviz.lessons.measures.subject import array_named, collective_of, resolve_once
from shardviz.sharding import Layout

if TYPE_CHECKING:
    from shardviz.forms.form import ProblemForm
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hlo import Collective
    from shardviz.lessons.lesson import Lesson
    from shardviz.lessons.measures.answers import ComputedAnswer
    from shardviz.planner.plan import Plan
    from shardviz.reports.target_result import HeldArray, TargetResult
    from shardviz.sharding import Mesh, ShardedArray
    from shardviz.stepping.collective_run import Verdict
    from shardviz.stepping.question import CollectiveQuestion

OF_PLANS = ("collectives", "count", "line", "sent")
"""Measures of what a plan sends."""
OF_STEPS = ("collectives", "count")
"""Those of which JAX can be asked in a train step."""
OF_TIMES = ("seconds", "overlapped", "step", "exposed", "bound", "utilisation")
"""Measures of seconds, of which JAX knows only what is sent: the plan's collectives or the form's own."""
OF_ROUNDS = ("rounds", "sends_to", "held")
"""Measures of a collective's rounds, of which JAX knows only where they lead."""
SAME_MOVES = {"promoted_dtype", "narrowed_dtype", "padded", *compare.SAME_TRAFFIC} - {"only_other_result"}
"""Codes of differences with which the same collectives run over the same axes, to the same result."""


@dataclass(frozen=True, kw_only=True)
class _LessonQuestion:
    """A question about a key of a lesson's file. What JAX says must give `answer`; without one it must be as
    we say."""

    key: str
    answer: ComputedAnswer | None = None

    @property
    def is_of_answer(self) -> bool:
        """JAX says the answer itself, not only what it follows from."""
        return self.answer is not None

    def _otherwise(self, theirs: str) -> str:
        """The disagreement of the answer with what JAX gives; empty where that is the same."""
        assert self.answer is not None
        with suppress(QuestionError):
            if self.answer.is_same(theirs):
                return ""
        return f"the answer is {self.answer.text}; JAX gives {quote(theirs, 100)}"


@dataclass(frozen=True, kw_only=True)
class ArraysQuestion(_LessonQuestion):
    """Which elements every device of `mesh` holds of `arrays`; `answer` is the one to the measure `ask`."""

    mesh: Mesh
    arrays: tuple[ShardedArray, ...]
    ask: str = ""

    def disagreement(self, held: Sequence[HeldArray]) -> str:
        """Where JAX says otherwise; empty where it agrees."""
        if refusals := [array.error for array in held if array.error]:
            return f"JAX refuses it: {refusals[0]}"
        if self.answer is not None:
            theirs = layouts_say(self.ask, self.mesh, held)
            assert theirs is not None
            return self._otherwise(theirs)
        for array, each in zip(self.arrays, held, strict=True):
            ours = [(device.id, device.slices) for device in Layout(array, self.mesh)]
            for (device, slices), (_, theirs_slices) in zip(ours, each.devices, strict=True):
                if slices != theirs_slices:
                    return f"device {device} holds {slices} of {array.name}; JAX gives it {theirs_slices}"
        return ""


@dataclass(frozen=True, kw_only=True)
class RunQuestion(_LessonQuestion):
    """A collective that JAX runs on the same numbers; `answer` is what it leaves on the device with the id
    `device`."""

    question: CollectiveQuestion
    device: int = 0

    def disagreement(self, verdict: Verdict) -> str:
        """Where JAX's numbers are others; empty where they are ours."""
        mesh, result = self.question.layout.mesh, verdict.verification
        if not verdict.agrees:
            where = "" if result.device is None else f"; device {mesh.device_id(result.device)} first"
            return f"JAX ends with {result.theirs or result.note} where ours is {result.ours}{where}"
        if self.answer is None:
            return ""
        assert verdict.ran.shards is not None
        position = [mesh.device_id(each) for each in range(mesh.size)].index(self.device)
        theirs = ", ".join(f"{value:.6g}" for value in verdict.ran.shards[position].reshape(-1).tolist())
        return self._otherwise(theirs)


@dataclass(frozen=True, kw_only=True)
class PlanQuestion(_LessonQuestion):
    """A plan of which Shardy, or XLA for simulated devices, must insert the same collectives; `answer` is the
    one to the measure `ask`. Of ``result_spec`` only the result's split is asked."""

    plan: Plan
    ask: str = ""

    @property
    def is_of_answer(self) -> bool:
        """As of `ArraysQuestion`: of a time JAX knows only what is sent meanwhile."""
        return self.answer is not None and self.ask.split()[0] in (*OF_PLANS, "result_spec")

    def disagreement(self, answers: Sequence[TargetResult]) -> str:
        """Why none of the answers agrees; empty where one does."""
        reasons = [self._reason(answer) for answer in answers]
        return "" if not all(reasons) else "; ".join(dict.fromkeys(reasons))

    @property
    def is_count_alone(self) -> bool:
        """The number of one kind in a train step is asked for; compilers may send other things beside it."""
        return self.ask.startswith("count ") and self.plan.problem.training is not None

    def _reason(self, answer: TargetResult) -> str:
        if answer.status != "ok":
            return f"{answer.target} gives no answer: {answer.error}"
        if self.answer is not None and self.ask.split()[0] == "result_spec":
            spec = answer.result_spec
            if spec is not None and not self._otherwise(str(spec)):
                return ""
            return f"the answer is {self.answer.text}; {answer.target} leaves the result as {spec}"
        if self.answer is not None and self.is_count_alone:
            return self._otherwise(collectives_say(self.ask, answer.collectives) or "")
        differences = compare.differences(self.plan, answer)
        if found := [one for one in differences if one.code not in SAME_MOVES]:
            return found[0].message.rstrip(".")
        theirs = None if differences or self.answer is None else collectives_say(self.ask, answer.collectives)
        return "" if theirs is None else self._otherwise(theirs)


JaxQuestion = ArraysQuestion | RunQuestion | PlanQuestion


def jax_questions(lesson: Lesson) -> list[JaxQuestion]:
    """The questions to JAX about a lesson whose answers can be computed: each prediction's answer as far as
    JAX knows it, the collectives of setup and solution, what the goal wants to be held and to be sent."""
    found: list[JaxQuestion] = []
    for number, prediction in enumerate(lesson.predictions, 1):
        found += _of_measure(f"predict.{number}.ask", prediction.ask, prediction.draft)
    for key, draft in (("setup.collective", lesson.setup), ("solution.collective", lesson.solution)):
        found += _of_run(key, resolve_once(draft).collective)
    solution = resolve_once(lesson.solution)
    for name in lesson.goal.holds or ():
        found += _of_arrays(f"goal.holds.{name}", solution, [array_named(solution, name)])
    if lesson.goal.collectives is not None:
        found.append(PlanQuestion(key="goal.collectives", plan=solution.plan))
    return found


def _of_measure(key: str, ask: str, draft: ProblemForm) -> Iterator[JaxQuestion]:
    name, *arguments = ask.split()
    resolved = resolve_once(draft)
    answer = compute(ask, draft)
    if name in MEASURES:
        arrays = resolved.problem.arguments
        if name in OF_ONE_ARRAY and arguments:
            arrays = (array_named(resolved, arguments[0]),)
        yield from _of_arrays(key, resolved, arrays, ask, answer)
    elif name == "result":
        yield from _of_run(key, collective_of(resolved), int(arguments[0]), answer)
    elif name in OF_ROUNDS:
        yield from _of_run(key, collective_of(resolved))
    elif name in OF_TIMES and resolved.collective is not None:
        yield from _of_run(key, resolved.collective)
    elif name == "result_spec" or (
        name in (OF_STEPS if resolved.problem.training is not None else (*OF_PLANS, *OF_TIMES))
        and resolved.collective is None
    ):
        yield PlanQuestion(key=key, plan=resolved.plan, ask=ask, answer=answer)


def _of_arrays(
    key: str,
    resolved: ResolvedProblem,
    arrays: Sequence[ShardedArray],
    ask: str = "",
    answer: ComputedAnswer | None = None,
) -> Iterator[ArraysQuestion]:
    """Nothing where JAX's layouts refuse one of the arrays: partial sums, and parts of different sizes."""
    mesh = resolved.problem.mesh
    layouts = [Layout(array, mesh) for array in arrays]
    if not any(layout.uneven or layout.spec.unreduced for layout in layouts):
        yield ArraysQuestion(key=key, mesh=mesh, arrays=tuple(arrays), ask=ask, answer=answer)


def _of_run(
    key: str, question: CollectiveQuestion | None, device: int = 0, answer: ComputedAnswer | None = None
) -> Iterator[RunQuestion]:
    """Nothing where there is no collective, or none with numbers."""
    if question is not None and question.shards is not None:
        yield RunQuestion(key=key, question=question, device=device, answer=answer)


def layouts_say(ask: str, mesh: Mesh, held: Sequence[HeldArray]) -> str | None:
    """The answer to a measure about arrays or devices, from JAX's layout of each array that it is about. None
    for a measure that such layouts do not answer."""
    name, *arguments = ask.split()
    if name not in MEASURES or not held:
        return None
    said: str = getattr(_JaxLayouts(mesh, held), name)(*arguments)
    return said


def collectives_say(ask: str, collectives: Sequence[Collective]) -> str | None:
    """The answer to a measure about what is sent, from a partitioner's collectives. None for a measure that
    they do not answer."""
    name, *arguments = ask.split()
    if name == "sent":
        return f"{sum(collective.wire_bytes * (collective.count or 1) for collective in collectives)} B"
    if name == "count":
        return str(sum(collective.op == COLLECTIVES[arguments[0]] for collective in collectives))
    return None


@dataclass(frozen=True)
class _JaxLayouts:
    """Arrays on a mesh as JAX holds them. A method answers the measure of its name, and is written apart from
    that, so that neither repeats the other's error."""

    mesh: Mesh
    held: Sequence[HeldArray]

    @property
    def _places(self) -> list[tuple[int, dict[str, int]]]:
        return [
            (device, dict(zip(self.mesh.axis_names, self.mesh.coords(position), strict=True)))
            for position, (device, _) in enumerate(self.held[0].devices)
        ]

    def devices(self) -> str:
        return str(len(self.held[0].devices))

    def device(self, *places: str) -> str:
        pairs = (part.partition("=") for part in " ".join(places).split(","))
        wanted = {name.strip(): int(place) for name, _, place in pairs}
        return next(str(device) for device, at in self._places if wanted.items() <= at.items())

    def coordinates(self, device: str) -> str:
        return ", ".join(f"{name}={index}" for name, index in dict(self._places)[int(device)].items())

    def shard_shape(self, _array: str) -> str:
        return "x".join(map(str, self.held[0].shard_shape))

    def slices(self, _array: str, device: str) -> str:
        return ", ".join(f"{start}:{stop}" for start, stop in dict(self.held[0].devices)[int(device)])

    def holders(self, _array: str, device: str) -> str:
        mine = dict(self.held[0].devices)[int(device)]
        return ", ".join(str(other) for other, bounds in sorted(self.held[0].devices) if bounds == mine)

    def replicas(self, _array: str) -> str:
        devices = self.held[0].devices
        return str(len(devices) // len({bounds for _, bounds in devices}))

    def bytes(self, _array: str) -> str:
        stops = ([stop for _, stop in bounds] for _, bounds in self.held[0].devices)
        return f"{_octets(prod(map(max, zip(*stops, strict=True))) * self.held[0].bits)} B"

    def shard_bytes(self, _array: str = "") -> str:
        return f"{sum(_octets(prod(array.shard_shape) * array.bits) for array in self.held)} B"

    def loads(self, _array: str, process: str, each: str) -> str:
        """The box around the parts of the devices of one process."""
        own = (bounds for device, bounds in self.held[0].devices if device // int(each) == int(process))
        sides = zip(*own, strict=True)
        return ", ".join(
            f"{min(start for start, _ in side)}:{max(stop for _, stop in side)}" for side in sides
        )

    def crossing(self, axis: str, each: str) -> str:
        hosts: dict[tuple[int, ...], set[int]] = {}
        for device, at in self._places:
            group = tuple(index for name, index in at.items() if name != axis)
            hosts.setdefault(group, set()).add(device // int(each))
        return str(sum(len(those) > 1 for those in hosts.values()))


def _octets(bits: int) -> int:
    return -(-bits // 8)


OF_ONE_ARRAY = ("shard_shape", "slices", "holders", "replicas", "bytes", "shard_bytes", "loads")
"""Those whose first argument is an array's name; `shard_bytes` without one is of all operands."""
MEASURES = frozenset({*OF_ONE_ARRAY, "devices", "device", "coordinates", "crossing"})
"""The measures that JAX's layouts answer."""
