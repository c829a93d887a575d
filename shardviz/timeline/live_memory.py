"""The memory of a scheduled module, estimated from the order of its instructions.

A buffer is live from the instruction that makes it to the last that reads it, under any of its names: tuples,
bitcasts, what a loop carries. A loop and a donated argument are written in place, as are operands that the
compiler says may share their buffer with a result (``aliasing_operands``, ``output_to_operand_aliasing``) or,
where it says nothing of it, those of elementwise work. On-chip memory (``S(1)``), the scratch memory of a
collective, and holes in the compiler's one allocation do not count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.opcodes import ALIASES, BODIES, CONTROL
from shardviz.hlo.text.values import Path
from shardviz.timeline.instruction_work import alias_paths, aliased_outputs
from shardviz.timeline.program_timeline import BufferKind, LiveBuffer, MemoryReport, live_bytes
from shardviz.timeline.rows import MAX_DEPTH, Arrays, BufferArray, ProgramRows, Rows

MAX_BUFFERS = 100
"""As many of the largest buffers are told."""
MAX_FOLLOWED = 100_000
"""No computation is followed after so many instructions: one that is called over and over has no end."""
Value = int | tuple["Value", ...]
"""The number of an array's buffer, `NO_BUFFER` of what is on the chip or a token; or a tuple's elements."""
NO_BUFFER = -1
_NOTHING: Value = ()


def live_memory(rows: ProgramRows, limit_bytes: int | None = None) -> MemoryReport:
    """The estimate for the entry of a module; without one, all zero. `on_clock` places it on a timeline."""
    liveness = _Liveness(rows)
    if (entry := rows.reader.computations.entry) is not None:
        liveness.program(entry)
    return liveness.report(limit_bytes)


class _Liveness:
    def __init__(self, rows: ProgramRows) -> None:
        self._rows = rows
        self._reader = rows.reader
        # The names of the instructions that run.
        self._order: list[str] = []
        # A buffer of HBM is a number into these: its bytes, the places in the order of the first instruction
        # at which it is live and behind the last, and its maker's rows and number there, with its shape.
        self._bytes: list[int] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._makers: list[tuple[Rows, int, str]] = []
        self._kinds: dict[int, BufferKind] = {}  # of those that are not temporary
        self._arguments: dict[int, Value] = {}
        # Operands that an instruction's result may take the place of, if it is their last use.
        self._dying: list[tuple[int, list[int], int]] = []
        self._alias_bytes = self._output_bytes = 0

    def program(self, entry: Computation) -> None:
        result = self._follow(entry, None, 0)
        held = {*_buffers(*self._arguments.values())}
        for buffer in held:
            self._keep_throughout(buffer, "argument")
        header = self._reader.header
        start = header.find("input_output_alias={")
        stop = header.find(" }", start)
        aliases = header[start : stop if stop >= 0 else None] if start >= 0 else ""
        donated = {path for path, _, _ in alias_paths(aliases)}
        for path, buffer in _paths(result):
            if buffer == NO_BUFFER:
                continue
            size = self._bytes[buffer]
            self._output_bytes += size
            if path in donated:
                self._alias_bytes += size
                if buffer not in held:
                    self._bytes[buffer] = 0
                continue
            if buffer in held:
                buffer = self._buffer(*self._makers[buffer], size, 0)
            held.add(buffer)
            self._keep_throughout(buffer, "output")

    def _keep_throughout(self, buffer: int, kind: BufferKind) -> None:
        self._kinds[buffer] = kind
        self._starts[buffer], self._ends[buffer] = 0, len(self._order) + 1

    def _follow(self, home: Computation, given: Sequence[Value] | None, depth: int) -> Value:
        """The value of a computation's result; `given` are those of its parameters, None of the entry's."""
        if len(self._order) > MAX_FOLLOWED:
            return _NOTHING
        rows, order, starts, ends = self._rows.of(home), self._order, self._starts, self._ends
        sizes, makers, names = self._bytes, self._makers, rows.names
        values = [_NOTHING] * (len(names) + 1)
        for number, (form, numbers) in enumerate(zip(rows.forms, rows.operands, strict=True)):
            if form.array is not None:
                # Most instructions: this is `_run` at once.
                now, (shape, size) = len(order), form.array
                held: list[int] = []
                for operand in numbers:
                    value = values[operand]
                    if not isinstance(value, int):
                        held += self._used(now, value)
                    elif value >= 0:
                        ends[value] = now + 1
                        held.append(value)
                order.append(names[number])
                if not size:
                    values[number] = NO_BUFFER
                    continue
                values[number] = len(starts)
                makers.append((rows, number, shape))
                sizes.append(size)
                starts.append(now)
                ends.append(now + 1)
                if held and form.is_elementwise:
                    self._may_share(now, held, len(starts) - 1)
                continue
            opcode = form.opcode
            if opcode == "constant":
                continue
            operands = [values[operand] for operand in numbers]
            first = operands[0] if operands else _NOTHING
            if opcode == "parameter":
                values[number] = self._parameter(rows, number, given)
            elif opcode == "tuple":
                values[number] = tuple(operands)
            elif opcode == "get-tuple-element":
                values[number] = _element(first, form.element)
            elif opcode in ALIASES:
                values[number] = first
            else:
                now = len(order)
                self._used(now, *operands)
                order.append(names[number])
                if opcode in CONTROL:
                    values[number] = self._called(rows, number, operands, depth)
                elif opcode == "send-done" and not isinstance(first, int):
                    values[number] = _NOTHING
                elif opcode.endswith("-done"):
                    # The result of what ran beside, out of the tuple that its start gave.
                    values[number] = _element(first, 0 if opcode in ("copy-done", "recv-done") else 1)
                else:
                    values[number] = self._run(rows, number, operands, now)
        self._used(len(order), values[rows.root])
        return values[rows.root]

    def _used(self, now: int, *values: Value) -> list[int]:
        """The buffers of values, which the instruction at this place in the order still needs."""
        held = _buffers(*values)
        for buffer in held:
            self._ends[buffer] = now + 1
        return held

    def _parameter(self, rows: Rows, number: int, given: Sequence[Value] | None) -> Value:
        index = rows.line(number).parameter_number
        if given is not None and index is not None and index < len(given):
            return given[index]
        value = self._made(rows, number, len(self._order))
        if given is None and index is not None:
            self._arguments[index] = value
        return value

    def _made(self, rows: Rows, number: int, now: int) -> Value:
        """New buffers for the result of an instruction."""

        def made(arrays: Arrays) -> Value:
            if not isinstance(arrays, BufferArray):
                return tuple(map(made, arrays))
            return self._buffer(rows, number, *arrays, now) if arrays.bytes else NO_BUFFER

        return made(rows.forms[number].arrays)

    def _buffer(self, rows: Rows, number: int, shape: str, size: int, now: int) -> int:
        self._makers.append((rows, number, shape))
        self._bytes.append(size)
        self._starts.append(now)
        self._ends.append(now + 1)
        return len(self._starts) - 1

    def _run(self, rows: Rows, number: int, operands: list[Value], now: int) -> Value:
        """The value of an instruction that makes something new."""
        form = rows.forms[number]
        value = self._made(rows, number, now)
        if form.begins:
            return self._started(form.opcode, operands, value)
        for path, index, inner in aliased_outputs(form.tail) if form.has_aliases else ():
            if index < len(operands):
                other = reduce(lambda part, each: _element(part, each, _NOTHING), inner, operands[index])
                value = self._replaced(value, path, other)
        if form.shared:
            results = {index: buffer for index, (_, buffer) in enumerate(_paths(value), len(operands))}
            for numbers in form.shared:
                held = _buffers(*(operands[each] for each in numbers if each < len(operands)))
                for each in filter(results.__contains__, numbers):
                    self._may_share(now, held, results[each])
        elif form.is_elementwise:
            for result in _buffers(value):
                self._may_share(now, _buffers(*operands), result)
        return value

    def _started(self, opcode: str, operands: list[Value], value: Value) -> Value:
        """The buffers of what runs beside: its operands, and its results."""
        if opcode == "recv" or isinstance(value, int) or len(value) < 2:
            return value
        first = operands[0] if operands else _NOTHING
        if opcode in ("copy-start", "send"):
            return self._replaced(value, (int(opcode == "copy-start"),), first)
        is_packed = len(operands) > 1 or not isinstance(value[0], int)
        return self._replaced(value, (0,), tuple(operands) if is_packed else first)

    def _replaced(self, value: Value, path: Path, other: Value) -> Value:
        """A value with another at a path in it, whose own buffers are none."""
        if not path:
            for buffer in _buffers(value):
                self._bytes[buffer] = 0
            return other
        if isinstance(value, int) or path[0] >= len(value):
            return value
        elements = [*value]
        elements[path[0]] = self._replaced(value[path[0]], path[1:], other)
        return tuple(elements)

    def _may_share(self, now: int, held: Iterable[int], result: int) -> None:
        """Note those of the operands' buffers that are as large as a result, which may take their place."""
        if result >= 0:
            sizes, size = self._bytes, self._bytes[result]
            if candidates := [buffer for buffer in held if sizes[buffer] == size]:
                self._dying.append((now, candidates, result))

    def _called(self, rows: Rows, number: int, operands: list[Value], depth: int) -> Value:
        """A loop, which writes what it carries in place, a call, or a conditional, whose first operand
        chooses among branches with an operand each."""
        line, now = rows.line(number), len(self._order) - 1
        callees = self._reader.lines.called(line, *BODIES) if depth < MAX_DEPTH else []
        held = {*_buffers(*operands)}
        if line.opcode == "while":
            state = operands[0] if operands else _NOTHING
            result = dict(_paths(self._follow(callees[0], [state], depth + 1) if callees else _NOTHING))
            for path, before in _paths(state):
                after = result.get(path, NO_BUFFER)
                if before >= 0 and after >= 0 and after not in held:
                    self._bytes[after] = 0
            self._used(len(self._order), state)
            return state
        if line.opcode == "call" and callees:
            return self._follow(callees[0], operands, depth + 1)
        value = self._made(rows, number, now)
        for index, branch in enumerate(callees, 1):
            for buffer in _buffers(self._follow(branch, operands[index : index + 1], depth + 1)):
                if buffer not in held:
                    self._bytes[buffer] = 0
        return value

    def report(self, limit_bytes: int | None) -> MemoryReport:
        """Sums, the live bytes while each instruction runs, and the largest buffers at the peak."""
        starts, ends, kinds = self._starts, self._ends, self._kinds
        for now, candidates, result in reversed(self._dying):
            for buffer in candidates:
                if ends[buffer] == now + 1 and starts[buffer] < now and buffer not in kinds:
                    ends[buffer] -= 1
                    if kinds.get(result) == "output":
                        # It is made where the output lies, which nothing else takes.
                        kinds[buffer], self._bytes[buffer] = "output", 0
                    break
        arguments = sum(self._bytes[buffer] for buffer, kind in kinds.items() if kind == "argument")
        fixed = sum(map(self._bytes.__getitem__, kinds))
        sizes = [*self._bytes]
        for buffer in kinds:
            sizes[buffer] = 0
        curve = live_bytes(zip(starts, ends, sizes, strict=True), max(1, len(self._order)), fixed)
        peak = max(curve)
        return MemoryReport(
            "estimate",
            arguments,
            self._output_bytes,
            self._alias_bytes,
            peak - fixed,
            peak,
            limit_bytes,
            tuple(self._largest(curve.index(peak))),
            order=tuple(zip(self._order, curve, strict=False)),
        )

    def _largest(self, at: int) -> Iterator[LiveBuffer]:
        names = self._order or [""]
        spans = enumerate(zip(self._starts, self._ends, self._bytes, strict=True))
        live = [buffer for buffer, (start, end, size) in spans if size and start <= at < end]
        for buffer in sorted(live, key=lambda buffer: -self._bytes[buffer])[:MAX_BUFFERS]:
            rows, number, shape = self._makers[buffer]
            line, kind = rows.line(number), self._kinds.get(buffer, "temporary")
            source = self._source(line)
            is_named = kind == "argument" and bool(source)
            ends = (self._starts[buffer], self._ends[buffer] - 1) if kind == "temporary" else ()
            first, last = [names[min(end, len(names) - 1)] for end in ends] or ("", "")
            yield LiveBuffer(
                source if is_named else line.name,
                kind,
                re.sub(r"\{[^{}]*\}", "", shape),  # without its layout
                self._bytes[buffer],
                "" if is_named else source,
                first=first,
                last=last,
            )

    def _source(self, line: Instruction) -> str:
        """The user's line; of a copy, which has none of its own, that of what it copies."""
        source, made = self._reader.source_of(line), None
        if not source and line.opcode in ("copy-start", "slice-start", "copy"):
            made = self._reader.lines.operand(line, 0)
        return source if made is None else self._reader.source_of(made)


def _element(value: Value, index: int | None, of_array: Value | None = None) -> Value:
    """An element of a tuple; of an array `of_array`, by default itself."""
    if isinstance(value, int):
        return value if of_array is None else of_array
    return value[index] if index is not None and index < len(value) else _NOTHING


def _buffers(*values: Value) -> list[int]:
    """The buffers of all arrays in some values."""
    buffers = []
    for value in values:
        if not isinstance(value, int):
            buffers += _buffers(*value)
        elif value >= 0:
            buffers.append(value)
    return buffers


def _paths(value: Value) -> Iterator[tuple[Path, int]]:
    """The arrays of a value by their paths in it; an array has itself alone."""
    if isinstance(value, int):
        yield (), value
        return
    for number, element in enumerate(value):
        for path, buffer in _paths(element):
            yield (number, *path), buffer
