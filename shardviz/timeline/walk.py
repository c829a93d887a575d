"""The computations of a scheduled module, in the order of their instructions, as steps.

Asynchronous are every ``-start`` up to its ``-done``, ``send`` and ``recv`` up to theirs, computations that
an ``async-start`` or a ``call-start`` runs, and TPU's chains of fusions: one that holds
``AsyncCollectiveStart`` begins a collective, one that holds ``AsyncCollectiveDone`` waits for it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain

from shardviz.hlo.collective import Collective
from shardviz.hlo.module import HloModule
from shardviz.hlo.overlap import ALGORITHM, ENDS, STARTS
from shardviz.hlo.text.cross_slice import RENDEZVOUS
from shardviz.hlo.text.instruction import Computation
from shardviz.hlo.text.opcodes import ASYNC_STARTS, BODIES, COLLECTIVES, MESSAGES, base_op, begins, ends
from shardviz.hlo.text.values import Path
from shardviz.timeline.durations import Channel, Duration, Durations, LinkTimes, takes_time
from shardviz.timeline.program_timeline import LINKS, SpanKind
from shardviz.timeline.rows import MAX_DEPTH, Form, ProgramRows
from shardviz.timeline.simulation import CARRIED, Block, RunStep, TimedWork, Token

_CHANNEL = re.compile(r"channel_id=\d{1,18}")
_THREAD = re.compile(r'async_execution_thread="([^"\n]{1,40})"')
Made = tuple[int, ...]
"""The steps whose results an instruction's result holds."""


class Walker:
    """Walks one text."""

    def __init__(self, rows: ProgramRows, module: HloModule, durations: Durations, links: LinkTimes) -> None:
        reader = rows.reader
        self.rows = rows
        self.lines = reader.lines
        self.collectives = reader.collectives
        self.durations = durations
        self.links = links
        self.trips = reader.calls.trips
        self.records = {record.name: record for record in reversed(module.collectives)}
        self.unknown_loops: dict[str, None] = {}
        self._entry = reader.computations.entry
        self._blocks: dict[tuple[int, frozenset[Path]], Block] = {}

    def entry(self) -> Block | None:
        """The steps of the module's entry, with a wait for all that nothing else waits for."""
        if self._entry is None:
            return None
        block = self.block(self._entry, frozenset(), 0)
        waited = {step for step in block.steps if isinstance(step, tuple)}
        for number, step in enumerate([*block.steps]):
            if isinstance(step, TimedWork) and step.is_async and (number, ()) not in waited:
                block.add((number, ()))
        return block

    def block(self, home: Computation, entering: frozenset[Path], depth: int) -> Block:
        """The steps of a computation whose parameter has things under way at these paths."""
        key = home.start, entering
        if key not in self._blocks:
            self._blocks[key] = Block(home.name)
            if depth <= MAX_DEPTH:
                self._blocks[key] = _BlockWalk(self, home, entering, depth).walked()
        return self._blocks[key]

    def record_inside(self, home: Computation) -> Collective | None:
        """The collective in a computation that a fusion or an async-start calls."""
        names = (line.name for line in self.collectives.get(home, ()))
        return next((self.records[name] for name in names if name in self.records), None)


class _BlockWalk:
    """The walk through one computation, of which instructions go by their numbers in its rows."""

    def __init__(self, walker: Walker, home: Computation, entering: frozenset[Path], depth: int) -> None:
        self._walker = walker
        self._lines = walker.lines
        self._rows = walker.rows.of(home)
        self._depth = depth
        self._entering = entering
        self._block = Block(home.name)
        self._channels: set[Channel] = set()
        self._shapes = [form.shape for form in self._rows.forms] + [""]
        self._made: list[Made] = [()] * len(self._shapes)
        # What each element of a tuple holds, and what is under way in a result.
        self._parts: dict[int, list[Made]] = {}
        self._tokens: dict[int, dict[Path, Token]] = {}
        # The sends and recvs whose other end is to come, by their rendezvous or channel.
        self._transfers: dict[str, tuple[int, str]] = {}
        # The collectives under way in chains of fusions.
        self._chains: dict[tuple[str, str], int] = {}

    def walked(self) -> Block:
        rows, made, block = self._rows, self._made, self._block
        shapes, steps, names, reads = self._shapes, block.steps, block.names, block.reads
        made_of = made.__getitem__
        for number, (form, operands) in enumerate(zip(rows.forms, rows.operands, strict=True)):
            # Most instructions are work of the device that is known from others: this is `work`, at once.
            work = form.works.get(tuple([shapes[operand] for operand in operands])) if form.works else None
            if work is None or work.is_async:
                made[number] = _handler(form.opcode)(self, number, form, operands)
            else:
                made[number] = (len(steps),)
                steps.append(work)
                names.append(rows.names[number])
                reads.append(made[operands[0]] if len(operands) == 1 else (*chain(*map(made_of, operands)),))
        block.leaves = dict(self._tokens.get(rows.root, {}))
        block.channels = frozenset(self._channels)
        return block

    def _reads(self, operands: Sequence[int]) -> Made:
        """The steps whose results some operands hold, each once."""
        reads: Made = ()
        for operand in operands:
            more = self._made[operand]
            if more and more != reads:
                reads = tuple(dict.fromkeys(reads + more)) if reads else more
        return reads

    def _timed(self, number: int, operands: Sequence[int], work: TimedWork) -> Made:
        step = self._block.add(work, self._rows.names[number], self._reads(operands))
        self._channels.update(work.duration.channels)
        if work.is_async:
            self._tokens[number] = {(): (step, ())}
        return (step,)

    def nothing(self, number: int, form: Form, _operands: Sequence[int]) -> Made:
        if form.opcode == "parameter" and self._entering:
            self._tokens[number] = {path: (CARRIED, path) for path in self._entering}
        return ()

    def pass_on(self, number: int, _form: Form, operands: Sequence[int]) -> Made:
        if operands and operands[0] in self._tokens:
            self._tokens[number] = self._tokens[operands[0]]
        if operands and operands[0] in self._parts:
            self._parts[number] = self._parts[operands[0]]
        return self._reads(operands)

    def element(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        index = form.element
        if not operands or index is None:
            return ()
        whole = operands[0]
        if held := self._tokens.get(whole):
            inner = {path[1:]: token for path, token in held.items() if path[:1] == (index,)}
            if inner or () in held:
                self._tokens[number] = inner or {(): held[()]}
        parts = self._parts.get(whole, ())
        return parts[index] if index < len(parts) else self._made[whole]

    def put_together(self, number: int, _form: Form, operands: Sequence[int]) -> Made:
        self._parts[number] = [self._made[operand] for operand in operands]
        tokens = ((index, self._tokens[each]) for index, each in enumerate(operands) if each in self._tokens)
        if held := {(index, *path): token for index, own in tokens for path, token in own.items()}:
            self._tokens[number] = held
        return ()

    def work(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        """The device's own work, or only a name."""
        work = self._own_work(form, operands)
        return self.pass_on(number, form, operands) if work is None else self._timed(number, operands, work)

    def _own_work(self, form: Form, operands: Sequence[int]) -> TimedWork | None:
        shapes = tuple([self._shapes[operand] for operand in operands])
        work = form.own_works.get(shapes)
        if work is None and takes_time(form.line):
            durations = self._walker.durations
            op = "matmul" if self._lines.is_matmul(form.line) else form.opcode
            work = form.own_works[shapes] = TimedWork(op, durations.of(form.line, shapes), form.source)
        return work

    def collective(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        record = self._walker.records.get(self._rows.names[number])
        return self._timed(number, operands, self._link_work(form, record, is_async=False))

    def _link_work(
        self, form: Form, record: Collective | None, *, is_async: bool, inside: str = ""
    ) -> TimedWork:
        """A collective; the compiler's words on it may stand `inside` of what its instruction calls."""
        if record is None:
            duration = Duration(None, detail="it could not be read", lane=LINKS)
            return TimedWork(base_op(form.opcode), duration, form.source, is_async)
        words = next((text for text in (inside, form.tail) if ALGORITHM in text), "").partition(ALGORITHM)
        duration = self._walker.links.of(record, words[1] + words[2].partition('},"')[0])
        return TimedWork(record.op, duration, record.source, is_async, record.name)

    def _text(self, home: Computation) -> str:
        return self._lines.text[home.start : home.stop]

    def start(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        walker = self._walker
        callee = self._lines.callee(form.line) if form.opcode in ASYNC_STARTS else None
        name = self._rows.names[number]
        record = walker.records.get(name) if callee is None else walker.record_inside(callee)
        if callee is None or record is not None:
            inside = "" if callee is None else self._text(callee)
            is_async = record is None or record.is_async
            work = self._link_work(form, record, is_async=is_async, inside=inside)
            return self._timed(number, operands, work)
        thread = _THREAD.search(form.tail)
        duration = walker.durations.of_thread(callee, thread[1] if thread else "parallel")
        return self._timed(number, operands, TimedWork("async", duration, form.source, is_async=True))

    def copy(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        work = form.works.get(())
        if work is None:
            duration = self._walker.durations.of_copy(form.shape)
            work = form.works[()] = TimedWork(base_op(form.opcode), duration, form.source, is_async=True)
        return self._timed(number, operands, work)

    def message(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        """A send and a recv of one rendezvous or channel are one transfer from the first of them."""
        mark = RENDEZVOUS.search(form.tail) or _CHANNEL.search(form.tail)
        key, opcode = mark[0] if mark else "", form.opcode
        record = self._walker.records.get(self._rows.names[number])
        begun, first = self._transfers.get(key, (CARRIED, opcode))
        if first != opcode:
            del self._transfers[key]
            self._tokens[number] = {(): (begun, ())}
            before = self._block.steps[begun]
            assert isinstance(before, TimedWork)
            if record is not None and (not before.duration.bytes or first == "recv"):
                duration, source = self._walker.links.of(record), record.source or before.source
                self._block.steps[begun] = TimedWork(record.op, duration, source, True, record.name)
                self._channels.update(duration.channels)
            return (begun,)
        if record is None:
            waiting = Duration(0.0, "links", detail="the other end of a transfer", lane=LINKS)
            work = TimedWork(opcode, waiting, form.source, is_async=True)
        else:
            work = self._link_work(form, record, is_async=True)
        made = self._timed(number, operands, work)
        if key:
            self._transfers[key] = made[0], opcode
        return made

    def fusion(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        """A fusion, which may hold a collective: alone, or as a part of a chain."""
        walker = self._walker
        callee = self._lines.callee(form.line)
        moves = None if callee is None else walker.collectives.get(callee)
        if callee is None or not moves:
            return self.work(number, form, operands)
        chains = [(base_op(move.opcode), move.channel) for move in moves]
        record, text = walker.record_inside(callee), self._text(callee)
        starts_it = STARTS in text
        if not starts_it and ENDS in text:
            begun = next((self._chains[chain] for chain in chains if chain in self._chains), None)
            if begun is not None:
                self._block.add((begun, ()))
            return self._beside(number, form, operands, () if begun is None else (begun,))
        if record is None:
            # A step of a chain, beside the fusion's own work.
            return self.work(number, form, operands)
        made = self._timed(number, operands, self._link_work(form, record, is_async=starts_it, inside=text))
        if starts_it:
            self._chains.update(dict.fromkeys(chains, made[0]))
            return self._beside(number, form, operands, made)
        return made

    def _beside(self, number: int, form: Form, operands: Sequence[int], made: Made) -> Made:
        """The own work of a fusion that begins or ends a collective, where the compiler gives it cycles."""
        work = self._own_work(form, operands)
        if work is None or work.duration.estimate != "compiler":
            return made
        return (*made, *self._timed(number, operands, work))

    def done(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        held = self._tokens.get(operands[0], {}) if operands else {}
        made = self.pass_on(number, form, operands)
        if held and not form.opcode.endswith("-update"):
            self._tokens.pop(number, None)
            self._block.add(held.get((), next(iter(held.values()))))
        return made

    def run(self, number: int, form: Form, operands: Sequence[int]) -> Made:
        """A loop, of which the condition does not count, a conditional or a call."""
        walker, is_loop, line = self._walker, form.opcode == "while", self._rows.line(number)
        called = self._lines.called(line, *BODIES)
        if not called:
            unknown = Duration(None, detail="the text lacks what it runs")
            return self._timed(number, operands, TimedWork(form.opcode, unknown, form.source))
        enters = self._tokens.get(operands[0], {}) if operands and is_loop else {}
        count = walker.trips(line) if is_loop else 1
        if count is None:
            walker.unknown_loops[line.name] = None
        blocks = tuple(
            walker.block(home, frozenset(enters), self._depth + 1)
            for home in (called if form.opcode == "conditional" else called[:1])
        )
        step = self._block.add(RunStep(_KINDS[form.opcode], blocks, count, enters), line.name)
        self._channels.update(*(block.channels for block in blocks))
        if is_loop and blocks[0].leaves:
            self._tokens[number] = {path: (step, path) for path in blocks[0].leaves}
        return (step,)


_KINDS: dict[str, SpanKind] = {"while": "loop", "conditional": "branch", "call": "call"}
_Handler = Callable[[_BlockWalk, int, Form, Sequence[int]], Made]
_HANDLERS: dict[str, _Handler] = {
    "get-tuple-element": _BlockWalk.element,
    "tuple": _BlockWalk.put_together,
    "fusion": _BlockWalk.fusion,
    **dict.fromkeys(("parameter", "constant", "partition-id", "replica-id"), _BlockWalk.nothing),
    **dict.fromkeys(_KINDS, _BlockWalk.run),
    **dict.fromkeys(("copy-start", "slice-start"), _BlockWalk.copy),
    **dict.fromkeys(MESSAGES, _BlockWalk.message),
}


@cache
def _handler(opcode: str) -> _Handler:
    if opcode in _HANDLERS:
        return _HANDLERS[opcode]
    if ends(opcode):
        return _BlockWalk.done
    if begins(opcode):
        return _BlockWalk.start
    return _BlockWalk.collective if opcode in COLLECTIVES else _BlockWalk.work
