"""The time screen: a plan's or a program's timeline, its report, and the operation that is selected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.widgets import Static

from shardviz.errors import NoMachineError
from shardviz.lazy_names import LazyImports
from shardviz.render.programs.target_answers import TargetTab
from shardviz.render.times.gantt import FIGURED
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.pane import BESIDE, GAP
from shardviz.tui.registry import TIME, bindings
from shardviz.tui.targets_pane import TargetsPane
from shardviz.tui.time import timelines
from shardviz.tui.time.chart import TimeChart
from shardviz.tui.time.details import heading, notice_lines, report_lines, selected_lines
from shardviz.tui.time.timelines import PLAN, PROFILE, ShownTimelines, TimelineQuestion, ToldTimelines
from shardviz.units import seconds as human_seconds

with LazyImports():
    from shardviz.documents import fields

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.timeline.program_timeline import ProgramTimeline
    from shardviz.tui.state import EditorState

TALL = 24
"""From so many lines the memory is shown unless somebody says otherwise."""


class TimePane(TargetsPane):
    """The plan and the targets, of which one is chosen and another may stand below it, on one scale."""

    area = "time"
    BINDINGS = bindings(TIME)

    def __init__(self, state: EditorState) -> None:
        super().__init__(state)
        self._shown = ShownTimelines(state)
        self.chart = TimeChart()
        self._memory: bool | None = None
        """Whether the live memory is shown below the lanes; None: where there is room."""
        self._drawn: tuple[ProgramTimeline, tuple[object, ...], list[Text]] | None = None
        """The report, and what it was drawn of."""

    def compose(self) -> ComposeResult:
        yield Static(id="targets")
        yield Static(id="heading")
        with Horizontal():
            with Vertical(id="lanes"):
                yield self.chart
                yield LinesView(id="details")
            yield LinesView(id="report")

    @property
    def _names(self) -> list[str]:
        return self._shown.names

    @property
    def _chosen(self) -> str:
        return self._shown.chosen

    @_chosen.setter
    def _chosen(self, name: str) -> None:
        self._shown.chosen = name

    @property
    def timeline(self) -> ProgramTimeline | None:
        return self._shown.timeline

    @property
    def idle(self) -> Collection[str]:
        told, timeline, idle = self._shown.chosen_told, self.timeline, set()
        if told is None or not told.timelines:
            idle |= {command.action for command in TIME} - {"target", "ask"}
        elif len(told.timelines) < 2 or self._chosen == PROFILE:
            idle.add("teller")
        if self._chosen == PROFILE:
            idle |= {"open_line", "ask"}
        if len(self._names) < 2:
            idle |= {"target", "compare"}
        if not self._answers:
            idle.add("ask")
        if timeline is None or not timeline.savings:
            idle.add("saving")
        if timeline is None or timeline.memory is None or not timeline.memory.curve:
            idle.add("memory")
        if timeline is None or not timeline.critical_path:
            idle.add("follow")
        return idle

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= BESIDE, "beside")
        self.draw()

    @property
    def _rooms(self) -> tuple[int, int]:
        """Columns of the chart with its details, and of the report: 0 where that stands below the details."""
        width = self.size.width
        if self.has_class("report"):
            return 0, width
        report = width * 2 // 5 if self.has_class("beside") else 0
        return width - report - (GAP if report else 0), report

    def begin(self, location: AnswerLocation) -> None:
        self._choose(location.target or PLAN)

    def open_instruction(self, target: str, name: str) -> None:
        self.remove_class("report")
        super().open_instruction(target, name)

    def draw(self) -> None:
        if not self.size.width:
            return
        for name, question in self._shown.ask():
            self._tell(name, question, self.state.resolved)
        self.query_one("#report").styles.width = self._rooms[1] or "1fr"
        self._draw_chart()
        self.draw_status()
        if self._wanted and self.chart.parts and self._shown.is_current(self._chosen):
            self.chart.select_named(self._wanted)
            self._wanted = ""
        self.refresh_bindings()
        self.keep_time()

    @work(thread=True)
    def _tell(self, name: str, question: TimelineQuestion, resolved: ResolvedProblem) -> None:
        self.call_later(self._take, name, timelines.tell(name, question, resolved))

    def _take(self, name: str, told: ToldTimelines) -> None:
        if self._shown.take(name, told):
            self.draw()

    def draw_status(self) -> None:
        super().draw_status()
        line = self._heading()
        line.truncate(self.size.width, overflow="ellipsis")
        self.query_one("#heading", Static).update(line, layout=False)

    def _heading(self) -> Text:
        is_on_dashboard = self.is_beside("PlanPane")
        return heading(self._shown, self._answers, self.chart, self.size.width, is_on_dashboard)

    def _tab(self, name: str) -> TargetTab:
        """A name with its total, unless the chart below has that."""
        told = self._shown.told.get(name)
        timeline = told.by(self._shown.teller) if told is not None else None
        if told is not None and self._shown.is_current(name):
            if isinstance(told.error, NoMachineError):
                return TargetTab(name, "·", "no machine")
            if timeline is None:
                return TargetTab(name, "✗")
            is_below = any(timeline is shown for shown in self.timelines)
            return TargetTab(name, "✓", "" if is_below else human_seconds(timeline.seconds))
        return TargetTab(name, "·") if name == PLAN else super()._tab(name)._replace(words="")

    def _draw_chart(self) -> None:
        chart, shown = self.chart, self._shown
        chart.with_memory = self.size.height >= TALL if self._memory is None else self._memory
        before = self.timelines
        if self.timeline is not None:
            chart.show_parts(shown.parts(chart.parts), self.palette, not shown.is_current(shown.chosen))
        else:
            chart.show_notice(notice_lines(shown, chart.size.width, self.palette))
        if self.timelines != before and shown.chosen == PLAN and not chart.has_focus:
            self.show_step()
        lines = self.size.height - 2
        if chart.parts:  # no more than it has, and some for the details below it
            details = 6 if self.size.height >= 18 else 3
            lines = max(2, min(chart.canvas.height, lines - details))
        chart.styles.height = lines
        self._explain()

    def _explain(self) -> None:
        if not self.size.width:  # hidden meanwhile: it is drawn when it is shown
            return
        details, report = self.query_one("#details", LinesView), self.query_one("#report", LinesView)
        timeline = self.timeline
        if timeline is None:
            details.show(TextLines(()))
            words = notice_lines(self._shown, self._rooms[1] - 1, self.palette)
            report.show(TextLines(words if self.has_class("report") else ()))
            return
        # The last column is a scroll bar's.
        width, beside = (room - 1 for room in self._rooms)
        is_on_dashboard = self.is_beside("PlanPane")
        state = self.state if self._shown.is_current(self._chosen) else None
        selected = self.chart, state, width, self.palette, is_on_dashboard
        lines = selected_lines(*selected) if width > 0 else []
        if beside > 0:
            report.show(TextLines(self._report(timeline, beside)))
        elif not is_on_dashboard:
            lines += [Text(), *self._report(timeline, width)]
        details.show(TextLines(lines))

    def _report(self, timeline: ProgramTimeline, width: int) -> list[Text]:
        said = self._heading().plain
        key = said, width, self.palette
        if self._drawn is None or self._drawn[0] is not timeline or self._drawn[1] != key:
            has_lanes = not self.has_class("report") and self._rooms[0] >= FIGURED
            self._drawn = timeline, key, report_lines(self._shown, *key, has_lanes)
        return self._drawn[2]

    def show_lens(self) -> None:
        self._explain()

    def show_step(self) -> None:
        number = self.state.step_number
        if self._chosen == PLAN and self.chart.parts and number <= len(self.chart.parts[0].timeline.ops):
            self.chart.select(number - 1, 0)

    def on_time_chart_selected(self) -> None:
        chart = self.chart
        if chart.has_focus and chart.place is not None and chart.part.name == PLAN:
            number = chart.place[1] + 1
            if number != self.state.step_number:
                self.state.set_step(number)
        self._explain()
        self.query_one("#details", LinesView).scroll_home(animate=False)
        self.refresh_bindings()

    def command_line(self) -> str:
        """``shardviz explain … --time``, or the command of the profile."""
        if self._chosen == PROFILE and self.state.profile is not None:
            return self.state.profile.command
        return self.chosen_command("explain", "--time")

    @property
    def timelines(self) -> Sequence[ProgramTimeline]:
        return [part.timeline for part in self.chart.parts]

    def document(self) -> fields.Document:
        timeline = self.timeline
        return super().document() if timeline is None else fields.KINDS["timeline"].document(timeline)

    def action_teller(self) -> None:
        self._shown.next_teller()
        self.draw()

    def action_compare(self) -> None:
        self._shown.next_below()
        self.draw()
        if self._shown.below is not None and len(self.chart.parts) < 2:
            self.notify(f"{self._shown.below[0]} has no timeline yet.", markup=False)

    def action_chart(self, what: str, *places: int) -> None:
        """Zoom or pan the chart, or select another operation in it."""
        getattr(self.chart, what)(*places)

    def action_follow(self) -> None:
        self.chart.follow()

    def action_saving(self, step: int) -> None:
        self.chart.saving(step)

    def action_memory(self) -> None:
        self._memory = not self.chart.with_memory
        self._draw_chart()

    def action_view(self) -> None:
        self.toggle_class("report")
        part = "#report" if self.has_class("report") else TimeChart
        self.query_one(part).focus()
        self.call_after_refresh(self.draw)

    @on(TimeChart.Opened)
    def action_open_line(self) -> None:
        """The instruction on Compiler; of the plan, its collective on Step."""
        chart = self.chart
        if chart.place is None or self._chosen == PROFILE:
            return
        op = chart.part.timeline.ops[chart.place[1]]
        if chart.part.name == PLAN:
            self.post_message(self.StepOpened(chart.place[1] + 1))
        else:
            self.post_message(self.InstructionOpened("compiler", chart.part.name, op.name))
