"""The computations of a scheduled module, in the order of their instructions, as steps.

Asynchronous are every ``-start`` up to its ``-done``, ``send`` and ``recv`` up to theirs, computations that
an ``async-start`` runs, and TPU's chains of fusions: one that holds ``AsyncCollectiveStart`` begins a
collective, those between carry its steps beside their own work, one that holds ``AsyncCollectiveDone`` waits
for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from shardviz.hlo.collective import Collective
from shardviz.hlo.listing import RENDEZVOUS
from shardviz.hlo.module import HloModule, Reader
from shardviz.hlo.schedule.overlap import ALGORITHM, ENDS, STARTS
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.opcodes import BODIES, COLLECTIVES, MESSAGES, base_op, begins, ends
from shardviz.timeline.durations import Duration, Durations
from shardviz.timeline.instruction_work import Path
from shardviz.timeline.link_times import (
    COMPUTE,
    COPIES,
    HOST,
    HOST_CHANNELS,
    UNKNOWN_LINKS,
    Channel,
    LinkTimes,
    LinkUse,
)
from shardviz.timeline.program_steps import (
    CARRIED,
    Block,
    BranchesStep,
    CallStep,
    DoneStep,
    LoopStep,
    ProgramStep,
    TimedStep,
    Token,
)
from shardviz.timeline.program_timeline import Lane
from shardviz.timeline.simulation import ticks_of

MAX_DEPTH = 64
"""Computations within one another, followed at most."""

_COPIES = ("copy-start", "slice-start")
_CHANNEL = re.compile(r"channel_id=\d{1,18}")
_COPY_CHANNEL: tuple[Channel, ...] = (("HBM", 0),)
_THREAD = re.compile(r'async_execution_thread="([^"\n]{1,40})"')


class Walker:
    """Walks one text."""

    def __init__(self, reader: Reader, module: HloModule, durations: Durations, links: LinkTimes) -> None:
        self.text = self._text = reader.text
        self.lines = durations.work.lines
        self.durations = durations
        self.links = links
        self._computations = reader.computations
        self.source = reader.source_of
        self.trips = reader.calls.trips
        self.records: dict[str, Collective] = {}
        for record in module.collectives:
            self.records.setdefault(record.name, record)
        self.moves = {home: [*found.values()] for home, found in reader.collectives.items()}
        """The collectives of each computation that has some."""
        self._blocks: dict[tuple[int, frozenset[Path]], Block] = {}
        self.unknown_loops: dict[str, None] = {}
        self.doubtful: set[str] = set()

    def entry(self) -> Block | None:
        """The steps of the module's entry, with a wait for all that nothing else waits for."""
        home = self._computations.entry
        if home is None:
            return None
        block = self.block(home, frozenset(), 0)
        waited = {step.token for step in block.steps if isinstance(step, DoneStep)}
        for number, step in enumerate(block.steps[:]):
            if isinstance(step, TimedStep) and step.is_async and (number, ()) not in waited:
                block.steps.append(DoneStep(step.name, (number,), (number, ())))
        return block

    def block(self, home: Computation, entering: frozenset[Path], depth: int) -> Block:
        """The steps of a computation whose parameter has things under way at these paths."""
        key = home.start, entering
        if key not in self._blocks:
            self._blocks[key] = Block(home.name, [])
            if depth <= MAX_DEPTH:
                self._blocks[key] = _BlockWalk(self, home, entering, depth).walked()
        return self._blocks[key]

    # Facts about single instructions, for `_BlockWalk`.

    def record_inside(self, home: Computation) -> Collective | None:
        """The collective in a computation that an async-start calls."""
        moves = self.moves.get(home, ())
        return next((self.records[move.name] for move in moves if move.name in self.records), None)

    def config(self, start: int, stop: int) -> str:
        """The compiler's words on the algorithm of a collective."""
        place = self._text.find(ALGORITHM, start, stop)
        if place < 0:
            return ""
        end = self._text.find('},"', place, stop)
        return self._text[place : stop if end < 0 else end]

    def called(self, line: Instruction) -> list[Computation]:
        """The computations that a loop, a call or a conditional runs, but for a loop's condition."""
        return self.lines.called(line, *BODIES)


class _BlockWalk:
    """The walk through one computation."""

    def __init__(self, walker: Walker, home: Computation, entering: frozenset[Path], depth: int) -> None:
        self._walker = walker
        self._text = walker.text
        self._lines = walker.lines
        self._home = home
        self._depth = depth
        self._entering = entering
        self._steps: list[ProgramStep] = []
        self._made: dict[str, tuple[int, ...]] = {}
        """The steps whose results a name holds."""
        self._parts: dict[str, list[tuple[int, ...]]] = {}
        """The same for each element of a tuple."""
        self._tokens: dict[str, dict[Path, Token]] = {}
        """What a name holds that is under way."""
        self._transfers: dict[str, tuple[int, str]] = {}
        """The sends and recvs whose other end is to come, by their rendezvous or channel."""
        self._chains: dict[tuple[str, str], int] = {}
        """The collectives under way in chains of fusions."""
        self._leaves: Mapping[Path, Token] = {}

    def walked(self) -> Block:
        for line in self._lines.of(self._home):
            self._line(line)
            if line.is_root:
                self._leaves = dict(self._tokens.get(line.name, {}))
        channels = {
            channel
            for step in self._steps
            for channel in (
                step.channels
                if isinstance(step, TimedStep)
                else [channel for block in _blocks(step) for channel in block.channels]
            )
        }
        return Block(self._home.name, self._steps, self._leaves, frozenset(channels))

    def _line(self, line: Instruction) -> None:
        opcode = line.opcode
        if opcode in ("parameter", "constant", "iota", "partition-id", "replica-id"):
            if opcode == "parameter" and self._entering:
                self._tokens[line.name] = {path: (CARRIED, path) for path in self._entering}
            if opcode != "iota":
                return
        names = line.operands
        if opcode == "get-tuple-element":
            self._element(line, names)
        elif opcode == "tuple":
            self._tuple(line, names)
        elif opcode == "while":
            self._loop(line, names)
        elif opcode in ("call", "conditional"):
            self._call(line, names)
        elif ends(opcode):
            self._done(line, names)
        elif begins(opcode):
            self._start(line, names)
        elif (
            opcode == "fusion"
            and (callee := self._lines.callee(line)) is not None
            and (moves := self._walker.moves.get(callee))
        ):
            self._fused(line, names, callee, moves)
        elif base_op(opcode) in COLLECTIVES:
            self._collective(line, names, self._walker.records.get(line.name))
        elif self._walker.durations.takes_time(line):
            self._compute(line, names)
        else:
            self._pass_on(line, names)

    def _reads(self, names: Iterable[str]) -> tuple[int, ...]:
        found: dict[int, None] = {}
        for name in names:
            for number in self._made.get(name, ()):
                found[number] = None
        return tuple(found)

    def _add(self, line: Instruction, step: ProgramStep) -> int:
        self._steps.append(step)
        number = len(self._steps) - 1
        self._made[line.name] = (number,)
        return number

    def _pass_on(self, line: Instruction, names: list[str]) -> None:
        self._made[line.name] = self._reads(names)
        if names and names[0] in self._tokens:
            self._tokens[line.name] = self._tokens[names[0]]
        if names and names[0] in self._parts:
            self._parts[line.name] = self._parts[names[0]]

    def _element(self, line: Instruction, names: list[str]) -> None:
        index = line.element_index
        if not names or index is None:
            return
        parts = self._parts.get(names[0])
        self._made[line.name] = (
            parts[index] if parts is not None and index < len(parts) else self._made.get(names[0], ())
        )
        if names[0] in self._tokens:
            held = self._tokens[names[0]]
            inner = {path[1:]: token for path, token in held.items() if path[:1] == (index,)}
            if not inner and () in held:
                inner = {(): held[()]}
            if inner:
                self._tokens[line.name] = inner

    def _tuple(self, line: Instruction, names: list[str]) -> None:
        self._parts[line.name] = [self._made.get(name, ()) for name in names]
        if self._tokens:
            held = {
                (index, *path): token
                for index, name in enumerate(names)
                for path, token in self._tokens.get(name, {}).items()
            }
            if held:
                self._tokens[line.name] = held

    def _timed(
        self,
        line: Instruction,
        names: Iterable[str],
        op: str,
        lane: Lane,
        duration: Duration,
        *,
        use: LinkUse | None = None,
        is_async: bool = False,
        record: Collective | None = None,
    ) -> int:
        step = TimedStep(
            line.name,
            self._reads(names),
            op,
            lane,
            duration,
            ticks_of(duration.seconds),
            use.channels if use is not None else (),
            is_async,
            self._walker.source(line) if record is None else record.source,
            "" if record is None else record.name,
        )
        number = self._add(line, step)
        if duration.doubtful:
            self._walker.doubtful.add(line.name)
        if is_async:
            self._tokens[line.name] = {(): (number, ())}
        return number

    def _compute(self, line: Instruction, names: list[str]) -> None:
        op = "matmul" if self._lines.is_matmul(line) else line.opcode
        self._timed(line, names, op, COMPUTE, self._walker.durations.of(line, self._home))

    def _collective(
        self,
        line: Instruction,
        names: list[str],
        record: Collective | None,
        *,
        is_async: bool = False,
        inside: Computation | None = None,
    ) -> int:
        """A collective, by itself or `inside` the computation that the line calls."""
        if record is None:
            unknown = Duration(None, "unknown", detail="it could not be read")
            return self._timed(line, names, base_op(line.opcode), UNKNOWN_LINKS, unknown, is_async=is_async)
        walker = self._walker
        config = "" if inside is None else walker.config(inside.start, inside.stop)
        use = walker.links.of(record, config or walker.config(line.start, line.stop))
        return self._timed(
            line,
            names,
            record.op,
            use.lane,
            use.duration,
            use=use,
            is_async=is_async,
            record=record,
        )

    def _start(self, line: Instruction, names: list[str]) -> None:
        walker = self._walker
        if line.opcode in _COPIES:
            duration = walker.durations.of_copy(line)
            with_host = duration.bound == "host"
            lane = HOST if with_host else COPIES
            number = self._timed(line, names, base_op(line.opcode), lane, duration, is_async=True)
            step = self._steps[number]
            assert isinstance(step, TimedStep)
            step.channels = HOST_CHANNELS if with_host else _COPY_CHANNEL
            return
        if line.opcode in MESSAGES:
            self._message(line, names)
            return
        callee = self._lines.callee(line) if line.opcode == "async-start" else None
        if callee is None:
            record = walker.records.get(line.name)
            is_async = record.is_async if record is not None else True
            self._collective(line, names, record, is_async=is_async)
            return
        record = walker.record_inside(callee)
        if record is not None:
            self._collective(line, names, record, is_async=record.is_async, inside=callee)
            return
        self._async_computation(line, names, callee)

    def _async_computation(self, line: Instruction, names: list[str], callee: Computation) -> None:
        """A computation that another thread runs: its instructions one after the other."""
        thread = line.search(_THREAD)
        durations = self._walker.durations
        parts = [durations.of(each, callee) for each in self._lines.of(callee) if durations.takes_time(each)]
        known = [part.seconds for part in parts if part.seconds is not None]
        duration = Duration(
            sum(known) if len(known) == len(parts) else None,
            parts[0].estimate if parts and len(known) == len(parts) else "unknown",
            parts[0].bound if parts else "",
            parts[0].detail if len(parts) == 1 else "",
            sum(part.bytes for part in parts),
            sum(part.flops for part in parts),
        )
        name = thread[1] if thread else "parallel"
        number = self._timed(
            line, names, "async", Lane("host" if name == "host" else "compute", name), duration, is_async=True
        )
        step = self._steps[number]
        assert isinstance(step, TimedStep)
        step.channels = ((name, 0),)

    def _message(self, line: Instruction, names: list[str]) -> None:
        """A send and a recv of one rendezvous or channel are one transfer from the first of them."""
        found = RENDEZVOUS.search(self._text, line.inside, line.stop)
        found = found or line.search(_CHANNEL)
        key = found[0] if found else ""
        record = self._walker.records.get(line.name)
        number, opcode = self._transfers.get(key, (CARRIED, line.opcode))
        if opcode != line.opcode:
            del self._transfers[key]
            self._made[line.name] = (number,)
            self._tokens[line.name] = {(): (number, ())}
            step = self._steps[number]
            assert isinstance(step, TimedStep)
            if record is not None and (not step.duration.bytes or opcode == "recv"):
                self._give(step, record)
            return
        if record is None:
            waiting = Duration(0.0, "links", "", "the other end of a transfer")
            number = self._timed(line, names, line.opcode, UNKNOWN_LINKS, waiting, is_async=True)
        else:
            number = self._collective(line, names, record, is_async=True)
        if key:
            self._transfers[key] = number, line.opcode

    def _give(self, step: TimedStep, record: Collective) -> None:
        use = self._walker.links.of(record)
        step.op, step.lane, step.duration = record.op, use.lane, use.duration
        step.ticks, step.channels = ticks_of(use.duration.seconds), use.channels
        step.source, step.collective = record.source or step.source, record.name

    def _fused(
        self, line: Instruction, names: list[str], callee: Computation, moves: list[Instruction]
    ) -> None:
        """A fusion that holds a collective: alone, or as a part of a chain."""
        text, walker = self._text, self._walker
        chains = [(base_op(move.opcode), move.channel) for move in moves]
        record = next((walker.records[move.name] for move in moves if move.name in walker.records), None)
        starts_it = text.find(STARTS, callee.start, callee.stop) >= 0
        ends_it = not starts_it and text.find(ENDS, callee.start, callee.stop) >= 0
        if record is not None and not ends_it:
            number = self._collective(line, names, record, is_async=starts_it, inside=callee)
            if starts_it:
                self._chains.update(dict.fromkeys(chains, number))
                self._beside(line, names)
            return
        if not ends_it:
            # A step of a chain, beside the fusion's own work.
            self._compute(line, names)
            return
        begun = next((self._chains[chain] for chain in chains if chain in self._chains), None)
        reads = self._reads(names)
        if begun is not None:
            self._add(line, DoneStep(line.name, reads, (begun, ())))
            self._made[line.name] = (begun,)
        self._beside(line, names)

    def _beside(self, line: Instruction, names: list[str]) -> None:
        """The own work of a fusion that begins or ends a collective, where the compiler gives it cycles."""
        duration = self._walker.durations.of(line, self._home)
        if duration.estimate == "compiler":
            made, tokens = self._made.get(line.name, ()), self._tokens.get(line.name)
            self._compute(line, names)
            self._made[line.name] = (*made, *self._made[line.name])
            if tokens is not None:
                self._tokens[line.name] = tokens

    def _done(self, line: Instruction, names: list[str]) -> None:
        held = self._tokens.get(names[0], {}) if names else {}
        self._pass_on(line, names)
        if line.opcode.endswith("-update") or not held:
            return
        token = held.get((), next(iter(held.values())))
        self._tokens.pop(line.name, None)
        self._steps.append(DoneStep(line.name, self._made[line.name], token))

    def _missing(self, line: Instruction, names: list[str]) -> None:
        """A loop, call or conditional of which the text lacks what it runs."""
        unknown = Duration(None, "unknown", detail="the text lacks what it runs")
        self._timed(line, names, line.opcode, COMPUTE, unknown)

    def _loop(self, line: Instruction, names: list[str]) -> None:
        bodies = self._walker.called(line)
        if not bodies:
            self._missing(line, names)
            return
        enters = self._tokens.get(names[0], {}) if names else {}
        body = self._walker.block(bodies[0], frozenset(enters), self._depth + 1)
        count = self._walker.trips(line)
        if count is None:
            self._walker.unknown_loops[line.name] = None
        number = self._add(line, LoopStep(line.name, self._reads(names), body, count, enters))
        if body.leaves:
            self._tokens[line.name] = {path: (number, path) for path in body.leaves}

    def _call(self, line: Instruction, names: list[str]) -> None:
        called = self._walker.called(line)
        blocks = tuple(self._walker.block(each, frozenset(), self._depth + 1) for each in called)
        if not blocks:
            self._missing(line, names)
            return
        reads = self._reads(names)
        if line.opcode == "conditional":
            self._add(line, BranchesStep(line.name, reads, blocks))
        else:
            self._add(line, CallStep(line.name, reads, blocks[0]))


def _blocks(step: ProgramStep) -> tuple[Block, ...]:
    """The computations that a step runs."""
    if isinstance(step, LoopStep):
        return () if step.body is None else (step.body,)
    if isinstance(step, CallStep):
        return () if step.block is None else (step.block,)
    return step.blocks if isinstance(step, BranchesStep) else ()
