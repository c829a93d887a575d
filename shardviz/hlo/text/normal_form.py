"""HLO text as XLA prints it: each instruction, header and closing brace is one line, headers at the margin.

XLA itself breaks lines inside an attribute (a Pallas kernel's ``kernel_metadata``), a literal and the
module's header (``origin_recovery_table`` quotes whole modules); text that was wrapped, indented or written
by hand breaks them anywhere, and has other spaces than XLA's. Strings and comments are those of XLA's
``hlo_lexer.cc``."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from shardviz.hlo.text.instruction import closing, line_at, parse_instruction

_COMMENT_MARK = re.compile(r"/(?:\*(?!index=\d)|/(?<![^\s,(){}]//))|\*/(?<!\d\*/)")
"""The beginning or the end of any but XLA's own ``/*index=5*/``; the same may stand in a string."""
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"|(?P<comment>/\*.*?\*/|//[^\n]*+)', re.DOTALL)
_LINE_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"|(?P<comment>//[^\n]*+)')
_QUOTED_MODULE = re.compile(
    r'^[ \t]*+"[ \t]*+\n(?:(?!HloModule|[ \t]*+"[ \t]*+$)[^\n]*+\n)*+[ \t]*+"[ \t]*+$', re.MULTILINE
)
"""As ``origin_recovery_table`` has it, between lines of a quote alone."""

_REGULAR = (
    r"(?:[a-z][^ ]*+(?<=[\]}])|\((?:[^()\n]++|\((?:[^()\n]++|\([^()\n]*+\))*+\))*+\))"
    r" [a-z][a-z\d-]*+\("
)
"""A shape and an opcode with XLA's own spaces, up to the operands."""
_NAME = r'%?[^\s=,(){}\[\]<>:"]++'
_ORDINARY = (
    rf"(?:[ \t]*+(?:ROOT )?%?[^\s=,(){{}}]++ = {_REGULAR}"
    r"|\n|\Z"
    r"|\}(?:\n|\Z|, execution_thread=)"
    rf"|(?!HloModule)(?:ENTRY )?+{_NAME} [^\n]*+(?<=\{{)(?:\n|\Z)"
    r"|HloModule "
    r"|(?:(?:File|Function)Names|FileLocations|StackFrames)\n|\d++ [{\"])"
)
"""The beginnings of lines that XLA prints, none of which goes on from another."""
_ORDINARY_LINE = re.compile(_ORDINARY)
_BEGINNINGS = ("  %", "  ROOT %")
_BROKEN = re.compile(rf"\n(?=  (?:ROOT )?%)(?!{_ORDINARY})")
"""A line that begins like one of XLA's instructions, and is none."""
# A line's beginning is looked for by the end of the line before it, several times as fast as by ^.
_LINE = re.compile(
    rf"\n(?!{'|'.join(_BEGINNINGS)}|\n)(?:\}}(?=\n|\Z|, execution_thread=)|(?!HloModule)(?P<entry>ENTRY )?+%?"
    r'(?P<name>[^\s%=,(){}\[\]<>:"]++) (?!= )[^\n]*+(?<=\{)(?=\n|\Z)'
    rf"|(?!{_ORDINARY})(?P<other>))"
)
"""A line that begins or ends a computation, or an `other` one than XLA's, which may go on from that before;
no line that begins like one of XLA's instructions is another."""
_MARK = re.compile(
    r"\n(?:\}|(?!HloModule)(?P<entry>ENTRY\s++)?%?(?P<name>[^\s%(){}=,]++) (?!= )[^\n]*+(?<=\{)(?=\n|\Z))"
)
"""The end of a computation, or its header, on a line of its own."""
Mark = tuple[int, int, str | None, bool]
"""Where a line ends in front of a header or of a computation's end, and where that ends; the name, None of an
end, and whether it is that of the entry."""

MAX_SAMPLE = 2**18
"""So much of a text tells whether its spaces and its instructions are XLA's own."""
_OTHER_SPACES = re.compile(
    r"\),[a-z_]++=|\[ \d| (?:\((?<=[a-z] \()(?!\) ->|[^\s():]++:)|(?<=[a-z_] )=[ \t]*+[{\[])"
)
"""Around a key, in a size, or before what an opcode takes; in a string they mean nothing."""
_NEXT = re.compile(r"(?<=[\]})]),")
"""The comma after an element of a tuple's shape."""
_ARRAY = re.compile(r"[a-z]\w*+\s*+\[[^\[\]]*+\](?:\s*+\{[^{}]*+\})?+")
_SPACE = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"?|'[^']*+'|(?P<opens>[ \t]*+[(\[]|\{)|(?P<closes>[)}\]])"
    r"|[ \t]*+(?P<mark>,|<?=)[ \t]*+|(?P<gap>[ \t]++(?P<transposed>(?=T\())?)"
)

_GOES_ON = re.compile(r"[ \t]*+(?:[,=({\[]|<=|T\()")
"""The beginning of a line that continues a statement, whatever the line before it ends with."""
_STATEMENT = re.compile(
    r"[ \t]*+(?:"
    rf"(?P<instruction>(?:ROOT\s++)?{_NAME}(?:\s++=\s++|=\s*+(?=\(|[a-z][a-z\d]*+\s*+\[[\d\]<?])))"
    rf"|(?P<header>ENTRY\s|{_NAME}(?:[ \t]++\(|[ \t]*+\{{[ \t]*+$))"
    r"|(?P<module>HloModule\s)"
    r"|(?P<line>\}[ \t]*+(?:$|,[ ]?execution_thread=)"
    r"|(?:(?:File|Function)Names|FileLocations|StackFrames)[ \t]*+$|\d++ [{\"])"
    r")",
    re.MULTILINE,
)
"""The beginning of a statement, at any margin; a `line` never goes on in the next."""
_BOUNDARY = (
    rf"[ \t]*+(?:$|(?:ROOT )?{_NAME} = \(?[a-z]|ENTRY |HloModule "
    rf"|{_NAME} \([^\n]*+(?<=\{{)$)"
)
"""Lines across which no string and no bracket goes on, except in a damaged text."""
_CERTAINLY_NEW = re.compile(_BOUNDARY, re.MULTILINE)
_TOKEN = re.compile(
    rf'"(?:[^"\\\n]|\\.|\n(?!{_BOUNDARY}))*+"?|(?P<opens>[({{\[])|(?P<closes>[)}}\]])|(?P<breaks>\n)'
    rf"|(?P<begins>(?<![,\s])[ \t]++(?=(?:ROOT )?{_NAME} = ))",
    re.MULTILINE,
)
_ELEMENT = re.compile(r"%([^\s,(){}=%#]+)#(\d{1,6})(?=[,)])")
_TAKEN = re.compile(r"#\d{1,6}[,)]")
"""A mark of every text with such an element, which few others have; found at once."""
_DEFINITION = re.compile(r"\s*(?:ROOT\s+)?%([^\s=,(){}]+) = \(")
_ELEMENT_SHAPE = re.compile(
    r"[a-z]\w*+\[[^\]]*+\](?:\{[^{}]*+\})?+|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)"
)
"""An element of a tuple, which may be one."""


class NormalForm(NamedTuple):
    """A text in normal form; `breaks` are the positions in it at which lines of the original were joined,
    `marks` the headers and ends of its computations in order, and `first` is the number of its first line in
    the original."""

    text: str
    breaks: Sequence[int]
    marks: Sequence[Mark]
    first: int

    def line(self, position: int) -> int:
        """The number of the original's line, counted from 1, in which stands what is at a position."""
        return self.first + self.text.count("\n", 0, position) + bisect_right(self.breaks, position)


def without_comments(text: str) -> str:
    """The same text, on the same lines, without comments."""
    if _COMMENT_MARK.search(text) is None:
        return text
    # Behind the last end of one, no other begins.
    closed = text.rfind("*/") + 2 if "*/" in text else 0
    return _COMMENT.sub(_lines, text[:closed]) + _LINE_COMMENT.sub(_lines, text[closed:])


def _lines(match: re.Match[str]) -> str:
    """The line ends of a comment, or a space where it alone parts two words; all of a string."""
    if not match["comment"]:
        return match[0]
    text, (start, stop) = match.string, match.span()
    is_parted = text[start - 1 : start].isspace() or text[stop : stop + 1].isspace()
    return "\n" * match[0].count("\n") or " " * (not is_parted)


def normal_form(text: str) -> NormalForm:
    """The normal form of a text. In one that is damaged no line is joined with a later instruction."""
    first = int(text.startswith(("HloModule", "\n")))
    text, breaks, marks = _on_lines_of_their_own(text if first else f"\n{text}")
    if "#" in text and _TAKEN.search(text) is not None:
        text = "\n}".join(map(_spelled_out, text.split("\n}")))
        marks = [*_marks(text, 0)]
    return NormalForm(text, breaks, marks, first)


def _marks(text: str, start: int) -> Iterator[Mark]:
    """The marks in a text that begins at a position of another."""
    for mark in _MARK.finditer(text):
        yield start + mark.start(), start + mark.end(), mark["name"], mark["entry"] is not None


def _on_lines_of_their_own(text: str, is_bare: bool = False) -> tuple[str, list[int], list[Mark]]:
    """The text with each statement on one line, the positions at which lines were joined, and the marks. One
    that `is_bare` has no comments, and no modules that its header quotes: XLA's own, which is most of a long
    text, has neither, and so they are looked for in a sample and around lines that are not XLA's."""
    # Outside of strings, other spaces than those that XLA prints.
    has_other_spaces = any(
        text.find('"', text.rfind("\n", 0, match.start()) + 1, match.start()) < 0
        for match in _OTHER_SPACES.finditer(text, 0, MAX_SAMPLE)
    )
    sampled = line_at(text, text.find(" = ") + MAX_SAMPLE)[1]
    is_printed = not has_other_spaces and _BROKEN.search(text, 0, sampled) is None
    if not is_bare and (not is_printed or _COMMENT_MARK.search(text, 0, MAX_SAMPLE)):
        return _on_lines_of_their_own(_bare(text), True)
    kept: list[str] = []
    breaks: list[int] = []
    marks: list[Mark] = []
    # So much was looked at, so much is taken over, and so long is what was made of it.
    seen = position = length = 0
    while position < len(text):
        start = position
        if is_printed and (seen or _ORDINARY_LINE.match(text)):
            line = _LINE.search(text, seen)
            if line is None:
                break
            if line["other"] is None:
                seen, shift = line.end(), length - position
                marks.append((line.start() + shift, seen + shift, line["name"], line["entry"] is not None))
                continue
            # It may go on from the line before it.
            start = max(position, text.rfind("\n", 0, line.start()) + 1)
            stop = line_at(text, line.end())[1]
            is_quoting = not kept and text.find("origin_recovery_table=", 0, stop) >= 0
            if not is_bare and (is_quoting or _COMMENT_MARK.search(text, start, stop)):
                return _on_lines_of_their_own(_bare(text), True)
        kind, seen, breaks_inside = _statement(text, start)
        statement = text[start:seen] if kind is None else joined(text[start:seen])
        if kind == "instruction":
            is_printed_so = is_printed and breaks_inside and text.startswith(_BEGINNINGS, start)
            statement = f"  {statement if is_printed_so else _respaced(statement)}"
        elif kind == "header":
            statement = " ".join(statement.split())
        kept += text[position:start], statement, "\n" * (seen < len(text))
        length += start - position
        if marks and marks[-1][0] == length - 1:
            del marks[-1]
        marks += _marks(f"\n{statement}", length - 1)
        length += len(statement)
        breaks += [length] * text.count("\n", start, seen)
        length += 1
        position = seen + 1
    return "".join([*kept, text[position:]]) if kept else text, breaks, marks


def _bare(text: str) -> str:
    """The text, on as many lines, without comments and without modules that it quotes."""
    text = without_comments(text)
    if "origin_recovery_table=" not in text:
        return text
    return _QUOTED_MODULE.sub(lambda match: "\n".join(['""'] * (1 + match[0].count("\n"))), text)


def _statement(text: str, start: int) -> tuple[str | None, int, bool]:
    """The statement at `start`: its kind, if any, its end, and whether it breaks within operands alone."""
    begins = _STATEMENT.match(text, start)
    if begins is None or begins.lastgroup == "line":
        return begins and "line", line_at(text, start)[1], True
    kind, breaks_inside = begins.lastgroup, True
    if kind == "header":
        return kind, _header_end(text, start), True
    depth, line = 0, start
    has_operands = kind == "module"
    for token in _TOKEN.finditer(text, begins.end()):
        if token["opens"]:
            has_operands |= depth == 0 and token[0] == "(" and text[token.start() - 1].isalnum()
            depth += 1
        elif token["closes"]:
            depth -= 1
        elif token["begins"] and depth == 0 and has_operands:
            return kind, token.start(), breaks_inside  # the next one is on the same line
        elif token["breaks"]:
            stop, following = token.span()
            if following == len(text) or _CERTAINLY_NEW.match(text, following):
                return kind, stop, breaks_inside
            is_open = depth > 0 or not has_operands or text[line:stop].rstrip().endswith((",", "="))
            if not is_open and not _GOES_ON.match(text, following):
                return kind, stop, breaks_inside
            if depth <= 0 and _STATEMENT.match(text, following):
                return kind, stop, breaks_inside
            line, breaks_inside = following, breaks_inside and has_operands and depth > 0
    return kind, len(text), breaks_inside


def _header_end(text: str, start: int) -> int:
    """The end of a header: the brace of its computation, or the end of its line where that is missing."""
    stop = line_at(text, start)[1]
    first = stop
    while not (line := text[start:stop].rstrip()).endswith("{"):
        start = stop + 1
        if start >= len(text) or (line.lstrip() != "ENTRY" and _STATEMENT.match(text, start)):
            return first
        stop = line_at(text, start)[1]
    return stop


def joined(statement: str) -> str:
    """The lines of a statement as one, with a space where one was. Where breaks keep the space before them,
    as in ``fold -s``, a break without one is within a word."""
    lines = [line for line in statement.split("\n") if line.strip()]
    keeps_spaces = any(line.endswith(" ") for line in lines[:-1])
    kept = [lines[0].strip()] if lines else []
    for before, line in pairwise(lines):
        is_within = keeps_spaces and not before.endswith(" ") and not line[0].isspace()
        is_within |= before.rstrip().endswith(("(", "{", "[", "<"))
        is_within |= line.lstrip().startswith((")", "}", "]", ">", ","))
        kept += ["" if is_within else " ", line.strip()]
    return "".join(kept)


def _respaced(instruction: str) -> str:
    """An instruction with XLA's own spaces around its parts; what stands in brackets is left as it is."""
    name, _, rest = instruction.partition("=")
    brackets: list[str] = []

    def spaced(match: re.Match[str]) -> str:
        piece = match[0]
        if match["opens"]:
            piece = piece if brackets else piece.strip()
            brackets.append(piece.strip())
        elif match["closes"]:
            del brackets[-1:]
        elif not brackets and match["mark"]:
            return ", " if match["mark"] == "," else match["mark"]
        elif not brackets and match["gap"]:
            return " " if match["transposed"] is None else ""
        elif brackets[:1] == ["["] and (match["mark"] or match["gap"]):
            return match["mark"] or ""
        return piece

    rest = rest.strip()
    array = _ARRAY.match(rest)
    stop = closing(rest, 1) if rest.startswith("(") else array.end() if array else 0
    shape = _NEXT.sub(", ", "".join(rest[:stop].split())) + " " * bool(stop)
    return f"{' '.join(name.split())} = {shape}{_SPACE.sub(spaced, rest[stop:].lstrip())}"


def _spelled_out(computation: str) -> str:
    """The same text with a ``get-tuple-element`` after the tuple for each such element, by the same name."""
    wanted: dict[str, set[int]] = defaultdict(set)
    for name, index in _ELEMENT.findall(computation):
        wanted[name].add(int(index))
    if not wanted:
        return computation
    lines = []
    for line in computation.split("\n"):
        lines.append(line)
        match = _DEFINITION.match(line)
        made = parse_instruction(line) if match is not None and match[1] in wanted else None
        if made is not None:
            lines += (
                f"  %{made.name}#{index} = {shape} get-tuple-element(%{made.name}), index={index}"
                for index, shape in enumerate(_ELEMENT_SHAPE.findall(made.shape[1:-1]))
                if index in wanted[made.name]
            )
    return "\n".join(lines)
