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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shardviz.hlo.module import Reader
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.memory_layout import HBM, placed_arrays
from shardviz.hlo.text.opcodes import ALIASES, ARITHMETIC, BODIES, CONTROL, begins
from shardviz.timeline.instruction_work import Path, alias_paths, aliased_outputs
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


Node = _Buffer | None | list["Node"]
"""The buffers of a value: one, none (on the chip, a token), or those of a tuple's elements."""


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
        self._arguments: dict[int, Node] = {}
        self._dying: list[tuple[int, list[_Buffer], _Buffer]] = []
        """Operands that an instruction's result may take the place of, if it is their last use."""
        self._alias_bytes = 0
        self._output_bytes = 0

    def program(self, entry: Computation) -> None:
        """Follow the entry, its arguments and its results."""
        result = self._follow(entry, None, 0)
        last = len(self._order)
        held = set()
        for buffer in _flat([*self._arguments.values()]):
            buffer.kind, buffer.start, buffer.end = "argument", 0, last
            held.add(id(buffer))
        header = self._reader.header
        start = header.find("input_output_alias={")
        stop = header.find(" }", start)
        aliases = header[start : stop if stop >= 0 else None] if start >= 0 else ""
        donated = {path for path, _, _ in alias_paths(aliases)}
        for path, node in _leaves(result):
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

    def _follow(self, home: Computation, given: Sequence[Node] | None, depth: int) -> Node:
        """The value of a computation's result; `given` are those of its parameters, None of the entry's."""
        result: Node = None
        if len(self._order) > MAX_FOLLOWED:
            return result
        values: dict[str, Node] = {}
        for line in self._lines.of(home):
            opcode = line.opcode
            if opcode == "parameter":
                node = self._parameter(line, given)
            elif opcode == "constant":
                node = None
            else:
                operands = [values.get(name) for name in line.operands]
                if opcode == "tuple":
                    node = operands
                elif opcode == "get-tuple-element":
                    node = _element(operands[0], line.element_index) if operands else None
                elif opcode in ALIASES:
                    node = operands[0] if operands else None
                else:
                    node = self._run(line, operands, depth)
            values[line.name] = node
            if line.is_root:
                result = node
        self._keep(result)
        return result

    def _parameter(self, line: Instruction, given: Sequence[Node] | None) -> Node:
        number = line.parameter_number
        if given is not None and number is not None and number < len(given):
            return given[number]
        node = self._made(line, len(self._order))
        if given is None and number is not None:
            self._arguments[number] = node
        return node

    def _keep(self, node: Node) -> None:
        """A value is live up to now."""
        now = len(self._order)
        for buffer in _flat(node):
            buffer.end = now

    def _run(self, line: Instruction, operands: list[Node], depth: int) -> Node:
        """The value of an instruction that does something, and the end of its operands so far."""
        opcode, now = line.opcode, len(self._order)
        for operand in operands:
            if isinstance(operand, _Buffer):
                operand.end = now
            elif operand is not None:
                self._keep(operand)
        self._order.append(line.name)
        if opcode in CONTROL:
            return self._called(line, operands, now, depth)
        if opcode.endswith("-done"):
            return _done(opcode, operands[0] if operands else None)
        node = self._made(line, now)
        if begins(opcode):
            return _started(opcode, operands, node)
        for path, number, inner in aliased_outputs(line):
            if number < len(operands):
                node = _with_leaf(node, path, _leaf(operands[number], inner))
        if node is not None:
            self._share(line, operands, node, now)
        return node

    def _made(self, line: Instruction, now: int) -> Node:
        """New buffers for the result of an instruction."""
        if not line.shape.startswith("("):
            return self._buffer(line, line.shape, now)
        outermost: list[Node] = []
        open_tuples = [outermost]
        for piece in _PIECE.findall(line.shape):
            if piece == "(":
                inner: list[Node] = []
                open_tuples[-1].append(inner)
                open_tuples.append(inner)
            elif piece == ")":
                if len(open_tuples) > 1:
                    open_tuples.pop()
            elif piece != ",":
                open_tuples[-1].append(self._buffer(line, piece, now))
        return outermost[0] if outermost else None

    def _buffer(self, line: Instruction, shape: str, now: int) -> _Buffer | None:
        arrays = placed_arrays(shape)
        if not arrays or arrays[0].space != HBM or not arrays[0].bytes:
            return None
        buffer = _Buffer(line, shape, arrays[0].bytes, now, now)
        self._buffers.append(buffer)
        return buffer

    def _share(self, line: Instruction, operands: list[Node], node: Node, now: int) -> None:
        """Note the operands whose buffer the result may take."""
        results = [node] if isinstance(node, _Buffer) else [leaf for _, leaf in _leaves(node)]
        lists = line.search(_SHARES) if line.says('"aliasing_operands"') else None
        if lists is not None:
            for indices in _INDICES.findall(lists[1]):
                numbers = [int(number) for number in re.findall(r"\d{1,6}", indices)]
                of_operands = [operands[n] for n in numbers if n < len(operands)]
                for number in numbers:
                    if len(operands) <= number < len(operands) + len(results):
                        self._may_share(now, of_operands, results[number - len(operands)])
        elif line.opcode in _ELEMENTWISE or (line.opcode == "fusion" and line.says("kind=kLoop")):
            for result in results:
                self._may_share(now, operands, result)

    def _may_share(self, now: int, operands: Iterable[Node], result: _Buffer | None) -> None:
        if result is None:
            return
        size, candidates = result.bytes, []
        for operand in operands:
            buffers = (operand,) if isinstance(operand, _Buffer) else _flat(operand)
            candidates += [buffer for buffer in buffers if buffer.bytes == size]
        if candidates:
            self._dying.append((now, candidates, result))

    def _called(self, line: Instruction, operands: list[Node], now: int, depth: int) -> Node:
        """A loop, which writes what it carries in place, a call, or a conditional, whose first operand
        chooses among branches with an operand each."""
        callees = self._lines.called(line, *BODIES) if depth < MAX_DEPTH else []
        if line.opcode == "while":
            state = operands[0] if operands else None
            if callees:
                result = self._follow(callees[0], [state], depth + 1)
                held = {id(buffer) for buffer in _flat(state)}
                for (_, before), (_, after) in zip(_leaves(state), _leaves(result), strict=False):
                    if before is not None and after is not None and id(after) not in held:
                        after.bytes = 0
            self._keep(state)
            return state
        if line.opcode == "call" and callees:
            return self._follow(callees[0], operands, depth + 1)
        node = self._made(line, now)
        held = {id(buffer) for buffer in _flat(operands)}
        for number, branch in enumerate(callees, 1):
            result = self._follow(branch, operands[number : number + 1], depth + 1)
            for buffer in _flat(result):
                if id(buffer) not in held:
                    buffer.bytes = 0
        return node

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
        arguments = sum(each.bytes for each in self._buffers if each.kind == "argument")
        fixed = arguments + sum(each.bytes for each in self._buffers if each.kind == "output")
        temporaries = [each for each in self._buffers if each.kind == "temporary" and each.bytes]
        spans = ((each.start, each.end + 1, each.bytes) for each in temporaries)
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
        live = [buffer for buffer in self._buffers if buffer.bytes and buffer.start <= at <= buffer.end]
        for buffer in sorted(live, key=lambda each: -each.bytes)[:MAX_BUFFERS]:
            whole = buffer.kind != "temporary"
            source = self._source(buffer.line)
            is_named = buffer.kind == "argument" and bool(source)
            yield LiveBuffer(
                source if is_named else buffer.line.name,
                buffer.kind,
                _LAYOUT.sub("", buffer.shape),
                buffer.bytes,
                "" if is_named else source,
                first="" if whole else self._name(buffer.start),
                last="" if whole else self._name(buffer.end),
            )

    def _source(self, line: Instruction) -> str:
        """The user's line; of a copy, which has none of its own, that of what it copies."""
        source = self._reader.source_of(line)
        if source or line.opcode not in ("copy-start", "slice-start", "copy"):
            return source
        made = self._lines.operand(line, 0)
        return "" if made is None else self._reader.source_of(made)

    def _name(self, number: int) -> str:
        return self._order[min(number, len(self._order) - 1)] if self._order else ""


def _started(opcode: str, operands: list[Node], node: Node) -> Node:
    """The buffers of what runs beside: its operands, and its results."""
    if opcode == "recv" or not isinstance(node, list) or len(node) < 2:
        return node
    place = 1 if opcode == "copy-start" else 0
    source: Node = operands[0] if operands else None
    if opcode not in ("copy-start", "send") and (isinstance(node[0], list) or len(operands) > 1):
        source = operands
    for buffer in _flat(node[place]):
        buffer.bytes = 0
    node[place] = source
    return node


def _done(opcode: str, node: Node) -> Node:
    """The result of something that ran beside, out of the tuple that its start gave."""
    if not isinstance(node, list) or not node:
        return node
    if opcode in ("copy-done", "recv-done"):
        return node[0]
    return node[1] if opcode != "send-done" and len(node) > 1 else None


def _element(node: Node, index: int | None) -> Node:
    if not isinstance(node, list):
        return node
    return node[index] if index is not None and index < len(node) else None


def _leaf(node: Node, path: Path) -> Node:
    """The part of a value at a path."""
    for index in path:
        node = node[index] if isinstance(node, list) and index < len(node) else None
    return node


def _with_leaf(node: Node, path: Path, leaf: Node) -> Node:
    """A value with another part at a path, whose own buffer is none."""
    if not path:
        for buffer in _flat(node):
            buffer.bytes = 0
        return leaf
    if isinstance(node, list) and path[0] < len(node):
        node[path[0]] = _with_leaf(node[path[0]], path[1:], leaf)
    return node


def _flat(node: Node) -> Iterator[_Buffer]:
    """The buffers of a value."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting.extend(each)
        elif each is not None:
            yield each


def _leaves(node: Node, path: Path = ()) -> Iterator[tuple[Path, _Buffer | None]]:
    """The arrays of a value, each with its path, those without a buffer too."""
    if isinstance(node, list):
        for index, each in enumerate(node):
            yield from _leaves(each, (*path, index))
    else:
        yield path, node
