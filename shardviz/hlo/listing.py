"""A module as a list of lines that a person can read, with its collectives marked."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from shardviz.hlo.collective import OPS, Collective
from shardviz.hlo.module import HloModule, Reader
from shardviz.hlo.schedule.overlap import ENDS, STARTS
from shardviz.hlo.text.computation import Computation, Computations
from shardviz.hlo.text.instruction import closing, parse_instruction
from shardviz.hlo.text.strip_metadata import strip_metadata
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
MAX_LITERAL = 40
"""Characters of a constant that are kept."""
_LEFT_OUT = frozenset(
    (
        "sharding",
        "channel_id",
        "use_global_device_ids",
        "output_to_operand_aliasing",
        "operand_layout_constraints",
        "control-predecessors",
        "cross_program_prefetch_index",
        "is_host_transfer",
        "calls",
        "origin",
        "statistics",
    )
)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}()\[\]]|, ')
_OPERAND = re.compile(r"%([^\s,{}()=]++)")
_PLAIN_OPERAND = re.compile(r"[^\s,{}()=]++")
_COMMENT = re.compile(r"/\*[^*]{0,40}\*/ ?")
MAX_MEMBERS = 64
"""A fusion is told by no more computations than this, its own and those nested in it."""
RENDEZVOUS = re.compile(r'_xla_host_transfer_rendezvous="([^"\\\n]{0,200})"')
"""The common mark of the send and the recv of one transfer between slices."""
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
"""Opcodes that say nothing about a fusion's work: collectives are told apart."""
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
"""Opcodes that tell a fusion's work, the heaviest first; without them its most frequent opcodes do."""
MAX_TOLD = 3


@dataclass(frozen=True)
class ListedLine:
    """One instruction, layouts, metadata and backend_config folded away, or the head of a computation.

    A head has an even `depth`, its instructions one more; what a loop, a call or a branch runs comes right
    after the line that does, one deeper. A head's `opcode` is "ENTRY" or how it is called ("body"), and its
    `operands` name the caller. Of a fusion, `holds` tells what it does, as opcodes. `folded` tells how many
    characters were left out. `collective` is the record of the collective that this line is, or begins.
    `ends` is the number of the line that begins what this one ends (a done), None elsewhere. `repeats`
    counts the lines in a row that take elements of one tuple, where they share this one.
    """

    depth: int
    name: str
    shape: str
    opcode: str
    operands: str
    attributes: tuple[str, ...]
    folded: int
    holds: tuple[str, ...] = ()
    collective: Collective | None = None
    ends: int | None = None
    repeats: int = 1

    @property
    def is_head(self) -> bool:
        return self.depth % 2 == 0

    def continues(self, other: ListedLine) -> bool:
        """Return whether this line takes an element of the same tuple as `other` does."""
        return (
            self.opcode == other.opcode == "get-tuple-element"
            and self.operands == other.operands
            and self.depth == other.depth
        )

    @property
    def operand_names(self) -> list[str]:
        """The instructions that this one reads."""
        return _PLAIN_OPERAND.findall(self.operands)


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
        self._bodies = CallIndex(computations)
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
        """Return whether a line joins those before it: more than two that take a tuple apart share one."""
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
                begins = self._bodies.mentions(body, STARTS)
                under_way = next((started[key] for key in keys if key in started), None)
                if under_way is not None and not begins:
                    names = []
                    ends = under_way if self._bodies.mentions(body, ENDS) else None
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


def listed_line(text: str, depth: int) -> ListedLine | None:
    """An instruction as a line, its operands without their shapes; None when the text is not one."""
    short = strip_metadata(text)
    made = parse_instruction(short)
    if made is None:
        return None
    name, shape, opcode = made.name, made.shape, made.opcode
    stop = closing(short, made.inside)
    operands = _operands(opcode, short[made.inside : stop - short.endswith(")", made.inside, stop)])
    attributes = _attributes(short[stop:])
    kept = len(name) + len(shape) + len(opcode) + len(operands) + sum(map(len, attributes))
    return ListedLine(depth, name, _COMMENT.sub("", shape), opcode, operands, attributes, len(text) - kept)


def _operands(opcode: str, text: str) -> str:
    if opcode in ("constant", "parameter"):
        return text if len(text) <= MAX_LITERAL else f"{text[:MAX_LITERAL]}…"
    return ", ".join(_OPERAND.findall(text)) if "%" in text else _COMMENT.sub("", text)


def _attributes(text: str) -> tuple[str, ...]:
    """The attributes that a reader may want, each as ``key=value``."""
    depth, start, kept = 0, 0, []
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece in "{([":
            depth += 1
        elif piece in "})]":
            depth -= 1
        elif piece == ", " and depth <= 0:
            kept.append(text[start : token.start()])
            start = token.end()
    kept.append(text[start:])
    return tuple(part for part in kept if part and part.partition("=")[0] not in _LEFT_OUT)


class Move(NamedTuple):
    """A line inside a fusion whose opcode is a collective's: its name, opcode and channel, "" without one."""

    name: str
    opcode: str
    channel: str


class Fusion(NamedTuple):
    """The opcodes that tell what a fusion does, at most three, and the collectives inside it."""

    work: tuple[str, ...]
    moves: tuple[Move, ...]


class CallIndex:
    """The contents of the computations of one text, and the calls between them."""

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
        """The fusion whose computation is `body`, with those nested in it."""
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
        """Return whether a computation's text has these words."""
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
