"""The computations of a scheduled module, in the order of their instructions, as steps.

Asynchronous are every ``-start`` up to its ``-done``, ``send`` and ``recv`` up to theirs, computations that
an ``async-start`` runs, and TPU's chains of fusions: one that holds ``AsyncCollectiveStart`` begins a
collective, those between carry its steps beside their own work, one that holds ``AsyncCollectiveDone`` waits
for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from shardviz.hlo.collective import Collective
from shardviz.hlo.module import HloModule, Reader
from shardviz.hlo.overlap import ALGORITHM, ENDS, STARTS
from shardviz.hlo.text.cross_slice import RENDEZVOUS
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.opcodes import BODIES, COLLECTIVES, MESSAGES, base_op, begins, ends
from shardviz.timeline.durations import WORKERS, Channel, Duration, Durations, LinkTimes
from shardviz.timeline.instruction_work import Path, part_of
from shardviz.timeline.program_timeline import LINKS, SpanKind
from shardviz.timeline.simulation import CARRIED, Block, DoneStep, RunStep, TimedStep, Token

MAX_DEPTH = 64
"""Computations within one another, followed at most."""

_CHANNEL = re.compile(r"channel_id=\d{1,18}")
_THREAD = re.compile(r'async_execution_thread="([^"\n]{1,40})"')
_NUMBERS = frozenset(("constant", "partition-id", "replica-id"))


class _Form(NamedTuple):
    """The common part of lines that differ only in their names: the user's line, whether they take time, and
    how long by the shapes of their operands, None where each line tells that itself."""

    source: str
    takes_time: bool
    durations: dict[tuple[str | None, ...], Duration] | None


class Walker:
    """Walks one text."""

    def __init__(self, reader: Reader, module: HloModule, durations: Durations, links: LinkTimes) -> None:
        self.text = reader.text
        self.lines = reader.lines
        self.collectives = reader.collectives
        self.source = reader.source_of
        self.durations = durations
        self.links = links
        self.trips = reader.calls.trips
        self.records = {record.name: record for record in reversed(module.collectives)}
        self.unknown_loops: dict[str, None] = {}
        self._entry = reader.computations.entry
        self._blocks: dict[tuple[int, frozenset[Path]], Block] = {}
        self._forms: dict[tuple[str, str, str], _Form] = {}

    def entry(self) -> Block | None:
        """The steps of the module's entry, with a wait for all that nothing else waits for."""
        if self._entry is None:
            return None
        block = self.block(self._entry, frozenset(), 0)
        waited = {step.token for step in block.steps if isinstance(step, DoneStep)}
        begun = [n for n, step in enumerate(block.steps) if isinstance(step, TimedStep) and step.is_async]
        block.steps += [DoneStep((number, ())) for number in begun if (number, ()) not in waited]
        return block

    def block(self, home: Computation, entering: frozenset[Path], depth: int) -> Block:
        """The steps of a computation whose parameter has things under way at these paths."""
        key = home.start, entering
        if key not in self._blocks:
            self._blocks[key] = Block(home.name)
            if depth <= MAX_DEPTH:
                self._blocks[key] = _BlockWalk(self, home, entering, depth).walked()
        return self._blocks[key]

    def form(self, line: Instruction) -> _Form:
        """The form of a line of an opcode that calls nothing."""
        start = max(line.inside, self.text.find(")", line.inside, line.stop))
        key = line.opcode, line.shape, self.text[start : line.stop]
        form = self._forms.get(key)
        if form is None:
            is_plain = line.opcode not in WORKERS and not line.says("backend_config=")
            form = _Form(self.source(line), self.durations.takes_time(line), {} if is_plain else None)
            self._forms[key] = form
        return form

    def record_inside(self, home: Computation) -> Collective | None:
        """The collective in a computation that a fusion or an async-start calls."""
        names = (line.name for line in self.collectives.get(home, {}).values())
        return next((self.records[name] for name in names if name in self.records), None)

    def link_use(self, record: Collective, *places: Instruction | Computation) -> Duration:
        """The duration of a collective, of which the compiler's words on its algorithm stand in one of some
        places."""
        for place in places:
            start = self.text.find(ALGORITHM, place.start, place.stop)
            if start >= 0:
                stop = self.text.find('},"', start, place.stop)
                return self.links.of(record, self.text[start : place.stop if stop < 0 else stop])
        return self.links.of(record)


class _BlockWalk:
    """The walk through one computation."""

    def __init__(self, walker: Walker, home: Computation, entering: frozenset[Path], depth: int) -> None:
        self._walker = walker
        self._lines = walker.lines
        self._home = home
        self._depth = depth
        self._entering = entering
        self._steps: list[TimedStep | DoneStep | RunStep] = []
        self._channels: set[Channel] = set()
        self._shapes: dict[str, str] = {}
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

    def walked(self) -> Block:
        leaves: dict[Path, Token] = {}
        for line in self._lines.of(self._home):
            self._shapes[line.name] = line.shape
            if line.opcode == "parameter":
                if self._entering:
                    self._tokens[line.name] = {path: (CARRIED, path) for path in self._entering}
            elif line.opcode not in _NUMBERS:
                _handler(line.opcode)(self, line, line.operands)
            if line.is_root:
                leaves = dict(self._tokens.get(line.name, {}))
        return Block(self._home.name, self._steps, leaves, frozenset(self._channels))

    def _reads(self, names: list[str]) -> tuple[int, ...]:
        made = self._made
        if len(names) == 1:
            return made.get(names[0], ())
        return tuple(dict.fromkeys([number for name in names for number in made.get(name, ())]))

    def _timed(
        self,
        line: Instruction,
        names: list[str],
        op: str,
        duration: Duration,
        *,
        is_async: bool = False,
        source: str | None = None,
        collective: str = "",
    ) -> int:
        source = self._walker.source(line) if source is None else source
        number = len(self._steps)
        self._steps.append(
            TimedStep(line.name, self._reads(names), op, duration, is_async, source, collective)
        )
        if duration.channels:
            self._channels.update(duration.channels)
        self._made[line.name] = (number,)
        if is_async:
            self._tokens[line.name] = {(): (number, ())}
        return number

    def pass_on(self, line: Instruction, names: list[str]) -> None:
        self._made[line.name] = self._reads(names)
        if names and names[0] in self._tokens:
            self._tokens[line.name] = self._tokens[names[0]]
        if names and names[0] in self._parts:
            self._parts[line.name] = self._parts[names[0]]

    def element(self, line: Instruction, names: list[str]) -> None:
        index = line.element_index
        if not names or index is None:
            return
        parts = self._parts.get(names[0], ())
        self._made[line.name] = parts[index] if index < len(parts) else self._made.get(names[0], ())
        if held := self._tokens.get(names[0]):
            inner = part_of(held, (index,))
            if inner or () in held:
                self._tokens[line.name] = inner or {(): held[()]}

    def put_together(self, line: Instruction, names: list[str]) -> None:
        self._parts[line.name] = [self._made.get(name, ()) for name in names]
        if self._tokens:
            held = {
                (index, *path): token
                for index, name in enumerate(names)
                for path, token in self._tokens.get(name, {}).items()
            }
            if held:
                self._tokens[line.name] = held

    def work(self, line: Instruction, names: list[str]) -> None:
        """The device's own work, or only a name."""
        form = self._walker.form(line)
        if not form.takes_time:
            self.pass_on(line, names)
        elif form.durations is None:
            self._compute(line, names)
        else:
            shapes = tuple(map(self._shapes.get, names))
            duration = form.durations.get(shapes)
            if duration is None:
                duration = form.durations[shapes] = self._walker.durations.of(line)
            self._timed(line, names, line.opcode, duration, source=form.source)

    def _compute(self, line: Instruction, names: list[str]) -> None:
        op = "matmul" if self._lines.is_matmul(line) else line.opcode
        self._timed(line, names, op, self._walker.durations.of(line))

    def collective(self, line: Instruction, names: list[str]) -> None:
        self._collective(line, names, self._walker.records.get(line.name), is_async=False)

    def _collective(
        self,
        line: Instruction,
        names: list[str],
        record: Collective | None,
        *,
        is_async: bool,
        inside: Computation | None = None,
    ) -> int:
        """A collective, by itself or `inside` the computation that the line calls."""
        if record is None:
            unknown = Duration(None, detail="it could not be read", lane=LINKS)
            return self._timed(line, names, base_op(line.opcode), unknown, is_async=is_async)
        duration = self._walker.link_use(record, *(() if inside is None else (inside,)), line)
        return self._timed(
            line, names, record.op, duration, is_async=is_async, source=record.source, collective=record.name
        )

    def start(self, line: Instruction, names: list[str]) -> None:
        walker = self._walker
        callee = self._lines.callee(line) if line.opcode == "async-start" else None
        record = walker.records.get(line.name) if callee is None else walker.record_inside(callee)
        if callee is None or record is not None:
            is_async = record is None or record.is_async
            self._collective(line, names, record, is_async=is_async, inside=callee)
            return
        thread = line.search(_THREAD)
        duration = walker.durations.of_thread(callee, thread[1] if thread else "parallel")
        self._timed(line, names, "async", duration, is_async=True)

    def copy(self, line: Instruction, names: list[str]) -> None:
        duration = self._walker.durations.of_copy(line)
        self._timed(line, names, base_op(line.opcode), duration, is_async=True)

    def message(self, line: Instruction, names: list[str]) -> None:
        """A send and a recv of one rendezvous or channel are one transfer from the first of them."""
        mark = line.search(RENDEZVOUS) or line.search(_CHANNEL)
        key = mark[0] if mark else ""
        record = self._walker.records.get(line.name)
        number, opcode = self._transfers.get(key, (CARRIED, line.opcode))
        if opcode != line.opcode:
            del self._transfers[key]
            self._made[line.name] = (number,)
            self._tokens[line.name] = {(): (number, ())}
            step = self._steps[number]
            assert isinstance(step, TimedStep)
            if record is not None and (not step.duration.bytes or opcode == "recv"):
                step.op, step.duration = record.op, self._walker.links.of(record)
                step.source, step.collective = record.source or step.source, record.name
                self._channels.update(step.duration.channels)
            return
        if record is None:
            waiting = Duration(0.0, "links", detail="the other end of a transfer", lane=LINKS)
            number = self._timed(line, names, line.opcode, waiting, is_async=True)
        else:
            number = self._collective(line, names, record, is_async=True)
        if key:
            self._transfers[key] = number, line.opcode

    def fusion(self, line: Instruction, names: list[str]) -> None:
        """A fusion, which may hold a collective: alone, or as a part of a chain."""
        text, walker = self._walker.text, self._walker
        callee = self._lines.callee(line)
        moves = None if callee is None else walker.collectives.get(callee)
        if callee is None or not moves:
            self._compute(line, names)
            return
        chains = [(base_op(move.opcode), move.channel) for move in moves.values()]
        record = walker.record_inside(callee)
        starts_it = text.find(STARTS, callee.start, callee.stop) >= 0
        ends_it = not starts_it and text.find(ENDS, callee.start, callee.stop) >= 0
        if ends_it:
            begun = next((self._chains[chain] for chain in chains if chain in self._chains), None)
            if begun is not None:
                self._steps.append(DoneStep((begun, ())))
                self._made[line.name] = (begun,)
            self._beside(line, names)
        elif record is not None:
            number = self._collective(line, names, record, is_async=starts_it, inside=callee)
            if starts_it:
                self._chains.update(dict.fromkeys(chains, number))
                self._beside(line, names)
        else:
            # A step of a chain, beside the fusion's own work.
            self._compute(line, names)

    def _beside(self, line: Instruction, names: list[str]) -> None:
        """The own work of a fusion that begins or ends a collective, where the compiler gives it cycles."""
        if self._walker.durations.of(line).estimate == "compiler":
            made, tokens = self._made.get(line.name, ()), self._tokens.get(line.name)
            self._compute(line, names)
            self._made[line.name] = (*made, *self._made[line.name])
            if tokens is not None:
                self._tokens[line.name] = tokens

    def done(self, line: Instruction, names: list[str]) -> None:
        held = self._tokens.get(names[0], {}) if names else {}
        self.pass_on(line, names)
        if held and not line.opcode.endswith("-update"):
            self._tokens.pop(line.name, None)
            self._steps.append(DoneStep(held.get((), next(iter(held.values())))))

    def run(self, line: Instruction, names: list[str]) -> None:
        """A loop, of which the condition does not count, a conditional or a call."""
        walker, is_loop = self._walker, line.opcode == "while"
        called = self._lines.called(line, *BODIES)
        if not called:
            unknown = Duration(None, detail="the text lacks what it runs")
            self._timed(line, names, line.opcode, unknown)
            return
        enters = self._tokens.get(names[0], {}) if names and is_loop else {}
        count = walker.trips(line) if is_loop else 1
        if count is None:
            walker.unknown_loops[line.name] = None
        blocks = tuple(
            walker.block(home, frozenset(enters), self._depth + 1)
            for home in (called if line.opcode == "conditional" else called[:1])
        )
        number = len(self._steps)
        self._steps.append(RunStep(_KINDS[line.opcode], line.name, blocks, count, enters))
        self._channels.update(*(block.channels for block in blocks))
        self._made[line.name] = (number,)
        if is_loop and blocks[0].leaves:
            self._tokens[line.name] = {path: (number, path) for path in blocks[0].leaves}


_KINDS: dict[str, SpanKind] = {"while": "loop", "conditional": "branch", "call": "call"}
_Handler = Callable[[_BlockWalk, Instruction, list[str]], None]
_HANDLERS: dict[str, _Handler] = {
    "get-tuple-element": _BlockWalk.element,
    "tuple": _BlockWalk.put_together,
    "fusion": _BlockWalk.fusion,
    **dict.fromkeys(_KINDS, _BlockWalk.run),
    **dict.fromkeys(("copy-start", "slice-start"), _BlockWalk.copy),
    **dict.fromkeys(MESSAGES, _BlockWalk.message),
}


@cache
def _handler(opcode: str) -> _Handler:
    """The way in which an opcode becomes a step."""
    if opcode in _HANDLERS:
        return _HANDLERS[opcode]
    if ends(opcode):
        return _BlockWalk.done
    if begins(opcode):
        return _BlockWalk.start
    return _BlockWalk.collective if opcode in COLLECTIVES else _BlockWalk.work
