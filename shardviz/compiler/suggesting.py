"""Changes that avoid the collectives that cost most: each is tried on Shardy, the best on the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shardviz.compiler.messages import ShardingChange
from shardviz.compiler.target_program import TargetProgram
from shardviz.reports.entries import entries_of
from shardviz.reports.suggestions import Outcome, ShardingCandidate, Suggestion, best, candidates, suggestion
from shardviz.reports.train_step import TrainStep
from shardviz.reports.why import Reason

MOST_REASONS = 3
"""Meetings for which changes are tried: each try takes as long as Shardy does."""
MOST_COMPILED = 2
"""Changes for one meeting that the target compiles, those first that save most on Shardy."""

AskChanged = Callable[[str, Sequence[ShardingChange]], TargetProgram]
"""Has a target, by its name, compile a program with changes."""


def suggestions(ask: AskChanged, compiled: TargetProgram) -> dict[Reason, Suggestion]:
    """The best change for each of the first reasons of a program that have one.

    A change that Shardy or the target refuses is passed over.
    """
    reasons = dearest_reasons(compiled)
    if not reasons:
        return {}
    plain = ask("shardy", ())
    if plain.module is None or plain.mesh is None:
        return {}
    mesh, before, step = plain.mesh, _outcome(plain), TrainStep(plain.explicit_reshards)
    sent = compiled.bytes_sent or 0
    partitioned: dict[ShardingCandidate, Outcome | None] = {}
    answered: dict[ShardingCandidate, Suggestion | None] = {}

    def on_shardy(change: ShardingCandidate, reason: Reason) -> Suggestion | None:
        if change not in partitioned:
            answer = ask("shardy", (_message(change),))
            partitioned[change] = None if answer.module is None else _outcome(answer)
        after = partitioned[change]
        assert reason.meeting is not None
        return None if after is None else suggestion(change, reason.meeting, before, after)

    def on_target(one: Suggestion) -> Suggestion | None:
        if compiled.target == "shardy":
            return one
        if one.candidate not in answered:
            answer = ask(compiled.target, (_message(one.candidate),))
            answered[one.candidate] = _compared(one.candidate, compiled, answer)
        return answered[one.candidate]

    found: dict[Reason, Suggestion] = {}
    looked_at = 0
    for reason in reasons:
        changes = candidates(reason, step, mesh)
        known = (each for each in dict.fromkeys(found.values()) if each.candidate in changes)
        if helps := next((each for each in known if on_shardy(each.candidate, reason)), None):
            found[reason] = helps
        elif changes and looked_at < MOST_REASONS:
            looked_at += 1
            likely = filter(None, (on_shardy(each, reason) for each in changes))
            by_saving = sorted(likely, key=lambda each: -each.saved_bytes)[:MOST_COMPILED]
            told = filter(None, map(on_target, by_saving))
            if kept := [each for each in told if each.is_worth(sent)]:
                found[reason] = best(kept)
    return found


def dearest_reasons(program: TargetProgram) -> tuple[Reason, ...]:
    """The reasons of a program's collectives, those first whose collectives send most; contractions over
    other axes than the batch's are last, since sums of them are seldom avoided without more work on each
    device."""
    if program.module is None or not program.reshards:
        return ()
    entries = entries_of(program.module)
    batch = TrainStep(program.explicit_reshards).batch_axes
    told = zip(entries, program.reasons, strict=True)
    by_cost = sorted(
        told,
        key=lambda pair: (
            pair[1].kind == "contraction" and not batch & {*pair[0].collective.axes},
            -(pair[0].all_wire_bytes or pair[0].collective.wire_bytes),
        ),
    )
    return tuple(dict.fromkeys(reason for _, reason in by_cost))


def _compared(candidate: ShardingCandidate, before: TargetProgram, after: TargetProgram) -> Suggestion | None:
    """The bytes that a change saves on a target, and the memory that it takes there."""
    if before.bytes_sent is None or after.bytes_sent is None:
        return None
    memory = candidate.memory_bytes
    if before.memory is not None and after.memory is not None:
        memory = after.memory.peak_bytes - before.memory.peak_bytes
    return Suggestion(candidate, before.bytes_sent - after.bytes_sent, memory, before.target)


def _outcome(program: TargetProgram) -> Outcome:
    assert program.module is not None
    sent = sum((each.count or 1) * each.wire_bytes for each in program.module.collectives)
    found = program.explicit_reshards
    return Outcome(sent, found.meetings, found.products)


def _message(change: ShardingCandidate) -> ShardingChange:
    number = None if change.argument is None else change.argument.number
    return ShardingChange(change.spec.dims, number, change.made_by, change.opcode, change.shape)
