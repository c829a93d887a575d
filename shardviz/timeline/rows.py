"""The instructions of a computation as columns, in which those that differ in names alone share a form.

A program of many layers has few forms: what is asked of each instruction is found once for each of these."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from shardviz.hlo.module import Reader
from shardviz.hlo.text.instruction import HEAD, OPERANDS, Computation, Instruction, listed
from shardviz.hlo.text.instructions import Instructions
from shardviz.hlo.text.opcodes import ARITHMETIC, CONTROL, NAMING, begins, ends
from shardviz.hlo.text.shapes import HBM, placed_arrays
from shardviz.timeline.instruction_work import InstructionWork
from shardviz.timeline.simulation import TimedWork

MAX_DEPTH = 64
"""Computations within one another, followed at most."""

_ROW = re.compile(rf"\n(?:{HEAD}(?:{OPERANDS})?+([^\n]*+))?+")
"""A line: its head, its operands where they are names alone, and the rest."""
_REDUCING = {
    *("reduce", "reduce-window", "scatter", "select-and-scatter", "sort", "map"),
    *("all-reduce", "all-reduce-start", "reduce-scatter", "reduce-scatter-start"),
}
_REDUCTION = re.compile(r", to_apply=%?[^\s,]++")
"""What they do with two elements, for which XLA makes a computation each time."""
_CALLS = re.compile(r" calls=%?([^\s,(){}]++)")
_PIECE = re.compile(r"[()]|[a-z][a-z0-9]*\[[^\]]*\](?:\{[^{}]*\})?")
_SHARES = re.compile(r'"aliasing_operands":\{"lists":\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\}')
_ELEMENTWISE = ARITHMETIC | {
    *("remainder", "and", "or", "xor", "not", "floor", "ceil", "convert", "select", "compare"),
    *("dynamic-update-slice", "scatter"),
}


class BufferArray(NamedTuple):
    """An array of a shape, with its `bytes` in HBM."""

    shape: str
    bytes: int


Arrays = BufferArray | tuple["Arrays", ...]
"""An array, or a tuple's elements."""


class Form:
    """The common part of instructions that differ in names alone: opcode, shape, and the `tail` behind the
    operands, which begins with these where they are not names alone."""

    def __init__(self, reader: Reader, home: Computation, start: int, key: tuple[str, str, str]) -> None:
        self._reader = reader
        self._home = home
        self._start = start
        self.opcode, self.shape, self.tail = key
        self.begins = begins(self.opcode)  # another instruction ends what one of these begins
        # What the compiler says of operands and results that may share a buffer.
        self.shared = _shared(self.tail) if "aliasing_operands" in self.tail else None
        self.has_aliases = bool(self.shared) or "output_to_operand_aliasing" in self.tail
        is_loop = self.opcode == "fusion" and "kind=kLoop" in self.tail
        self.is_elementwise = self.shared is None and (self.opcode in _ELEMENTWISE or is_loop)
        # Its instructions as work of the device, by the shapes of their operands; `own_works` are also those
        # of fusions with a collective, which differ in that.
        self.works: dict[tuple[str, ...], TimedWork] = {}
        self.own_works = self.works

    @cached_property
    def line(self) -> Instruction:
        """The first instruction of the form."""
        line = self._reader.lines.at(self._start, self._home)
        assert line is not None
        return line

    @cached_property
    def arrays(self) -> Arrays:
        """The arrays of the shape."""
        return _arrays(self.shape)

    @cached_property
    def array(self) -> BufferArray | None:
        """The one new array that is its result; None where it has others, or operands change."""
        is_new = self.opcode not in NAMING and self.opcode not in CONTROL and not ends(self.opcode)
        is_plain = is_new and not self.begins and not self.has_aliases
        arrays = self.arrays
        return arrays if is_plain and isinstance(arrays, BufferArray) else None

    @cached_property
    def source(self) -> str:
        return self._reader.source_of(self.line)

    @cached_property
    def element(self) -> int | None:
        """The number of the element that a get-tuple-element takes."""
        return self.line.element_index


@lru_cache(maxsize=4096)
def _arrays(shape: str) -> Arrays:
    open_: list[list[Arrays]] = [[]]
    for piece in _PIECE.findall(shape) if shape.startswith("(") else [shape]:
        if piece == "(":
            open_.append([])
        elif piece != ")":
            placed = placed_arrays(piece)
            size = placed[0].bytes if placed and placed[0].space == HBM else 0
            open_[-1].append(BufferArray(piece, size))
        elif len(open_) > 1:
            elements = tuple(open_.pop())
            open_[-1].append(elements)
    return open_[0][0] if open_[0] else ()


@lru_cache(maxsize=4096)
def _shared(attributes: str) -> tuple[tuple[int, ...], ...] | None:
    """Numbers of operands, and behind these of results, that may share a buffer; None where none are told."""
    if (shares := _SHARES.search(attributes)) is None:
        return None
    lists = re.findall(r'"indices":\[([^\[\]]*)\]', shares[1])
    return tuple(tuple(map(int, re.findall(r"\d{1,6}", indices))) for indices in lists)


class Rows:
    """The instructions of one computation, in program order; -1 stands for one that it does not define.

    `operands` has the numbers of the instructions whose results one takes, `starts` the positions of the
    lines; `root` is the number of the one whose result is the computation's."""

    def __init__(self, lines: Instructions, home: Computation) -> None:
        self._lines = lines
        self._home = home
        self.names: list[str] = []
        self.forms: list[Form] = []
        self.operands: list[Sequence[int]] = []
        self.starts: list[int] = []
        self.root = -1

    def line(self, number: int) -> Instruction:
        line = self._lines.at(self.starts[number], self._home)
        assert line is not None
        return line


class ProgramRows:
    """The rows of the computations of one text, each read once."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.work = InstructionWork(reader.lines)
        self._forms: dict[tuple[object, ...], Form] = {}
        self._own_works: dict[tuple[object, ...], dict[tuple[str, ...], TimedWork]] = defaultdict(dict)
        self._known: dict[Computation, Rows] = {}

    def of(self, home: Computation) -> Rows:
        if home not in self._known:
            self._known[home] = self._read(home)
        return self._known[home]

    def _read(self, home: Computation) -> Rows:
        forms, lines, text = self._forms, self.reader.lines, self.reader.text
        rows = Rows(lines, home)
        names, operands, starts = rows.names, rows.operands, rows.starts
        numbers: dict[str, int] = defaultdict(lambda: -1)
        number_of = numbers.__getitem__
        taken: Sequence[str]
        key: tuple[object, ...]
        like: tuple[object, ...]
        for match in _ROW.finditer(text, home.start, home.stop):
            start = match.start() + 1
            root, name, shape, opcode, written, tail = match.groups()
            if written is not None:
                taken = listed(written)
            elif name is not None and (opcode in ("constant", "parameter") or tail[:1] == ")"):
                taken = ()
            else:
                line = lines.at(start, home)
                if line is None:
                    continue
                taken, name, shape, opcode = line.operands, line.name, line.shape, line.opcode
                root, tail = line.is_root or None, text[line.inside : line.stop]
            if opcode in _REDUCING:
                tail = _REDUCTION.sub("", tail, 1)
            key = like = opcode, shape, tail
            if opcode == "fusion" and (calls := _CALLS.search(tail)):
                callee = lines.computations.named(calls[1], start)
                if callee is not None:
                    around = tail[: calls.start()], tail[calls.end() :]
                    like = opcode, shape, self.work.first_like(callee), *around
                # Collectives are known by their names.
                if callee not in self.reader.collectives:
                    key = like
            form = forms.get(key)
            if form is None:
                form = forms[key] = Form(self.reader, home, start, (opcode, shape, tail))
                if like is not key:
                    form.own_works = self._own_works[like]
            operands.append((*map(number_of, taken),))
            if root is not None:
                rows.root = len(names)
            numbers[name] = len(names)
            names.append(name)
            rows.forms.append(form)
            starts.append(start)
        return rows
