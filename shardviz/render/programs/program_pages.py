"""A compiled program in program order, collectives marked, starts and dones joined by lines at the left; of
Shardy's MLIR the text. Its pages, folded for people or as the compiler wrote it. Any line is drawn at
constant cost, so that the application scrolls through the longest program."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from rich.text import Text

from shardviz.hlo import Collective
from shardviz.hlo.listing import ListedLine, Listing, Span, list_hlo, strip_metadata
from shardviz.hlo.module import is_hlo
from shardviz.render.lines import cut, printable, printable_line, rule, sentence
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import NO_AXES, collective_details, collective_style, facts
from shardviz.reports.target_result import TargetResult
from shardviz.sharding import Mesh
from shardviz.units import shaped

MARK = "▸"
"""Stands before a line that is a collective, or begins one."""
ARRAY = re.compile(r"[a-z][a-z0-9]*+\[[^\]]*+\]")
TELLING = frozenset(("convolution", "dot", "while", "conditional", "call"))
"""Opcodes in bold: matrices are multiplied, or other lines run."""
SILENT = frozenset(("parameter", "constant", "get-tuple-element", "tuple", "bitcast"))
"""Opcodes in dim letters: nothing is computed or moved."""
LINES_AT_ONCE = 4096
"""Lines that are searched before the searcher may be stopped."""
MAX_NAME = 400
"""Characters at a line's beginning among which the name of what it makes is looked for."""


class HloPicture:
    """A listing on a page; `line` draws one line alone, at a cost that does not grow with the listing."""

    def __init__(self, listing: Listing, width: int, palette: Palette) -> None:
        self.listing, self._width, self._palette = listing, width, palette
        self._mesh = listing.module.mesh or NO_AXES
        self._columns = _columns(listing.spans)

    def line(self, number: int) -> Text:
        """Line `number` of the listing: what is under way, the mark, and the instruction."""
        line = self.listing.lines[number]
        text = self._under_way(number)
        if line.collective is not None:
            text.append(MARK, collective_style(line.collective, self._mesh, self._palette))
        else:
            text.append(" ")
        text.append(" " * (1 + 2 * min(line.depth // 2, 8)))
        if line.is_head:  # ``ENTRY main``, ``body of while.12: region_0``
            head = Text.assemble((f"{line.opcode} ", "dim"), (line.name, "bold"))
            if line.operands:
                head = Text.assemble((f"{line.opcode} of {line.operands}", "bold"), (f": {line.name}", "dim"))
            return cut(text.append_text(printable_line(head)), self._width)
        text.append_text(printable_line(_instruction(line)))
        tail = Text()
        begun = None if line.ends is None else self.listing.lines[line.ends]
        if line.collective is not None:
            tail = facts(line.collective, self._mesh, self._palette)
        elif begun is not None and begun.collective is not None and begun.name not in line.operand_names:
            style = collective_style(begun.collective, self._mesh, self._palette)
            tail = Text.assemble("  ends ", (printable(begun.name), style))
        room = max(self._width - tail.cell_len, self._width // 2)
        return cut(cut(text, room).append_text(tail), self._width)

    def _under_way(self, number: int) -> Text:
        text = Text()
        for column in self._columns:
            index = bisect_right(column, number, key=attrgetter("start")) - 1
            span = column[index] if index >= 0 else None
            if span is None or number > span.stop:
                text.append(" ")
            else:
                glyph = "┌" if number == span.start else "└" if number == span.stop else "│"
                text.append(glyph, collective_style(span.collective, self._mesh, self._palette))
        return text


def _instruction(line: ListedLine) -> Text:
    """``name = shape opcode(operands) attributes``; of a fusion what it does: ``fusion: convolution(…)``."""
    if line.repeats > 1:
        elements = f"{line.name} and {line.repeats - 1:,} more = {line.opcode}({line.operands})"
        return Text(elements, "dim")
    collective = line.collective
    holds = line.holds if line.ends is None else ()
    # What the lines themselves show.
    left_out: tuple[str, ...] = ("kind=", "condition=", "body=")
    shape, arrays = line.shape, ARRAY.findall(line.shape)
    if shape.startswith("(") and len(arrays) > 1:
        shape = f"({arrays[0]}, +{len(arrays) - 1})"
    if collective is not None:
        holds = () if collective.op in line.opcode else (collective.op,)
        left_out += ("to_apply=", *(("replica_groups=", "source_target_pairs=") if collective.axes else ()))
        if collective.arrays == 1:
            shape = shaped(collective.dtype, collective.result_shape)
    opcode = f"{line.opcode}: {', '.join(holds)}" if holds else line.opcode
    attributes = ", ".join(attribute for attribute in line.attributes if not attribute.startswith(left_out))
    text = Text.assemble(
        f"{line.name} = ",
        (f"{shape} ", "dim"),
        (opcode, "" if collective is None and TELLING.isdisjoint((line.opcode, *holds)) else "bold"),
        f"({line.operands})",
        (f" {attributes}" if attributes else "", "dim"),
    )
    if line.opcode in SILENT:
        text.stylize("dim")
    return text


def _columns(spans: Iterable[Span]) -> list[list[Span]]:
    """The spans of each column, none overlapping another; those for which no column is left have none."""
    columns: list[list[Span]] = []
    for span in spans:
        free = next((column for column in columns if column[-1].stop < span.start), None)
        if free is not None:
            free.append(span)
        elif len(columns) < 4:
            columns.append([span])
    return columns


def program_view(compiled: TargetResult, mesh: Mesh, width: int, palette: Palette) -> list[Text]:
    """A blank line, a heading and the program; lines of MLIR are cut at the page's edge."""
    if compiled.target == "shardy":
        heading = "Shardy's program, all devices at once: MLIR, not HLO"
        lines = (line.rstrip().expandtabs(2) for line in compiled.text.splitlines() if line.strip())
        program = [cut(Text(line), width) for line in lines]
    else:
        heading = f"{compiled.target}'s program on each device"
        if compiled.placement is not None:
            mesh = replace(mesh, device_order=compiled.placement.ids)
        listing = list_hlo(compiled.text, mesh)
        program = [*map(HloPicture(listing, width, palette).line, range(len(listing.lines)))]
    return [Text(), cut(Text(heading, "bold"), width), *program]


class ProgramPage:
    """The text of a program, without control characters: `width` columns, `height` lines. `collectives` are
    the numbers of the lines that are a collective, or begin one, in order."""

    def __init__(
        self,
        program: ListedProgram,
        width: int,
        height: int,
        collectives: Mapping[int, Collective],
        palette: Palette,
    ) -> None:
        self.width, self.height = width, height
        self.collectives: Sequence[int] = (*collectives,)
        self.collective = collectives.get
        """The collective that a line is, or begins, by its number; else None."""
        self._raw = program.raw
        self._mesh, self._palette = program.mesh, palette

    def words(self, number: int) -> str:
        return printable(self.written(number).strip())

    @property
    def searchable(self) -> LineIndex:
        """The lines as a search sees them."""
        return self._raw

    def written(self, number: int) -> str:
        return self._raw.line(number, 0, MAX_NAME)

    def line(self, number: int, left: int, right: int) -> Text:
        text = Text(printable(self._raw.line(number, left, right)))
        collective = self.collective(number)
        if collective is not None:
            text.stylize(collective_style(collective, self._mesh, self._palette))
        return text

    def beginning(self, number: int) -> int:
        """The line that begins what a line ends; of any other the line itself."""
        return number

    def place(self, number: int) -> int:
        """The place in the program's text at which a line begins."""
        return self._raw.start(number)

    def number_at(self, index: int) -> int:
        """The line that has this place of the program's text, or the next one that is shown."""
        return max(0, min(self._raw.line_at(index), self.height - 1))


class FoldedPage(ProgramPage):
    """A program as people read it: a search finds its collectives by their axes, too."""

    @cached_property
    def searchable(self) -> LineIndex:
        """Takes long for a long program."""
        lines = []
        for number in range(self.height):
            one = self.collective(number)
            marks = "" if one is None else f" {one.op} over {', '.join(one.axes)}"
            lines.append(f"{self.written(number)}{marks}")
        return LineIndex("\n".join(lines))


def next_of(numbers: Sequence[int], number: int, step: int) -> int | None:
    """The next of sorted numbers after one, or the one before it; None where there is none."""
    index = bisect_left(numbers, number + 1 if step > 0 else number) - (step < 0)
    return numbers[index] if 0 <= index < len(numbers) else None


class ListedProgram(NamedTuple):
    """An answer's program, its mesh with devices in the target's order, `lines` for people (a listing of HLO,
    or the numbers of the lines of Shardy's MLIR), `collectives` by the number of their line, and the text."""

    compiled: TargetResult
    mesh: Mesh
    lines: Listing | Sequence[int]
    collectives: Mapping[int, Collective]
    raw: RawLines

    def page(self, folded: bool, width: int, palette: Palette) -> ProgramPage:
        """The program on a page of that width; not `folded`, all of its text, however wide."""
        if not folded:
            return ProgramPage(self, self.raw.width, self.raw.count, self.raw.collectives, palette)
        if isinstance(self.lines, Listing):
            return HloPage(self, self.lines, width, palette)
        return MlirPage(self, self.lines, width, palette)

    def record(self, collective: Collective) -> Collective:
        """A collective of the text as the answer has it, which is more than the text alone tells."""
        named = (candidate for candidate in self.compiled.collectives if candidate.name == collective.name)
        return next((candidate for candidate in named if candidate.op == collective.op), collective)


def read_program(compiled: TargetResult, mesh: Mesh) -> ListedProgram:
    """The program of an answer that has one; takes a while for a long one. Raises what `list_hlo` raises."""
    placement = compiled.placement
    placed = mesh if placement is None else placement.on(mesh)
    if is_hlo(compiled.text):
        lines = list_hlo(compiled.text, placed, slices=None if placement is None else placement.slices)
        marked = {i: line.collective for i, line in enumerate(lines.lines) if line.collective is not None}
        raw = RawLines(compiled.text, lines.module.collectives)
        return ListedProgram(compiled, placed, lines, marked, raw)
    raw = RawLines(compiled.text, compiled.collectives)
    # Without blank lines and source locations.
    starts = ((number, raw.line(number, 0, 80).lstrip()) for number in range(raw.count))
    shown = [number for number, start in starts if start and not start.startswith("#loc")]
    marked = {i: raw.collectives[number] for i, number in enumerate(shown) if number in raw.collectives}
    return ListedProgram(compiled, placed, shown, marked, raw)


def line_details(
    program: ListedProgram,
    page: ProgramPage,
    number: int,
    width: int,
    palette: Palette,
    lens: int | None = None,
) -> list[Text]:
    """Lines of at most `width` columns, the most telling first; with the group of the marked device."""
    found = page.collective(number)
    if found is None:
        return sentence(page.words(number), width, style="dim")
    collective = program.record(found)
    return collective_details(collective, program.compiled, program.mesh, width, palette, lens)


def place_rule(number: int, page: ProgramPage, width: int) -> Text:
    """A rule that says where the cursor is: ``── line 7 of 33 ── collective 1 of 2 ───``."""
    said = [f"line {number + 1:,} of {page.height:,}"]
    if page.collective(number) is not None:
        index = bisect_left(page.collectives, number)
        said.append(f"collective {index + 1:,} of {len(page.collectives):,}")
    return rule(said, width)


class LineIndex:
    """The lines of a text, without their ends. `width` are the characters of the longest."""

    def __init__(self, text: str) -> None:
        self.text = text
        starts = array("q", [0])
        position = text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = text.find("\n", position + 1)
        if starts[-1] < len(text):
            starts.append(len(text) + 1)
        self._starts = starts
        self.count = len(starts) - 1
        self.width = max((stop - start - 1 for start, stop in pairwise(starts)), default=0)

    def line(self, number: int, left: int = 0, right: int | None = None) -> str:
        start, stop = self._starts[number] + left, self._starts[number + 1] - 1
        return self.text[start : stop if right is None else min(stop, start - left + right)]

    def start(self, number: int) -> int:
        return self._starts[number]

    def line_at(self, position: int) -> int:
        """The number of the line that has this character of the text."""
        return bisect_right(self._starts, position) - 1

    def searched(self, query: str) -> Iterator[list[int]]:
        """The numbers of the lines with `query`, in any case, from `LINES_AT_ONCE` at a time."""
        pattern = re.compile(re.escape(query), re.IGNORECASE)
        for first in range(0, self.count, LINES_AT_ONCE):
            last = min(first + LINES_AT_ONCE, self.count)
            numbers = []
            position, end = self._starts[first], self._starts[last] - 1
            while match := pattern.search(self.text, position, end):
                numbers.append(self.line_at(match.start()))
                position = self._starts[numbers[-1] + 1]
            yield numbers


class RawLines(LineIndex):
    """The lines of a text, and which of them make a collective. A name that several functions of MLIR use is
    that of the collectives that have it, in their order."""

    def __init__(self, text: str, collectives: Iterable[Collective]) -> None:
        super().__init__(text)
        waiting: dict[str, list[Collective]] = {}
        for collective in collectives:
            waiting.setdefault(collective.name, []).append(collective)
        self.collectives: dict[int, Collective] = {}
        for number in range(self.count) if waiting else ():
            line = self.line(number, 0, MAX_NAME)
            # Each function of MLIR counts its names anew.
            if (named := waiting.get(_name(line))) and (
                not named[0].name.startswith("%") or named[0].op.replace("-", "_") in line
            ):
                self.collectives[number] = named.pop(0) if len(named) > 1 else named[0]

    def name_at(self, index: int) -> str:
        """The name of what the line with this place of the text makes."""
        number = min(self.line_at(index), self.count - 1)
        return _name(self.line(number, 0, MAX_NAME)) if self.count else ""

    def place_of(self, name: str) -> int:
        """The place of the line that makes what has this name; 0 where none does."""
        found = re.search(rf"(?:^|(?<=[ %\n])){re.escape(name)}(?= = | \(| \{{)", self.text)
        return found.start() if found else 0

    def caller_of(self, index: int) -> int:
        """The place of what calls the computation of HLO at this place, such as a fusion; 0 for none."""
        head = self.line_at(index)
        while head and self.line(head, 0, 1) in ("", " "):
            head -= 1
        name = re.escape(_name(self.line(head, 0, MAX_NAME)))
        call = re.search(rf"\w=\{{?(?:%?[\w.\-]+, )*%?{name}(?![\w.\-])", self.text)
        return 0 if call is None else call.start()


class HloPage(FoldedPage):
    """A listing, each line cut at the page's edge."""

    def __init__(self, program: ListedProgram, listing: Listing, width: int, palette: Palette) -> None:
        super().__init__(program, width, len(listing.lines), program.collectives, palette)
        self._lines = listing.lines
        self._picture = HloPicture(listing, width, palette)

    def written(self, number: int) -> str:
        """``name = shape opcode(operands) attributes``, in full."""
        line = self._lines[number]
        if line.is_head:
            return f"{line.opcode} {f'of {line.operands}: ' if line.operands else ''}{line.name}"
        holds = f": {', '.join(line.holds)}" if line.holds else ""
        attributes = f" {', '.join(line.attributes)}" if line.attributes else ""
        return f"{line.name} = {line.shape} {line.opcode}{holds}({line.operands}){attributes}"

    def line(self, number: int, left: int, right: int) -> Text:
        text = self._picture.line(number)
        return text[left:right] if left else text

    def beginning(self, number: int) -> int:
        begins = self._lines[number].ends
        return number if begins is None else begins

    def place(self, number: int) -> int:
        return self._raw.place_of(self._lines[number].name)

    def number_at(self, index: int) -> int:
        """The line of an instruction, or of what calls the computation that has it."""
        numbers = {line.name: number for number, line in reversed([*enumerate(self._lines)])}
        seen = set()
        while (name := self._raw.name_at(index)) not in numbers and index not in seen:
            seen.add(index)
            index = self._raw.caller_of(index)
        return numbers.get(name, 0)


class MlirPage(FoldedPage):
    """The module, each line cut at the page's edge; axes in their colours."""

    def __init__(self, program: ListedProgram, shown: Sequence[int], width: int, palette: Palette) -> None:
        super().__init__(program, width, len(shown), program.collectives, palette)
        self._shown = shown

    def written(self, number: int) -> str:
        """A line, without source locations and attributes that only a compiler wants to know."""
        return strip_metadata(self._raw.line(self._shown[number])).expandtabs(2)

    def line(self, number: int, left: int, right: int) -> Text:
        collective = self.collective(number)
        text = Text(printable(self.written(number)))
        for axis in re.finditer(r'"([^"]*)"', text.plain):
            if axis[1] in self._mesh.axis_names:
                text.stylize(self._palette.axis(self._mesh, axis[1]), axis.start(1), axis.end(1))
        if collective is None:
            text.truncate(self.width - 2, overflow="ellipsis")
            return Text("  ").append_text(text)[left:right]
        text.stylize("bold", len(text.plain) - len(text.plain.lstrip()))
        tail = facts(collective, self._mesh, self._palette)
        text.truncate(max(self.width - 2 - tail.cell_len, self.width // 2), overflow="ellipsis")
        marked = Text.assemble((MARK, collective_style(collective, self._mesh, self._palette)), " ")
        return marked.append_text(text).append_text(tail)[left:right]

    def place(self, number: int) -> int:
        return self._raw.start(self._shown[number])

    def number_at(self, index: int) -> int:
        line = self._raw.line_at(index)
        return next((number for number, raw in enumerate(self._shown) if raw >= line), 0)


def _name(line: str) -> str:
    """``add.1`` of ``ROOT %add.1 = …``, ``main`` of ``ENTRY %main (…``, ``%1`` of ``%1 = sdy.…``."""
    words = line.split(maxsplit=2)
    name = next((word for word in words if word not in ("ROOT", "ENTRY")), "")
    short = name.removeprefix("%")
    return name if short.isdigit() else short
