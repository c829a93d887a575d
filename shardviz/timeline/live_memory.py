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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from shardviz.hlo.module import Reader
from shardviz.hlo.text.instruction import Computation, Instruction
from shardviz.hlo.text.memory_layout import HBM, placed_arrays
from shardviz.hlo.text.opcodes import ALIASES, ARITHMETIC, BODIES, CONTROL, begins
from shardviz.timeline.instruction_work import Path, alias_paths, aliased_outputs
from shardviz.timeline.memory import LiveBuffer, MemoryReport

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
    kind: str = "temporary"


Node = _Buffer | None | list["Node"]
"""The buffers of a value: one, none (on the chip, a token), or those of a tuple's elements."""


def live_memory(reader: Reader, limit_bytes: int | None = None) -> MemoryReport:
    """The estimate for the entry of a module; without one, all zero. `on_clock` places it on a timeline."""
    entry = reader.computations.entry
    found = _Liveness(reader)
    if entry is not None:
        found.program(entry)
    return found.report(limit_bytes)


@dataclass(slots=True)
class _Scope:
    """A computation that is followed: the values of its names."""

    home: Computation
    depth: int
    values: dict[str, Node] = field(default_factory=dict)


class _Liveness:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._text = reader.text
        self._lines = reader.lines
        self._order: list[str] = []
        self._buffers: list[_Buffer] = []
        self._arguments: list[_Buffer] = []
        self._outputs: list[_Buffer] = []
        self._dying: list[tuple[int, list[_Buffer], _Buffer]] = []
        """Operands that an instruction's result may take the place of, if it is their last use."""
        self._alias_bytes = 0
        self._output_bytes = 0

    def program(self, entry: Computation) -> None:
        """Follow the entry, its arguments and its results."""
        scope = _Scope(entry, 0)
        result = self._follow(scope, None)
        last = len(self._order)
        parameters: dict[int, Node] = {}
        for line in self._lines.of(entry):
            if line.opcode == "parameter" and (number := line.parameter_number) is not None:
                parameters[number] = scope.values[line.name]
        for node in parameters.values():
            for buffer in _flat(node):
                buffer.kind, buffer.start, buffer.end = "argument", 0, last
                self._arguments.append(buffer)
        donated = {path for path, _, _ in self._aliases()}
        held = {id(buffer) for buffer in self._arguments}
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
            self._outputs.append(node)

    def _aliases(self) -> list[tuple[Path, int, Path]]:
        """The results that are written over an argument."""
        header = self._reader.header
        start = header.find("input_output_alias={")
        stop = header.find(" }", start)
        return [*alias_paths(header[start : stop if stop >= 0 else len(header)])] if start >= 0 else []

    def _follow(self, scope: _Scope, given: list[Node] | None) -> Node:
        """The value of a computation's result; `given` are those of its parameters."""
        result: Node = None
        if len(self._order) > MAX_FOLLOWED:
            return result
        for line in self._lines.of(scope.home):
            node = self._value(scope, line, given)
            scope.values[line.name] = node
            if line.is_root:
                result = node
        for buffer in _flat(result):
            buffer.end = max(buffer.end, len(self._order))
        return result

    def _value(self, scope: _Scope, line: Instruction, given: list[Node] | None) -> Node:
        opcode = line.opcode
        if opcode == "parameter":
            number = line.parameter_number
            if given is not None and number is not None and number < len(given):
                return given[number]
            return self._made(line, len(self._order))
        if opcode == "constant":
            return None
        operands = [*map(scope.values.get, line.operands)]
        if opcode == "tuple":
            return operands
        if opcode == "get-tuple-element":
            index = line.element_index
            tuple_ = operands[0] if operands else None
            if isinstance(tuple_, list) and index is not None and index < len(tuple_):
                return tuple_[index]
            return tuple_ if not isinstance(tuple_, list) else None
        if opcode in ALIASES:
            return operands[0] if operands else None
        now = len(self._order)
        self._order.append(line.name)
        for operand in operands:
            if isinstance(operand, _Buffer):
                operand.end = max(operand.end, now)
            elif operand is not None:
                for buffer in _flat(operand):
                    buffer.end = max(buffer.end, now)
        if opcode == "while":
            return self._loop(scope, line, operands)
        if opcode in CONTROL:
            return self._called(scope, line, operands, now)
        if opcode.endswith("-done"):
            return _done(opcode, operands[0] if operands else None)
        if begins(opcode):
            return self._started(line, operands, now)
        node = self._made(line, now)
        for path, number, inner in aliased_outputs(line):
            if number < len(operands):
                node = _with_leaf(node, path, _leaf(operands[number], inner))
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
        found = _Buffer(line, shape, arrays[0].bytes, now, now)
        self._buffers.append(found)
        return found

    def _share(self, line: Instruction, operands: list[Node], node: Node, now: int) -> None:
        """Note the operands whose buffer the result may take."""
        if node is None:
            return
        results = [node] if isinstance(node, _Buffer) else [leaf for _, leaf in _leaves(node)]
        if not any(results):
            return
        said = False
        if (lists := line.search(_SHARES)) is not None:
            said = True
            for found in _INDICES.findall(lists[1]):
                numbers = [int(number) for number in re.findall(r"\d{1,6}", found)]
                of_operands = [operands[n] for n in numbers if n < len(operands)]
                for number in numbers:
                    place = number - len(operands)
                    if 0 <= place < len(results) and (result := results[place]) is not None:
                        self._may_share(now, of_operands, result)
        if said or not (line.opcode in _ELEMENTWISE or self._is_loop_fusion(line)):
            return
        for result in results:
            if result is not None:
                self._may_share(now, operands, result)

    def _is_loop_fusion(self, line: Instruction) -> bool:
        return line.opcode == "fusion" and line.says("kind=kLoop")

    def _may_share(self, now: int, operands: Iterable[Node], result: _Buffer) -> None:
        size, candidates = result.bytes, []
        for operand in operands:
            buffers = (operand,) if isinstance(operand, _Buffer) else _flat(operand)
            candidates += [buffer for buffer in buffers if buffer.bytes == size]
        if candidates:
            self._dying.append((now, candidates, result))

    def _started(self, line: Instruction, operands: list[Node], now: int) -> Node:
        """The buffers of what runs beside: its operands, and its results."""
        node = self._made(line, now)
        if not isinstance(node, list) or len(node) < 2:
            return node
        if line.opcode in ("copy-start", "send"):
            source, at = operands[0] if operands else None, 1 if line.opcode == "copy-start" else 0
        elif line.opcode == "recv":
            return node
        else:
            source, at = (operands if isinstance(node[0], list) or len(operands) > 1 else operands[0]), 0
        for buffer in _flat(node[at]):
            buffer.bytes = 0
        node[at] = source
        return node

    def _loop(self, scope: _Scope, line: Instruction, operands: list[Node]) -> Node:
        """A loop, which writes what it carries in place."""
        state = operands[0] if operands else None
        body = self._lines.called(line, *BODIES)[:1]
        if body and scope.depth < MAX_DEPTH:
            inner = _Scope(body[0], scope.depth + 1)
            result = self._follow(inner, [state])
            held = {id(buffer) for buffer in _flat(state)}
            for (_, before), (_, after) in zip(_leaves(state), _leaves(result), strict=False):
                if before is not None and after is not None and id(after) not in held:
                    after.bytes = 0
        for buffer in _flat(state):
            buffer.end = max(buffer.end, len(self._order))
        return state

    def _called(self, scope: _Scope, line: Instruction, operands: list[Node], now: int) -> Node:
        """A call, or a conditional, whose first operand chooses among branches with an operand each."""
        callees = self._lines.called(line, *BODIES)
        if not callees or scope.depth >= MAX_DEPTH:
            return self._made(line, now)
        if line.opcode == "call":
            return self._follow(_Scope(callees[0], scope.depth + 1), operands)
        node = self._made(line, now)
        for number, branch in enumerate(callees):
            result = self._follow(_Scope(branch, scope.depth + 1), operands[number + 1 : number + 2])
            held = {id(buffer) for operand in operands for buffer in _flat(operand)}
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
        count = max(1, len(self._order))
        changes = [0] * (count + 1)
        fixed = sum(buffer.bytes for buffer in (*self._arguments, *self._outputs))
        for buffer in self._buffers:
            if buffer.kind == "temporary" and buffer.bytes:
                changes[min(buffer.start, count)] += buffer.bytes
                changes[min(buffer.end + 1, count)] -= buffer.bytes
        live, curve = fixed, []
        for change in changes[:count]:
            live += change
            curve.append(live)
        peak_at = max(range(count), key=curve.__getitem__)
        return MemoryReport(
            "estimate",
            sum(buffer.bytes for buffer in self._arguments),
            self._output_bytes,
            self._alias_bytes,
            curve[peak_at] - fixed,
            curve[peak_at],
            limit_bytes,
            tuple(self._largest(peak_at)),
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
                buffer.kind,  # type: ignore[arg-type]
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


def _done(opcode: str, node: Node) -> Node:
    """The result of something that ran beside, out of the tuple that its start gave."""
    if not isinstance(node, list) or not node:
        return node
    if opcode in ("copy-done", "recv-done"):
        return node[0]
    return node[1] if opcode != "send-done" and len(node) > 1 else None


def _leaf(node: Node, path: Path) -> Node:
    """The part of a value at a path."""
    for index in path:
        node = node[index] if isinstance(node, list) and index < len(node) else None
    return node


def _with_leaf(node: Node, path: Path, leaf: Node) -> Node:
    """A new value with another part at a path, whose own buffer is none."""
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
