"""A smaller array in place of one that is too large to follow its numbers: same mesh, spec and rounds."""

from __future__ import annotations

import math
from dataclasses import replace

from shardviz.errors import QuestionError
from shardviz.sharding import Layout
from shardviz.stepping.device_numbers import counted_shards
from shardviz.stepping.question import CollectiveQuestion

MAX_DEVICES = 512
"""On more devices numbers are not looked at one by one."""


def stand_in(question: CollectiveQuestion) -> CollectiveQuestion | None:
    """The same collective by the same schedule, on the smallest array of which no chunk is empty.

    It has numbers. None where the question has numbers of its own, or a smaller array would have none either.
    """
    layout, schedule = question.layout, question.schedule
    if question.shards is not None or layout.mesh.size > MAX_DEVICES:
        return None
    pieces = schedule.pattern.pieces(schedule.chunks)
    smallest = question.operation.smallest_shard(schedule.pattern.group_size, pieces)
    rank = len(layout.shard_shape)
    if len(smallest) > rank:
        return None
    shard = [*smallest, *(1,) * (rank - len(smallest))]
    shape = tuple(size * parts for size, parts in zip(shard, layout.parts, strict=True))
    small = Layout(replace(layout.array, shape=shape), layout.mesh)
    if math.prod(shape) > layout.array.elements:
        return None
    try:
        question.operation.check(small.shard_shape, layout.array.dtype, schedule.pattern.group_size)
    except QuestionError:
        return None
    shards = counted_shards(small, question.operation)
    if shards is None:
        return None
    return replace(question, layout=small, shards=shards, counted=True)
