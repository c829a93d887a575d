"""The cost of a program in short, as it is kept in a file, and the changes from one program to another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shardviz.documents.fields import (
    COUNT,
    Document,
    DocumentKind,
    JsonField,
    array_of,
    by_name,
    closed,
    count,
    flag,
    nullable,
    number,
    one_of,
    optional,
    text,
    texts,
)
from shardviz.documents.plans import PHASES

if TYPE_CHECKING:
    from shardviz.reports.changes import ReportChanges
    from shardviz.reports.limits import BrokenLimit

CHANGE_KINDS = (
    "added",
    "removed",
    "grown",
    "shrunk",
    "into a loop",
    "out of a loop",
    "more runs",
    "fewer runs",
    "other runs",
    "less overlapped",
    "more overlapped",
)
_LINE = {
    "op": text("HLO's name of the operation, such as all-gather."),
    "axes": texts('Mesh axes of its groups, a sub-axis as "Y:(2)2"; empty where the groups follow none.'),
    "phase": nullable(one_of("The part of a train step; null: not certain.", *PHASES)),
    "place": text(
        "The path of the argument that it moves or whose gradient it sums, else the user's names around it; "
        "* is any number."
    ),
    "shape": text("A device's operand, and after an arrow its result where that has another shape."),
    "runs": nullable(count("Runs of all of them; null: in a loop of unknown length.")),
    "bytes": count("Bytes of the larger of a device's operand and result, in one run of one."),
    "wire_bytes": count("Bytes that one device must send at least, in one run of one."),
    "overlapped": count("Runs during which something else runs; a loop of unknown length counts as one."),
    "in_loop": flag("One of them is in a loop."),
}
LINE_KEYS = tuple(_LINE)
"""The keys of a collective in a summary."""
_SUMMARY = {
    "mesh": by_name(COUNT, "The size of each mesh axis, by name; empty: none is known."),
    "machine": text("The machine of the seconds; empty: none."),
    "seconds": nullable(number("Seconds of a run, three digits; null: no machine is named.")),
    "memory_bytes": nullable(count("Bytes of a device at the peak; null: not known.")).of("memory"),
    "wire_bytes": count("Bytes that one device must send at least, in all runs of known number."),
    "collectives": array_of(
        closed("Collectives of one kind at one place.", **_LINE), "In an order that depends on them alone."
    ).of("lines"),
}
SUMMARY = DocumentKind(
    "summary", "program --save", "What a program costs, the same on every run and every machine.", **_SUMMARY
)

_OF_PROGRAM = closed(
    "A collective in one of the two programs.",
    **_LINE,
    source=optional(text("The line of the user's program; a file of a summary does not have it.")).of(
        lambda line: line.source or None
    ),
)
DIFF = DocumentKind(
    "diff",
    "diff",
    "The changes from one program to another.",
    before=closed("The old program.", **_SUMMARY),
    after=closed("The new program.", **_SUMMARY),
    changes=array_of(
        closed(
            "A change.",
            kind=one_of("The kind of change.", *CHANGE_KINDS),
            more_wire_bytes=JsonField(
                {
                    "description": "Bytes that one device sends more than before, in all runs.",
                    "type": "integer",
                }
            ).of("wire_bytes"),
            before=nullable(_OF_PROGRAM),
            after=nullable(_OF_PROGRAM),
        ),
        "The changes, the most bytes first.",
    ),
    broken_limits=array_of(
        closed(
            "A limit that the new program does not keep.",
            limit=text("The limit as it was typed.").of("limit.text"),
            message=text("The figures, in a sentence."),
        ),
        "The limits that are broken.",
    ),
)


def diff_document(found: ReportChanges, broken: Sequence[BrokenLimit]) -> Document:
    """Both programs, the changes, and the limits of ``--fail-on`` that are broken."""
    return DIFF.document(found, broken_limits=broken)
