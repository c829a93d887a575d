"""Verdicts: what a compiled program wastes, each with the change that mends it and what that saves.

A change of a sharding is tried. It is kept where Shardy then needs less in all, has no such meeting any more,
and no device multiplies more than before: then every device would do the same work in place of the
collective. It is said where the target's program sends less, too, takes no longer, and saves more bytes than
it takes memory. Changes of the program itself, such as a sum that goes out of a loop, are not tried: what
they save is the price of what the program does today."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Literal

from shardviz.hardware.machine import Machine
from shardviz.hlo import HloModule
from shardviz.hlo.named_scopes import program_place
from shardviz.reports.arrays import alike_arrays
from shardviz.reports.candidates import (
    LOOKUPS,
    MOST,
    asynchronous,
    candidates,
    even_constraints,
    hideable,
    of_argument,
    splits,
)
from shardviz.reports.entries import CollectiveEntry, entries_of
from shardviz.reports.lowered_module import (
    ExplicitReshards,
    Meeting,
    ProgramChange,
    ScheduleCandidate,
    ShardingCandidate,
)
from shardviz.reports.program_report import TargetProgram
from shardviz.reports.why import Reason, TrainStep
from shardviz.sharding import canonical_dtype
from shardviz.targets import parse_targets
from shardviz.units import seconds as human_seconds

VerdictKind = Literal[
    "reduction in a loop",
    "gather then slice",
    "superfluous constraint",
    "lookup",
    "convolution",
    "reshaped batch",
    "small dimension",
    "rematerialization",
    "padding",
    "lost donation",
    "replicated argument",
    "no overlap",
    "reshard",
]
ENOUGH = 0.95
"""The part of the most that can be saved for which less memory is preferred."""
MARGIN = 1.001
"""How much more a device may multiply: some sizes are rounded up."""
LEAST_PART = 0.01
"""The part of all bytes that a change saves at least, or of the peak memory that it frees."""
MOST_REASONS = 3
"""Meetings for which changes are tried: each try takes as long as Shardy does."""
MOST_COMPILED = 2
"""Changes for one meeting, or of one kind, that the target compiles, those first that save most on Shardy."""
Outcome = tuple[int, ExplicitReshards]
"""A program as Shardy leaves it: bytes that a device sends in all, and what meets in it."""
AskChanged = Callable[[str, Sequence[ProgramChange]], TargetProgram]
"""Has a target, by its name, compile a program with changes."""


@dataclass(frozen=True)
class ChangeSaving:
    """The saving of a change: a device sends `sent_bytes` less in a run, and takes `memory_bytes` more of its
    memory. With hardware a run takes `seconds` less."""

    sent_bytes: int
    memory_bytes: int = 0
    seconds: float | None = None

    def is_worth(self, sent_bytes: int) -> bool:
        """Return whether it saves a part of the bytes that are sent, takes no longer, and less memory."""
        is_much = self.sent_bytes >= LEAST_PART * sent_bytes and self.sent_bytes > self.memory_bytes
        return is_much and (self.seconds is None or self.seconds > 0)


@dataclass(frozen=True)
class WasteVerdict:
    """A waste: `words` say what happens at the user's line `source`, ``file:line``, or with the argument at
    the path `array`, and `code` mends it. `target` has compiled the program with the change, the `candidate`;
    it is "" where the `saving` is the price of what the program does today. `collectives` are those that it
    mends, by their names in HLO."""

    kind: VerdictKind
    words: str
    code: str
    saving: ChangeSaving
    source: str = ""
    target: str = ""
    candidate: ShardingCandidate | None = None
    collectives: tuple[str, ...] = ()
    array: str = ""


def verdicts(
    ask: AskChanged, compiled: TargetProgram, machine: Machine | None = None
) -> tuple[WasteVerdict, ...]:
    """The wastes of a program, on the hardware of its target or on a machine: those of most seconds first,
    then those of most bytes. A change that Shardy or the target refuses is passed over. On Shardy alone they
    are those of XLA for CPU: its passes mend some wastes by themselves."""
    if compiled.target == "shardy":
        return tuple(replace(one, collectives=()) for one in verdicts(ask, ask("cpu", ()), machine))
    if compiled.module is None or compiled.mesh is None or compiled.lowered is None:
        return ()
    trial = _Trial(ask, compiled, machine)
    kinds = _lost_donations, _loop_reductions, _reshards, _padding, _replicated, _not_overlapped
    wastes = [verdict for kind in kinds for verdict in kind(trial)]
    return tuple(sorted(wastes, key=lambda one: (-(one.saving.seconds or 0.0), -one.saving.sent_bytes)))


class _Trial:
    """A program, and what Shardy and its target make of it with changes."""

    def __init__(self, ask: AskChanged, compiled: TargetProgram, machine: Machine | None) -> None:
        self.ask, self.compiled = ask, compiled
        self.step = TrainStep(compiled.explicit_reshards)
        self.machine = machine
        self.times = compiled.times(machine).times
        timeline = None if self.times is None else self.times.model
        entries = () if compiled.module is None else entries_of(compiled.module, timeline)
        self.told = [*zip(entries, compiled.reasons, strict=True)]

    def saving(self, *changes: ProgramChange) -> ChangeSaving | None:
        """The saving of changes on the target; None where it refuses them, or a donation is lost: then a
        result has another sharding than the argument, which the next step pays for."""
        return self.saving_in(self.ask(self.compiled.target, changes), *changes)

    def saving_in(self, after: TargetProgram, *changes: ProgramChange) -> ChangeSaving | None:
        """The same of the program that the target has made of changes."""
        before = self.compiled
        if before.bytes_sent is None or after.bytes_sent is None or _lost(after) - _lost(before):
            return None
        memory = sum(change.memory_bytes for change in changes)
        if before.memory is not None and after.memory is not None:
            memory = after.memory.peak_bytes - before.memory.peak_bytes
        was, now = self.times, after.times(self.machine).times
        seconds = None if was is None or now is None else was.model.seconds - now.model.seconds
        return ChangeSaving(before.bytes_sent - after.bytes_sent, memory, seconds)


def _lost(program: TargetProgram) -> Counter[str]:
    """The donated arguments whose memory no output reuses."""
    return Counter(one.name for one in program.arrays if any(mark.kind == "not reused" for mark in one.marks))


def _reshards(trial: _Trial) -> Iterator[WasteVerdict]:
    """For the first reasons of collectives that have a change, the best one."""
    compiled = trial.compiled
    sent_for = dearest_reasons(compiled)
    plain = trial.ask("shardy", ()) if sent_for else None
    if plain is None or plain.module is None or plain.mesh is None:
        return
    before: Outcome = plain.bytes_sent or 0, plain.explicit_reshards

    @cache
    def partitioned(change: ShardingCandidate) -> Outcome | None:
        answer = trial.ask("shardy", (change,))
        return None if answer.module is None else (answer.bytes_sent or 0, answer.explicit_reshards)

    def on_shardy(change: ShardingCandidate, reason: Reason) -> ChangeSaving | None:
        after = partitioned(change)
        return None if after is None else saving_on_shardy(reason.meeting, before, after)

    on_target = cache(trial.saving)
    by_change: dict[ShardingCandidate, list[Reason]] = {}
    said: dict[ShardingCandidate, ChangeSaving] = {}
    looked_at = 0
    first = {reason: entry for entry, reason in reversed(trial.told)}
    for reason, own in sent_for.items():
        changes = candidates(reason, trial.step, plain.mesh, first[reason])
        # Of what Shardy would not have done so, the saving tells whether it is gone.
        least = own if reason.kind == "contraction" and reason.meeting is None else 0
        known = (prior for prior in by_change if prior in changes and said[prior].sent_bytes >= least)
        if helps := next((prior for prior in known if on_shardy(prior, reason)), None):
            by_change[helps].append(reason)
        elif changes and looked_at < MOST_REASONS:
            looked_at += 1
            likely = [(change, one) for change in changes if (one := on_shardy(change, reason))]
            likely.sort(key=lambda pair: -pair[1].sent_bytes)
            kept = {}
            for change, _ in likely[:MOST_COMPILED]:
                if (one := on_target(change)) is not None and one.sent_bytes >= least:
                    # An argument that grows takes memory between the steps, too.
                    held = replace(one, memory_bytes=max(one.memory_bytes, change.memory_bytes))
                    if held.is_worth(compiled.bytes_sent or 0):
                        kept[change] = one
            if kept:
                change = best(kept)
                by_change.setdefault(change, []).append(reason)
                said[change] = kept[change]
    for change, mended in by_change.items():
        entries = [entry for entry, reason in trial.told if reason in mended]
        yield WasteVerdict(
            _kind(change, mended[0], entries[0], trial),
            mended[0].words,
            change.code,
            said[change],
            change.source or entries[0].collective.source,
            compiled.target,
            change,
            tuple(entry.collective.name for entry in entries),
        )


def _kind(change: ShardingCandidate, reason: Reason, entry: CollectiveEntry, trial: _Trial) -> VerdictKind:
    meeting = reason.meeting
    if change.removed:
        is_sliced = meeting is not None and meeting.then in ("slice", "dynamic_slice", "gather")
        return "gather then slice" if is_sliced else "superfluous constraint"
    names = change.made_by, entry.collective.op_name, "" if meeting is None else meeting.consumer_name
    primitives = [program_place(name).primitive for name in names if name]
    if any(primitive.startswith("conv_general") for primitive in primitives):
        return "convolution"
    if meeting is not None and any(":" in axis for axis in meeting.axes):
        return "small dimension"
    if meeting is not None and meeting.producer == "reshape":
        return "reshaped batch"
    if any(primitive.startswith(LOOKUPS) for primitive in primitives):
        return "lookup"
    if meeting is not None and any(
        (meeting.before, meeting.after, meeting.shape) == (one.before, one.after, one.shape)
        for one in trial.compiled.rematerializations
    ):
        return "rematerialization"
    return "reshard"


def dearest_reasons(program: TargetProgram) -> dict[Reason, int]:
    """The bytes that a device sends for each reason of a program, those of the dearest collectives first,
    contractions over other axes than the batch's last: to avoid them mostly costs work on each device."""
    if program.module is None or not program.reshards:
        return {}
    batch = TrainStep(program.explicit_reshards).batch_axes
    told = []
    for entry, reason in zip(entries_of(program.module), program.reasons, strict=True):
        is_seldom_avoided = reason.kind == "contraction" and not batch & {*entry.collective.axes}
        told.append((is_seldom_avoided, entry.all_wire_bytes or entry.collective.wire_bytes, reason))
    by_reason: Counter[Reason] = Counter()
    for _, sent, reason in sorted(told, key=lambda one: (one[0], -one[1])):
        by_reason[reason] += sent
    return by_reason


def saving_on_shardy(meeting: Meeting | None, before: Outcome, after: Outcome) -> ChangeSaving | None:
    """The saving of a change, where Shardy says that it helps: less is sent, and of the meeting there are
    fewer. What Shardy does not see, the target tells."""
    (sent, was), (still_sent, now) = before, after
    if now.products > was.products * MARGIN:
        return None
    if meeting is not None:
        left, had = ([*map(_key, other.meetings)].count(_key(meeting)) for other in (now, was))
        if still_sent >= sent or left >= had:
            return None
    return ChangeSaving(sent - still_sent)


def best(found: Mapping[ShardingCandidate, ChangeSaving]) -> ShardingCandidate:
    """The one that takes the least memory of those that save about as much as any."""
    most = max(each.sent_bytes for each in found.values())
    enough = [each for each, saving in found.items() if saving.sent_bytes >= ENOUGH * most]
    return min(enough, key=lambda each: (found[each].memory_bytes, -found[each].sent_bytes))


def _key(meeting: Meeting) -> tuple[object, ...]:
    return meeting.kind, meeting.axes, meeting.shape, meeting.before, meeting.after, meeting.consumer_name


def _replicated(trial: _Trial) -> Iterator[WasteVerdict]:
    """For the largest arguments that all devices hold whole, a split that frees more bytes than it sends."""
    compiled = trial.compiled
    named = Counter(one.name for one in compiled.explicit_reshards.arguments)
    known = {one.name: one for one in compiled.explicit_reshards.arguments if named[one.name] == 1}
    whole = [one for one in compiled.arrays if any(mark.kind == "replicated" for mark in one.marks)]
    groups = alike_arrays(one for one in whole if one.name in known)[:2]
    plain = trial.ask("shardy", ()) if groups else None
    if plain is None or plain.mesh is None or plain.bytes_sent is None:
        return
    mesh, sent = plain.mesh, plain.bytes_sent
    for group in groups:
        freed: list[tuple[int, tuple[ShardingCandidate, ...]]] = []
        for spec in islice(splits(known[group[0].name], mesh), MOST):
            changes = tuple(of_argument(known[one.name], spec, mesh) for one in group)
            partitioned = trial.ask("shardy", changes)
            if partitioned.bytes_sent is not None:
                more = partitioned.bytes_sent - sent + sum(change.memory_bytes for change in changes)
                freed.append((more, changes))
        # Those that free more memory than they send bytes, and enough, and take hardly longer.
        slower = 0.0 if trial.times is None else LEAST_PART * trial.times.model.seconds
        least = 0.0 if compiled.memory is None else LEAST_PART * compiled.memory.peak_bytes
        tried: list[tuple[float, int, ChangeSaving, ShardingCandidate]] = []
        for _, changes in sorted(freed, key=lambda one: one[0])[:MOST_COMPILED]:
            one = trial.saving(*changes)
            if one is None or -(one.seconds or 0.0) > slower:
                continue
            if one.memory_bytes < min(0, one.sent_bytes) and -one.memory_bytes >= least:
                tried.append((-(one.seconds or 0), one.memory_bytes - one.sent_bytes, one, changes[0]))
        if tried:
            _, _, one, change = min(tried, key=lambda each: each[:2])
            array, code, target = group[0], change.code, compiled.target
            words = next(mark.words for mark in array.marks if mark.kind == "replicated")
            yield WasteVerdict(
                "replicated argument", words, code, one, array.source, target, change, array=array.name
            )


def _padding(trial: _Trial) -> Iterator[WasteVerdict]:
    """For the first constraints whose axes do not divide a value, another one or none, with which a run takes
    less time, or where nobody can tell, sends less."""
    mesh, times = trial.compiled.mesh, trial.times
    assert mesh is not None
    least = 0.0 if times is None else LEAST_PART * times.model.seconds
    for uneven in trial.compiled.explicit_reshards.uneven[:MOST_REASONS]:
        kept: list[tuple[float, ChangeSaving, ShardingCandidate]] = []
        for change in islice(even_constraints(uneven, mesh), MOST_COMPILED + 1):
            saving = trial.saving(change)
            if saving is not None and saving.memory_bytes <= max(0, saving.sent_bytes):
                gain = saving.sent_bytes if saving.seconds is None else saving.seconds
                kept += [(gain, saving, change)] if gain > least else []
        if kept:
            _, saving, change = max(kept, key=lambda each: each[0])
            words = f"{uneven.spec} does not divide a value of the shape {uneven.shape}, which is padded"
            target = trial.compiled.target
            yield WasteVerdict("padding", words, change.code, saving, change.source, target, change)


def _lost_donations(trial: _Trial) -> Iterator[WasteVerdict]:
    """Donated arguments whose memory no result takes, where a result has their shape: one that is split as
    they are, or has their dtype, would."""
    lowered = trial.compiled.lowered
    assert lowered is not None
    # JAX says the parts of arguments that it does not donate at all.
    refused = {
        (canonical_dtype(dtype), tuple(map(int, filter(None, sizes.split(",")))))
        for dtype, sizes in re.findall(r"(\w+)\[([\d,]*)\]", lowered.lost_donation)
    }
    known = {one.name: one for one in trial.step.program.arguments}
    free = {*range(len(lowered.results))}
    lost = _lost(trial.compiled)
    for array in (one for one in trial.compiled.arrays if one.kind == "argument"):
        if array.name not in lost and (array.dtype, array.part) not in refused:
            continue
        alike = [number for number in sorted(free) if lowered.results[number].shape == array.shape]
        alike.sort(key=lambda number: lowered.results[number].dtype != array.dtype)
        if not alike:
            continue
        result = lowered.results[alike[0]]
        free.remove(alike[0])
        words = "it is donated, and no output reuses its memory"
        one = known.get(array.name)
        if result.dtype != array.dtype:
            words += f": {result.path} is {result.dtype}"
            code = f"{result.path or 'the result'}: .astype({array.dtype}), which it is before"
            saved = ChangeSaving(0, -array.bytes)
            yield WasteVerdict("lost donation", words, code, saved, array=array.name)
        elif one is not None and result.spec is not None and result.spec != one.spec:
            change = ShardingCandidate(one.spec, one, result=alike[0], before=result.spec)
            saving = trial.saving(change)
            if saving is not None and saving.memory_bytes < min(0, saving.sent_bytes):
                words += f": {result.path or 'the result'} is {result.spec}"
                target = trial.compiled.target
                yield WasteVerdict(
                    "lost donation", words, change.code, saving, "", target, change, array=array.name
                )


def _loop_reductions(trial: _Trial) -> Iterator[WasteVerdict]:
    """Gradients that every micro-batch sums over the devices: once would do."""
    by_axes: dict[tuple[str, ...], list[tuple[CollectiveEntry, float]]] = {}
    for entry, reason in trial.told:
        meeting = reason.meeting
        if reason.kind == "gradient" and meeting is not None and entry.runs and not reason.is_expected:
            times = trial.step.sums_each(meeting, entry.runs)
            if times > 1:
                by_axes.setdefault(entry.collective.axes, []).append((entry, 1 - 1 / times))
    for axes, repeated in by_axes.items():
        sent = sum(int((entry.all_wire_bytes or 0) * part) for entry, part in repeated)
        known = all(entry.all_exposed is not None for entry, _ in repeated)
        seconds = sum((entry.all_exposed or 0.0) * part for entry, part in repeated) if known else None
        # What is scattered in each run is whole on each device until the sum.
        scattered = [entry.collective for entry, _ in repeated if entry.collective.op == "reduce-scatter"]
        held = sum(one.bytes - one.bytes // one.group_size for one in scattered)
        saving = ChangeSaving(sent, held, seconds)
        if saving.is_worth(trial.compiled.bytes_sent or 0):
            times = round(1 / (1 - repeated[0][1]))
            named = ", ".join(map(repr, axes))
            summed = f"jax.lax.psum(loop(*own), ({named},))"
            yield WasteVerdict(
                "reduction in a loop",
                f"gradients are summed over {' and '.join(axes)} {times} times per run, once would do",
                f"jax.shard_map(lambda *own: {summed}, axis_names={{{named}}}, …)",
                saving,
                repeated[0][0].collective.source,
                collectives=tuple(entry.collective.name for entry, _ in repeated),
            )


def _not_overlapped(trial: _Trial) -> Iterator[WasteVerdict]:
    """Collectives for which the device waits, though work beside them does not depend on them."""
    compiled, times = trial.compiled, trial.times
    if times is None or not isinstance(compiled.module, HloModule):
        return
    waiting = sorted((entry for entry, _ in trial.told), key=lambda one: -(one.all_exposed or 0.0))
    saved = hideable(compiled.module, waiting[:20], times.model)
    ops = dict.fromkeys(one.collective.op for one in sorted(saved, key=lambda one: -saved[one]))
    if sum(saved.values()) < LEAST_PART * times.model.seconds:
        return
    (target,) = parse_targets(compiled.target)
    ways = [(one,) for one in trial.step.program.barriers], (asynchronous(op, target.platform) for op in ops)
    for way in (option for kind in ways for option in islice(kind, MOST_COMPILED)):
        tried = filter(None, (_overlapped(trial, change, waiting) for change in way))
        yield from sorted(tried, key=lambda one: -(one.saving.seconds or 0.0))[:1]


def _overlapped(
    trial: _Trial, change: ScheduleCandidate, waiting: Sequence[CollectiveEntry]
) -> WasteVerdict | None:
    """The change of a schedule, where a run then takes less time, by a larger part than it takes more memory;
    of the collectives that are `waiting`, those for which the device waits less then."""
    compiled, memory = trial.compiled, trial.compiled.memory
    after = trial.ask(compiled.target, (change,))
    saving, now, was = trial.saving_in(after, change), after.times(trial.machine).times, trial.times
    if saving is None or not saving.seconds or now is None or was is None or after.module is None:
        return None
    before, left = _waits(waiting), _waits(entries_of(after.module, now.model))
    mended = [one for one in waiting if left[_kind_of(one)] < (1 - LEAST_PART) * before[_kind_of(one)]]
    part = saving.seconds / was.model.seconds
    if not mended or memory is None or not max(LEAST_PART, saving.memory_bytes / memory.peak_bytes) <= part:
        return None
    first = mended[0].collective
    return WasteVerdict(
        "no overlap",
        f"each run waits {human_seconds(before[_kind_of(mended[0])])} for {first.op} {','.join(first.axes)}, "
        "and work that does not depend on it could overlap",
        change.code,
        saving,
        change.source or first.source,
        compiled.target,
        collectives=tuple(one.collective.name for one in mended),
    )


def _kind_of(entry: CollectiveEntry) -> tuple[object, ...]:
    one = entry.collective
    return one.op, one.axes, one.result_shape, one.dtype, one.source


def _waits(entries: Iterable[CollectiveEntry]) -> Mapping[tuple[object, ...], float]:
    """The seconds for which a device waits for alike collectives, in all runs."""
    waits: defaultdict[tuple[object, ...], float] = defaultdict(float)
    for entry in entries:
        waits[_kind_of(entry)] += entry.all_exposed or 0
    return waits
