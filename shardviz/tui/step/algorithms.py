"""The table of all algorithms for the collective that is played, with rounds, bytes and time of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.worker import get_current_worker

from shardviz.errors import ShardvizError
from shardviz.forms.wording import as_sentence, error_words
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
from shardviz.units import human_bytes

if TYPE_CHECKING:
    from shardviz.stepping.collective_run import CollectiveRun


class AlgorithmsDialog(FilteredList):
    """`enter` leaves with the name of an algorithm. They are compared beside the screen."""

    nothing = "No algorithm has this name."
    DEFAULT_CSS = """
    AlgorithmsDialog.-broad.-high #choice { layout: vertical; }
    AlgorithmsDialog.-broad.-high OptionList { width: 100%; height: 1fr; }
    AlgorithmsDialog.-broad.-high #about { padding: 1 0 0 0; max-height: 8; }
    AlgorithmsDialog #about { max-height: 6; }
    """

    def __init__(self, run: CollectiveRun) -> None:
        super().__init__()
        self._run = run
        what = f"{run.operation.name} over {', '.join(run.operation.axes)}"
        self.title_text = f"Algorithms for {what}: {human_bytes(run.bytes)} on a {run.links.topology}"
        self._fastest = Text()

    def on_mount(self) -> None:
        self.describe(Text("comparing …", "dim"))
        self._compare()

    @work(thread=True, exit_on_error=False)
    def _compare(self) -> None:
        from shardviz.hardware.comparisons import NotCompared, crossovers, left_out
        from shardviz.render.rounds.step_notes import fastest_line

        run, worker = self._run, get_current_worker()
        try:
            for row in run.rows:
                _ = isinstance(row, NotCompared) or (row.seconds, row.device_bytes)
        except ShardvizError as error:
            self.app.call_from_thread(self.describe, Text(error_words(error)))
            return
        if worker.is_cancelled:
            return
        self.app.call_from_thread(self._show)
        if not run.operation.even:
            return
        pattern, links = run.schedule.pattern, run.links
        crossed = crossovers(pattern, links.topology, links.spec, run.bytes)
        fastest = fastest_line(run, crossed, left_out(pattern, links.topology))
        if not worker.is_cancelled:
            self.app.call_from_thread(self._say_fastest, fastest)

    def _say_fastest(self, fastest: Text) -> None:
        self._fastest = fastest
        self.describe_chosen()

    def _show(self) -> None:
        from shardviz.hardware.comparisons import NotCompared
        from shardviz.render.rounds.step_notes import algorithm_lines

        head, lines = algorithm_lines(self._run, self.size.width - 8)
        able = [row for row in self._run.rows if not isinstance(row, NotCompared)]
        rows = [
            ListRow(line, row.algorithm, row.algorithm, head) for line, row in zip(lines, able, strict=True)
        ]
        cannot = Text("not possible here")
        rows += [
            ListRow(Text(f"   {row.algorithm}", "dim"), row.algorithm, row.algorithm, cannot)
            for row in self._run.rows
            if isinstance(row, NotCompared)
        ]
        self.show_rows(rows, self._run.schedule.algorithm)

    def about(self, row: ListRow) -> Text:
        from shardviz.collectives.algorithms import ALGORITHMS

        algorithm = ALGORITHMS[row.value]
        said = Text.assemble((algorithm.name, "bold"), f": {as_sentence(algorithm.summary)}")
        if reason := self._reason(row):
            said.append(f"\n✗ {as_sentence(reason)}")
        elif self._fastest:
            said.append("\n").append_text(self._fastest)
        return said

    def leave_with(self, row: ListRow) -> None:
        if not self._reason(row):
            super().leave_with(row)

    def _reason(self, row: ListRow) -> str:
        """Why an algorithm cannot do it; empty where it can."""
        from shardviz.hardware.comparisons import NotCompared

        reasons = dict(each for each in self._run.rows if isinstance(each, NotCompared))
        return reasons.get(row.value, "")
