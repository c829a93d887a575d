"""A module as a list of lines that a person can read, with its collectives marked."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from shardviz.hlo.collective import Collective
from shardviz.hlo.listed_line import ListedLine, listed_line
from shardviz.hlo.module import HloModule, Reader
from shardviz.hlo.text.bodies import RENDEZVOUS, Bodies, lines_of
from shardviz.hlo.text.computation import Computation, Computations
from shardviz.sharding import Mesh

_INLINED = {
    "while": ("body", "condition"),
    "call": ("to_apply",),
    "conditional": ("true_computation", "false_computation", "branch_computations"),
}
"""Opcodes whose computations are listed under them, and the attributes that name those."""
_HOW = {"to_apply": "called", "body": "body", "condition": "condition"}
_WRAPPERS = ("fusion", "async-start")
"""Opcodes whose computation is folded into their line."""
_CALLS = re.compile(r", calls=%?([^\s,{}()=]++)")
_NAME = re.compile(r"%?([^\s,{}()=]++)")
_STARTS, _ENDS = 'custom_call_target="AsyncCollectiveStart"', 'custom_call_target="AsyncCollectiveDone"'


@dataclass(frozen=True)
class Span:
    """Lines `start` to `stop` of a listing between which a collective is under way."""

    start: int
    stop: int
    collective: Collective


@dataclass(frozen=True)
class Listing:
    """The entry of a module in program order, with the computations it runs that hold collectives.

    `spans` are in the order of their first lines. `module` has all that was read.
    """

    lines: tuple[ListedLine, ...]
    spans: tuple[Span, ...]
    module: HloModule


def list_hlo(
    text: str, mesh: Mesh | None = None, *, infer: bool = False, slices: Sequence[int] | None = None
) -> Listing:
    """HLO text as a listing; `infer` and `slices` as in `read_hlo`. Raises what `read_hlo` raises."""
    reader = Reader(text, mesh, slices)
    module = reader.read(infer=infer)
    lines, spans = _Lister(reader.computations, module.collectives).listed()
    return Listing(lines, spans, module)


class _Lister:
    """Lists one text; spans are found on the way."""

    def __init__(self, computations: Computations, collectives: Iterable[Collective]) -> None:
        self._text = computations.text
        self._computations = computations
        self._bodies = Bodies(computations)
        self._records: dict[str, deque[Collective]] = defaultdict(deque)
        for each in collectives:
            self._records[each.name].append(each)
        self._lines: list[ListedLine] = []
        self._spans: dict[int, Span] = {}

    def listed(self) -> tuple[tuple[ListedLine, ...], tuple[Span, ...]]:
        waiting = self._bodies.that_communicate()
        for root in self._bodies.roots():
            head = ListedLine(0, root.name, "", "ENTRY" if root.is_entry else "computation", "", (), 0)
            running = [self._body(root, head)]
            while running:
                for inner, body in running[-1]:
                    if body in waiting:
                        waiting.discard(body)
                        running.append(self._body(body, inner))
                        break
                else:
                    running.pop()
        spans = sorted(self._spans.values(), key=lambda span: (span.start, span.stop))
        return tuple(self._lines), tuple(spans)

    def _body(self, body: Computation, head: ListedLine) -> Iterator[tuple[ListedLine, Computation]]:
        """Append a computation's lines; yields head and body of each that a line runs, to be listed there."""
        if head.name:
            self._lines.append(head)
        started: dict[str, int] = {}
        for position, text in lines_of(self._text, body):
            line = listed_line(text, head.depth + 1)
            if line is None:
                continue
            if line.opcode == "get-tuple-element" and self._shares_a_line(line):
                continue
            self._append(line, text, position, started)
            for key in _INLINED.get(line.opcode, ()):
                for name in _called(line.attributes, key):
                    inner = self._computations.named(name, position)
                    if inner is not None:
                        how = _HOW.get(key, "branch")
                        yield ListedLine(head.depth + 2, name, "", how, line.name, (), 0), inner

    def _shares_a_line(self, line: ListedLine) -> bool:
        """Whether a line joins those before it: more than two that take a tuple apart share one."""
        *_, before, last = None, None, *self._lines[-2:]
        if last is None or not line.continues(last):
            return False
        shared = last
        if last.repeats == 1:
            if before is None or not last.continues(before):
                return False
            shared = replace(before, repeats=2, folded=before.folded + last.folded)
            del self._lines[-1]
        self._lines[-1] = replace(shared, repeats=shared.repeats + 1, folded=shared.folded + line.folded)
        return True

    def _append(self, line: ListedLine, text: str, position: int, started: dict[str, int]) -> None:
        """Append a line with what it holds, the collective that it begins, and the line whose work it ends.

        `started` has the lines of this computation that began what is under way, by the instruction's name,
        for a fused one by opcode and channel, for a transfer between slices by its rendezvous too.
        """
        number = begun = len(self._lines)
        names, keys = [line.name], [line.name]
        ends: int | None = None
        begins = line.opcode.endswith("-start") or line.opcode in ("send", "recv")
        if line.opcode.endswith(("-done", "-update")):
            ends = next((started[name] for name in line.operand_names if name in started), None)
        body = self._wrapped(line, text, position)
        if body is not None:
            fusion = self._bodies.fusion(body)
            line = replace(line, holds=fusion.work)
            names += [move.name for move in fusion.moves]
            if line.opcode == "fusion" and fusion.moves:
                keys = [f"{move.opcode} {move.channel}" for move in fusion.moves]
                begins = self._bodies.mentions(body, _STARTS)
                under_way = next((started[key] for key in keys if key in started), None)
                if under_way is not None and not begins:
                    names = []
                    ends = under_way if self._bodies.mentions(body, _ENDS) else None
                elif begins:
                    names += [twin for move in fusion.moves for twin in self._bodies.twins(move)]
        if line.opcode in ("send", "recv") and (match := RENDEZVOUS.search(text)):
            names += self._bodies.partners(match[1])
            begun = started.setdefault(match[0], number)
        if ends is not None:
            line = replace(line, ends=ends)
            self._end(ends, number)
        elif begun == number and (record := self._record(names)) is not None:
            line = replace(line, collective=record)
        if begins:
            started.update(dict.fromkeys(keys, begun))
        elif ends is not None and line.opcode.endswith("-update"):
            started[line.name] = ends
        elif ends is not None and line.opcode == "fusion":
            for key in keys:
                started.pop(key, None)
        self._lines.append(line)

    def _wrapped(self, line: ListedLine, text: str, position: int) -> Computation | None:
        """The computation that is folded into a line."""
        callee = _CALLS.search(text) if line.opcode in _WRAPPERS else None
        return self._computations.named(callee[1], position) if callee else None

    def _record(self, names: Iterable[str]) -> Collective | None:
        """The record of the first of these names that has one; texts of several modules use names again."""
        for name in names:
            if found := self._records.get(name):
                return found.popleft() if len(found) > 1 else found[0]
        return None

    def _end(self, start: int, stop: int) -> None:
        record = self._lines[start].collective
        if record is not None:
            self._spans[start] = Span(start, stop, record)


def _called(attributes: Iterable[str], key: str) -> list[str]:
    """The computations that an attribute names: one, or several in braces."""
    value = next((each for each in attributes if each.startswith(f"{key}=")), "")
    return _NAME.findall(value, len(key) + 1)
