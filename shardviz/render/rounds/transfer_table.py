"""The transfers of a collective in the order of its rounds: from, to, chunks, values, bytes, links, time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import islice

import numpy as np
from rich.text import Text

from shardviz.collectives.values import Ints, Values
from shardviz.errors import plural
from shardviz.hardware.topology import Hierarchy, Switch
from shardviz.render.lines import sentence
from shardviz.render.palette import Palette
from shardviz.render.rounds.pieces import LISTED as MOST_NUMBERS
from shardviz.render.rounds.pieces import chunk_names, numbers
from shardviz.render.rounds.round_traffic import round_words
from shardviz.render.rounds.step_notes import duration, headline
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.stepping.transfers import LoggedTransfer, TransferLog, carried_values
from shardviz.units import human_bytes, seconds

HERE = "▸"
"""Stands before the round that is shown."""
MARKED = "▹"
"""Stands before the transfers of the device that is marked."""
HEADINGS = ("from → to", "chunk", "values", "bytes", "link", "time")
RIGHT = ("bytes", "time")
GAP = 2
READABLE = 60
"""The fewest columns with room for the names of several chunks."""
NAMES_WIDTH, BYTES_WIDTH, TIME_WIDTH = 12, 9, 9
LEAST_VALUES = 6
"""Columns of values below which there are none."""
MOST_VALUES = 48


class TransferTable:
    """The transfers of one group as a canvas: a line for each round, below it one for each of its messages.

    Round `number` is marked, those after it are dim; None marks none. `drawn` is the run whose numbers are
    shown. Where it takes long to count all messages, the round has its own lines alone. The `lens` is a
    member that is marked.
    """

    def __init__(
        self,
        log: TransferLog,
        drawn: CollectiveRun,
        group: int,
        number: int | None,
        width: int,
        palette: Palette,
        lens: int | None = None,
    ) -> None:
        self._log, self._drawn, self._group, self._number = log, drawn, group, number
        self._lens = lens
        self.width, self._palette = width, palette
        self._run = log.run
        self._all = log.is_countable
        self._id_width = len(str(log.run.mesh.size - 1))

    @property
    def height(self) -> int:
        if not self._all:
            return 1 + (1 + self._log.count(self._number) if self._number else 0)
        return 1 + self._run.schedule.rounds + int(self._log.before[-1])

    def line_of(self, number: int) -> int:
        """The line of a round."""
        return int(self._lines[number - 1]) if number and self._all else int(number > 0)

    def round_at(self, y: int) -> int:
        """The round to which a line belongs; 0 above the first."""
        return self._place(y)[0]

    def line(self, y: int, left: int, right: int) -> Text:
        """Columns `left` to `right` of a line."""
        number, index = self._place(y)
        if not number:
            widths = dict(zip(HEADINGS, self._widths, strict=True))
            cells = [Text(each.rjust(widths[each]) if each in RIGHT else each) for each in HEADINGS]
            text = Text.assemble(" " * GAP, self._cells(cells), style="bold")
        elif index < 0:
            text = self._round(number)
        else:
            text = self._transfer(self._log.transfer(number, index))
        text.truncate(self.width, overflow="ellipsis")
        if self._number is not None and number > self._number:
            text.stylize("dim")
        return text[left:right]

    def _place(self, y: int) -> tuple[int, int]:
        """The round of a line, and the place of its transfer; -1 on the line of the round itself."""
        if not y or not self._all:
            return (self._number or 0, y - 2) if y else (0, -1)
        number = int(self._lines.searchsorted(y, "right"))
        return number, y - int(self._lines[number - 1]) - 1

    @cached_property
    def _lines(self) -> Ints:
        """The line of each round, from round 1 on."""
        return np.arange(1, self._run.schedule.rounds + 1) + self._log.before[:-1]

    def _round(self, number: int) -> Text:
        """``▸ round 2  reduce-scatter  each sends 1 chunk to the next, 16 B   from 1 µs to 2 µs``."""
        run = self._run
        phase, _ = run.schedule.phase(number)
        mark = HERE if number == self._number else " "
        load = run.timeline[number - 1]
        time = duration(load.seconds, load.waiting)
        if run.cost is not None:
            begin, end = (run.cost.seconds(each) for each in (number - 1, number))
            time = f"{seconds(begin)} – {duration(end, load.waiting)}"
        line = Text.assemble(f"{mark} ", (f"round {number:,}", "bold"), f"  {time}  {run.phase_name(phase)}")
        if load.waiting:
            line.append(f", {plural(load.waiting, 'message waits', 'messages wait')} for a link")
        return line.append(f"  {round_words(run, number)}")

    def _transfer(self, transfer: LoggedTransfer) -> Text:
        run, ends = self._run, []
        for member in (transfer.source, transfer.target):
            name = str(run.mesh.device_id(run.groups[self._group][member]))
            style = self._palette.lens if member == self._lens else ""
            ends.append(Text.assemble(" " * (self._id_width - len(name)), (name, style)))
        sign = "+" if transfer.adds else " "
        is_marked = self._lens in (transfer.source, transfer.target)
        values: Iterable[Values] = ()
        if self._drawn.has_numbers:
            values = carried_values(self._drawn.frames[transfer.number - 1], transfer, self._group)
        words = (word for each in islice(values, MOST_NUMBERS) for word in numbers(each[:MOST_NUMBERS]))
        return Text.assemble(
            (MARKED, self._palette.lens) if is_marked else " ",
            " " * (GAP - 1),
            self._cells(
                [
                    Text(" → ").join(ends),
                    Text.assemble(sign, chunk_names(run, transfer.chunks, self._group, self._palette)),
                    Text(", ".join(words)),
                    Text(human_bytes(transfer.bytes).rjust(BYTES_WIDTH)),
                    Text(self._link(transfer)),
                    Text(seconds(transfer.seconds).rjust(TIME_WIDTH)),
                ]
            ),
        )

    def _cells(self, cells: list[Text]) -> Text:
        """The cells of a line in their columns; values have what is left."""
        line = Text()
        for cell, width in zip(cells, self._widths, strict=True):
            if not width:
                continue
            cell.truncate(width, overflow="ellipsis")
            line.append_text(cell).append(" " * (width - cell.cell_len + GAP))
        line.rstrip()
        return line

    @cached_property
    def _widths(self) -> tuple[int, ...]:
        ends = max(2 * self._id_width + 3, len(HEADINGS[0]))
        names = NAMES_WIDTH if self.width >= READABLE else NAMES_WIDTH // 2
        is_hierarchy = isinstance(self._run.links.topology, Hierarchy)
        link = len("outer switch") if is_hierarchy else len("99 links")
        left = self.width - GAP - sum(GAP + each for each in (ends, names, BYTES_WIDTH, link, TIME_WIDTH))
        if left < -GAP:  # no room even without values: the time tells more than the link
            names = max(1, min(names, names + left + link + 2 * GAP))
            link = 0
        has_values = self._drawn.question.shards is not None and left >= LEAST_VALUES
        values = min(left, MOST_VALUES) if has_values else 0
        return ends, names, values, BYTES_WIDTH, link, TIME_WIDTH

    def _link(self, transfer: LoggedTransfer) -> str:
        topology = self._run.links.topology
        if isinstance(topology, Hierarchy):
            kind = topology.levels[transfer.level].topology
            where = "outer" if not transfer.level else "inner"
            return f"{where} switch" if isinstance(kind, Switch) else plural(transfer.hops, "link")
        return "switch" if isinstance(topology, Switch) else plural(transfer.hops, "link")


def transfer_lines(run: CollectiveRun, width: int, palette: Palette, number: int | None = None) -> list[Text]:
    """The transfers of the first group on a page: of all rounds, or of one."""
    log = TransferLog(run)
    table = TransferTable(log, run, 0, number, width, palette)
    rows = range(1, table.height)
    if number is not None:
        first = table.line_of(number)
        rows = range(first, first + 1 + log.count(number)) if number else range(0)
    lines = [*headline(run, width, palette), Text(), table.line(0, 0, width)]
    lines += [table.line(y, 0, width) for y in rows]
    others = len(run.groups) - 1
    if others:
        same = f"{plural(others, 'other group')} at the same time: the same transfers"
        lines += sentence(same, width, style="dim")
    return [*lines, *sentence(transfer_marks(run), width, style="dim")]


def transfer_marks(run: CollectiveRun) -> str:
    """The meaning of signs and columns."""
    adds = "+ the receiver adds it to its own   " if run.schedule.pattern.reduces else ""
    return f"{adds}time of a message: what it takes alone"
