"""Changes that avoid the collectives that cost most: each is tried on Shardy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from shardviz.compiler.messages import ShardingChange
from shardviz.compiler.target_program import TargetProgram
from shardviz.reports.entries import entries_of
from shardviz.reports.suggestions import Outcome, ShardingCandidate, Suggestion, best, candidates, suggestion
from shardviz.reports.why import Reason

MOST_REASONS = 3
"""Meetings for which changes are tried: each try takes as long as Shardy does."""


def suggestions(
    ask: Callable[[Sequence[ShardingChange]], TargetProgram], reasons: Sequence[Reason]
) -> dict[Reason, Suggestion]:
    """The best change for each of the first reasons that have one; `ask` has Shardy try changes.

    `reasons` come the most expensive first. A change that Shardy refuses is passed over.
    """
    if not reasons:
        return {}
    plain = ask(())
    if plain.module is None or plain.mesh is None:
        return {}
    before, arguments = _outcome(plain), plain.explicit_reshards.arguments
    found: dict[Reason, Suggestion] = {}
    tried: dict[ShardingCandidate, Outcome | None] = {}
    looked_at = ((each, candidates(each, arguments, plain.mesh)) for each in dict.fromkeys(reasons))
    for reason, changes in islice(((each, those) for each, those in looked_at if those), MOST_REASONS):
        assert reason.meeting is not None
        kept: list[Suggestion] = []
        for change in changes:
            if change not in tried:
                answer = ask((_message(change),))
                tried[change] = None if answer.module is None else _outcome(answer)
            after = tried[change]
            one = None if after is None else suggestion(change, reason.meeting, before, after)
            if one is not None:
                kept.append(one)
        if kept:
            found[reason] = best(kept)
    return found


def dearest_reasons(program: TargetProgram) -> tuple[Reason, ...]:
    """The reasons of a program's collectives, those first whose collectives send most; contractions are last,
    since sums of them are seldom avoided without more work on each device."""
    if program.module is None or not program.reshards:
        return ()
    entries = entries_of(program.module)
    told = zip(entries, program.reasons(entries), strict=True)
    by_cost = sorted(
        told,
        key=lambda pair: (
            pair[1].kind == "contraction",
            -(pair[0].all_wire_bytes or pair[0].collective.wire_bytes),
        ),
    )
    return tuple(dict.fromkeys(reason for _, reason in by_cost))


def _outcome(program: TargetProgram) -> Outcome:
    assert program.module is not None
    sent = sum((each.count or 1) * each.wire_bytes for each in program.module.collectives)
    found = program.explicit_reshards
    return Outcome(sent, found.meetings, found.products)


def _message(change: ShardingCandidate) -> ShardingChange:
    number = None if change.argument is None else change.argument.number
    return ShardingChange(change.spec.dims, number, change.made_by, change.opcode, change.shape)
