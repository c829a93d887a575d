"""Every computation of a module: where it stands, what it calls, and what a fusion is made of."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shardviz.hlo.collective import OPS
from shardviz.hlo.text.computation import Computation

MAX_MEMBERS = 64
"""A fusion is told by no more computations than this, its own and those nested in it."""
RENDEZVOUS = re.compile(r'_xla_host_transfer_rendezvous="([^"\\\n]{0,200})"')
"""What a send and a recv of one transfer between slices have in common."""

_HEADER = re.compile(r"^(ENTRY\s+)?%?([^\s%(){}=,]++)(?:[ \t][^\n]*)?\{[ \t]*$", re.MULTILINE)
_CALL = re.compile(
    r"[ ,](calls|body|condition|to_apply|(?:true|false)_computation|(?:branch|called)_computations)="
    r"(\{)?%?([^\s,{}()=]++)(?(2)((?:, ?[^\s,{}()=]++)*+))"
)
_MOVE = re.compile(
    r" ((?:all-(?:gather|reduce|to-all)|reduce-scatter|collective-(?:permute|broadcast)|ragged-all-to-all"
    r"|send|recv)(?:-start|-done)?)\("
)
_INSTRUCTION = re.compile(r"^[ \t]*+(?:ROOT )?%?([^\s=,(){}]++) = ", re.MULTILINE)
_OPCODE = re.compile(
    r"^[ \t]*+(?:ROOT )?%?[^\s=]++ = (?:\([^\n]*?\)|[^\s(]\S*+) ([a-z][a-z0-9-]*+)\(", re.MULTILINE
)
_CHANNEL = re.compile(r"channel_id=(\d{1,12})")
_SILENT = {
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "broadcast",
    "iota",
    "fusion",
    "copy",
}
_SILENT |= {f"{op}{end}" for op in OPS if op != "slice" for end in ("", "-start", "-done")}
"""What says nothing about a fusion's work: collectives are told apart."""
_TELLING = (
    "convolution",
    "dot",
    "custom-call",
    "sort",
    "scatter",
    "gather",
    "reduce",
    "reduce-window",
    "select-and-scatter",
    "dynamic-update-slice",
    "dynamic-slice",
    "concatenate",
    "transpose",
)
"""What makes a fusion's work, the heaviest first; where it has none of these, its commonest opcodes do."""
MAX_TOLD = 3


class Move(NamedTuple):
    """A line inside a fusion whose opcode is a collective's: its name, opcode and channel, "" without one."""

    name: str
    opcode: str
    channel: str


class Fusion(NamedTuple):
    """The opcodes that tell what a fusion does, at most three, and the collectives inside it."""

    work: tuple[str, ...]
    moves: tuple[Move, ...]


class Bodies:
    """All computations of one text, and who calls whom. Reads the text twice, from end to end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = [*_bodies(text)]
        self._starts = [body.start for body in self.all]
        self._named: dict[str, list[int]] = defaultdict(list)
        for index, body in enumerate(self.all):
            self._named[body.name].append(index)
        self._fused: dict[int, list[int]] = defaultdict(list)
        self._callers: dict[int, set[int]] = defaultdict(set)
        self._fusions: dict[int, Fusion] = {}
        self._twins: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._partners: dict[str, list[str]] = defaultdict(list)
        self._read_calls()

    def named(self, name: str, position: int) -> Computation | None:
        """The computation that a name means at a position: the last one defined so far, else the first."""
        index = self._index(name, position)
        return None if index is None else self.all[index]

    def roots(self) -> list[Computation]:
        """The entries, then what communicates and is called by nothing, as in a text that is cut off.

        In a text without an entry, all that nothing calls.
        """
        entries = [body for body in self.all if body.is_entry or not body.name]
        uncalled = [body for index, body in enumerate(self.all) if not self._callers[index]]
        if not entries:
            return uncalled
        found = self.that_communicate().difference(entries)
        return entries + [body for body in uncalled if body in found]

    def that_communicate(self) -> set[Computation]:
        """The computations that hold a collective, or call one that does."""
        found = {self._around(match.start()) for match in _MOVE.finditer(self.text)}
        pending = [*found]
        while pending:
            for caller in self._callers[pending.pop()] - found:
                found.add(caller)
                pending.append(caller)
        return {self.all[index] for index in found if index >= 0}

    def fusion(self, body: Computation) -> Fusion:
        """What a fusion does whose computation is `body`, nested ones included."""
        if body.start not in self._fusions:
            members = self._members(body)
            self._fusions[body.start] = Fusion(
                self._work(members), tuple(move for member in members for move in self._moves(member))
            )
        return self._fusions[body.start]

    def twins(self, move: Move) -> list[str]:
        """The names of all collectives of the text with the opcode and the channel of this one."""
        if not self._twins:
            for body in self.all:
                for each in self._moves(body):
                    self._twins[each.opcode, each.channel].append(each.name)
        return self._twins[move.opcode, move.channel] if move.channel else []

    def partners(self, rendezvous: str) -> list[str]:
        """The names of the sends and recvs of one transfer between slices."""
        if not self._partners:
            for match in RENDEZVOUS.finditer(self.text):
                head = _INSTRUCTION.match(self.text, self.text.rfind("\n", 0, match.start()) + 1)
                if head is not None:
                    self._partners[match[1]].append(head[1])
        return self._partners[rendezvous]

    def mentions(self, body: Computation, words: str) -> bool:
        """Whether a computation's text has these words."""
        return self.text.find(words, body.start, body.stop) >= 0

    def _members(self, body: Computation) -> list[Computation]:
        """A fusion's computation and those of the fusions nested in it."""
        found = {bisect_right(self._starts, body.start) - 1: None}
        pending = [*found]
        while pending:
            for inner in self._fused[pending.pop()]:
                if inner not in found and len(found) < MAX_MEMBERS:
                    found[inner] = None
                    pending.append(inner)
        return [self.all[index] for index in found]

    def _moves(self, body: Computation) -> Iterator[Move]:
        text = self.text
        for match in _MOVE.finditer(text, body.start, body.stop):
            head = _INSTRUCTION.match(text, text.rfind("\n", 0, match.start()) + 1)
            end = text.find("\n", match.end())
            channel = _CHANNEL.search(text, match.end(), len(text) if end < 0 else end)
            if head is not None and text.find('"', head.end(), match.start()) < 0:
                yield Move(head[1], match[1], channel[1] if channel else "")

    def _work(self, members: Iterable[Computation]) -> tuple[str, ...]:
        counts: Counter[str] = Counter()
        for member in members:
            counts.update(match[1] for match in _OPCODE.finditer(self.text, member.start, member.stop))
        telling = [opcode for opcode in _TELLING if opcode in counts]
        others = [opcode for opcode, _ in counts.most_common() if opcode not in _SILENT]
        return tuple((telling or others)[:MAX_TOLD])

    def _read_calls(self) -> None:
        for match in _CALL.finditer(self.text):
            caller = self._around(match.start())
            names = [match[3], *(match[4].replace("%", "").split(",")[1:] if match[2] else ())]
            for name in names:
                callee = self._index(name.strip(), match.start())
                if callee is None or caller < 0:
                    continue
                self._callers[callee].add(caller)
                if match[1] == "calls":
                    self._fused[caller].append(callee)

    def _index(self, name: str, position: int) -> int | None:
        found = self._named.get(name)
        if not found or not name:
            return None
        return found[max(0, bisect_right(found, position, key=lambda index: self.all[index].start) - 1)]

    def _around(self, position: int) -> int:
        """The number of the computation in which a position stands, -1 where there is none."""
        place = bisect_right(self._starts, position) - 1
        return place if place >= 0 and position < self.all[place].stop else -1


def _bodies(text: str) -> Iterator[Computation]:
    position = 0
    while True:
        header = _HEADER.search(text, position)
        while header is not None and header[2] == "HloModule":
            header = _HEADER.search(text, header.end())
        stop = len(text) if header is None else header.start()
        if _INSTRUCTION.search(text, position, stop):
            yield Computation(position, stop, "", False)
        if header is None:
            return
        position = _end(text, header.end())
        yield Computation(header.end(), position, header[2], header[1] is not None)
        position += 2


def _end(text: str, start: int) -> int:
    """Where a body ends: a brace at the margin that closes no literal of several lines."""
    while (end := text.find("\n}", start)) >= 0:
        if not text.startswith(")", end + 2):
            return end
        start = end + 2
    return len(text)


def lines_of(text: str, body: Computation) -> Iterable[tuple[int, str]]:
    """The lines of a computation, each with its position."""
    position = body.start
    while position < body.stop:
        end = text.find("\n", position, body.stop)
        end = body.stop if end < 0 else end
        yield position, text[position:end]
        position = end + 1
