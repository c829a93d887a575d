"""The table of a program's arrays: letters narrow it, a key sorts it, and the selected one is described."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rich.text import Text
from textual.widgets import Static

from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.render.palette import Palette
from shardviz.reports.arrays import ProgramArray, alike_arrays
from shardviz.tui.dialogs.filtered_list import CLOSE, MOVES, FilteredList, ListRow
from shardviz.tui.registry import TABLES

with LazyImports():
    from shardviz.documents import programs as documents
    from shardviz.render.programs import array_table

(SORT,) = TABLES["ARRAYS"]
ORDERS: dict[str, Callable[[Sequence[ProgramArray]], Any]] = {
    "bytes": lambda group: -sum(one.bytes for one in group),
    "waste": lambda group: -sum(mark.bytes for one in group for mark in one.marks),
    "copies": lambda group: -(group[0].copies or 0),
    "kind": lambda group: group[0].kind,
    "name": lambda group: group[0].name,
}
"""What rows are sorted by, in turn."""


class ArraysDialog(FilteredList):
    """Every array of the program of a command line, alike ones of several layers in one row."""

    title_text = "Arrays"
    placeholder = "a name, a spec, a dtype, replicated, padded, host, …"
    nothing = "No array matches; remove some words."
    commands = (MOVES[0], SORT, CLOSE)
    taken = (SORT,)
    is_table = True

    def __init__(self, words: Sequence[str], palette: Palette) -> None:
        super().__init__()
        self._words, self._palette, self._orders = words, palette, [*ORDERS]
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: Sequence[Sequence[ProgramArray]] = ()

    def on_mount(self) -> None:
        self.describe(Text("compiling …", "dim"))
        self.beside(self._read)

    def _read(self) -> Iterator[Callable[[], object]]:
        pipe = subprocess.PIPE
        command = [sys.executable, "-P", "-m", "shardviz", *self._words, "--arrays", "--json"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        out, error = self._process.communicate()
        try:
            arrays, self._mesh = documents.read_arrays(json.loads(out))
        except (ValueError, StopIteration):
            raise QuestionError(error.decode(errors="replace").strip() or "it has no program") from None
        self._groups = alike_arrays(arrays)
        yield self._show

    def _show(self) -> None:
        groups = sorted(self._groups, key=ORDERS[self._orders[0]])
        self.query_one(".title", Static).update(Text(f"Arrays by {self._orders[0]}"))
        lines = array_table.array_rows(groups, self._mesh, self._palette, self.size.width)
        self.show_table(lines, groups, self.chosen and self.chosen.value)

    def action_sort(self) -> None:
        if self._groups:
            self._orders.append(self._orders.pop(0))
            self._show()

    def about(self, row: ListRow) -> Text:
        width = self.query_one("#choice").content_size.width
        return Text("\n").join(array_table.array_details(row.value, width))

    def leave_with(self, _row: ListRow) -> None:
        """Stay: all of an array is shown."""

    def on_unmount(self) -> None:
        if self._process is not None:
            self._process.kill()
