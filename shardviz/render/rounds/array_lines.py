"""The numbers of an array as JAX prints them, each in the colour of its data; of all devices that hold the
same, one array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from rich.style import Style
from rich.text import Text

from shardviz.collectives.values import Values
from shardviz.render.canvas import SUMMARY, visible
from shardviz.render.lines import shelve
from shardviz.render.palette import DIM, PARTIAL
from shardviz.render.rounds.pieces import numbers

SHARD_LINES = 8
"""Lines of one device; a vector has half as many."""
LEAST_NUMBER = 4
"""Columns that the narrowest number takes with its blanks."""
MAX_BLOCKS = 16

StyleOf = Callable[[int], Style | None]
"""The style of a number by its place in the flattened array; None where no chunk is."""


def devices_picture(
    held: Iterable[tuple[int, Values, Style | None]], width: int, striped: bool = False
) -> list[Text]:
    """The array of each device in the colour of its data, one for all that hold the same, below their ids;
    as many beside one another as fit. `striped` are partial sums."""
    found: dict[object, tuple[list[int], Values, Style | None]] = {}
    for device, values, style in held:
        found.setdefault((values.shape, values.tobytes(), style), ([], values, style))[0].append(device)
    arrays = [*found.values()]
    digits = max(digits_of(values, width, SHARD_LINES) for _, values, _ in arrays)
    blocks = []
    for index in visible(len(arrays), MAX_BLOCKS):
        if index is None:
            blocks.append([Text("…", DIM)])
            continue
        devices, values, style = arrays[index]
        names = " ".join("…" if place is None else str(devices[place]) for place in visible(len(devices), 6))
        if len(devices) > 2 and devices[-1] - devices[0] == len(devices) - 1:
            names = f"{devices[0]}–{devices[-1]}"
        styles = dict.fromkeys(range(values.size), style)
        lines = array_lines(values, styles.get, width, digits, striped)
        blocks.append([Text(f"{names}:", DIM), *lines, Text()])
    return shelve(blocks, width)[:-1]


def array_lines(
    values: Values,
    style: StyleOf,
    width: int,
    digits: int,
    striped: bool = False,
    max_lines: int = SHARD_LINES,
    period: int = 1,
) -> list[Text]:
    """An array, the last dimension along a line; neighbours of one style stand in one cell. A vector goes on
    over several lines, each with whole periods where these fit. Of larger arrays the first and last numbers
    and lines are shown. Numbers take `digits` columns."""
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
    if shown.shape[1] > width // LEAST_NUMBER * max_lines:
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
