"""The work that runs while a collective is under way: everything between its start and its done.

A collective is under way in one of these forms:

- ``all-gather-start`` and ``all-gather-done``, and the like of every collective; ``send`` and ``recv-done``;
- ``async-start``, maybe ``async-update``, ``async-done``, with the collective in the computation they name,
  or ``call-start`` and ``call-done``, where the SparseCores of a TPU run it;
- on TPU three or more fusions of one channel: one ends in a custom call ``AsyncCollectiveStart``, those in
  the middle hold the collective next to the matmul that it overlaps with, one has ``AsyncCollectiveDone``.

And its place among the program's matmuls: after how many of them it begins. Counted are instructions that
multiply matrices, fused ones too, in program order, each once however often it runs. The partial matmuls of a
collective matmul count as the one that they are parts of."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from shardviz.hlo.collective import CollectiveMatmul, MatmulOrder, Work
from shardviz.hlo.text.cross_slice import CrossSliceTransfer
from shardviz.hlo.text.instruction import Computation, Instruction, line_at
from shardviz.hlo.text.instructions import Instructions, reached
from shardviz.hlo.text.opcodes import (
    ASYNC_STARTS,
    BODIES,
    COLLECTIVES,
    CONTROL,
    FOLDED,
    NAMING,
    RUNNING,
    base_op,
    begins,
    ends,
)
from shardviz.hlo.text.shapes import is_number

MAX_WORK = 1000
"""No more instructions than this are listed beside one collective."""

_CYCLES = re.compile(r'"estimated_cycles":"(\d{1,15})"')
_FUSED = '"async_collective_fusion_config"'
STARTS, ENDS = 'custom_call_target="AsyncCollectiveStart"', 'custom_call_target="AsyncCollectiveDone"'
"""Marks of the fusions that begin and end a collective on TPU."""
_BLOCKING = '"is_sync":true'
_BEGUN = COLLECTIVES | {"async", "call"}
"""Opcodes whose start is work; that of a copy or a slice only fetches memory."""
_ALWAYS_WORK = _BEGUN | {"fusion", "call", "while", "conditional", "custom-call", "sort", "reduce", "scatter"}
_RESERVES = re.compile(r'custom_call_target="(?:AllocateBuffer|ConcatBitcast|PrepareAsyncCall\w+)"')
"""Custom calls that name memory, or prepare a start."""
ALGORITHM = '"collective_algorithm_config":{'
"""The TPU compiler's words on how it carries out a collective begin so."""
_GPU = '"collective_backend_config":{'
_CHOICE = re.compile(r'"(emitter|strategy|backend|collectives_mode|kernel_strategy)":"([A-Za-z0-9_]{1,100})"')
_WORD = re.compile(r"(?:\d+|N)D(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_USUAL = ("default", "invalid", "unspecified")
_KINDS = ("collectives_mode", "kernel_strategy")


class OverlappedOps(Sequence[Work]):
    """The work that `find` gives, found when first looked at: a long module has much of it."""

    def __init__(self, find: Callable[..., tuple[Work, ...]], *arguments: object) -> None:
        self._find = find
        self._arguments = arguments

    @cached_property
    def _works(self) -> tuple[Work, ...]:
        return self._find(*self._arguments)

    def __getitem__(self, index: Any) -> Any:
        return self._works[index]

    def __len__(self) -> int:
        return len(self._works)

    def __eq__(self, other: object) -> bool:
        return self._works == (other._works if isinstance(other, OverlappedOps) else other)

    def __hash__(self) -> int:
        return hash(self._works)

    def __repr__(self) -> str:
        return repr(self._works)

    def __reduce__(self) -> tuple[type[tuple[Work, ...]], tuple[tuple[Work, ...]]]:
        return tuple, (self._works,)


def independent(lines: Instructions, line: Instruction) -> Iterator[Instruction]:
    """The instructions that could run beside a collective: none leads to it, or takes what it makes."""
    line = lines.site(line.home) or line
    bound = {*reached([line], lines.taken), *reached([line], lines.users)}
    return (other for other in lines.of(line.home) if other not in bound)


class Schedules:
    """The schedule around the collectives of one text, their lines by the computations that they stand in."""

    def __init__(self, lines: Instructions, collectives: Mapping[Computation, Sequence[Instruction]]) -> None:
        self._text = lines.text
        self._lines = lines
        self._collectives = collectives
        self._works: dict[Computation, list[tuple[int, Work]]] = {}
        self.dones: dict[Instruction, list[Computation]] = {}
        """The computations that end the collective that a line of a fusion begins."""
        self.repeated = self._read_fused()
        """Positions of lines that repeat a collective: the middle and the end of one that is in fusions."""

    def of(self, line: Instruction, transfer: CrossSliceTransfer | None = None) -> tuple[bool, str]:
        """Return whether a collective, and all of its form, is asynchronous here, and its algorithm."""
        if transfer is not None:
            return True, ""
        site, words = self._lines.site(line.home), line.form.words
        algorithm = algorithm_of(words) or ("" if site is None else algorithm_of(site.form.words))
        if begins(line.opcode) or line in self.dones:
            return line in self.dones or _BLOCKING not in words, algorithm
        return bool(site and site.opcode in ASYNC_STARTS and _BLOCKING not in site.form.words), algorithm

    def beside(self, line: Instruction, transfer: CrossSliceTransfer | None = None) -> Sequence[Work]:
        """The work beside a collective that is asynchronous. A `transfer` is under way from its send, with
        which the data leaves, until its recv is done."""
        site = self._lines.site(line.home)
        if line in self.dones:
            return OverlappedOps(self._until_done, site, self.dones[line]) if site else ()
        if transfer is not None or begins(line.opcode):
            return OverlappedOps(self._between, line if transfer is None else transfer.recv, line)
        return () if site is None else OverlappedOps(self._between, site, site)

    def _between(self, begun: Instruction, since: Instruction) -> tuple[Work, ...]:
        """The work behind a line until that is done which an instruction of its computation begins."""
        # Between the lines of a start and of its done the device does all that stands there, in order:
        #     %s = all-gather-start(%x)      under way from here
        #     %y = fusion(%w)                work beside it
        #     %d = all-gather-done(%s)       waited for here
        # Updates pass it on, and the last of them leads to the done. In a loop a start may stand at the end
        # of the body, whose result carries it, and its done at the beginning, where it is taken of the
        # state: it is under way beside the rest of this round and beside the first lines of the next.
        home = begun.home
        if (end := self._end(begun)) is not None:
            return self._work(home, since.stop, end.start)
        root = None if home.is_entry else self._lines.root(home)
        passed = root.operands if root and root.opcode == "tuple" else []
        for line in self._lines.with_opcode(home, "get-tuple-element") if begun.name in passed else ():
            later = self._end(line) if line.element_index == passed.index(begun.name) else None
            if later is not None:
                works = self._work(home, since.stop, home.stop) + self._work(home, home.start, later.start)
                return works[:MAX_WORK]
        return ()

    def _end(self, begun: Instruction) -> Instruction | None:
        """The line that ends what an instruction began, behind the updates that pass it on."""
        end = None
        while True:
            users = (user for user in self._lines.users(begun) if ends(user.opcode))
            following = next((user for user in users if user.operands[0] == begun.name), None)
            if following is None or (end is not None and following.start < end.start):
                return end
            begun = end = following

    def _until_done(self, start: Instruction, dones: Iterable[Computation]) -> tuple[Work, ...]:
        """The work behind a fusion that begins a collective, until the first that ends it."""
        home = start.home
        sites = (position for done in dones for position in self._lines.computations.callers(done))
        end = min((site for site in sites if start.stop < site < home.stop), default=start.stop)
        return self._work(home, start.stop, line_at(self._text, end)[0])

    def _read_fused(self) -> frozenset[int]:
        """Sort the lines of TPU's asynchronous collective fusions: one of each channel counts."""
        starts: dict[tuple[str, str], list[Instruction]] = defaultdict(list)
        endings: dict[tuple[str, str], list[Computation]] = defaultdict(list)
        others: list[tuple[tuple[str, str], int]] = []
        for home, lines in self._collectives.items():
            for line in (line for line in lines if _FUSED in line.form.words):
                key = base_op(line.opcode), line.channel
                if self._text.find(STARTS, home.start, home.stop) >= 0:
                    starts[key].append(line)
                    continue
                others.append((key, line.start))
                if self._text.find(ENDS, home.start, home.stop) >= 0:
                    endings[key].append(home)
        self.dones = {line: endings[key] for key, lines in starts.items() for line in lines}
        # Of a channel whose start was cut off, the first line stands for all.
        kept = {key: position for key, position in reversed(others) if key not in starts}
        return frozenset(position for key, position in others if kept.get(key) != position)

    def _work(self, home: Computation, start: int, stop: int) -> tuple[Work, ...]:
        """The work in a computation that begins in text[start:stop]."""
        if stop - start <= 1:
            return ()
        if home not in self._works:
            works = ((line.start, self._as_work(line)) for line in self._lines.of(home))
            self._works[home] = [(offset, work) for offset, work in works if work]
        in_order = self._works[home]
        first, end = (bisect_left(in_order, (offset,)) for offset in (start, stop))
        return tuple(work for _, work in in_order[first : min(end, first + MAX_WORK)])

    def _as_work(self, line: Instruction) -> Work | None:
        """None where an instruction computes nothing: names, indices, memory that is fetched, dones."""
        op = base_op(line.opcode)
        if op in NAMING or op == "recv" or op.endswith("-done") or (op != line.opcode and op not in _BEGUN):
            return None
        is_index = op not in _ALWAYS_WORK and is_number(line.shape)
        if is_index or (op == "custom-call" and line.search(_RESERVES)):
            return None
        callee = self._lines.callee(line) if op in RUNNING else None
        inside = self._collectives.get(callee) if callee else None
        if self._lines.is_matmul(line):
            op = "matmul"
        elif callee is not None and inside is not None:
            if self._text.find(ENDS, callee.start, callee.stop) >= 0:
                return None
            is_scatter = callee.name.startswith("all-reduce-scatter")
            op = "reduce-scatter" if is_scatter else base_op(inside[0].opcode)
        cycles = line.search(_CYCLES)
        return Work(line.name, op, int(cycles[1]) if cycles else None)


@lru_cache(maxsize=4096)
def algorithm_of(attributes: str) -> str:
    """The algorithm that the attributes of an instruction name, "" where they name none or only a default.
    The compiler's own words are made readable: ``RotatedPincerEmitter`` and ``UniDirection1DRingStrategy``
    are "rotated pincer, uni direction 1D ring", ``KERNEL_STRATEGY_TRITON_TWO_SHOT`` "triton two shot"."""
    for marker in (ALGORITHM, _GPU):
        index = attributes.find(marker)
        if index >= 0:
            end = attributes.find("}", index)
            chosen = _CHOICE.findall(attributes, index, len(attributes) if end < 0 else end)
            return ", ".join(filter(None, (_readable(key, value) for key, value in chosen)))
    return ""


def _readable(key: str, value: str) -> str:
    value = value.removeprefix(f"{key}_".upper()) if key in _KINDS else value
    words = [word if word == "ND" or word[:-1].isdigit() else word.lower() for word in _WORD.findall(value)]
    kept = [word for word in words if word not in ("emitter", "strategy")]
    return "" if not kept or kept[0] in _USUAL else " ".join(kept)


def matmul_orders(lines: Instructions, matmuls: Iterable[CollectiveMatmul]) -> dict[Instruction, MatmulOrder]:
    """The place among a program's matmuls of each instruction to which its entry leads, in fusions too."""
    wholes = {name: matmul for matmul in matmuls for name in matmul.matmuls}
    before: dict[Instruction, int] = {}
    count, counted = 0, set[CollectiveMatmul]()
    inside: dict[Computation, int] = {}
    for line in _in_order(lines):
        callee = lines.callee(line) if line.opcode in FOLDED else None
        for begun in (line, *(lines.of(callee) if callee else ())):
            before.setdefault(begun, count)
        whole = wholes.get(line.name)
        if line.opcode in CONTROL or whole in counted:
            continue
        if whole is None:
            count += _matmuls_in(line, lines, inside)
        else:
            count += 1
            counted.add(whole)
    return {line: MatmulOrder(number, count) for line, number in before.items()}


def _matmuls_in(line: Instruction, lines: Instructions, inside: dict[Computation, int]) -> int:
    """The number of matmuls in an instruction: a fusion may hold several; `inside` has those of fusions."""
    callee = lines.callee(line) if line.opcode in FOLDED else None
    if callee is None:
        return int(lines.is_matmul(line))
    if callee not in inside:
        inside[callee] = 0  # for a text that goes in circles
        if lines.multiplies(callee):
            inside[callee] = sum(_matmuls_in(inner, lines, inside) for inner in lines.of(callee))
    return inside[callee]


def _in_order(lines: Instructions) -> Iterator[Instruction]:
    """The program from its entry on, as it runs: into loops, calls and branches, each once."""
    home = lines.computations.entry
    seen, running = {home}, [] if home is None else [iter(lines.of(home))]
    while running:
        line = next(running[-1], None)
        if line is None:
            running.pop()
            continue
        yield line
        called = lines.called(line, *BODIES) if line.opcode in CONTROL else []
        bodies = [body for body in called if body not in seen]
        seen.update(bodies)
        running += [iter(lines.of(body)) for body in reversed(bodies)]
