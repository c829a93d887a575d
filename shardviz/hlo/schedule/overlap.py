"""What runs while a collective is under way: everything between its start and its done.

A collective is under way in one of these forms:

- ``all-gather-start`` and ``all-gather-done``, and the like of every collective; ``send`` and ``recv-done``;
- ``async-start``, maybe ``async-update``, ``async-done``, with the collective in the computation they name;
- on TPU three or more fusions of one channel: one ends in a custom call ``AsyncCollectiveStart``, those in
  the middle hold the collective next to the matmul that it overlaps with, one has ``AsyncCollectiveDone``.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from shardviz.hlo.collective import OPS, Work
from shardviz.hlo.schedule.algorithm import algorithm_of
from shardviz.hlo.schedule.meanwhile import Meanwhile
from shardviz.hlo.schedule.slices import Crossing
from shardviz.hlo.text.call_graph import Call
from shardviz.hlo.text.computation import Computation, line_at
from shardviz.hlo.text.instruction import Instruction
from shardviz.hlo.text.steps import Step, Steps
from shardviz.hlo.text.transfer import base_op

MAX_WORK = 1000
"""No more instructions than this are listed beside one collective."""

_DONE = re.compile(r"-(?:done|update)\(")
_CYCLES = re.compile(r'"estimated_cycles":"(\d{1,15})"')
_ONE_ELEMENT = re.compile(r"[a-z][a-z0-9]*\[(?:1(?:,1)*)?\](?:\{[^{}]*\})?")
_INDEX = re.compile(r" index=(\d{1,6})")
_FUSED = '"async_collective_fusion_config"'
_STARTS = 'custom_call_target="AsyncCollectiveStart"'
_ENDS = 'custom_call_target="AsyncCollectiveDone"'
_BLOCKING = '"is_sync":true'
_NO_WORK = frozenset(
    (
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "after-all",
        "add-dependency",
        "opt-barrier",
        "optimization-barrier",
        "partition-id",
        "replica-id",
        "get-dimension-size",
        "domain",
        "async-update",
        "recv",
    )
)
_BEGUN = frozenset(("async", *OPS)) - {"slice"}
"""Opcodes whose start is work; that of a copy or a slice only fetches memory."""
_ALWAYS_WORK = _BEGUN | {"fusion", "call", "while", "conditional", "custom-call", "sort", "reduce", "scatter"}
_RESERVES = re.compile(r'custom_call_target="(?:AllocateBuffer|ConcatBitcast)"')
"""Custom calls that name memory."""
_says = lru_cache(maxsize=4096)(str.__contains__)


class Schedule(NamedTuple):
    """How the collectives of one form in one computation run: fields of `Collective`."""

    is_async: bool
    algorithm: str = ""


class Schedules:
    """The schedule around the collectives of one text.

    `collectives` are their lines by position, in the computations that they stand in, `calls` at least the
    calls of those.
    """

    def __init__(
        self,
        steps: Steps,
        collectives: Mapping[Computation, Mapping[int, Instruction]],
        calls: Iterable[Call],
    ) -> None:
        self._text = steps.text
        self._steps = steps
        self._inside = {
            home.start: base_op(next(iter(lines.values())).opcode) for home, lines in collectives.items()
        }
        self._sites: dict[int, list[int]] = defaultdict(list)
        for call in calls:
            if call.callee in self._inside:
                self._sites[call.callee].append(call.position)
        self._ends: dict[int, dict[str, tuple[int, str]]] = {}
        self._works: dict[int, tuple[list[int], list[Work]]] = {}
        self._dones: dict[int, list[int]] = {}
        self.repeated = self._read_fused(collectives)
        """Positions of lines that repeat a collective: the middle and the end of one that is in fusions."""

    def of(
        self, instruction: Instruction, home: Computation, position: int, crossing: Crossing | None = None
    ) -> Schedule:
        """How the collective runs whose line begins at `position`.

        A `crossing` is under way from its send, with which the data leaves, until its recv is done.
        """
        if crossing is not None:
            return Schedule(True)
        site = self._site(home)
        words = instruction.form.text
        site_words = self._text[site.inside : site.stop] if site else ""
        algorithm = algorithm_of(words) or algorithm_of(site_words)
        if position in self._dones:
            return Schedule(True, algorithm)
        if instruction.form.begins:
            return Schedule(_BLOCKING not in words, algorithm)
        is_wrapped = site is not None and site.opcode == "async-start"
        return Schedule(is_wrapped and _BLOCKING not in site_words, algorithm)

    def beside(
        self, instruction: Instruction, home: Computation, position: int, crossing: Crossing | None = None
    ) -> Sequence[Work]:
        """What runs while one is under way that is asynchronous."""
        if position in self._dones:
            return Meanwhile(self._of_fused, self._site(home), self._dones[position])
        if crossing is not None or instruction.form.begins:
            begun = instruction if crossing is None else crossing.recv
            return Meanwhile(self._between, begun.name, home, position)
        site = self._site(home)
        if site is None:
            return ()
        return Meanwhile(self._between, site.name, self._steps.computations.around(site.start), site.start)

    def _site(self, home: Computation) -> Step | None:
        """The fusion or the wrapper that runs a computation."""
        sites = self._sites.get(home.start)
        step = self._steps.at(sites[0]) if sites else None
        return step if step and step.opcode in ("fusion", "async-start") else None

    def _between(self, name: str, home: Computation, position: int) -> tuple[Work, ...]:
        """What runs until that is done which the instruction `name` in the line at a position begins."""
        _, after = line_at(self._text, position)
        ends = self._ends_of(home)
        end = ends.get(name)
        if end is not None:
            while (passed := ends.get(end[1])) is not None and passed[0] > end[0]:
                end = passed
            return self._work(home, after, end[0])
        later = self._in_the_next_iteration(name, home)
        if later is None:
            return ()
        return (self._work(home, after, home.stop) + self._work(home, home.start, later))[:MAX_WORK]

    def _ends_of(self, home: Computation) -> dict[str, tuple[int, str]]:
        """Where what an instruction began is ended or passed on, by that instruction's name.

        With it the name of the line that does; a chain of updates leads to the done.
        """
        if home.start not in self._ends:
            found: dict[str, tuple[int, str]] = {}
            for match in _DONE.finditer(self._text, home.start, home.stop):
                step = self._steps.at(match.start())
                if step is not None and step.inside == match.end():
                    operands = self._steps.operands(step)
                    if operands:
                        found.setdefault(operands[0], (step.start, step.name))
            self._ends[home.start] = found
        return self._ends[home.start]

    def _in_the_next_iteration(self, name: str, home: Computation) -> int | None:
        """Where a loop's body ends what its iteration before has begun, and passed on in its result."""
        root = None if home.is_entry else self._steps.root(home)
        passed = self._steps.operands(root) if root and root.opcode == "tuple" else []
        if name not in passed:
            return None
        index = passed.index(name)
        for step in self._steps.of(home):
            if step.opcode == "get-tuple-element":
                found = _INDEX.search(self._text, step.inside, step.stop)
                end = self._ends_of(home).get(step.name)
                if end is not None and found is not None and int(found[1]) == index:
                    return end[0]
        return None

    def _of_fused(self, start: Step | None, dones: list[int]) -> tuple[Work, ...]:
        if start is None:
            return ()
        around = self._steps.computations.around(start.start)
        ends = (site for done in dones for site in self._sites.get(done, ()))
        end = min((site for site in ends if start.stop < site < around.stop), default=start.stop)
        return self._work(around, start.stop, line_at(self._text, end)[0])

    def _read_fused(self, collectives: Mapping[Computation, Mapping[int, Instruction]]) -> frozenset[int]:
        """Sorts the lines of TPU's asynchronous collective fusions: one of each channel counts."""
        text = self._text
        starts: dict[tuple[str, str], list[int]] = defaultdict(list)
        ends: dict[tuple[str, str], list[int]] = defaultdict(list)
        others: list[tuple[tuple[str, str], int]] = []
        fused = (
            (home, position, instruction)
            for home, lines in collectives.items()
            for position, instruction in lines.items()
            if _says(instruction.form.text, _FUSED)
        )
        for home, position, instruction in fused:
            key = base_op(instruction.opcode), instruction.channel
            if text.find(_STARTS, home.start, home.stop) >= 0:
                starts[key].append(position)
                continue
            others.append((key, position))
            if text.find(_ENDS, home.start, home.stop) >= 0:
                ends[key].append(home.start)
        for key, positions in starts.items():
            self._dones.update((position, ends[key]) for position in positions)
        # Of a channel whose start was cut off, the first line stands for all.
        kept = {key: position for key, position in reversed(others) if key not in starts}
        return frozenset(position for key, position in others if kept.get(key) != position)

    def _work(self, home: Computation, start: int, stop: int) -> tuple[Work, ...]:
        """The work in a computation that begins in text[start:stop]."""
        if stop - start <= 1:
            return ()
        if home.start not in self._works:
            found = [(step.start, work) for step in self._steps.of(home) if (work := self._as_work(step))]
            self._works[home.start] = [each[0] for each in found], [each[1] for each in found]
        places, works = self._works[home.start]
        first = bisect_left(places, start)
        return tuple(works[first : min(bisect_left(places, stop), first + MAX_WORK)])

    def _as_work(self, step: Step) -> Work | None:
        """None where an instruction computes nothing: names, indices, memory that is fetched, dones."""
        op = base_op(step.opcode)
        if op in _NO_WORK or op.endswith("-done") or (op != step.opcode and op not in _BEGUN):
            return None
        if op not in _ALWAYS_WORK and _ONE_ELEMENT.fullmatch(step.shape):
            return None
        if op == "custom-call" and _RESERVES.search(self._text, step.inside, step.stop):
            return None
        if self._steps.is_matmul(step):
            op = "matmul"
        elif op in ("fusion", "call", "async"):
            callee = self._steps.callee(step)
            inside = self._inside.get(callee.start) if callee else None
            if callee is not None and inside is not None:
                if self._text.find(_ENDS, callee.start, callee.stop) >= 0:
                    return None
                op = "reduce-scatter" if callee.name.startswith("all-reduce-scatter") else inside
        cycles = _CYCLES.search(self._text, step.inside, step.stop)
        return Work(step.name, op, int(cycles[1]) if cycles else None)
