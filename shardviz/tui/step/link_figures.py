"""The dialog for the latency and bandwidth of a link: the machine's, others beside them, or as typed."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.text import Text

from shardviz.errors import ShardvizError
from shardviz.hardware.links import LinkSpec, link_as_given
from shardviz.tui.dialogs.filtered_list import FilteredList, ListRow
from shardviz.tui.step.choice import LinkFigures
from shardviz.units import rate, seconds


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
    """Questions that may be asked about links with these figures."""
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
