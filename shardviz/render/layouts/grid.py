"""Draws a grid of cells with box characters, as wide as it must be and no wider than it may."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.style import Style
from rich.text import Text

from shardviz.render.palette import PADDING, PARTIAL

ELISION = 3
"""Width of a column that stands for columns left out."""
ROOMY = 17
"""A label longer than this gives way to a shorter one, even where there is room."""
SUMMARY = 6
"""Places in a row or a column that cannot show all its parts: the first ones, a gap, the last."""

DIM = Style(dim=True)


@dataclass(frozen=True)
class Cell:
    """One block: its `labels`, the longest first, a glyph for its data, and how it is filled.

    `padding` is the part of the cell's width (0 to 1) that lies beyond the array's edge.
    """

    labels: tuple[str, ...]
    glyph: str
    style: Style
    partial: bool = False
    padding: float = 0.0

    @property
    def brief(self) -> str:
        """The shortest label that still names a device."""
        return self.labels[-2] if len(self.labels) > 2 else self.labels[0]

    def fitting(self, width: int) -> str:
        """The longest label that fits, or the shortest of all."""
        return next((label for label in self.labels if len(label) <= width), self.labels[-1])

    def has_room_for_glyph(self, width: int) -> bool:
        """Whether the glyph fits between blanks without crowding out a label that names a device."""
        room = width - 2
        rest = room - len(self.glyph) - 1
        return len(self.brief) <= rest or (len(self.brief) > room and len(self.labels[-1]) <= rest)


@dataclass(frozen=True)
class Edge:
    """One edge of the grid: the dimension's `title`, and ways to label each of its `count` parts.

    Each of `labelings` gives the label of a part; the first whose labels fit is taken.
    """

    title: Text
    count: int
    labelings: Sequence[Callable[[int], Text]] = field(default_factory=tuple)


def visible(count: int, limit: int) -> tuple[int | None, ...]:
    """Which of `count` parts to draw: all within `limit`, or the first, None for a gap, the last."""
    if count <= limit:
        return tuple(range(count))
    limit = max(min(limit, SUMMARY), 3)
    return (*range(limit - 2), None, count - 1)


@dataclass(frozen=True)
class Grid:
    """Lines of a drawn grid, equally wide: `top` is the box's upper border, above it the columns' labels.

    `summarised` tells that parts were left out, `glyphs` that every cell has its glyph; else none has.
    """

    lines: tuple[Text, ...]
    top: int
    summarised: bool
    glyphs: bool


def draw(
    rows: Edge,
    columns: Edge,
    cell: Callable[[int, int], Cell],
    width: int,
    max_rows: int,
    glyphs: bool = True,
) -> Grid:
    """The columns' title and labels, then the box with the rows' title and labels to its left.

    `width` holds unless not even one column fits. `glyphs`: whether cells have them where all have room.
    """
    row_places = visible(rows.count, max_rows)
    row_labels = _labels(rows, row_places, width // 4)
    title = rows.title.copy()
    title.truncate(max(width // 4, *(label.cell_len for label in row_labels), 0), overflow="ellipsis")
    gutter = max(label.cell_len for label in (*row_labels, title))
    gutter = gutter + 1 if gutter else 0
    room = width - gutter - 1
    corners = [cell(row, column) for row in (0, rows.count - 1) for column in (0, columns.count - 1)]
    least = max(len(corner.brief) for corner in corners) + 2
    if room < min(columns.count, 2) * (least + 1) + ELISION + 1:
        least = max(len(corner.labels[-1]) for corner in corners) + 2
    fits = room // (least + 1)
    if columns.count > fits:
        # Some are left out in any case: so many more that the others have room for their glyphs.
        roomy = max(len(corner.brief) + len(corner.glyph) + 1 for corner in corners) + 2
        if room >= min(columns.count, 2) * (roomy + 1) + ELISION + 1:
            least = max(least, roomy)
        fits = min((room - ELISION - 1) // (least + 1) + 1, columns.count - 1)
    column_places = visible(columns.count, fits)
    cells = [
        [None if row is None or column is None else cell(row, column) for column in column_places]
        for row in row_places
    ]
    inner = _cell_width(cells, columns, column_places, room, least)
    glyphs = glyphs and all(
        each.has_room_for_glyph(inner) for row_cells in cells for each in row_cells if each is not None
    )
    widths = [ELISION if column is None else inner for column in column_places]
    lines = _header(columns, column_places, widths)
    lines.append(_border("┌┬┐", widths))
    for place, row_cells in enumerate(cells):
        if place:
            lines.append(_border("├┼┤", widths))
        lines.append(_row(row_cells, widths, row_places[place] is None, glyphs))
    lines.append(_border("└┴┘", widths))
    top = len(lines) - 2 * len(cells) - 1
    drawn = (
        Text.assemble(_right(_gutter(index - top, title, row_labels), gutter), line)
        for index, line in enumerate(lines)
    )
    return Grid(tuple(drawn), top, None in row_places or None in column_places, glyphs)


def _gutter(index: int, title: Text, labels: Sequence[Text]) -> Text:
    """What stands left of a line of the box: the title beside its top, a label beside each row."""
    if index == 0:
        return title
    if index > 0 and index % 2 and labels:
        return labels[index // 2]
    return Text()


def _right(text: Text, width: int) -> Text:
    return Text.assemble(" " * (width - 1 - text.cell_len), text, " ") if width else Text()


def _labels(edge: Edge, places: Sequence[int | None], width: int) -> list[Text]:
    """The labels of the parts that are drawn, by the first labeling that fits, or none at all."""
    for labeling in edge.labelings:
        labels = [Text("⋮", DIM) if place is None else labeling(place) for place in places]
        if all(label.cell_len <= width for label in labels):
            return labels
    return []


def _cell_width(
    cells: list[list[Cell | None]], columns: Edge, places: Sequence[int | None], room: int, least: int
) -> int:
    drawn = [cell for row in cells for cell in row if cell is not None]
    gaps = places.count(None)
    shown = len(places) - gaps
    most = (room - gaps * (ELISION + 1)) // shown - 1
    wanted = max(len(cell.fitting(ROOMY)) + len(cell.glyph) + 3 + 2 * cell.partial for cell in drawn)
    if columns.labelings:
        labels = (columns.labelings[0](place) for place in places if place is not None)
        wanted = max(wanted, *(label.cell_len + 1 for label in labels))
    for_title = -(-(columns.title.cell_len + 1) // shown) - 1
    return max(least, min(max(wanted, for_title), most))


def _header(columns: Edge, places: Sequence[int | None], widths: list[int]) -> list[Text]:
    """The title, and under it the labels over their columns, each where there is one."""
    total = sum(widths) + len(widths) + 1
    title = columns.title.copy()
    title.truncate(total - 1, overflow="ellipsis")
    top = Text.assemble(" ", title)
    narrowest = min(width for width, place in zip(widths, places, strict=True) if place is not None)
    labels = _labels(columns, places, narrowest)
    under = Text()
    for label, width, place in zip(labels, widths, places, strict=False):
        shown = Text("…", DIM) if place is None else label
        left = (width - shown.cell_len) // 2
        under.append(" " * (left + 1)).append_text(shown).append(" " * (width - left - shown.cell_len))
    lines = [line for line in (top, under) if line.plain.strip()]
    for line in lines:
        line.append(" " * (total - line.cell_len))
    return lines


def _border(corners: str, widths: list[int]) -> Text:
    return Text(corners[0] + corners[1].join("─" * width for width in widths) + corners[2], DIM)


def _row(cells: Sequence[Cell | None], widths: list[int], elided: bool, glyphs: bool) -> Text:
    line = Text.assemble(("│", DIM))
    for cell, width in zip(cells, widths, strict=True):
        if cell is None:
            line.append(("⋮" if elided and width > ELISION else "…").center(width), DIM)
        else:
            line.append(cell_text(cell, width, glyphs), cell.style)
        line.append("│", DIM)
    return line


def cell_text(cell: Cell, width: int, glyphs: bool) -> str:
    """What stands in a cell of so many columns, to be shown in the cell's style."""
    name = f"{cell.glyph} " if glyphs else ""
    label = (name + cell.fitting(width - 2 - len(name)))[:width]
    if cell.partial and len(label) <= width - 2:
        label = f" {label} "
    fill = PARTIAL if cell.partial else " "
    left = (width - len(label)) // 2
    text = fill * left + label + fill * (width - len(label) - left)
    if cell.padding:
        # The number stays readable: padding replaces only blanks.
        real = min(round(width * (1 - cell.padding)), width - 1)
        text = text[:real] + "".join(PADDING if c in (" ", PARTIAL) else c for c in text[real:])
    return text
