"""The answer of `--time` in Python: what runs when, and the memory that is live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardviz.api.shown import Shown
from shardviz.documents.timelines import timeline_document
from shardviz.reports.target_times import TargetTimes

if TYPE_CHECKING:
    from rich.text import Text

    from shardviz.render.palette import Palette
    from shardviz.timeline.memory import MemoryReport
    from shardviz.timeline.program_timeline import ProgramTimeline


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
        from shardviz.render.times.tellers import times_view

        return times_view(self.times, width, palette)

    def document(self) -> dict[str, Any]:
        return timeline_document(self.timeline)

    def svg(self) -> str:
        """A picture for slides."""
        from shardviz.render.times.timeline_svg import timeline_svg

        return timeline_svg(self._tellers)

    def html(self) -> str:
        """A page for a browser that zooms and pans, which loads nothing."""
        from shardviz.render.times.timeline_html import timeline_html

        return timeline_html(self._tellers, f"{self.timeline.title} on {self.timeline.machine}")

    def trace(self) -> str:
        """Chrome's trace events, which https://ui.perfetto.dev opens."""
        from shardviz.render.times.trace import trace

        return trace(self._tellers)

    @property
    def _tellers(self) -> tuple[ProgramTimeline, ...]:
        return (self.timeline,) if self.scheduler is None else (self.timeline, self.scheduler)
