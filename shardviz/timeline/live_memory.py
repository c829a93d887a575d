"""The memory of a scheduled module, estimated from the order of its instructions.

A buffer is live from the instruction that makes it to the last that reads it, under any of its names. Tuples,
bitcasts, and the values that a loop carries are names of buffers that exist; a loop and a donated argument
are written in place, as are operands that the compiler says may share their buffer with a result
(``aliasing_operands``, ``output_to_operand_aliasing``) or, where it says nothing of it, those of elementwise
work. On-chip memory (``S(1)``) does not count, nor does the scratch memory of a collective. The compiler
packs buffers into one allocation, which this does not imitate: holes in it are not counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from shardviz.hlo.module import Reader
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.opcodes import ALIASES, ARITHMETIC, BODIES, CONTROL, begins
from shardviz.hlo.text.shapes import HBM, placed_arrays
from shardviz.timeline.instruction_work import Path, alias_paths, aliased_outputs, part_of
from shardviz.timeline.program_timeline import BufferKind, LiveBuffer, MemoryReport, live_bytes

MAX_BUFFERS = 100
"""As many of the largest buffers are told."""
MAX_DEPTH = 64
"""Computations within one another, followed at most."""
MAX_FOLLOWED = 100_000
"""No computation is followed after so many instructions: one that is called over and over has no end."""

_SHARES = re.compile(r'"aliasing_operands":\{"lists":\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\}')
_INDICES = re.compile(r'"indices":\[([^\[\]]*)\]')
_LAYOUT = re.compile(r"\{[^{}]*\}")
_PIECE = re.compile(r"[(),]|[a-z][a-z0-9]*\[[^\]]*\](?:\{[^{}]*\})?")
_ELEMENTWISE = ARITHMETIC | {
    *("remainder", "and", "or", "xor", "not", "floor", "ceil", "convert", "select", "compare"),
    *("dynamic-update-slice", "scatter"),
}


@dataclass(slots=True, eq=False)
class _Buffer:
    """A buffer of HBM; `start` and `end` number the first and the last instruction at which it is live."""

    line: Instruction
    shape: str
    bytes: int
    start: int
    end: int
    kind: BufferKind = "temporary"


Value = dict[Path, _Buffer | None]
"""The buffers of a value by their paths in it, None for what has none: it is on the chip, or a token."""


def live_memory(reader: Reader, limit_bytes: int | None = None) -> MemoryReport:
    """The estimate for the entry of a module; without one, all zero. `on_clock` places it on a timeline."""
    liveness = _Liveness(reader)
    if reader.computations.entry is not None:
        liveness.program(reader.computations.entry)
    return liveness.report(limit_bytes)


class _Liveness:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._lines = reader.lines
        self._order: list[str] = []
        self._buffers: list[_Buffer] = []
        self._arguments: dict[int, Value] = {}
        self._elements: dict[int, tuple[Value, dict[int, Value]]] = {}
        self._dying: list[tuple[int, list[_Buffer], _Buffer]] = []
        """Operands that an instruction's result may take the place of, if it is their last use."""
        self._alias_bytes = 0
        self._output_bytes = 0

    def program(self, entry: Computation) -> None:
        """Follow the entry, its arguments and its results."""
        result = self._follow(entry, None, 0)
        last = len(self._order)
        held = set()
        for buffer in _buffers(*self._arguments.values()):
            buffer.kind, buffer.start, buffer.end = "argument", 0, last
            held.add(id(buffer))
        header = self._reader.header
        start = header.find("input_output_alias={")
        stop = header.find(" }", start)
        aliases = header[start : stop if stop >= 0 else None] if start >= 0 else ""
        donated = {path for path, _, _ in alias_paths(aliases)}
        for path, node in result.items():
            if node is None:
                continue
            self._output_bytes += node.bytes
            if path in donated:
                self._alias_bytes += node.bytes
                if id(node) not in held:
                    node.bytes = 0
                continue
            if id(node) in held:
                node = _Buffer(node.line, node.shape, node.bytes, 0, last)
                self._buffers.append(node)
            held.add(id(node))
            node.kind, node.start, node.end = "output", 0, last

    def _follow(self, home: Computation, given: Sequence[Value] | None, depth: int) -> Value:
        """The value of a computation's result; `given` are those of its parameters, None of the entry's."""
        result: Value = {}
        if len(self._order) > MAX_FOLLOWED:
            return result
        values: dict[str, Value] = {}
        for line in self._lines.of(home):
            opcode = line.opcode
            if opcode == "parameter":
                value = self._parameter(line, given)
            elif opcode == "constant":
                value = _NOTHING
            else:
                operands = [values.get(name, _NOTHING) for name in line.operands]
                first = operands[0] if operands else _NOTHING
                if opcode == "tuple":
                    value = _together(operands)
                elif opcode == "get-tuple-element":
                    value = self._element(first, line.element_index)
                elif opcode in ALIASES:
                    value = first
                else:
                    value = self._run(line, operands, depth)
            values[line.name] = value
            if line.is_root:
                result = value
        self._keep(result)
        return result

    def _parameter(self, line: Instruction, given: Sequence[Value] | None) -> Value:
        number = line.parameter_number
        if given is not None and number is not None and number < len(given):
            return given[number]
        value = self._made(line, len(self._order))
        if given is None and number is not None:
            self._arguments[number] = value
        return value

    def _element(self, value: Value, index: int | None) -> Value:
        """An element of a tuple, which is split once: a loop's state may have hundreds."""
        if () in value or index is None:
            return value if () in value else _NOTHING
        known, elements = self._elements.get(id(value), (None, {}))
        if known is not value:
            elements = defaultdict(dict)
            for (number, *path), buffer in value.items():
                elements[number][tuple(path)] = buffer
            self._elements[id(value)] = value, elements
        return elements.get(index, _NOTHING)

    def _keep(self, value: Value) -> None:
        """A value is live up to now."""
        now = len(self._order)
        for buffer in _buffers(value):
            buffer.end = now

    def _run(self, line: Instruction, operands: list[Value], depth: int) -> Value:
        """The value of an instruction that does something, and the end of its operands so far."""
        opcode, now = line.opcode, len(self._order)
        for operand in operands:
            for buffer in operand.values():
                if buffer is not None:
                    buffer.end = now
        self._order.append(line.name)
        if opcode in CONTROL:
            return self._called(line, operands, now, depth)
        if opcode.endswith("-done"):
            # The result of something that ran beside, out of the tuple that its start gave.
            begun = operands[0] if operands else _NOTHING
            if opcode == "send-done" and () not in begun:
                return _NOTHING
            return self._element(begun, 0 if opcode in ("copy-done", "recv-done") else 1)
        value = self._made(line, now)
        if begins(opcode):
            return _started(opcode, operands, value)
        shares = None
        if line.says("aliasing"):
            shares = line.search(_SHARES)
            for path, number, inner in aliased_outputs(line):
                if number < len(operands):
                    value = _replaced(value, path, part_of(operands[number], inner))
        if shares is not None:
            self._share(shares[1], operands, [*value.values()], now)
        elif opcode in _ELEMENTWISE or (opcode == "fusion" and line.says("kind=kLoop")):
            for result in value.values():
                self._may_share(now, operands, result)
        return value

    def _made(self, line: Instruction, now: int) -> Value:
        """New buffers for the result of an instruction."""
        value: Value = {}
        for path, shape, size in _parts(line.shape):
            value[path] = None
            if size:
                value[path] = buffer = _Buffer(line, shape, size, now, now)
                self._buffers.append(buffer)
        return value

    def _share(self, lists: str, operands: list[Value], results: list[_Buffer | None], now: int) -> None:
        """Note the operands whose buffer a result may take, as the compiler lists them."""
        for indices in _INDICES.findall(lists):
            numbers = [int(number) for number in re.findall(r"\d{1,6}", indices)]
            of_operands = [operands[n] for n in numbers if n < len(operands)]
            for number in numbers:
                if len(operands) <= number < len(operands) + len(results):
                    self._may_share(now, of_operands, results[number - len(operands)])

    def _may_share(self, now: int, operands: Iterable[Value], result: _Buffer | None) -> None:
        if result is not None:
            size = result.bytes
            held = [buffer for operand in operands for buffer in operand.values()]
            if candidates := [buffer for buffer in held if buffer is not None and buffer.bytes == size]:
                self._dying.append((now, candidates, result))

    def _called(self, line: Instruction, operands: list[Value], now: int, depth: int) -> Value:
        """A loop, which writes what it carries in place, a call, or a conditional, whose first operand
        chooses among branches with an operand each."""
        callees = self._lines.called(line, *BODIES) if depth < MAX_DEPTH else []
        held = {id(buffer) for buffer in _buffers(*operands)}
        if line.opcode == "while":
            state = operands[0] if operands else _NOTHING
            result = self._follow(callees[0], [state], depth + 1) if callees else _NOTHING
            for path, before in state.items():
                after = result.get(path)
                if before is not None and after is not None and id(after) not in held:
                    after.bytes = 0
            self._keep(state)
            return state
        if line.opcode == "call" and callees:
            return self._follow(callees[0], operands, depth + 1)
        value = self._made(line, now)
        for number, branch in enumerate(callees, 1):
            result = self._follow(branch, operands[number : number + 1], depth + 1)
            for buffer in _buffers(result):
                if id(buffer) not in held:
                    buffer.bytes = 0
        return value

    def report(self, limit_bytes: int | None) -> MemoryReport:
        """Sums, the live bytes while each instruction runs, and the largest buffers at the peak."""
        for now, candidates, result in reversed(self._dying):
            for buffer in candidates:
                if buffer.kind == "temporary" and buffer.end == now and buffer.start < now:
                    buffer.end -= 1
                    if result.kind == "output":
                        # It is made where the output lies, which nothing else takes.
                        buffer.kind, buffer.bytes = "output", 0
                    break
        arguments = sum(buffer.bytes for buffer in self._buffers if buffer.kind == "argument")
        fixed = arguments + sum(buffer.bytes for buffer in self._buffers if buffer.kind == "output")
        temporaries = [buffer for buffer in self._buffers if buffer.kind == "temporary" and buffer.bytes]
        spans = ((temporary.start, temporary.end + 1, temporary.bytes) for temporary in temporaries)
        curve = live_bytes(spans, max(1, len(self._order)), fixed)
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
        live = [buffer for buffer in self._buffers if buffer.bytes and buffer.start <= at <= buffer.end]
        for buffer in sorted(live, key=lambda buffer: -buffer.bytes)[:MAX_BUFFERS]:
            whole = buffer.kind != "temporary"
            source = self._source(buffer.line)
            is_named = buffer.kind == "argument" and bool(source)
            yield LiveBuffer(
                source if is_named else buffer.line.name,
                buffer.kind,
                _LAYOUT.sub("", buffer.shape),
                buffer.bytes,
                "" if is_named else source,
                first="" if whole else names[min(buffer.start, len(names) - 1)],
                last="" if whole else names[min(buffer.end, len(names) - 1)],
            )

    def _source(self, line: Instruction) -> str:
        """The user's line; of a copy, which has none of its own, that of what it copies."""
        source, made = self._reader.source_of(line), None
        if not source and line.opcode in ("copy-start", "slice-start", "copy"):
            made = self._lines.operand(line, 0)
        return source if made is None else self._reader.source_of(made)


_NOTHING: Value = {}


@lru_cache(maxsize=4096)
def _parts(shape: str) -> tuple[tuple[Path, str, int], ...]:
    """The arrays of a shape by their paths, each with its bytes in HBM."""
    parts = []
    path: list[int] = []
    for piece in _PIECE.findall(shape) if shape.startswith("(") else [shape]:
        if piece == "(":
            path.append(0)
        elif piece == ")":
            del path[-1:]
        elif piece != ",":
            arrays = placed_arrays(piece)
            parts.append((tuple(path), piece, arrays[0].bytes if arrays and arrays[0].space == HBM else 0))
        elif path:
            path[-1] += 1
    return tuple(parts)


def _buffers(*values: Value) -> Iterator[_Buffer]:
    return (buffer for value in values for buffer in value.values() if buffer is not None)


def _together(elements: Iterable[Value]) -> Value:
    return {
        (index, *path): buffer for index, element in enumerate(elements) for path, buffer in element.items()
    }


def _replaced(value: Value, path: Path, part: Value) -> Value:
    """A value with another part at a path, whose own buffer is none."""
    size, rest = len(path), {}
    for own, buffer in value.items():
        if own[:size] != path:
            rest[own] = buffer
        elif buffer is not None:
            buffer.bytes = 0
    if len(rest) < len(value):
        rest.update(((*path, *own), buffer) for own, buffer in part.items())
    return rest


def _started(opcode: str, operands: list[Value], value: Value) -> Value:
    """The buffers of what runs beside: its operands, and its results."""
    if opcode == "recv" or not any(path[:1] == (1,) for path in value):
        return value
    first = operands[0] if operands else _NOTHING
    if opcode in ("copy-start", "send"):
        return _replaced(value, (1,) if opcode == "copy-start" else (0,), first)
    is_packed = len(operands) > 1 or any(path[:1] == (0,) and path[1:] for path in value)
    return _replaced(value, (0,), _together(operands) if is_packed else first)
