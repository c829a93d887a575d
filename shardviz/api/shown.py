"""An answer that shows itself: in a terminal, on a Rich console, in a notebook."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from shardviz.lazy_names import LazyImports
from shardviz.render.exports import times_of

with LazyImports():
    from shardviz.documents import fields
    from shardviz.render import lines as render_lines, palette
    from shardviz.render.exports import pictures
    from shardviz.render.times import report, timeline_rows

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

    from shardviz.reports.program_report import TargetTimes
    from shardviz.timeline.program_timeline import MemoryReport, ProgramTimeline

MIN_WIDTH = 40
"""Columns below which pictures cannot be drawn."""
PAGE_WIDTH = 100
"""Columns in a notebook, and where there is no terminal to ask."""


class Shown(ABC):
    """The same picture everywhere: `repr` and `str` as plain text, Rich in colour, notebooks as HTML too.

    Rich is loaded when something is shown, not before."""

    @abstractmethod
    def lines(self, width: int, palette: palette.Palette, verbose: bool = False) -> list[Text]:
        """The picture in lines of at most `width` columns; what ``-v`` prints if it is `verbose`."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The JSON document that the command line prints with ``--json``."""

    @property
    def full(self) -> str:
        """The answer as text with all that the command line prints with ``-v``: ``print(answer.full)``."""
        return render_lines.plain_text(partial(self.lines, verbose=True), _terminal_width())

    def __repr__(self) -> str:
        return render_lines.plain_text(self.lines, _terminal_width())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        colours = palette.palette_for(None if console.no_color else console.color_system)
        for line in self.lines(max(options.max_width, MIN_WIDTH), colours):
            line.no_wrap = True
            yield render_lines.printable_line(line)

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": pictures.lines_html(self.lines, PAGE_WIDTH)}


def _terminal_width() -> int:
    return max(shutil.get_terminal_size((PAGE_WIDTH, 24)).columns, MIN_WIDTH)


class ShownTimes(Shown):
    """Timelines, which can be exported too."""

    @property
    @abstractmethod
    def tellers(self) -> tuple[ProgramTimeline, ...]:
        """The timelines below one another; the first is the one that is asked for."""

    def svg(self) -> str:
        """A picture for slides."""
        return pictures.svg(times_of(*self.tellers))

    def html(self) -> str:
        """A page for a browser; it loads nothing from elsewhere."""
        return pictures.html(times_of(*self.tellers))


@dataclass(frozen=True, repr=False)
class TimelineReport(ShownTimes):
    """A plan or a program on a machine: `timeline` has each operation in seconds.

    `scheduler` is the simulation by the compiler's own scheduler, if it was asked for and exists."""

    times: TargetTimes

    @property
    def timeline(self) -> ProgramTimeline:
        return self.times.model

    @property
    def scheduler(self) -> ProgramTimeline | None:
        return self.times.scheduler

    @property
    def seconds(self) -> float:
        """The total, loops included; `timeline.unknown` names what is not included."""
        return self.timeline.seconds

    @property
    def memory(self) -> MemoryReport | None:
        """Bytes of one device, the largest buffers and the peak; None if unknown."""
        return self.timeline.memory

    def lines(self, width: int, palette: palette.Palette, verbose: bool = False) -> list[Text]:
        return report.times_view(self.times, width, palette, verbose)

    def document(self) -> dict[str, Any]:
        return fields.KINDS["timeline"].document(self.timeline)

    def trace(self) -> str:
        """Chrome's trace events, which https://ui.perfetto.dev opens."""
        return timeline_rows.trace(self.tellers)

    @property
    def tellers(self) -> tuple[ProgramTimeline, ...]:
        return (self.timeline,) if self.scheduler is None else (self.timeline, self.scheduler)
