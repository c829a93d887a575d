"""Which computations of a module communicate and which start it, and what a fusion is made of."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from shardviz.hlo.collective import OPS
from shardviz.hlo.text.computation import Computation, Computations

MAX_MEMBERS = 64
"""A fusion is told by no more computations than this, its own and those nested in it."""
RENDEZVOUS = re.compile(r'_xla_host_transfer_rendezvous="([^"\\\n]{0,200})"')
"""What a send and a recv of one transfer between slices have in common."""

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
    """What the computations of one text are made of, and who calls whom."""

    def __init__(self, computations: Computations) -> None:
        self.text = computations.text
        self.computations = computations
        self._fused: dict[Computation, list[Computation]] = defaultdict(list)
        self._callers: dict[Computation, set[Computation]] = defaultdict(set)
        self._fusions: dict[int, Fusion] = {}
        self._twins: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._partners: dict[str, list[str]] = defaultdict(list)
        for name, sites in computations.sites.items():
            for site in sites:
                callee = computations.named(name, site)
                if callee is not None:
                    caller = computations.around(site)
                    self._callers[callee].add(caller)
                    if self.text.startswith(" calls=", site):
                        self._fused[caller].append(callee)

    def roots(self) -> list[Computation]:
        """The entries, then what communicates and is called by nothing, as in a text that is cut off.

        In a text without an entry, all that nothing calls.
        """
        every = self.computations.all
        entries = [body for body in every if body.is_entry or not body.name]
        uncalled = [body for body in every if not self._callers[body]]
        if not entries:
            return uncalled
        found = self.that_communicate().difference(entries)
        return entries + [body for body in uncalled if body in found]

    def that_communicate(self) -> set[Computation]:
        """The computations that hold a collective, or call one that does."""
        found = {self.computations.around(match.start()) for match in _MOVE.finditer(self.text)}
        pending = [*found]
        while pending:
            for caller in self._callers[pending.pop()] - found:
                found.add(caller)
                pending.append(caller)
        return found

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
            for body in self.computations.all:
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
        found = {body: None}
        pending = [body]
        while pending:
            for inner in self._fused[pending.pop()]:
                if inner not in found and len(found) < MAX_MEMBERS:
                    found[inner] = None
                    pending.append(inner)
        return [*found]

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


def lines_of(text: str, body: Computation) -> Iterable[tuple[int, str]]:
    """The lines of a computation, each with its position."""
    position = body.start
    while position < body.stop:
        end = text.find("\n", position, body.stop)
        end = body.stop if end < 0 else end
        yield position, text[position:end]
        position = end + 1
