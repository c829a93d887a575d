"""The numbers of an array as JAX prints them, each in the colour of its data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from rich.style import Style
from rich.text import Text

from shardviz.collectives.values import Values
from shardviz.render.lines import SUMMARY, visible
from shardviz.render.palette import DIM, PARTIAL
from shardviz.render.rounds.pieces import numbers

SHARD_LINES = 8
"""Lines of one device; a vector has half as many."""

StyleOf = Callable[[int], Style | None]
"""The style of a number by its place in the flattened array; None where no chunk is."""


def array_lines(
    values: Values,
    style: StyleOf,
    width: int,
    digits: int,
    striped: bool = False,
    max_lines: int = SHARD_LINES,
    period: int = 1,
) -> list[Text]:
    """An array, its last dimension along a line, of larger ones the first and last numbers and lines; numbers
    have `digits` columns, equal styles one cell. A vector wraps, by whole periods where they fit."""
    length = values.shape[-1] if values.ndim else 1
    if not values.size:
        return [Text("[]", DIM)]
    flat = values.reshape(-1)
    fits = max(width // (digits + 3), 3)
    if values.ndim < 2 and fits < length <= width:
        for gap in (" ", ""):
            line = _line(range(length), flat, style, digits, striped, gap)
            if line.cell_len <= width:
                return [line]
    if values.ndim < 2 and fits < length <= max_lines // 2 * fits:
        whole = fits - (fits % period if period <= fits else 0)
        bounds = [(start, min(start + whole, length)) for start in range(0, length, whole)]
        return [_line(range(*bound), flat, style, digits, striped) for bound in bounds]
    columns = visible(length, fits)
    lines = []
    for row in visible(flat.size // length, max_lines):
        if row is None:
            lines.append(Text("⋮".rjust(digits + 1), DIM))
            continue
        places = [None if column is None else row * length + column for column in columns]
        lines.append(_line(places, flat, style, digits, striped))
    return lines


def digits_of(values: Values, width: int, max_lines: int) -> int:
    """Columns of the widest number that `array_lines` may show."""
    if not values.size:
        return 1
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    shown = rows[[row for row in visible(len(rows), max_lines) if row is not None]]
    if shown.shape[1] > width // 4 * max_lines:
        shown = shown[:, [column for column in visible(shown.shape[1], SUMMARY) if column is not None]]
    return max(map(len, numbers(shown)))


def _line(
    places: Sequence[int | None], flat: Values, style: StyleOf, digits: int, striped: bool, blank: str = " "
) -> Text:
    cells = []
    side = PARTIAL if striped else " "
    looks = ((index, None if index is None else style(index)) for index in places)
    for (is_gap, colours), cell in groupby(looks, lambda look: (look[0] is None, look[1])):
        words = [numbers(flat[index : index + 1])[0].rjust(digits) for index, _ in cell if index is not None]
        cells.append(Text("…", DIM) if is_gap else Text(f"{side}{' '.join(words)}{side}", colours or ""))
    return Text(blank).join(cells)
