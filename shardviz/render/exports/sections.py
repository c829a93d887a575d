"""The parts that an export shows, each with a heading: lines of a page, and the frames of a collective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.planner.plan import Plan
from shardviz.planner.planner import plan
from shardviz.planner.pricing.costs import Sweep, price
from shardviz.planner.problem import Problem
from shardviz.render.cost_view import fit_lines, padding_lines
from shardviz.render.exports import Subject
from shardviz.render.layouts.layout_canvas import array_lines
from shardviz.render.layouts.layout_view import layout_view
from shardviz.render.lines import sentence, trimmed
from shardviz.render.palette import Palette
from shardviz.render.plan_pages import (
    around_plan,
    assumption_lines,
    full_plan,
    headline,
    question_view,
    short_plan,
    step_arrays,
)
from shardviz.render.plan_view import case_lines, meaning_lines, step_lines, totals
from shardviz.reports.trials import TrialTable
from shardviz.sharding import Layout

with LazyImports():
    from shardviz.render import sweep_view
    from shardviz.render.programs import program_view
    from shardviz.render.rounds import player, step_notes, step_view
    from shardviz.render.times import gantt, report
    from shardviz.stepping import collective_run

if TYPE_CHECKING:
    from shardviz.stepping.collective_run import CollectiveRun

WIDTH = 100
"""Columns of a page, unless another width is asked for."""
TALL = 36
"""Lines of a round's picture at most, where nothing else bounds them."""
MAX_ROUNDS = 256
"""Rounds of which anybody looks at pictures."""


@dataclass(frozen=True)
class Section:
    """`lines` tell the answer without the `heading`; `more` stand in their place for it with its reasons,
    arithmetic and assumptions."""

    heading: str
    lines: list[Text]
    more: Sequence[Text] = ()


def sections(subject: Subject, width: int, palette: Palette) -> list[Section]:
    """The parts in order, of at least one line each. `QuestionError` for too many rounds, or a program."""
    if subject.run is not None:
        return _rounds(subject.run, width, palette)
    shown, placed = subject.shown, subject.placed
    if isinstance(shown, Sweep):
        return [Section("Cost over sizes", sweep_view.sweep_view(shown, width, palette))]
    if isinstance(shown, TrialTable):
        return [Section("Combinations", program_view.trials_view(shown, width))]
    if isinstance(shown, tuple):
        # All charts are on one scale.
        limit = max(timeline.drawn_seconds for timeline in shown)
        scale = limit, max(gantt.first_column(timeline, width) for timeline in shown)
        charts = []
        for timeline in shown:
            lines, more = (
                report.timeline_view(timeline, width, palette, each, scale) for each in (False, True)
            )
            charts.append(Section(f"{timeline.title} on {timeline.machine}", lines, more))
        return charts
    if isinstance(shown, Layout):
        return [Section("Layout", layout_view(shown, width, palette))]
    if not isinstance(shown, Problem | Plan) or placed is None:
        raise QuestionError("a JAX program has no picture", "export it as python or as a notebook")
    cost = price(shown if isinstance(shown, Plan) else plan(shown, placed), placed)
    planned = cost.plan
    fit = fit_lines(cost, width) + padding_lines(planned.problem.padding, width)
    head = headline(planned.problem, width, palette)
    if isinstance(shown, Problem):
        short = [*short_plan(cost, width, palette), *assumption_lines(cost, width)]
        more = [*fit, *full_plan(cost, width, palette)]
        arrays = Section("Arrays", [*head, Text(), *question_view(planned, width, palette)])
        return [arrays, Section("Time and memory", [*fit, *short], more)]
    steps = [Section("Plan", [*head, *case_lines(planned, width), *meaning_lines(planned, width)])]
    for number, numbered in enumerate(step_arrays(planned), 1):
        lines = [*step_lines(planned, number, width, palette, cost.steps), Text()]
        lines += array_lines([numbered], width, palette)
        steps.append(Section(f"Step {number}: {planned.steps[number - 1].op}", lines))
    total = [*fit, *sentence(totals(planned), width, 1), *around_plan(cost, width, palette)]
    return [*steps, Section("Time and memory", total)]


def _rounds(run: CollectiveRun, width: int, palette: Palette) -> list[Section]:
    """The collective, then a part before any round and one after each. Devices are boxes joined by their
    links, or, where these do not fit the page, what `step --round` prints."""
    last = run.schedule.rounds
    if last > MAX_ROUNDS:
        problem = f"{run.schedule.algorithm} has {last:,} rounds; a picture shows up to {MAX_ROUNDS}"
        raise QuestionError(problem, "use a smaller mesh, or an algorithm with fewer rounds")
    prepared = collective_run.prepare_run(run.question, run.links)
    page = player.PlayerPage(prepared, "devices", 0, width, TALL, palette, "", verdict=0)
    frames: list[list[Text]] = []
    for number in range(last + 1):
        drawn = page.canvas(number)
        if drawn.width > width or drawn.height > TALL:
            break
        picture = [drawn.line(y, 0, drawn.width) for y in range(drawn.height)]
        blank = [] if page.is_low else [Text()]
        frame = [*page.head(number, ""), *picture, *blank, *page.foot(number, ())]
        if len(frame) > TALL:
            break
        frames.append([trimmed(line, palette) for line in frame])
    if len(frames) > last:
        head, rounds = frames[0][:1], [frame[1:] for frame in frames]
    else:
        head = step_notes.headline(run, width, palette)
        rounds = [step_view.one_round(run, number, width, palette) for number in range(last + 1)]
    names = ["Before any round", *(f"Round {number} of {last}" for number in range(1, last + 1))]
    return [Section("Collective", head), *map(Section, names, rounds)]
