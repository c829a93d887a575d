"""A matmul block by block beside a collective."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    COUNT,
    Beside,
    Document,
    DocumentKind,
    JsonField,
    array_of,
    closed,
    count,
    flag,
    null_if_empty,
    nullable,
    number,
    text,
    texts,
)
from shardviz.documents.rounds import QUESTION, SCHEDULE

if TYPE_CHECKING:
    from shardviz.stepping.collective_matmul import BlockwiseMatmul

_SLOT = closed(
    "A stretch of time between two rounds.",
    slot=count("Its number, from 0: after the round of that number of a gather, before the next of a sum."),
    blocks=array_of(
        JsonField({"type": "array", "items": COUNT.schema}),
        "For each device of a group, in the group's order, the chunks whose blocks it multiplies.",
    ),
    start_seconds=number("Seconds from the beginning at which the work on its blocks begins."),
    end_seconds=number("Seconds from the beginning at which the work on its blocks ends."),
    round=null_if_empty(count("The round before it; null: it is the first.")).of("slot"),
    round_start_seconds=nullable(
        number("Seconds from the beginning at which that round begins; null: there is none.")
    ),
    round_end_seconds=nullable(
        number("Seconds from the beginning at which that round ends; null: there is none.")
    ),
)
MATMUL = DocumentKind(
    "matmul",
    "explain --step --matmul",
    "A matmul block by block beside a collective.",
    **QUESTION,
    **SCHEDULE,
    step=count("The number of the collective's step in the plan, from 1."),
    einsum=text("The einsum of one device."),
    operands=texts("The arrays that it takes."),
    result=text("The array that it makes."),
    is_gather=flag("The collective brings blocks of an operand; else it sums blocks of the result."),
    dim_name=null_if_empty(
        text("The dimension that is cut into blocks; null: they are parts of a whole array.")
    ).of("letter"),
    matmul_seconds=number("Seconds of the whole matmul."),
    slots=array_of(_SLOT, "The slots, in order; all groups do the same."),
    rest_seconds=number("Seconds of the rounds after the last slot, which have no work beside them."),
    seconds=number("Seconds of the matmul and the collective together."),
    apart_seconds=number("Seconds of one after the other."),
    prefetch=nullable(
        closed(
            "The collective run whole beside the matmul before it; null: there is none, or nothing to fetch.",
            step=count("The number of that matmul's step in the plan, from 1."),
            matmul_seconds=number("Seconds of that matmul."),
            exposed_seconds=number("Seconds of the collective that are left when it has ended."),
            seconds=number("Seconds of both matmuls, with the collective beside the first."),
        )
    ),
)


def matmul_document(matmul: BlockwiseMatmul, step: int) -> Document:
    """The document of `shardviz explain --step N --matmul --json`; `step` is N."""
    prefetch = None
    if matmul.before is not None:
        place, took = matmul.before
        prefetch = Beside(
            step=place,
            matmul_seconds=took,
            exposed_seconds=matmul.exposed_seconds,
            seconds=matmul.prefetched_seconds,
        )
    return MATMUL.document(
        matmul.run,
        step=step,
        einsum=str(matmul.einsum.einsum),
        operands=matmul.einsum.operands,
        result=matmul.einsum.array,
        is_gather=matmul.is_gather,
        letter=matmul.letter,
        matmul_seconds=matmul.matmul_seconds,
        slots=_slots(matmul),
        rest_seconds=matmul.rest_seconds,
        seconds=matmul.seconds,
        apart_seconds=matmul.apart_seconds,
        prefetch=prefetch,
    )


def _slots(matmul: BlockwiseMatmul) -> Iterator[Beside]:
    members = range(matmul.run.schedule.pattern.group_size)
    for place, slot in enumerate(matmul.slots):
        start, end = slot.sends if place else (None, None)
        yield Beside(
            slot=place,
            blocks=[list(matmul.blocks(place, member)) for member in members],
            start_seconds=slot.work[0],
            end_seconds=slot.work[1],
            round_start_seconds=start,
            round_end_seconds=end,
        )
