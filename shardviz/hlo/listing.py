"""A module as a list of lines that a person can read, with its collectives marked, without layouts, metadata
and configurations, which only a compiler needs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from shardviz.hlo.collective import OPS, Collective
from shardviz.hlo.module import HloModule, Reader
from shardviz.hlo.overlap import ENDS, STARTS
from shardviz.hlo.text.cross_slice import RENDEZVOUS
from shardviz.hlo.text.instruction import Computation, Instruction, closing, parse_instruction
from shardviz.hlo.text.instructions import reached
from shardviz.hlo.text.opcodes import BRANCHES, FOLDED, MESSAGES, begins, ends
from shardviz.sharding import Mesh

_INLINED = {"while": ("body", "condition"), "call": ("to_apply",), "conditional": BRANCHES}
"""Opcodes whose computations are listed under them, and the attributes that name those."""
_HOW = {"to_apply": "called", "body": "body", "condition": "condition"}
MAX_LITERAL = 40
"""Characters of a constant that are kept."""
_LEFT_OUT = frozenset(
    {
        *("sharding", "channel_id", "use_global_device_ids", "output_to_operand_aliasing", "origin", "calls"),
        *("operand_layout_constraints", "control-predecessors", "cross_program_prefetch_index"),
        *("is_host_transfer", "statistics"),
    }
)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}()\[\]]|, ')
_OPERAND = re.compile(r"%([^\s,{}()=]++)")
_PLAIN_OPERAND = re.compile(r"[^\s,{}()=]++")
_COMMENT = re.compile(r"/\*[^*]{0,40}\*/ ?")
MAX_MEMBERS = 64
"""A fusion is told by no more computations than this, its own and those nested in it."""
_SILENT = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast", "iota", "fusion"),
        *("copy", *(f"{op}{end}" for op in OPS if op != "slice" for end in ("", "-start", "-done"))),
    }
)
"""Opcodes that say nothing about a fusion's work: collectives are told apart."""
_TELLING = (
    *("convolution", "dot", "custom-call", "sort", "scatter", "gather", "reduce", "reduce-window"),
    *("select-and-scatter", "dynamic-update-slice", "dynamic-slice", "concatenate", "transpose"),
)
"""Opcodes that tell a fusion's work, the heaviest first; without them its most frequent opcodes do."""
MAX_TOLD = 3

_STRING = r'"(?:[^"\\]|\\.)*+"?'
_LAYOUT = re.compile(r"(?<=\])\{(?:[\d:][^{}\n]*+)?\}")
"""Directly after a shape: ``{1,0:T(8,128)(2,1)S(1)}``."""
_HIDDEN = re.compile(
    rf"{_STRING}"
    r"|(?P<attribute>, (?:metadata|backend_config|frontend_attributes|entry_computation_layout"
    rf"|allow_spmd_sharding_propagation_to_(?:parameters|output))=(?:(?P<braces>\{{)|{_STRING}|[^,\n]*+))"
    r'|(?P<location> ?loc\((?=[#"]|callsite|unknown))'
    r"|(?P<header>(?<=^module ) ?(?:@[^\s{]++ )?attributes \{)"
)
_RULE = r"sdy\.sharding_rule = #sdy\.op_sharding_rule<[^<>\n]*+>[^<>\n]*+>"
_RULES = re.compile(rf" \{{{_RULE}\}}|, {_RULE}|{_RULE},? ?")
_BRACES = re.compile(rf"{_STRING}|[{{}}]")
_PARENS = re.compile(rf"{_STRING}|[()]")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


@dataclass(frozen=True)
class ListedLine:
    """One instruction, layouts, metadata and backend_config folded away, or the head of a computation.

    A head has an even `depth`, its instructions one more; what a loop, a call or a branch runs comes right
    after the line that does, one deeper. A head's `opcode` is "ENTRY" or how it is called ("body"), and its
    `operands` name the caller. Of a fusion, `holds` tells what it does, as opcodes. `collective` is the one
    that this line is, or begins. `ends` is the number of the line that begins what this one ends (a done).
    `repeats` counts the lines in a row that take elements of one tuple, where they share it."""

    depth: int
    name: str
    shape: str
    opcode: str
    operands: str
    attributes: tuple[str, ...]
    holds: tuple[str, ...] = ()
    collective: Collective | None = None
    ends: int | None = None
    repeats: int = 1

    @property
    def is_head(self) -> bool:
        return self.depth % 2 == 0

    def continues(self, other: ListedLine) -> bool:
        """Return whether this line takes an element of the same tuple as `other` does."""
        mine, theirs = ((one.depth, one.opcode, one.operands) for one in (self, other))
        return self.opcode == "get-tuple-element" and mine == theirs

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
    """The entry of a module in program order, with the computations it runs that hold collectives. `spans`
    are in the order of their first lines. `module` has all that was read."""

    lines: tuple[ListedLine, ...]
    spans: tuple[Span, ...]
    module: HloModule


def list_hlo(
    text: str, mesh: Mesh | None = None, *, infer: bool = False, slices: Sequence[int] | None = None
) -> Listing:
    """HLO text as a listing; `infer` and `slices` as in `read_hlo`. Raises what `read_hlo` raises."""
    reader = Reader(text, mesh, slices)
    module = reader.read(infer=infer)
    lines, spans = _Lister(reader).listed()
    return Listing(lines, spans, module)


class _Lister:
    def __init__(self, reader: Reader) -> None:
        self._text = reader.text
        self._index = reader.lines
        self._computations = reader.computations
        self._moves = reader.collectives
        self._records: dict[Instruction, Collective] = {}
        """The collectives by the instructions that begin them."""
        for record, line in reader.found:
            transfer = reader.transfers.get(line.start)
            begins_it = min(transfer.send, transfer.recv, key=lambda one: one.start) if transfer else line
            self._records[begins_it] = record
        self._fusions: dict[Computation, tuple[tuple[str, ...], list[Instruction]]] = {}
        self._lines: list[ListedLine] = []
        self._spans: dict[int, Span] = {}

    def listed(self) -> tuple[tuple[ListedLine, ...], tuple[Span, ...]]:
        every, callers = self._computations.all, self._computations.callers
        around = self._computations.around
        waiting = {*reached(self._moves, lambda body: map(around, callers(body)))}
        entries = [body for body in every if body.is_entry or not body.name]
        uncalled = [body for body in every if not callers(body)]
        # Then what communicates and nothing calls, as in a text that is cut off; without an entry all that
        # nothing calls.
        others = [body for body in uncalled if not entries or (body in waiting and body not in entries)]
        for root in entries + others:
            head = ListedLine(0, root.name, "", "ENTRY" if root.is_entry else "computation", "", ())
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
        for made in self._index.of(body):
            line = listed_line(self._text[made.start : made.stop], head.depth + 1)
            if line is None or (line.opcode == "get-tuple-element" and self._shares_a_line(line)):
                continue
            self._append(line, made, started)
            for key in _INLINED.get(line.opcode, ()):
                how = _HOW.get(key, "branch")
                for inner in self._index.called(made, key):
                    yield ListedLine(head.depth + 2, inner.name, "", how, line.name, ()), inner

    def _shares_a_line(self, line: ListedLine) -> bool:
        """Return whether a line joins those before it: more than two that take a tuple apart share one."""
        *_, before, last = None, None, *self._lines[-2:]
        if last is None or not line.continues(last):
            return False
        if last.repeats > 1:
            self._lines[-1] = replace(last, repeats=last.repeats + 1)
        elif before is not None and last.continues(before):
            self._lines[-2:] = [replace(before, repeats=3)]
        else:
            return False
        return True

    def _append(self, line: ListedLine, made: Instruction, started: dict[str, int]) -> None:
        """Append a line with what it holds, the collective that it begins, and the line whose work it ends;
        `started` has the lines of this computation that began what is under way, by the instruction's name,
        for a fused one by opcode and channel, for a transfer between slices by its rendezvous too."""
        number = begun = len(self._lines)
        moves, keys, is_begun = [made], [line.name], begins(line.opcode)
        ended: int | None = None
        if ends(line.opcode):
            ended = next((started[name] for name in line.operand_names if name in started), None)
        body = self._index.callee(made) if line.opcode in FOLDED else None
        if body is not None:
            work, moves = self._fusion(body)
            line = replace(line, holds=work)
            if line.opcode == "fusion" and moves:
                keys = [f"{move.opcode} {move.channel}" for move in moves]
                is_begun = self._text.find(STARTS, body.start, body.stop) >= 0
                if not is_begun and self._text.find(ENDS, body.start, body.stop) >= 0:
                    ended = next((started[key] for key in keys if key in started), None)
        if line.opcode in MESSAGES and (meeting := made.search(RENDEZVOUS)):
            begun = started.setdefault(meeting[0], number)
        if ended is not None:
            line = replace(line, ends=ended)
            if (ending := self._lines[ended].collective) is not None:
                self._spans[ended] = Span(ended, number, ending)
        elif begun == number and (record := next(filter(None, map(self._records.get, moves)), None)):
            line = replace(line, collective=record)
        if is_begun:
            started.update(dict.fromkeys(keys, begun))
        elif ended is not None and line.opcode.endswith("-update"):
            started[line.name] = ended
        elif ended is not None and line.opcode == "fusion":
            for key in keys:
                started.pop(key, None)
        self._lines.append(line)

    def _fusion(self, body: Computation) -> tuple[tuple[str, ...], list[Instruction]]:
        """The opcodes that tell what a computation does, with the fusions in it, and their collectives."""
        if body not in self._fusions:
            index = self._index

            def called(home: Computation) -> Iterator[Computation]:
                callees = (index.callee(line) for line in index.of(home) if line.says(", calls="))
                return filter(None, callees)

            members = [*islice(reached([body], called), MAX_MEMBERS)]
            counts = Counter(line.opcode for member in members for line in index.of(member))
            telling = [opcode for opcode in _TELLING if opcode in counts]
            others = [opcode for opcode, _ in counts.most_common() if opcode not in _SILENT]
            moves = [move for member in members for move in self._moves.get(member, ())]
            self._fusions[body] = tuple((telling or others)[:MAX_TOLD]), moves
        return self._fusions[body]


def listed_line(text: str, depth: int) -> ListedLine | None:
    """An instruction as a line, its operands without their shapes; None when the text is not one."""
    short = strip_metadata(text)
    made = parse_instruction(short)
    if made is None:
        return None
    stop = closing(short, made.inside)
    operands = short[made.inside : stop - short.endswith(")", made.inside, stop)]
    if made.opcode in ("constant", "parameter"):
        operands = operands if len(operands) <= MAX_LITERAL else f"{operands[:MAX_LITERAL]}…"
    else:
        operands = ", ".join(_OPERAND.findall(operands)) if "%" in operands else _COMMENT.sub("", operands)
    shape = _COMMENT.sub("", made.shape)
    return ListedLine(depth, made.name, shape, made.opcode, operands, _attributes(short[stop:]))


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


def strip_metadata(line: str) -> str:
    """One line of HLO, StableHLO or Shardy text without what only a compiler wants to know, in linear time:
    layouts, metadata, backend_config, frontend_attributes, source locations, and the rules by which Shardy
    propagates. Shapes, operands, groups and shardings stay."""
    kept, position = [], 0
    while match := _HIDDEN.search(line, position):
        kept.append(line[position : match.start()])
        if match["braces"]:
            position = _closed(_BRACES, line, match.end(), "}")
        elif match["attribute"]:
            position = match.end()
        elif match["location"]:
            position = _closed(_PARENS, line, match.end(), ")")
        elif match["header"]:
            kept.append(match[0].removesuffix("attributes {"))
            position = _closed(_BRACES, line, match.end(), "}") + 1
        else:
            kept.append(match[0])
            position = match.end()
    short = "".join([*kept, line[position:]])
    return _LAYOUT.sub("", _RULES.sub("", short) if "sdy.sharding_rule" in short else short).rstrip()


def stripped_lines(text: str) -> Iterator[str]:
    """The lines of a module, each folded, without the tables of source locations."""
    in_table = False
    last = ""
    for line in text.splitlines():
        if in_table and line[:1].isdigit():
            continue
        in_table = line in _TABLES
        if in_table or line.startswith("#loc"):
            continue
        short = strip_metadata(line)
        if short or last:
            yield short
        last = short


def _closed(tokens: re.Pattern[str], line: str, start: int, close: str) -> int:
    """The place after the bracket that closes the one before `start`, strings passed over."""
    depth = 1
    for token in tokens.finditer(line, start):
        if token[0] == close:
            depth -= 1
        elif not token[0].startswith('"'):
            depth += 1
        if depth == 0:
            return token.end()
    return len(line)
