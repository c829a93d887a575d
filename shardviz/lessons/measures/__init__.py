"""The measures that a prediction can ask for, one family a file.

answers     computed answers and their kinds: numbers, bytes, shapes, …
subject     the arrays, devices and collectives that measures are about
layout, plan, collective, model, program  the measures
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

from shardviz.forms.form import ProblemForm
from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.lessons.lesson import Prediction
from shardviz.lessons.measures import collective, layout, model, plan, program
from shardviz.lessons.measures.answers import ComputedAnswer, check, numeral, percent, whole_number
from shardviz.lessons.measures.subject import position_of, resolve_once

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem


MEASURES: dict[str, tuple[Callable[..., ComputedAnswer], str]] = {
    "devices": (layout.devices, ""),
    "device": (layout.device, "X=1,Y=2"),
    "coordinates": (layout.coordinates_of, "6"),
    "shard_shape": (layout.shard_shape, "A"),
    "slices": (layout.slices, "A 5"),
    "holders": (layout.holders, "A 5"),
    "replicas": (layout.replicas, "A"),
    "bytes": (layout.whole_bytes, "A"),
    "shard_bytes": (layout.shard_bytes, "A"),
    "spelled": (layout.spelled, "A book"),
    "result_spec": (layout.result_spec, ""),
    "collectives": (plan.collectives, ""),
    "count": (plan.count, "all_gather"),
    "case": (plan.case, ""),
    "line": (plan.line, "all_gather"),
    "sent": (plan.sent, ""),
    "longer": (plan.longer, "197e12 45e9"),
    "seconds": (plan.seconds, "all_gather"),
    "flops": (plan.flops, "forward"),
    "overlapped": (plan.overlapped, ""),
    "step": (plan.step, ""),
    "exposed": (plan.exposed, ""),
    "bound": (plan.bound, ""),
    "threshold": (plan.threshold, "b"),
    "fastest": (plan.fastest, "X=4,Y=2 X=2,Y=4"),
    "compiled": (program.compiled, "four-layers exposed"),
    "peak": (plan.peak, ""),
    "memory": (plan.memory, "optimizer"),
    "size": (layout.size, "c"),
    "dropped": (layout.dropped, "c 9,3,2,2"),
    "ticks": (layout.ticks, "stage m"),
    "bubble": (layout.bubble, "stage m"),
    "kept": (layout.kept, "stage m 0"),
    "links": (layout.links, "X"),
    "crossing": (layout.crossing, "X 4"),
    "loads": (layout.loads, "A 1 4"),
    "model": (model.model, "llama-3-8b token batch=32"),
    "carried": (program.carried, "mlp all-reduce"),
    "along": (program.along, "[2,4]<=[8]"),
    "ran": (program.ran, "step longest all-reduce.4"),
    "rounds": (collective.rounds, ""),
    "hops": (collective.hops, ""),
    "held": (collective.held, "2 1"),
    "result": (collective.result, "2"),
}
"""Each measure with an example of its arguments, which are separated by spaces. Parameters that are called
array, device, round and op say where the answer is to be seen."""


@lru_cache(maxsize=64)  # the predictions of a lesson or two
def compute(ask: str, draft: ProblemForm) -> ComputedAnswer:
    """The answer to a measure with its arguments: ``"shard_shape A"``. Raises `QuestionError` for a measure
    that there is not, for arguments that it does not take, and where it does not apply to the draft;
    `ShardvizError` for the draft's first fault."""
    return measured(ask, resolve_once(draft))


def measured(ask: str, resolved: ResolvedProblem) -> ComputedAnswer:
    """`compute`, of a problem that was resolved already."""
    measure, given = _bound(ask, resolved)
    return measure(*given.args)


def _bound(
    ask: str, resolved: ResolvedProblem
) -> tuple[Callable[..., ComputedAnswer], inspect.BoundArguments]:
    name, *arguments = ask.split() or [""]
    check(name, MEASURES, "there is no measure {}")
    measure, example = MEASURES[name]
    try:
        return measure, inspect.signature(measure).bind(resolved, *arguments)
    except TypeError:
        said = " ".join(arguments) or "nothing"
        problem = f"{name} does not take {quote(said, 40)}"
        raise QuestionError(problem, f"write for example {f'{name} {example}'.strip()}") from None


def answer_of(prediction: Prediction) -> ComputedAnswer:
    """The answer to a prediction. Raises as `compute` does."""
    return compute(prediction.ask, prediction.draft)


def is_right(prediction: Prediction, said: str) -> bool:
    """Return whether an answer says the same as the right one, of a typed number within its tolerance. Raises
    as `answer_of` does."""
    answer = answer_of(prediction)
    with suppress(QuestionError, ValueError):
        if prediction.tolerance is None:
            return said == answer.text or answer.is_same(said)
        value, right = (Fraction(str(answer.read(text))) for text in (said, answer.text))
        return abs(value - right) <= prediction.tolerance * right
    return False


def typed_answer(prediction: Prediction, text: str) -> str:
    """A typed answer in the form of the right one: of ``2^10 B``, ``1 KiB``. Raises `QuestionError` for text
    that is not an answer of its kind."""
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
    device = answer_of(prediction).text if measure is layout.device else of.get("device", "")
    position = position_of(resolved.problem.mesh, device) if device else 0
    hardware = (target.name for target in resolved.targets if target.machine is not None)
    target = next(hardware, "") if measure is program.compiled else ""
    round_ = whole_number(of.get("round", "0"))
    return AnswerLocation(of.get("array", ""), position, of.get("op", ""), round_, target)


def choices(prediction: Prediction, seed: str = "") -> tuple[str, ...]:
    """The right answer and the wrong ones, in an order that does not depend on which is right: shuffled by
    the learner's `seed`, else by value; none where only the right one is known. Wrong ones are as in the
    lesson's file: `ComputedAnswer.shown` gives each in the same form. Raises as `compute` does."""
    if not prediction.wrong:
        return ()
    answer = answer_of(prediction)
    found = sorted((answer.text, *prediction.wrong), key=lambda text: _rank(answer, text))
    if seed:
        Random(f"{seed} {prediction.question}").shuffle(found)
    return tuple(found)


def _rank(answer: ComputedAnswer, text: str) -> tuple[bool, tuple[object, ...] | str]:
    try:
        value = answer.read(text)
        shown = answer.write(value)
    except ShardvizError:
        return True, text
    values = value if isinstance(value, tuple) else (value,)
    are_numbers = all(isinstance(value, (int, float, Fraction)) for value in values)
    return (False, values) if are_numbers else (True, shown)
