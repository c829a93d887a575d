"""The time screen: a plan's or a program's timeline, its report, and the operation that is selected."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from shlex import join
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.widgets import Static

from shardviz.errors import NoMachineError
from shardviz.forms.command_line import to_arguments
from shardviz.lazy_names import LazyImports
from shardviz.render.programs.target_answers import TargetTab
from shardviz.render.times.gantt import FIGURED
from shardviz.render.times.live_memory import memory_report_lines
from shardviz.render.times.report import comparison_heading, timeline_heading
from shardviz.tui.lines_view import LinesView, TextLines
from shardviz.tui.registry import TIME, bindings
from shardviz.tui.targets_pane import TargetsPane, fault_lines, notice, state_words
from shardviz.tui.time import timelines
from shardviz.tui.time.chart import TimeChart
from shardviz.tui.time.details import marked_group, of_before, report_lines, selected_lines
from shardviz.tui.time.known_timelines import KnownTimelines
from shardviz.tui.time.parts import ChartPart
from shardviz.tui.time.timelines import PLAN, PROFILE, OpenedProfile, Teller, TimelineQuestion, ToldTimelines
from shardviz.units import seconds as human_seconds

with LazyImports():
    from shardviz.codegen import problem as problem_program
    from shardviz.documents import fields

if TYPE_CHECKING:
    from shardviz.documents.fields import Document
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.lessons.measures import AnswerLocation
    from shardviz.timeline.program_timeline import ProgramTimeline
    from shardviz.tui.state import EditorState

WIDE = 110
"""From so many columns the report stands beside the chart; on fewer it stands below the details."""
GAP = 3
"""Columns between chart and report."""
TALL = 24
"""From so many lines the memory is shown unless somebody says otherwise."""
DETAILS, FEW_DETAILS, MANY_LINES = 6, 3, 18
"""Lines below the chart at least: in a pane of so many lines, and in a lower one."""


class TimePane(TargetsPane):
    """The plan and the targets, of which one is chosen and another may stand below it, on one scale."""

    area = "time"
    BINDINGS = bindings(TIME)
    DEFAULT_CSS = f"""
    TimePane > Static {{ height: 1; }}
    TimePane #report {{ display: none; margin-left: {GAP}; }}
    TimePane.beside #report, TimePane.report #report {{ display: block; }}
    TimePane.report #report {{ margin-left: 0; }}
    TimePane.report #lanes {{ display: none; }}
    TimePane LinesView {{ overflow-x: hidden; }}
    """

    def __init__(self, state: EditorState) -> None:
        super().__init__(state)
        self._chosen = PLAN
        self._teller: Teller = "model"
        self._below: tuple[str, Teller] | None = None
        """What stands below for comparison, and its teller."""
        self._known = KnownTimelines(state)
        self._wanted: tuple[str, str] | None = None
        """A target and an instruction to select as soon as its timeline is here."""
        self._saving = -1
        self._memory: bool | None = None
        self._drawn: tuple[tuple[object, ...], list[Text]] | None = None
        """The report, and what it was drawn of."""
        self._profile: OpenedProfile | None = None
        self._take_profile()

    def compose(self) -> ComposeResult:
        yield Static(id="targets")
        yield Static(id="heading")
        with Horizontal():
            with Vertical(id="lanes"):
                yield TimeChart()
                yield LinesView(id="details")
            yield LinesView(id="report")

    @property
    def chart(self) -> TimeChart:
        return self.query_one(TimeChart)

    @property
    def _names(self) -> list[str]:
        return self._known.names

    @property
    def timeline(self) -> ProgramTimeline | None:
        """The one that is chosen, as far as it is here."""
        told = self._known.told.get(self._chosen)
        return told.by(self._teller) if told is not None else None

    @property
    def _others(self) -> list[tuple[str, Teller]]:
        """Those that may stand below the chosen one: its other teller, then the others by the same."""
        told = self._known.told.get(self._chosen)
        tellers = [teller for teller, _ in told.timelines] if told is not None else []
        own = [(self._chosen, teller) for teller in tellers if told and teller != told.teller(self._teller)]
        return [*own, *((name, self._teller) for name in self._names if name != self._chosen)]

    @property
    def idle(self) -> Collection[str]:
        idle = set()
        told = self._known.told.get(self._chosen)
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
        timeline = self.timeline
        if timeline is None or not timeline.savings:
            idle.add("saving")
        if timeline is None or timeline.memory is None or not timeline.memory.curve:
            idle.add("memory")
        if timeline is None or not timeline.critical_path:
            idle.add("follow")
        return idle

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= WIDE, "beside")
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

    def show_instruction(self, target: str, name: str) -> None:
        self._chosen, self._wanted = target, (target, name)
        self.remove_class("report")
        self.draw()

    def _take_profile(self) -> None:
        """Show the profile that was opened, once."""
        opened = self.state.profile
        if opened is None or opened is self._profile:
            return
        told = self._known.take_profile(opened.profile)
        self._profile, self._chosen = opened, PROFILE
        # What was predicted stands below from the start.
        self._below = next(iter(self._others), None) if len(told.timelines) > 1 else None

    def draw(self) -> None:
        if not self.size.width:
            return
        self._take_profile()
        if self._chosen not in self._names:
            self._chosen = PLAN
        if self._below not in self._others:
            self._below = None
        for name, question in self._known.ask(self._chosen):
            self._tell(name, question, self.state.resolved)
        self.query_one("#report").styles.width = self._rooms[1] or "1fr"
        self._draw_chart()
        self._draw_status()
        self._select_what_is_wanted()
        self.update_commands()
        self._keep_time(False)

    @work(thread=True, exit_on_error=False)
    def _tell(self, name: str, question: TimelineQuestion, resolved: ResolvedProblem) -> None:
        self.call_later(self._take, name, timelines.tell(name, question, resolved))

    def _take(self, name: str, told: ToldTimelines) -> None:
        if self._known.take(name, told):
            self.draw()

    def _draw_status(self) -> None:
        super()._draw_status()
        heading = self._heading()
        heading.truncate(self.size.width, overflow="ellipsis")
        self.query_one("#heading", Static).update(heading, layout=False)

    def _tab(self, name: str) -> TargetTab:
        told = self._known.told.get(name)
        timeline = told.by(self._teller) if told is not None else None
        if told is not None and self._known.is_current(name):
            if isinstance(told.error, NoMachineError):
                return TargetTab(name, "·", "no machine")
            total = human_seconds(timeline.seconds) if timeline is not None else ""
            return TargetTab(name, "✓" if timeline is not None else "✗", total)
        if name == PLAN:
            return TargetTab(name, "·")
        return replace(super()._tab(name), words="")

    def _heading(self) -> Text:
        """The total and its parts: ``1.24 ms on v5e:2x4  exposed 210 µs  utilisation 61 %``."""
        told, answer = self._known.told.get(self._chosen), self._answers.get(self._chosen)
        timeline = told.by(self._teller) if told is not None else None
        if told is None or timeline is None:
            state = state_words(answer) if answer is not None else ""
            return Text.assemble((self._chosen, "bold"), f"  {state}" if state else "")
        if not self._known.is_current(self._chosen):
            return of_before("of the problem before", answer)
        if len(self.chart.parts) > 1 and self._below is not None:
            name = self._below[0]
            if not self._known.is_current(name):
                return of_before("below: of the problem before", self._answers.get(name))
            return comparison_heading(*(part.timeline for part in self.chart.parts))
        said = ["each mesh axis a ring, assumed"] if told.is_assumed else []
        return timeline_heading(timeline, said, self.size.width)

    @property
    def _with_memory(self) -> bool:
        """True if the chart has the live memory below its lanes: as was chosen, else where there is room."""
        return self.size.height >= TALL if self._memory is None else self._memory

    def _draw_chart(self) -> None:
        chart = self.chart
        shown = [(self._chosen, self._teller), *([self._below] if self._below else [])]
        parts = [part for part in (self._part(*each) for each in shown) if part is not None]
        chart.with_memory, before = self._with_memory, self.timelines
        if self.timeline is not None:
            chart.show_parts(parts, self.palette, not self._known.is_current(self._chosen))
        else:
            chart.show_notice(self._notice(max(20, chart.size.width)))
        if self.timelines != before:
            self._saving = -1
            if self._chosen == PLAN and not chart.has_focus:
                self.show_step()
        self._divide()
        self._explain()

    def _part(self, name: str, teller: Teller) -> ChartPart | None:
        """A timeline, prepared once for as long as it is shown; None where it is not here."""
        told = self._known.told.get(name)
        timeline = told.by(teller) if told is not None else None
        if told is None or timeline is None:
            return None
        known = (part for part in self.chart.parts if part.timeline is timeline)
        own = told.teller(teller) if name == PROFILE else None
        return next(known, None) or ChartPart(timeline, own or name)

    def _divide(self) -> None:
        """Give the chart no more lines than it has, and the lines that are left to the details below it."""
        room = self.size.height - 2
        if not self.chart.parts:
            self.chart.styles.height = room
            return
        details = DETAILS if self.size.height >= MANY_LINES else FEW_DETAILS
        self.chart.styles.height = max(2, min(self.chart.canvas.height, room - details))

    def _explain(self) -> None:
        if not self.size.width:  # hidden meanwhile: it is drawn when it is shown
            return
        details, report = self.query_one("#details", LinesView), self.query_one("#report", LinesView)
        timeline = self.timeline
        if timeline is None:
            details.show(TextLines(()))
            is_alone = self.has_class("report")
            report.show(TextLines(self._notice(max(20, self._rooms[1] - 1)) if is_alone else ()))
            return
        # The last column is a scroll bar's.
        width, beside = (room - 1 for room in self._rooms)
        is_on_dashboard = any(pane.display for pane in self.screen.query("PlanPane"))
        lines = []
        if self.chart.selected is not None and width > 0:
            part, number = self.chart.part, self.chart.selected
            group = None
            if self.state.lens is not None and self._known.is_current(self._chosen):
                group = marked_group(part.name, part.timeline.ops[number], number, self.state, self.palette)
            is_short = part.name == PLAN and is_on_dashboard
            lines = selected_lines(part, number, len(self.chart.parts) > 1, width, group, is_short)
        if beside > 0:
            report.show(TextLines(self._report(timeline, beside)))
        elif not is_on_dashboard:
            lines += [Text(), *self._report(timeline, width)]
        details.show(TextLines(lines))

    def _report(self, timeline: ProgramTimeline, width: int) -> list[Text]:
        """The report on a timeline, made once."""
        key = timeline, width, self.palette
        if self._drawn is None or any(a is not b for a, b in zip(self._drawn[0], key, strict=True)):
            has_figures = not self.has_class("report") and self._rooms[0] >= FIGURED
            told = self._known.told[self._chosen]
            self._drawn = key, report_lines(told, timeline, width, self.palette, not has_figures)
        return self._drawn[1]

    def _notice(self, width: int) -> list[Text]:
        told, answer = self._known.told.get(self._chosen), self._answers.get(self._chosen)
        if told is not None and told.error is not None:
            return fault_lines(told.error, width)
        lines = notice(answer, width) if answer is not None else []
        memory = answer.compiled.memory if answer is not None and answer.compiled is not None else None
        if memory is not None:
            lines += [Text(), *memory_report_lines(memory, width, self.palette)]
        return lines

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
        self.update_commands()

    def on_time_chart_opened(self) -> None:
        self.action_open_line()

    def _select_what_is_wanted(self) -> None:
        if self._wanted is None or self._wanted[0] != self._chosen or not self.chart.parts:
            return
        if not self._known.is_current(self._chosen):
            return
        name, self._wanted = self._wanted[1], None
        found = self.chart.parts[0].index.named(name)
        if found is None:
            self.notify(f"{name} takes no time of its own here.", markup=False)
        else:
            self.chart.select(found, 0)

    def command_line(self) -> str:
        """``shardviz explain … --time``, or the command of the profile."""
        if self._chosen == PROFILE and self.state.profile is not None:
            return self.state.profile.command
        shown = self.state.resolved.shown
        if self._chosen != PLAN:
            shown = replace(shown, targets=self._chosen)
        _, *arguments = to_arguments(shown)
        return join(["shardviz", "explain", *arguments, "--time"])

    def jax_code(self) -> str:
        answer = self._answers.get(self._chosen)
        if answer is None:
            return super().jax_code()
        return problem_program.problem_code(self.state.resolved.problem, answer.target)

    @property
    def timelines(self) -> Sequence[ProgramTimeline]:
        return [part.timeline for part in self.chart.parts]

    def document(self) -> Document:
        timeline = self.timeline
        return super().document() if timeline is None else fields.KINDS["timeline"].document(timeline)

    def action_teller(self) -> None:
        self._teller = "scheduler" if self._teller == "model" else "model"
        if self._below is not None:
            other: Teller = "model" if self._teller == "scheduler" else "scheduler"
            name = self._below[0]
            self._below = name, other if name == self._chosen else self._teller
        self._choose(self._chosen)

    def action_compare(self) -> None:
        """The next of the others below; after the last one, none."""
        others = self._others
        index = others.index(self._below) + 1 if self._below in others else 0
        self._below = others[index] if index < len(others) else None
        self.draw()
        if self._below is not None and len(self.chart.parts) < 2:
            self.notify(f"{self._below[0]} has no timeline so far.", markup=False)

    def action_chart(self, what: str, *places: int) -> None:
        """Zoom or pan the chart, or select another operation in it."""
        getattr(self.chart, what)(*places)

    def action_follow(self) -> None:
        self.chart.follow()

    def action_saving(self, step: int) -> None:
        timeline = self.timeline
        if timeline is not None and timeline.savings:
            self._saving = (max(self._saving, -1) + step) % len(timeline.savings) if self._saving >= 0 else 0
            self.chart.select(timeline.savings[self._saving].op, 0)

    def action_memory(self) -> None:
        self._memory = not self._with_memory
        self._draw_chart()

    def action_view(self) -> None:
        self.toggle_class("report")
        part = "#report" if self.has_class("report") else TimeChart
        self.query_one(part).focus()
        self.call_after_refresh(self.draw)

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
