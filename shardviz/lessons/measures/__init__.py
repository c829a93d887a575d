"""What a prediction can ask for, one family of measures a file.

answer      a computed answer, and what makes a text the same answer
kinds       numbers, bytes, shapes, …: what a text of each means, and how it is written
subject     the arrays, devices and collectives that measures look at
holding     which part of an array every device holds
layout, notation, plan, collective, cost  the measures
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from shardviz.drafts.form import ProblemForm
from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.lessons.lesson import Prediction
from shardviz.lessons.measures import collective, cost, layout, notation, plan
from shardviz.lessons.measures.answer import Answer
from shardviz.lessons.measures.subject import scene_of
from shardviz.lessons.table import closest

if TYPE_CHECKING:
    from shardviz.drafts.resolve import ResolvedProblem

__all__ = ["MEASURES", "Answer", "answer_of", "choices", "compute", "measured"]

MEASURES: dict[str, tuple[Callable[..., Answer], str]] = {
    "devices": (layout.devices, ""),
    "axis_size": (layout.axis_size, "X"),
    "device": (layout.device, "X=1,Y=2"),
    "coordinates": (layout.coordinates_of, "6"),
    "shard_shape": (layout.shard_shape, "A"),
    "slices": (layout.slices, "A 5"),
    "holders": (layout.holders, "A 5"),
    "replicas": (layout.replicas, "A"),
    "bytes": (layout.whole_bytes, "A"),
    "shard_bytes": (layout.shard_bytes, "A"),
    "spelled": (notation.spelled, "A book"),
    "result_spec": (notation.result_spec, ""),
    "collectives": (plan.collectives, ""),
    "count": (plan.count, "all_gather"),
    "case": (plan.case, ""),
    "line": (plan.line, "all_gather"),
    "sent": (plan.sent, ""),
    "longer": (cost.longer, "197e12 45e9"),
    "rounds": (collective.rounds, ""),
    "hops": (cost.hops, ""),
    "sends_to": (collective.sends_to, "2 1"),
    "held": (collective.held, "2 1"),
    "result": (collective.result, "2"),
    "least_sent": (collective.least_sent, ""),
    "least_rounds": (collective.least_rounds, ""),
}
"""Each measure with an example of its arguments. A function takes the scene and them, apart by blanks."""


@lru_cache(maxsize=64)  # the predictions of a lesson or two
def compute(ask: str, draft: ProblemForm) -> Answer:
    """The answer to a measure with its arguments: ``"shard_shape A"``.

    Raises `QuestionError` for a measure that there is not, for arguments that it does not take, and where it
    does not apply to the draft; `ShardvizError` for the draft's first fault.
    """
    return measured(ask, scene_of(draft))


def measured(ask: str, scene: ResolvedProblem) -> Answer:
    """`compute`, of a scene that was read already."""
    name, *arguments = ask.split() or [""]
    if name not in MEASURES:
        raise QuestionError(f"there is no measure {quote(name, 30)}", closest(name, tuple(MEASURES)))
    measure, example = MEASURES[name]
    try:
        inspect.signature(measure).bind(scene, *arguments)
    except TypeError:
        said = " ".join(arguments) or "nothing"
        raise QuestionError(
            f"{name} does not take {quote(said, 40)}", f"write for example {f'{name} {example}'.strip()}"
        ) from None
    return measure(scene, *arguments)


def answer_of(prediction: Prediction) -> Answer:
    """The answer to a prediction. Raises as `compute` does."""
    return compute(prediction.ask, prediction.draft)


def choices(prediction: Prediction) -> tuple[str, ...]:
    """The right answer and the wrong ones, in the order of what they mean, whichever is right.

    Wrong ones stand as in the lesson's file: `Answer.shown` gives each in the same form. Raises as `compute`
    does.
    """
    answer = answer_of(prediction)
    return tuple(sorted((answer.text, *prediction.wrong), key=lambda text: _rank(answer, text)))


def _rank(answer: Answer, text: str) -> tuple[bool, tuple[object, ...] | str]:
    """Numbers by their size, anything else by its text."""
    try:
        value = answer.read(text)
        shown = answer.write(value)
    except ShardvizError:
        return True, text
    values = value if isinstance(value, tuple) else (value,)
    are_numbers = all(isinstance(each, (int, float, Fraction)) for each in values)
    return (False, values) if are_numbers else (True, shown)
