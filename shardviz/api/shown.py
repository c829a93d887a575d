"""An answer that shows itself: in a terminal, on a Rich console, in a notebook."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

    from shardviz.render.exports import Subject
    from shardviz.render.palette import Palette
    from shardviz.reports.target_times import TargetTimes
    from shardviz.timeline.program_timeline import MemoryReport, ProgramTimeline

MIN_WIDTH = 40
"""Columns below which pictures cannot be drawn."""
PAGE_WIDTH = 100
"""Columns in a notebook, and where there is no terminal to ask."""


class Shown(ABC):
    """The same picture everywhere: `repr` and `str` as plain text, Rich in colour, notebooks as HTML too.

    Rich is loaded when something is shown, not before.
    """

    @abstractmethod
    def lines(self, width: int, palette: Palette) -> list[Text]:
        """The picture in lines of at most `width` columns, if it can be drawn in so few."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The JSON document that the command line prints with ``--json``."""

    def __repr__(self) -> str:
        from shardviz.render.page import plain_text

        width = max(shutil.get_terminal_size((PAGE_WIDTH, 24)).columns, MIN_WIDTH)
        return plain_text(self.lines, width)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        from shardviz.render.lines import printable_line
        from shardviz.render.palette import palette_for

        palette = palette_for(None if console.no_color else console.color_system)
        for line in self.lines(max(options.max_width, MIN_WIDTH), palette):
            line.no_wrap = True
            yield printable_line(line)

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, str]:
        """The forms for a notebook, which shows the richest that it can."""
        from shardviz.render.page import html

        return {"text/plain": repr(self), "text/html": html(self.lines, PAGE_WIDTH)}


@dataclass(frozen=True, repr=False)
class TimelineReport(Shown):
    """A plan or a program on a machine: `timeline` has each operation in seconds.

    `scheduler` is the same by the compiler's own scheduler, where that was asked and has simulated it.
    """

    times: TargetTimes

    @property
    def timeline(self) -> ProgramTimeline:
        return self.times.model

    @property
    def scheduler(self) -> ProgramTimeline | None:
        return self.times.scheduler

    @property
    def seconds(self) -> float:
        """All of it, with every loop counted in full; `timeline.unknown` names what is not included."""
        return self.timeline.seconds

    @property
    def memory(self) -> MemoryReport | None:
        """Bytes of one device, the largest buffers and the peak; None where they are not known."""
        return self.timeline.memory

    def lines(self, width: int, palette: Palette) -> list[Text]:
        from shardviz.render.times.report import times_view

        return times_view(self.times, width, palette)

    def document(self) -> dict[str, Any]:
        from shardviz.documents.timelines import TIMELINE_KIND

        return TIMELINE_KIND.document(self.timeline)

    def svg(self) -> str:
        """A picture for slides."""
        from shardviz.render.exports.recorded import svg

        return svg(self._subject)

    def html(self) -> str:
        """A page for a browser, which loads nothing."""
        from shardviz.render.exports.html import html

        return html(self._subject)

    def trace(self) -> str:
        """Chrome's trace events, which https://ui.perfetto.dev opens."""
        from shardviz.render.times.timeline_rows import trace

        return trace(self._tellers)

    @property
    def _subject(self) -> Subject:
        from shardviz.render.exports import Subject, Timelines

        return Subject(Timelines(self._tellers), f"{self.timeline.title} on {self.timeline.machine}")

    @property
    def _tellers(self) -> tuple[ProgramTimeline, ...]:
        return (self.timeline,) if self.scheduler is None else (self.timeline, self.scheduler)
