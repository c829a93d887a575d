"""A collective ready to be played: its rounds, its numbers, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError
from shardviz.hardware.timelines import CumulativeCost
from shardviz.stepping.stand_in import stand_in
from shardviz.stepping.walk import Walk

if TYPE_CHECKING:
    from shardviz.hardware.links import Links
    from shardviz.stepping.question import CollectiveQuestion


@dataclass(frozen=True)
class Stepped:
    """`walk` is the collective as it is asked for; `drawn` the one whose numbers are shown: the same, or that
    of a smaller array. Without a `course`, the rounds are too many to add up."""

    walk: Walk
    drawn: Walk
    course: CumulativeCost | None


def stepped(question: CollectiveQuestion, links: Links) -> Stepped:
    """Work out all that every frame needs. Raises `ShardvizError`."""
    walk = Walk(question, links)
    small = stand_in(question)
    drawn = walk if small is None else Walk(small, walk.links)
    try:
        _prepare(drawn)
    except QuestionError:
        # More numbers than fit: who holds which chunk, or who sends to whom, can still be told.
        drawn = Walk(replace(question, shards=None), walk.links)
        if drawn.followed:
            _prepare(drawn)
    course = None
    if not walk.timeline.too_long:
        try:
            course = CumulativeCost(walk.timeline)
        except QuestionError:
            course = None
    if course is not None:
        _ = walk.timeline.seconds
    return Stepped(walk, drawn, course)


def _prepare(walk: Walk) -> None:
    """What the first frame would wait for."""
    for number in (0, walk.schedule.rounds):
        for piece in walk.frames[number].pieces(0)[:1]:
            _ = (piece.count, piece.values)
    _ = walk.final
