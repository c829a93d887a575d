"""The schedule that the compiler simulated, as a timeline: the second teller beside the model.

XLA's latency-hiding scheduler lets asynchronous operations run beside the others, and knows no more than one
figure for each. A loop is one instruction to it, without what its body waits for; here the body is counted
with that, in full.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from shardviz.hlo.collective import OPS
from shardviz.timeline.compiler_schedule import (
    CompilerSchedule,
    ScheduledComputation,
    ScheduledInstruction,
)
from shardviz.timeline.program_timeline import Lane, ProgramTimeline, TimedOp, TimeSpan
from shardviz.units import human_bytes

NOT_SIMULATED = (
    "there is no second estimate beside the model: the compiler's scheduler simulates asynchronous "
    "operations, and it found none here"
)
NO_ESTIMATES = "the compiler has no estimates for this GPU: to its scheduler every operation is as long"
NO_SCHEDULER = "this compiler simulates no schedule: those for TPUs and GPUs do"
"""In the place of a second teller."""

MAX_DEPTH = 20
"""Loops within one another, followed at most."""
_NEGLIGIBLE = 1.0
"""Cycles of what only names or indexes data; every instruction has at least these."""
_WHOLE = 0.01
"""A loop's trips are a whole number within this part of one."""
_COMPUTE, _LINKS = Lane("compute", "compute"), Lane("axis", "links")
_ASYNC_NAME = 'async_collective_name="'
"""Stands in front of the name that a collective had until it became synchronous, after the scheduler."""
_NAME = re.compile(r"\s*(?:ROOT )?%?([^\s=]+) = ")


def scheduler_timeline(schedule: CompilerSchedule, model: ProgramTimeline, text: str = "") -> ProgramTimeline:
    """The scheduler's simulation with the lanes, the lines and the loops of the model's timeline.

    `text` is the final module, in which instructions have other names where they changed after the scheduler.
    The scheduler tells how long an asynchronous operation takes by how long the device waits for it. One that
    it does not wait for takes as long as others of its kind and size; without such, its `seconds` are None,
    and it is drawn until it is asked for.
    """
    drawer = _Drawer(schedule, model, text)
    seconds = drawer.all()
    names = {lane: lane.name for lane in drawer.lanes if lane.kind != "compute"}
    share = model.utilisation * model.seconds / seconds if model.utilisation and seconds else None
    return ProgramTimeline(
        title=model.title,
        machine=f"{model.machine}, the compiler's scheduler",
        lanes=tuple(drawer.lanes),
        ops=tuple(sorted(drawer.ops, key=lambda op: op.start)),
        spans=tuple(drawer.spans),
        seconds=seconds,
        drawn_seconds=drawer.end,
        compute_seconds=drawer.busy.get(_COMPUTE, 0.0),
        communication_seconds=tuple((name, drawer.busy.get(lane, 0.0)) for lane, name in names.items()),
        exposed_seconds=tuple((name, drawer.exposed.get(lane, 0.0)) for lane, name in names.items()),
        flops=model.flops,
        utilisation=share,
        unknown=tuple(drawer.unknown),
        notes=tuple(drawer.notes),
    )


@dataclass(frozen=True)
class _Transfer:
    """An asynchronous operation, from its start to its done, in cycles from the start of its computation.

    `waited` are those in which the device does nothing else meanwhile.
    """

    started: ScheduledInstruction
    done: ScheduledInstruction
    waited: float

    @property
    def cycles(self) -> float | None:
        """As long as it takes; None where it may be done earlier than it is asked for."""
        return self.done.start - self.started.end if self.waited else None


def _transfers(home: ScheduledComputation) -> list[_Transfer]:
    """The asynchronous operations of a computation.

    While the device is idle it waits for the first of those under way that is asked for afterwards.
    """
    open_: dict[int, ScheduledInstruction] = {}
    pairs: list[tuple[ScheduledInstruction, ScheduledInstruction]] = []
    for each in home.instructions:
        begun = next((open_.pop(id_) for id_ in each.operands if id_ in open_), None)
        if each.begins:
            open_[each.id] = begun or each
        elif each.opcode.endswith("-done") and begun is not None:
            pairs.append((begun, each))
    waited: defaultdict[int, float] = defaultdict(float)
    before, number = 0.0, 0
    for each in home.instructions:
        idle = each.start - before
        while number < len(pairs) and pairs[number][1].start < each.start:
            number += 1
        if idle > _NEGLIGIBLE:
            under_way = (place for place in range(number, len(pairs)) if pairs[place][0].end <= before)
            if (place := next(under_way, None)) is not None:
                waited[place] += idle
        before = max(before, each.end)
    return [_Transfer(*pair, waited[place]) for place, pair in enumerate(pairs)]


def _renamed(text: str) -> Iterator[tuple[str, str]]:
    """The scheduler's name and the final one of collectives that changed after it."""
    place = text.find(_ASYNC_NAME)
    while place >= 0:
        start = place + len(_ASYNC_NAME)
        stop = text.find('"', start)
        if stop < 0:
            return
        if now := _NAME.match(text, text.rfind("\n", 0, place) + 1):
            yield text[start:stop], now[1]
        place = text.find(_ASYNC_NAME, stop)


@dataclass
class _Drawer:
    schedule: CompilerSchedule
    model: ProgramTimeline
    text: str
    ops: list[TimedOp] = field(default_factory=list)
    spans: list[TimeSpan] = field(default_factory=list)
    lanes: dict[Lane, int] = field(default_factory=dict)
    busy: defaultdict[Lane, float] = field(default_factory=lambda: defaultdict(float))
    exposed: defaultdict[Lane, float] = field(default_factory=lambda: defaultdict(float))
    unknown: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    end: float = 0.0

    def __post_init__(self) -> None:
        # Copies between memories come into the program after the scheduler.
        shared = (lane for lane in self.model.lanes if lane.kind in ("compute", "axis", "network"))
        self.lanes = {lane: number for number, lane in enumerate(shared)}
        self._by_id = self.schedule.by_id
        self._models = {op.name: op for op in reversed(self.model.ops)}
        self._final = dict(_renamed(self.text))
        self._transfers = {each.id: _transfers(each) for each in self.schedule.computations}
        self._match_the_rest()
        self._cycles = {
            self._kind(each.started): each.cycles
            for transfers in self._transfers.values()
            for each in transfers
            if each.cycles is not None
        }

    def all(self) -> float:
        """Draw every computation that no other one runs, and return the seconds of one run of the program."""
        called = {
            id_ for each in self.schedule.computations for one in each.instructions for id_ in one.calls
        }
        seconds = 0.0
        for each in self.schedule.computations:
            if each.id in called:
                continue
            is_entry = not self.schedule.entry or each.name == self.schedule.entry
            runs = 1 if is_entry else self._runs(each, None)
            begin = self.end
            took, width = self._computation(each, begin, runs, 0 if is_entry else 1)
            seconds += took * (1 if runs is None else runs)
            self.end = begin + width
            if not is_entry:
                self.spans.append(
                    TimeSpan(
                        "loop", each.name, begin, self.end, runs, 0, took * (1 if runs is None else runs)
                    )
                )
        names = {each.name for each in self.schedule.computations}
        if self.schedule.entry and self.schedule.entry not in names:
            self.unknown.append(self.schedule.entry)
            self.notes.append(
                "the scheduler has simulated loops alone, as nothing around them is asynchronous: "
                "the rest is not in its total"
            )
        if not self.schedule.is_complete:
            self.notes.append("the scheduler's text breaks off: the total has what there is of it")
        return seconds

    def _computation(
        self, home: ScheduledComputation, begin: float, runs: int | None, depth: int
    ) -> tuple[float, float]:
        """Draw a computation from `begin` on; the seconds of one run of it, and those on the drawn clock."""
        transfers = {each.done.id: each for each in self._transfers[home.id]}
        started: dict[int, float] = {}
        per_cycle = self.schedule.seconds(1.0)
        extra = drawn = before = 0.0  # `extra`, `drawn`: by how much both are later than the simulation
        for each in home.instructions:
            start, took = begin + drawn + each.start * per_cycle, (each.end - each.start) * per_cycle
            bodies = [*self._bodies(each)] if depth < MAX_DEPTH else []
            if bodies:
                real, width = self._inner(each, bodies, start, took, runs, depth)
                extra += real - took
                drawn += width - took
            elif each.begins:
                started[each.id] = start + took
            elif each.opcode.endswith("-done"):
                if (transfer := transfers.get(each.id)) is not None:
                    self._transfer(transfer, started.get(transfer.started.id, start), start, runs)
            elif each.end - each.start > _NEGLIGIBLE:
                self._op(each, start, start + took, took, 0.0, runs, is_async=False)
            before = max(before, each.end)
        length = home.cycles * per_cycle
        return length + extra, length + drawn

    def _bodies(self, caller: ScheduledInstruction) -> Iterator[ScheduledComputation]:
        for id_ in caller.calls:
            if (body := self._by_id.get(id_)) is not None:
                yield body

    def _inner(
        self,
        caller: ScheduledInstruction,
        bodies: list[ScheduledComputation],
        begin: float,
        took: float,
        runs: int | None,
        depth: int,
    ) -> tuple[float, float]:
        """Draw what an instruction runs: the seconds that it really takes, and those on the drawn clock."""
        if caller.opcode == "while":
            body = max(bodies, key=lambda each: each.cycles)
            once = self.schedule.seconds(body.busy_cycles)
            count = self._trips(body, took / once if once else 0.0, runs)
            inside = None if count is None or runs is None else count * runs
            real, width = self._computation(body, begin, inside, depth + 1)
            whole = real * (count or 1)
            self.spans.append(TimeSpan("loop", caller.name, begin, begin + width, count, depth, whole))
            if count is None:
                self.notes.append(f"the scheduler does not tell how often {caller.name} runs: counted once")
            return whole, width
        found: list[tuple[TimeSpan, int]] = []
        longest, position, first = 0.0, begin, len(self.ops)
        for body in bodies:
            real, width = self._computation(body, position, runs, depth + 1)
            kind: Literal["branch", "call"] = "branch" if caller.opcode == "conditional" else "call"
            found.append(
                (TimeSpan(kind, body.name, position, position + width, 1, depth, real), len(self.ops))
            )
            longest = max(longest, real)
            position += width
        taken = next((span for span, _ in found if span.seconds == longest), None)
        for span, stop in found:
            self.spans.append(span if span is taken else replace(span, seconds=0.0))
            if span is not taken:
                self.ops[first:stop] = [replace(op, runs=0) for op in self.ops[first:stop]]
            first = stop
        return longest, position - begin

    def _trips(self, body: ScheduledComputation, ratio: float, runs: int | None) -> int | None:
        """The number of a loop's trips: the model's, else what its time in its parent tells."""
        if known := self._runs(body, runs):
            return known
        whole = round(ratio)
        return whole if whole >= 1 and abs(ratio - whole) <= _WHOLE * whole else None

    def _runs(self, body: ScheduledComputation, around: int | None) -> int | None:
        """The number of runs that the model has of a computation in one run of what is around it; None where
        it has none of its operations."""
        for each in body.instructions:
            op = self._model(each)
            if op is not None and op.runs is not None and not (around and op.runs % around):
                return op.runs // (around or 1)
        return None

    def _transfer(self, transfer: _Transfer, start: float, asked: float, runs: int | None) -> None:
        cycles = transfer.cycles or self._cycles.get(self._kind(transfer.started))
        seconds = None if cycles is None else min(self.schedule.seconds(cycles), asked - start)
        waited = self.schedule.seconds(transfer.waited)
        end = asked if seconds is None else start + seconds
        self._op(transfer.started, start, end, seconds, waited, runs, is_async=True)

    def _kind(self, started: ScheduledInstruction) -> tuple[str, int]:
        """The operation and its bytes, on which alone the scheduler's figures depend."""
        like = self._model(started)
        return started.opcode, like.bytes if like is not None else 0

    def _match_the_rest(self) -> None:
        """Give collectives that go by another name in the final module the model's, in their order: where
        both have as many of a kind."""
        rest: defaultdict[str, list[str]] = defaultdict(list)
        for each in (started.started for found in self._transfers.values() for started in found):
            if self._model(each) is None:
                rest[each.opcode.removesuffix("-start")].append(each.name)
        if not rest:
            return
        known = {*self._final.values()} | {
            each.name for home in self.schedule.computations for each in home.instructions
        }
        for opcode, names in rest.items():
            others = [op.name for op in self.model.ops if op.op == opcode and op.name not in known]
            if len(names) == len(others):
                self._final.update(zip(names, others, strict=True))

    def _op(
        self,
        each: ScheduledInstruction,
        start: float,
        end: float,
        seconds: float | None,
        waited: float,
        runs: int | None,
        is_async: bool,
    ) -> None:
        like = self._model(each)
        opcode = each.opcode.removesuffix("-start")
        lane = _LINKS if is_async or opcode in OPS else _COMPUTE
        if like is not None and (of_model := self.model.lanes[like.lane]) in self.lanes:
            # A fusion may be a collective: the model has looked inside.
            lane = of_model if lane is _COMPUTE or of_model.kind != "compute" else lane
        is_transfer = lane.kind != "compute"
        exposed = waited if is_async else (seconds or 0.0) if is_transfer else 0.0
        times = 1 if runs is None else runs
        self.busy[lane] += (seconds or 0.0) * times
        if is_transfer:
            self.exposed[lane] += exposed * times
        if seconds is None:
            detail = "done before it is asked for; the scheduler does not tell when"
        else:
            cycles = round(seconds / self.schedule.seconds(1.0))
            detail = f"{cycles:,} cycles of the scheduler's simulation"
            if each.memory and not is_async:
                detail += f", {human_bytes(each.memory)} of temporaries after it"
        op = TimedOp(
            name=like.name if like is not None else each.name,
            op=like.op if like is not None else opcode,
            lane=self.lanes.setdefault(lane, len(self.lanes)),
            start=start,
            end=end,
            seconds=seconds,
            estimate="scheduler",
            runs=runs,
            exposed=exposed,
            bound=lane.name if is_transfer else "compute",
            detail=detail,
            source=like.source if like is not None else "",
            bytes=like.bytes if like is not None else 0,
            flops=like.flops if like is not None else 0,
            is_async=is_async,
        )
        self.ops.append(op)

    def _model(self, each: ScheduledInstruction) -> TimedOp | None:
        """The model's operation of the same name, or of the one that the final module has for it."""
        return self._models.get(each.name) or self._models.get(self._final.get(each.name, ""))
