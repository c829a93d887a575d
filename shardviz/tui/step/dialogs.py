"""The table of all algorithms for the collective that is played, with rounds, bytes and time of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import ShardvizError
from shardviz.forms.wording import as_sentence
from shardviz.hardware.links import LinkSpec, link_as_given
from shardviz.lazy_names import LazyImports
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
from shardviz.tui.step.choice import LinkFigures
from shardviz.units import human_bytes, rate, seconds

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


class LinkFiguresDialog(FilteredList):
    """`enter` leaves with figures; what is typed may be any: ``2us``, ``90GB/s`` or both."""

    title_text = "Latency and bandwidth of a link"
    placeholder = "type 2us, 90GB/s, or both"
    nothing = "Neither a latency, as 2us, nor a bandwidth, as 90GB/s."

    def __init__(self, spec: LinkSpec, chosen: LinkFigures) -> None:
        super().__init__()
        self._spec, self._chosen = spec, chosen

    def on_mount(self) -> None:
        own = ListRow(Text("the machine's own"), "the machine's own", LinkFigures())
        rows = [_row(name, figures) for name, figures in _others(self._spec)]
        self.show_rows([own, *rows], self._chosen)

    def row_of(self, typed: str) -> ListRow | None:
        figures = figures_of(typed)
        return None if figures is None else _row("as typed", figures)

    def about(self, row: ListRow) -> Text:
        figures: LinkFigures = row.value
        link = link_as_given(self._spec, figures.latency, figures.bandwidth)
        words = f"A message takes {seconds(link.latency)}, and its bytes at {rate(link.bandwidth)}, one way."
        return Text(words)


def figures_of(text: str) -> LinkFigures | None:
    """The figures in a text such as ``2us 90GB/s``; None where it has anything else."""
    found: dict[str, str] = {}
    for word in text.replace(",", " ").split():
        found["bandwidth" if word.endswith("/s") or word == "inf" else "latency"] = word
        try:
            link_as_given(LinkSpec(), **found)
        except ShardvizError:
            return None
    return LinkFigures(**found) if found else None


def _others(spec: LinkSpec) -> Iterator[tuple[str, LinkFigures]]:
    if spec.bandwidth < math.inf:
        for name, factor in (("half the bandwidth", 0.5), ("twice the bandwidth", 2.0)):
            yield name, LinkFigures(bandwidth=f"{spec.bandwidth * factor / 1e9:g}GB/s")
    yield "no latency", LinkFigures(latency="0")
    if spec.latency:
        yield "ten times the latency", LinkFigures(latency=f"{spec.latency * 1e7:g}us")
    yield "no time for bytes", LinkFigures(bandwidth="inf")


def _row(name: str, figures: LinkFigures) -> ListRow:
    words = ", ".join(filter(None, (figures.latency, figures.bandwidth)))
    return ListRow(Text(f"{name:<24}{words}"), f"{name} {words}", figures)
