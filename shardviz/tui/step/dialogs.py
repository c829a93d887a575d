"""The table of all algorithms for the collective that is played, with rounds, bytes and time of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.forms.wording import as_sentence
from shardviz.lazy_names import LazyImports
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
from shardviz.units import human_bytes

with LazyImports():
    from shardviz.hardware import timelines
    from shardviz.render.rounds import step_notes

if TYPE_CHECKING:
    from shardviz.stepping.collective_run import CollectiveRun


class AlgorithmsDialog(FilteredList):
    """`enter` leaves with the name of an algorithm. They are compared beside the screen."""

    nothing = "No algorithm has this name."
    is_table = True

    def __init__(self, run: CollectiveRun) -> None:
        super().__init__()
        self._run = run
        what = f"{run.operation.name} over {', '.join(run.operation.axes)}"
        self.title_text = f"Algorithms for {what}: {human_bytes(run.bytes)} on a {run.links.topology}"

    def on_mount(self) -> None:
        self.describe(Text("comparing …", "dim"))
        self.beside(self._compare)

    def _compare(self) -> Iterator[Callable[[], object]]:
        for row in self._run.rows:
            _ = isinstance(row, timelines.NotCompared) or (row.seconds, row.device_bytes)
        yield self._show

    def _show(self) -> None:
        head, lines = step_notes.algorithm_lines(self._run, self.size.width - 8)
        able = [row for row in self._run.rows if not isinstance(row, timelines.NotCompared)]
        rows = [
            ListRow(line, row.algorithm, row.algorithm, head) for line, row in zip(lines, able, strict=True)
        ]
        cannot = Text("not possible here")
        rows += [
            ListRow(Text(f"   {row.algorithm}", "dim"), row.algorithm, row.algorithm, cannot)
            for row in self._run.rows
            if isinstance(row, timelines.NotCompared)
        ]
        self.show_rows(rows, self._run.schedule.algorithm)

    def about(self, row: ListRow) -> Text:
        from shardviz.collectives.algorithms import ALGORITHMS

        algorithm = ALGORITHMS[row.value]
        said = Text.assemble((algorithm.name, "bold"), f": {as_sentence(algorithm.summary)}")
        for line in step_notes.formula_lines(self._run, self.size.width):
            said.append("\n").append_text(line)
        if reason := self._reason(row):
            said.append(f"\n✗ {as_sentence(reason)}")
        return said

    def leave_with(self, row: ListRow) -> None:
        if not self._reason(row):
            super().leave_with(row)

    def _reason(self, row: ListRow) -> str:
        """Why an algorithm cannot do it; empty where it can."""
        reasons = dict(row for row in self._run.rows if isinstance(row, timelines.NotCompared))
        return reasons.get(row.value, "")
