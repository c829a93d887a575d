"""The messages of a collective's rounds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardviz.collectives.values import plain_values
from shardviz.documents.fields import (
    Beside,
    Document,
    DocumentKind,
    anything,
    array_of,
    closed,
    count,
    counts,
    flag,
    nullable,
    number,
    plain,
    text,
)
from shardviz.documents.rounds import QUESTION, SCHEDULE, VERDICT, WAITING, verdict_beside

if TYPE_CHECKING:
    from shardviz.devices.job import Job
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.stepping.transfers import TransferLog
    from shardviz.stepping.verdict import Verdict

_TRANSFER = closed(
    "A message from one device to another.",
    src=count("The sender's id."),
    dst=count("The receiver's id."),
    chunks=counts("The numbers of its chunks, from 0."),
    values=nullable(
        array_of(
            anything("A number; NaN and infinities as text, a complex one as [real, imaginary].").by(plain),
            "The numbers of its chunks before the round, in their order; null: they are not followed.",
        )
    ),
    bytes=count("Bytes of all its chunks."),
    reduce=flag("The receiver adds them to its own; else they take their place.").of("adds"),
    level=count("The level of its links, from the outermost; 0 where there is one."),
    hops=count("Links of that level that it crosses, a switch being one."),
    seconds=number("Seconds that it takes alone, where it waits for no other."),
)

TRANSFERS = DocumentKind(
    "transfers",
    "step --transfers",
    "The messages of a collective's rounds.",
    **QUESTION,
    **SCHEDULE,
    rounds=array_of(
        closed(
            "A round.",
            round=count("Its number, from 1."),
            phase=text("The work that the rounds of its part of the algorithm do together."),
            start_seconds=nullable(
                number("Seconds at which it begins; null: the rounds are too many to add up.")
            ),
            end_seconds=nullable(number("Seconds at which it ends; null: as for its start.")),
            waiting_messages=WAITING,
            transfers=array_of(_TRANSFER, "Its messages, in all groups."),
        ),
        "The rounds that were asked for, in order.",
    ),
    **VERDICT,
)


def transfers_document(
    run: CollectiveRun, number: int | None = None, verdict: Verdict | None = None, job: Job | None = None
) -> Document:
    """The document of `shardviz step --transfers --json`, of all rounds or of one; 0 has no messages.

    Lists one entry a message: ask for it only where that many fit.
    """
    numbers = range(1, run.schedule.rounds + 1) if number is None else [number] if number else []
    return TRANSFERS.document(run, rounds=_rounds(run, numbers), **verdict_beside(run, verdict, job))


def _rounds(run: CollectiveRun, numbers: Sequence[int]) -> Iterator[Beside]:
    from shardviz.stepping.transfers import TransferLog

    log = TransferLog(run)
    for each in numbers:
        yield Beside(
            run.timeline[each - 1],
            round=each,
            phase=run.phase_name(run.schedule.phase(each)[0]),
            start_seconds=None if run.cost is None else run.cost.after(each - 1).seconds,
            end_seconds=None if run.cost is None else run.cost.after(each).seconds,
            transfers=_transfers(log, each),
        )


def _transfers(log: TransferLog, number: int) -> Iterator[Beside]:
    """Every message of a round, by device ids, one group after the other."""
    from shardviz.stepping.transfers import carried_values

    run = log.run
    frame = run.frames[number - 1] if run.has_numbers else None
    found = [log.transfer(number, place) for place in range(log.count(number))]
    for place, group in enumerate(run.groups):
        for each in found:
            values = None
            if frame is not None:
                carried = carried_values(frame, each, place)
                values = [value for chunk in carried for value in plain_values(chunk)]
            src, dst = (run.mesh.device_id(group[member]) for member in (each.source, each.target))
            yield Beside(each, src=src, dst=dst, values=values)
