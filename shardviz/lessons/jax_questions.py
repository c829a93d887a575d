"""The questions of a lesson that JAX can answer too, and where the answers that it gave disagree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from shardviz import compare
from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures import compute
from shardviz.lessons.measures.subject import array_named, collective_of, resolve_once
from shardviz.sharding import Layout

if TYPE_CHECKING:
    from shardviz.forms.form import ProblemForm
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hlo import Collective
    from shardviz.lessons.lesson import Lesson
    from shardviz.lessons.measures.answers import ComputedAnswer
    from shardviz.planner import Plan
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


@dataclass(frozen=True)
class ArraysQuestion:
    """Which elements every device of `mesh` holds of `arrays`. What JAX says of them must give `answer`, the
    one to the measure `ask`; without a measure, each array's whole layout must be ours."""

    key: str
    mesh: Mesh
    arrays: tuple[ShardedArray, ...]
    ask: str = ""
    answer: ComputedAnswer | None = None

    @property
    def is_of_answer(self) -> bool:
        """JAX says the answer itself, not only what it follows from."""
        return self.answer is not None

    def disagreement(self, held: Sequence[HeldArray]) -> str:
        """Where JAX says otherwise; empty where it agrees."""
        if refusals := [each.error for each in held if each.error]:
            return f"JAX refuses it: {refusals[0]}"
        if self.answer is not None:
            theirs = layouts_say(self.ask, self.mesh, held)
            assert theirs is not None
            return "" if _is_same(self.answer, theirs) else _otherwise(self.answer, theirs)
        for array, each in zip(self.arrays, held, strict=True):
            ours = [(device.id, device.slices) for device in Layout(array, self.mesh)]
            for (device, slices), (_, theirs_slices) in zip(ours, each.devices, strict=True):
                if slices != theirs_slices:
                    return f"device {device} holds {slices} of {array.name}; JAX gives it {theirs_slices}"
        return ""


@dataclass(frozen=True)
class RunQuestion:
    """A collective that JAX runs on the same numbers. With an `answer`, what it leaves on the device with the
    id `device` must give that."""

    key: str
    question: CollectiveQuestion
    device: int = 0
    answer: ComputedAnswer | None = None

    @property
    def is_of_answer(self) -> bool:
        """As of `ArraysQuestion`."""
        return self.answer is not None

    def disagreement(self, verdict: Verdict) -> str:
        """Where JAX's numbers are others; empty where they are ours."""
        mesh, found = self.question.layout.mesh, verdict.verification
        if not verdict.agrees:
            where = "" if found.device is None else f"; device {mesh.device_id(found.device)} first"
            return f"JAX ends with {found.theirs or found.note} where ours is {found.ours}{where}"
        if self.answer is None:
            return ""
        assert verdict.ran.shards is not None
        position = [mesh.device_id(each) for each in range(mesh.size)].index(self.device)
        theirs = ", ".join(f"{value:.6g}" for value in verdict.ran.shards[position].reshape(-1).tolist())
        return "" if _is_same(self.answer, theirs) else _otherwise(self.answer, theirs)


@dataclass(frozen=True)
class PlanQuestion:
    """A plan of which Shardy, or XLA for simulated devices, must insert the same collectives; they must give
    `answer`, the one to the measure `ask`. Of ``result_spec`` only the result's split is asked."""

    key: str
    plan: Plan
    ask: str = ""
    answer: ComputedAnswer | None = None

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
            if spec is not None and _is_same(self.answer, str(spec)):
                return ""
            return f"the answer is {self.answer.text}; {answer.target} leaves the result as {spec}"
        if self.answer is not None and self.is_count_alone:
            count = collectives_say(self.ask, answer.collectives) or ""
            return "" if _is_same(self.answer, count) else _otherwise(self.answer, count)
        differences = compare.differences(self.plan, answer)
        if found := [one for one in differences if one.code not in SAME_MOVES]:
            return found[0].message.rstrip(".")
        theirs = None if differences or self.answer is None else collectives_say(self.ask, answer.collectives)
        if theirs is None or self.answer is None or _is_same(self.answer, theirs):
            return ""
        return _otherwise(self.answer, theirs)


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
        found.append(PlanQuestion("goal.collectives", solution.plan))
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
        yield PlanQuestion(key, resolved.plan, ask, answer)


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
        yield ArraysQuestion(key, mesh, tuple(arrays), ask, answer)


def _of_run(
    key: str, question: CollectiveQuestion | None, device: int = 0, answer: ComputedAnswer | None = None
) -> Iterator[RunQuestion]:
    """Nothing where there is no collective, or none with numbers."""
    if question is not None and question.shards is not None:
        yield RunQuestion(key, question, device, answer)


def _is_same(answer: ComputedAnswer, text: str) -> bool:
    try:
        return answer.is_same(text)
    except QuestionError:
        return False


def _otherwise(answer: ComputedAnswer, theirs: str) -> str:
    return f"the answer is {answer.text}; JAX gives {quote(theirs, 100)}"


def layouts_say(ask: str, mesh: Mesh, held: Sequence[HeldArray]) -> str | None:
    """The answer to a measure about arrays or devices, from JAX's layout of each array that it is about.

    None for a measure that such layouts do not answer.
    """
    name, *arguments = ask.split()
    answer = _ANSWERS.get(name)
    return None if answer is None or not held else answer(mesh, held, arguments)


def collectives_say(ask: str, collectives: Sequence[Collective]) -> str | None:
    """The answer to a measure about what is sent, from a partitioner's collectives.

    None for a measure that they do not answer.
    """
    name, *arguments = ask.split()
    if name == "sent":
        return f"{sum(each.wire_bytes * (each.count or 1) for each in collectives)} B"
    if name == "count":
        return str(sum(each.op == _OPS[arguments[0]] for each in collectives))
    return None


def _devices(_mesh: Mesh, held: Sequence[HeldArray], _arguments: list[str]) -> str:
    return str(len(held[0].devices))


def _device(mesh: Mesh, held: Sequence[HeldArray], arguments: list[str]) -> str:
    wanted = {
        name.strip(): int(place)
        for name, _, place in (part.partition("=") for part in " ".join(arguments).split(","))
    }
    for position, (device, _) in enumerate(held[0].devices):
        coords = dict(zip(mesh.axis_names, mesh.coords(position), strict=True))
        if wanted.items() <= coords.items():
            return str(device)
    raise AssertionError(f"no device at {wanted}")


def _coordinates(mesh: Mesh, held: Sequence[HeldArray], arguments: list[str]) -> str:
    position = [device for device, _ in held[0].devices].index(int(arguments[0]))
    coords = zip(mesh.axis_names, mesh.coords(position), strict=True)
    return ", ".join(f"{name}={place}" for name, place in coords)


def _shard_shape(_mesh: Mesh, held: Sequence[HeldArray], _arguments: list[str]) -> str:
    return "x".join(map(str, held[0].shard_shape))


def _slices(_mesh: Mesh, held: Sequence[HeldArray], arguments: list[str]) -> str:
    return ", ".join(f"{start}:{stop}" for start, stop in dict(held[0].devices)[int(arguments[1])])


def _holders(_mesh: Mesh, held: Sequence[HeldArray], arguments: list[str]) -> str:
    mine = dict(held[0].devices)[int(arguments[1])]
    return ", ".join(str(device) for device, bounds in sorted(held[0].devices) if bounds == mine)


def _replicas(_mesh: Mesh, held: Sequence[HeldArray], _arguments: list[str]) -> str:
    devices = held[0].devices
    return str(len(devices) // len({bounds for _, bounds in devices}))


def _bytes(_mesh: Mesh, held: Sequence[HeldArray], _arguments: list[str]) -> str:
    stops = ([stop for _, stop in bounds] for _, bounds in held[0].devices)
    whole = map(max, zip(*stops, strict=True))
    return f"{_octets(prod(whole) * held[0].bits)} B"


def _shard_bytes(_mesh: Mesh, held: Sequence[HeldArray], _arguments: list[str]) -> str:
    return f"{sum(_octets(prod(each.shard_shape) * each.bits) for each in held)} B"


def _loads(_mesh: Mesh, held: Sequence[HeldArray], arguments: list[str]) -> str:
    """The box around the parts of the devices of one process."""
    number, each = map(int, arguments[1:])
    sides = zip(*(bounds for device, bounds in held[0].devices if device // each == number), strict=True)
    return ", ".join(f"{min(start for start, _ in side)}:{max(stop for _, stop in side)}" for side in sides)


def _crossing(mesh: Mesh, held: Sequence[HeldArray], arguments: list[str]) -> str:
    axis, each = arguments
    hosts: dict[tuple[int, ...], set[int]] = {}
    for position, (device, _) in enumerate(held[0].devices):
        elsewhere = zip(mesh.axis_names, mesh.coords(position), strict=True)
        group = tuple(place for name, place in elsewhere if name != axis)
        hosts.setdefault(group, set()).add(device // int(each))
    return str(sum(len(those) > 1 for those in hosts.values()))


def _octets(bits: int) -> int:
    return -(-bits // 8)


_ANSWERS: dict[str, Callable[[Mesh, Sequence[HeldArray], list[str]], str]] = {
    "devices": _devices,
    "device": _device,
    "coordinates": _coordinates,
    "shard_shape": _shard_shape,
    "slices": _slices,
    "holders": _holders,
    "replicas": _replicas,
    "bytes": _bytes,
    "shard_bytes": _shard_bytes,
    "loads": _loads,
    "crossing": _crossing,
}
_OPS = {
    "all_gather": "all-gather",
    "psum": "all-reduce",
    "psum_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "ppermute": "collective-permute",
}
"""Operations of plans as programs call them."""
OF_ONE_ARRAY = ("shard_shape", "slices", "holders", "replicas", "bytes", "shard_bytes", "loads")
"""Those whose first argument is an array's name; `shard_bytes` without one is of all operands."""
MEASURES = frozenset(_ANSWERS)
"""The measures that JAX's layouts answer."""
