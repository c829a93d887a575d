"""The measures that a prediction can ask for, one family a file.

answers     computed answers and their kinds: numbers, bytes, shapes, …
subject     the arrays, devices and collectives that measures are about
layout, plan, collective, shipped  the measures"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from shardviz.forms.form import ProblemForm
from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.lessons.lesson import Prediction
from shardviz.lessons.measures import collective, layout, plan, shipped
from shardviz.lessons.measures.answers import (
    BYTES,
    COLLECTIVES,
    COORDINATES,
    DEVICES,
    FLOPS,
    NAMES,
    NUMBER,
    NUMBERS,
    PERCENT,
    SECONDS,
    SHAPE,
    SLICES,
    AnswerKind,
    ComputedAnswer,
    check,
    numeral,
    one_of,
    percent,
    whole_number,
)
from shardviz.lessons.measures.subject import array_named, layout_named, position_of, resolve_once, walk_of

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem


class Measure(NamedTuple):
    """A measure: the `kind` of its answers, None where it makes its own; its value `of` a problem, from
    arguments that are separated by spaces; and an `example` of these. Parameters that are called array,
    device, round and op say where the answer is to be seen."""

    kind: AnswerKind | None
    of: Callable[..., Any]
    example: str = ""


MEASURES = {
    "devices": Measure(NUMBER, lambda resolved: resolved.problem.mesh.size),
    "device": Measure(NUMBER, layout.device, "X=1,Y=2"),
    "coordinates": Measure(COORDINATES, layout.coordinates_of, "6"),
    "shard_shape": Measure(SHAPE, lambda resolved, array: layout_named(resolved, array).shard_shape, "A"),
    "slices": Measure(SLICES, layout.slices, "A 5"),
    "holders": Measure(DEVICES, layout.holders, "A 5"),
    "replicas": Measure(NUMBER, lambda resolved, array: layout_named(resolved, array).replicas, "A"),
    "bytes": Measure(BYTES, lambda resolved, array: array_named(resolved, array).nbytes, "A"),
    "shard_bytes": Measure(BYTES, layout.shard_bytes, "A"),
    "spelled": Measure(None, layout.spelled, "A book"),
    "result_spec": Measure(None, layout.result_spec),
    "collectives": Measure(COLLECTIVES, lambda resolved: plan.sent_by(resolved.plan)),
    "count": Measure(NUMBER, plan.count, "all_gather"),
    "case": Measure(NUMBER, plan.case),
    "line": Measure(NUMBER, plan.line, "all_gather"),
    "sent": Measure(BYTES, plan.sent),
    "longer": Measure(one_of(plan.LONGER), plan.longer, "197e12 45e9"),
    "seconds": Measure(SECONDS, plan.seconds, "all_gather"),
    "flops": Measure(FLOPS, plan.flops, "forward"),
    "overlapped": Measure(SECONDS, plan.overlapped),
    "step": Measure(SECONDS, plan.step),
    "exposed": Measure(SECONDS, plan.exposed),
    "bound": Measure(one_of(plan.BOUNDS), plan.bound),
    "threshold": Measure(NUMBER, plan.threshold, "b"),
    "fastest": Measure(None, plan.fastest, "X=4,Y=2 X=2,Y=4"),
    "compiled": Measure(SECONDS, shipped.compiled, "four-layers exposed"),
    "peak": Measure(BYTES, lambda resolved: resolved.cost.layers_peak_bytes),
    "memory": Measure(BYTES, plan.memory, "optimizer"),
    "size": Measure(NUMBER, layout.size_of, "c"),
    "dropped": Measure(NUMBER, layout.dropped, "c 9,3,2,2"),
    "ticks": Measure(NUMBER, layout.ticks, "stage m"),
    "bubble": Measure(PERCENT, layout.bubble, "stage m"),
    "kept": Measure(NUMBER, layout.kept, "stage m 0"),
    "links": Measure(NAMES, layout.links, "X"),
    "crossing": Measure(NUMBER, layout.crossing, "X 4"),
    "loads": Measure(SLICES, layout.loads, "A 1 4"),
    "model": Measure(None, shipped.model, "llama-3-8b token batch=32"),
    "carried": Measure(BYTES, shipped.carried, "mlp all-reduce"),
    "along": Measure(NAMES, shipped.along, "[2,4]<=[8]"),
    "ran": Measure(None, shipped.ran, "step longest all-reduce.4"),
    "rounds": Measure(NUMBER, lambda resolved: walk_of(resolved).schedule.rounds),
    "hops": Measure(NUMBER, collective.hops),
    "held": Measure(NUMBERS, collective.held, "2 1"),
    "result": Measure(NUMBERS, collective.result, "2"),
}
"""Each measure by its name."""


@lru_cache(maxsize=64)  # the predictions of a lesson or two
def compute(ask: str, draft: ProblemForm) -> ComputedAnswer:
    """The answer to a measure with its arguments: ``"shard_shape A"``. Raises `QuestionError` for one that
    does not exist or does not apply, and `ShardvizError` for the draft's first fault."""
    return measured(ask, resolve_once(draft))


def measured(ask: str, resolved: ResolvedProblem) -> ComputedAnswer:
    """`compute`, of a problem that was resolved already."""
    measure, given = _bound(ask, resolved)
    value = measure.of(*given.args)
    return value if measure.kind is None else measure.kind.answer(value)


def _bound(ask: str, resolved: ResolvedProblem) -> tuple[Measure, inspect.BoundArguments]:
    name, *arguments = ask.split() or [""]
    check(name, MEASURES, "there is no measure {}")
    measure = MEASURES[name]
    try:
        return measure, inspect.signature(measure.of).bind(resolved, *arguments)
    except TypeError:
        said = " ".join(arguments) or "nothing"
        problem = f"{name} does not take {quote(said, 40)}"
        raise QuestionError(problem, f"write for example {f'{name} {measure.example}'.strip()}") from None


def answer_of(prediction: Prediction) -> ComputedAnswer:
    """The answer to a prediction. Raises as `compute` does."""
    return compute(prediction.ask, prediction.draft)


def is_right(prediction: Prediction, said: str) -> bool:
    """Return whether an answer says the same as the right one, a typed number within its tolerance."""
    answer = answer_of(prediction)
    with suppress(QuestionError, ValueError):
        if prediction.tolerance is None:
            return said == answer.text or answer.is_same(said)
        value, right = (Fraction(str(answer.read(text))) for text in (said, answer.text))
        return abs(value - right) <= prediction.tolerance * right
    return False


def typed_answer(prediction: Prediction, text: str) -> str:
    """A typed answer in the form of the right one: of ``2^10 B``, ``1 KiB``. Raises `QuestionError`."""
    return answer_of(prediction).shown(numeral(text))


def typed_form(prediction: Prediction) -> str:
    """The form of a typed answer, in words that do not give it away. Raises as `answer_of` does."""
    forms: dict[object, str] = {whole_number: "a whole number", percent: "a percentage, such as 40 %"}
    return forms.get(answer_of(prediction).read, "a number with its unit, such as 2 KiB or 1.5 ms")


@dataclass(frozen=True)
class AnswerLocation:
    """The array, device, operation, round and target that a screen begins with. `position` is a device's
    place in the mesh, row by row; an empty `array`, `operation` or `target` leaves that to the screen."""

    array: str = ""
    position: int = 0
    operation: str = ""
    round: int = 0
    target: str = ""


def answer_location(prediction: Prediction) -> AnswerLocation:
    """Where the answer to a prediction is to be seen. Raises as `answer_of` does."""
    resolved = resolve_once(prediction.draft)
    measure, given = _bound(prediction.ask, resolved)
    of = given.arguments
    device = answer_of(prediction).text if measure.of is layout.device else of.get("device", "")
    position = position_of(resolved.problem.mesh, device) if device else 0
    hardware = (target.name for target in resolved.targets if target.machine is not None)
    target = next(hardware, "") if measure.of is shipped.compiled else ""
    round_ = whole_number(of.get("round", "0"))
    return AnswerLocation(of.get("array", ""), position, of.get("op", ""), round_, target)


def choices(prediction: Prediction, seed: str = "") -> tuple[str, ...]:
    """The right answer and the wrong ones, in an order that does not depend on which is right: shuffled by
    the learner's `seed`, else by value; none where only the right one is known. Wrong ones are as in the
    lesson's file: `ComputedAnswer.shown` gives each in the same form. Raises as `compute` does."""
    if not prediction.wrong:
        return ()
    answer = answer_of(prediction)
    ordered = sorted((answer.text, *prediction.wrong), key=lambda text: _rank(answer, text))
    if seed:
        Random(f"{seed} {prediction.question}").shuffle(ordered)
    return tuple(ordered)


def _rank(answer: ComputedAnswer, text: str) -> tuple[bool, tuple[object, ...] | str]:
    try:
        value = answer.read(text)
        shown = answer.write(value)
    except ShardvizError:
        return True, text
    values = value if isinstance(value, tuple) else (value,)
    are_numbers = all(isinstance(value, (int, float, Fraction)) for value in values)
    return (False, values) if are_numbers else (True, shown)
