"""Words on the time screen: the heading, the operation that is selected, and the report on a timeline."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from shardviz.render.caption import group_along
from shardviz.render.lines import printable, rule, sentence, sentences
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import members_with
from shardviz.render.times.gantt import FIGURED
from shardviz.render.times.live_memory import memory_report_lines, misfit_lines
from shardviz.render.times.report import (
    cause_lines,
    comparison_heading,
    exposure,
    op_details,
    parts_lines,
    timeline_facts,
    timeline_heading,
)
from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp
from shardviz.tui.compiler_queries import ShownAnswer
from shardviz.tui.state import EditorState
from shardviz.tui.targets_pane import fault_lines, notice, state_words
from shardviz.tui.time.chart import TimeChart
from shardviz.tui.time.timelines import PLAN, ShownTimelines, ToldTimelines

LEAST_WIDTH = 20
"""Columns of a notice in a view that has none yet."""


def selected_lines(
    chart: TimeChart, state: EditorState | None, width: int, palette: Palette, is_on_dashboard: bool
) -> list[Text]:
    """The selected operation with what it would save; where the chart is of the problem of a `state`, with
    the group of the marked device. On a dashboard the plan beside has the rest of its own."""
    if chart.place is None:
        return []
    part, number = chart.part, chart.place[1]
    timeline = part.timeline
    group = None if state is None else _marked_group(part.name, timeline.ops[number], number, state, palette)
    said = [part.name] * (len(chart.parts) > 1) + [f"operation {number + 1:,} of {len(timeline.ops):,}"]
    if number in timeline.critical_path:
        said.append("on the critical path")
    if part.name == PLAN and is_on_dashboard:
        said += filter(None, [exposure(timeline.ops[number])])
        lines = [rule(said, width)]
    else:
        lines = [rule(said, width), *op_details(timeline, number, width, group)]
    for saving in timeline.savings:
        if saving.op == number:
            lines += sentence(printable(saving.message), width, lead="would save: ")
    return lines


def _marked_group(name: str, op: TimedOp, number: int, state: EditorState, palette: Palette) -> Text | None:
    """The group that does an operation of the plan or of a target with the marked device; None where nothing
    tells of one."""
    lens, mesh = state.lens, state.resolved.problem.mesh
    if lens is None:
        return None
    if name == PLAN:
        steps = state.resolved.plan.steps
        axes = steps[number].axes if number < len(steps) else ()
        return group_along(axes, mesh, lens, palette) if axes else None
    answer = state.queries.answers.get(name)
    compiled = answer.compiled if answer is not None else None
    if compiled is None or not op.collective:
        return None
    placed = mesh if compiled.placement is None else compiled.placement.on(mesh)
    own = (collective for collective in compiled.collectives if collective.name == op.collective)
    return next((members_with(collective, placed, lens, palette) for collective in own), None)


def report_lines(
    shown: ShownTimelines, said: str, width: int, palette: Palette, has_lanes: bool
) -> list[Text]:
    """The report on the chosen timeline, without what a heading that `said` so, and lanes on screen, have:
    facts and parts of the total, what would save most, memory."""
    told, timeline = shown.chosen_told, shown.timeline
    assert told is not None
    assert timeline is not None
    lines = [] if timeline.memory is None else misfit_lines(timeline.memory, width)
    lines += sentences([fact for fact in _facts(told, timeline, has_lanes) if fact not in said], width)
    lines += [] if has_lanes else parts_lines(timeline, width, palette)
    lines += cause_lines(timeline, width, palette)
    lines += sentence(told.note, width, lead="note: " if told.note else "")
    return lines if not lines or lines[0] else lines[1:]


def _facts(told: ToldTimelines, timeline: ProgramTimeline, has_lanes: bool) -> list[str]:
    assumed = ["each mesh axis a ring, assumed"] * told.is_assumed
    return [*timeline_facts(timeline, has_lanes), *assumed]


def heading(
    shown: ShownTimelines,
    answers: Mapping[str, ShownAnswer],
    chart: TimeChart,
    width: int,
    is_on_dashboard: bool,
) -> Text:
    """The total and its parts: ``1.24 ms on v5e:2x4  exposed 210 µs  61 % of the peak``; of two timelines how
    they differ. On a dashboard the problem beside has the plan's total and machine."""
    told, timeline = shown.chosen_told, shown.timeline
    if told is None or timeline is None:
        state = state_words(shown.answer) if shown.answer is not None else ""
        return Text.assemble((shown.chosen, "bold"), f"  {state}" if state else "")
    if not shown.is_current(shown.chosen):
        return _of_before("of the previous problem", shown.answer)
    if len(chart.parts) > 1 and shown.below is not None:
        name = shown.below[0]
        if not shown.is_current(name):
            return _of_before("below: of the previous problem", answers.get(name))
        return comparison_heading(*(part.timeline for part in chart.parts))
    has_lanes = chart.size.width >= FIGURED
    if shown.chosen == PLAN and is_on_dashboard:
        return timeline_heading(timeline, timeline_facts(timeline, has_lanes), width, has_total=False)
    return timeline_heading(timeline, _facts(told, timeline, has_lanes), width)


def notice_lines(shown: ShownTimelines, width: int, palette: Palette) -> list[Text]:
    """The reason why the chosen one has no timeline, and the memory of a program that does not fit."""
    told, answer, width = shown.chosen_told, shown.answer, max(width, LEAST_WIDTH)
    if told is not None and told.error is not None:
        return fault_lines(told.error, width)
    lines = notice(answer, width) if answer is not None else []
    memory = answer.compiled.memory if answer is not None and answer.compiled is not None else None
    return lines if memory is None else [*lines, Text(), *memory_report_lines(memory, width, palette)]


def _of_before(words: str, answer: ShownAnswer | None) -> Text:
    """Words for times that are not of the problem on screen, and the state of the answer that will be."""
    state = state_words(answer) if answer is not None else ""
    return Text.assemble((words, "bold"), f"  {state or 'computing…'}")
