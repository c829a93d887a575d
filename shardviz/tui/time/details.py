"""Words on the time screen: the operation that is selected, and the report on a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.render.caption import group_along
from shardviz.render.lines import printable, rule, sentence
from shardviz.render.programs.collective_rows import members_with
from shardviz.render.times.report import cause_lines, difference_lines, op_details, total_lines
from shardviz.tui.targets_pane import state_words
from shardviz.tui.time.timelines import PLAN

if TYPE_CHECKING:
    from shardviz.render.palette import Palette
    from shardviz.timeline.program_timeline import ProgramTimeline, TimedOp
    from shardviz.tui.compiler_queries import ShownAnswer
    from shardviz.tui.state import EditorState
    from shardviz.tui.time.parts import ChartPart
    from shardviz.tui.time.timelines import ToldTimelines


def selected_lines(
    part: ChartPart, number: int, with_name: bool, width: int, group: Text | None, is_short: bool
) -> list[Text]:
    """An operation of a part, with the `group` of the marked device and what it would save. `is_short`: the
    rest is beside it."""
    timeline = part.timeline
    said = [part.name] * with_name + [f"operation {number + 1:,} of {len(timeline.ops):,}"]
    if number in timeline.critical_path:
        said.append("on the critical path")
    lines = [rule(said, width), *op_details(timeline, number, width, group)][: 2 if is_short else None]
    for saving in timeline.savings:
        if saving.op == number:
            lines += sentence(printable(saving.message), width, lead="would save: ")
    return lines


def marked_group(name: str, op: TimedOp, number: int, state: EditorState, palette: Palette) -> Text | None:
    """The group that does an operation of the plan or of a target with the marked device; None where nothing
    tells of one."""
    lens, mesh = state.lens, state.resolved.problem.mesh
    assert lens is not None
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
    told: ToldTimelines, timeline: ProgramTimeline, width: int, palette: Palette, with_parts: bool
) -> list[Text]:
    """The total and its parts, the model beside the scheduler, what would save most, memory."""
    lines = total_lines(timeline, width, palette, with_parts=with_parts)
    if told.comparison is not None:
        head = Text.assemble(("the model and the compiler's scheduler", "bold"))
        lines += [Text(), head, *difference_lines(told.comparison, width)]
    lines += cause_lines(timeline, width, palette)
    return [*lines, *sentence(told.note, width, lead="note: " if told.note else "")]


def of_before(words: str, answer: ShownAnswer | None) -> Text:
    """Words for times that are not of the problem on screen, and the state of the answer that will be."""
    state = state_words(answer) if answer is not None else ""
    return Text.assemble((words, "bold"), f"  {state or 'working it out…'}")
