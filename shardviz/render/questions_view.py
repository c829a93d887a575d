"""The figures of a question beside its fields, with those of the question before; and questions as a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.style import Style
from rich.text import Text

from shardviz.forms.resolve import ResolvedProblem
from shardviz.forms.summary import BESIDE, is_same_question, summary
from shardviz.planner.plan import axes_words
from shardviz.planner.pricing.costs import PlanCost
from shardviz.render.lines import GAP, bar
from shardviz.render.palette import DIM, SIGNS, Palette
from shardviz.render.plan_view import time_words
from shardviz.render.plans_compared import collective_counts
from shardviz.render.problem_picture import GUTTER, LABELS, parts_line
from shardviz.units import human_bytes, seconds

VALUES = 8
"""Columns of most figures: ``99.9 MiB``, ``99.9 µs``."""
MOST_ARRAYS = 6
LEAST_BAR = 3
HEADINGS = ("time", "sent", "memory", "collectives")
LEAST_NAME = 18
"""Columns of a problem, with its mark, for which figures are left out."""
MARK = "▸"
"""Stands before the question that is shown now."""


def figures_beside(
    resolved: ResolvedProblem, before: ResolvedProblem | None, width: int, height: int, palette: Palette
) -> list[Text]:
    """As much as fits into `height` lines below the fields: a blank line, then time, bytes and memory, each
    with what it was in the question `before`; then what they consist of, as bars. Where time, bytes and
    memory do not fit there is nothing."""
    cost = resolved.cost

    def figure(label: str, written: Callable[[PlanCost], str]) -> list[Text]:
        """``time      162 µs  was 324 µs``; without the second where there is none, or both are the same."""
        line = _labelled(label, written(cost))
        if before is not None and written(before.cost) != written(cost):
            line.append(f"{'':{GAP}}was {written(before.cost)}", DIM)
        line.truncate(width, overflow="ellipsis")
        return [line]

    parts = {
        "time": figure("time", _time),
        "times": _bars(_seconds_by_part(cost, palette), seconds, width),
        "sent": figure("sent", _sent),
        "memory": figure("memory", _memory),
        "HBM": _limit_lines(cost, width, palette),
        "arrays": _bars(_bytes_by_part(cost, palette), lambda size: human_bytes(int(size)), width),
    }
    shown: set[str] = set()
    room = height - 1
    for name in ("time", "sent", "memory", "HBM", "times", "arrays"):
        if len(parts[name]) <= room:
            shown.add(name)
            room -= len(parts[name])
    if "memory" not in shown:
        return []
    return [Text(), *(line for name, part in parts.items() if name in shown for line in part)]


def question_rows(
    questions: Sequence[ResolvedProblem], now: ResolvedProblem, width: int, palette: Palette
) -> list[Text]:
    """Headings, and a line for each question: what of it is not the same in all, with a mark before the one
    that is shown now; then its time, its bytes, its memory and its collectives, as many of these as leave
    room for the problem."""
    problems = [[part for part in summary(question) if part.kind not in BESIDE] for question in questions]
    shared = [part for part in problems[0] if len(problems) > 1 and all(part in parts for parts in problems)]
    cells = [[Text(heading, DIM) for heading in HEADINGS]]
    for question in questions:
        cost = question.cost
        cells.append(
            [Text(text) for text in (_time(cost), _sent(cost), _memory(cost), collective_counts(cost))]
        )
    widths = [max(cell.cell_len for cell in column) for column in zip(*cells, strict=True)]
    kept = len(HEADINGS)
    while kept > 1 and width - sum(widths[:kept]) - GAP * kept < LEAST_NAME:
        kept -= 1
    room = width - sum(widths[:kept]) - GAP * kept
    names = [Text()]
    for question, parts in zip(questions, problems, strict=True):
        own = tuple(part for part in parts if part not in shared)
        mark = MARK if is_same_question(question, now) else ""
        names.append(
            Text(mark.ljust(GAP)).append_text(parts_line(own, question.problem.mesh, room - GAP, palette))
        )
    lines = []
    for line, row in zip(names, cells, strict=True):
        line.pad_right(room - line.cell_len)
        for column, cell in enumerate(row[:kept]):
            cell.align("left" if HEADINGS[column] == "collectives" else "right", widths[column])
            line.append(" " * GAP).append_text(cell)
        line.rstrip()
        lines.append(line)
    return lines


def _time(cost: PlanCost) -> str:
    return time_words(cost.layers_seconds, not cost.unknown)


def _sent(cost: PlanCost) -> str:
    return human_bytes(cost.wire_bytes * cost.layers)


def _memory(cost: PlanCost) -> str:
    return human_bytes(cost.layers_peak_bytes)


def _labelled(label: str, value: str) -> Text:
    name = Text(label, DIM)
    name.truncate(LABELS - 1, overflow="ellipsis")
    name.pad_right(LABELS - name.cell_len)
    return Text.assemble(" " * GUTTER, name, f"{value:>{VALUES}}")


Part = tuple[str, float, Style]
"""A part of a figure: its name, its size, and the colour of its bar."""


def _seconds_by_part(cost: PlanCost, palette: Palette) -> list[Part]:
    """Seconds of the local work and of the collectives along each mesh axis; nothing where only one is."""
    mesh = cost.plan.problem.mesh
    found: list[Part] = [("compute", cost.compute_seconds, Style(color=palette.lanes["matmul"]))]
    for axes, each in cost.communication_by_axes.items():
        found.append((axes_words(axes), each, palette.axis(mesh, axes[0]) if axes else DIM))
    return [(name, size * cost.layers, style) for name, size, style in found] if len(found) > 1 else []


def _bytes_by_part(cost: PlanCost, palette: Palette) -> list[Part]:
    """Bytes of a device by what they are for, in a train step; else those of the arrays that it holds when it
    holds the most, the largest first."""
    style, trained = Style(color=palette.lanes["memory"]), cost.training_memory
    if trained is not None:
        uses = [
            ("params", trained.parameters),
            ("grads", trained.gradients),
            ("optim", trained.optimizer),
            ("acts", trained.activations),
        ]
        return [(name, size, style) for name, size in uses if size]
    held = sorted(cost.peak_step.resident, key=lambda array: -array.bytes)
    parts = [(array.name, array.bytes) for array in held[:MOST_ARRAYS]]
    if held[MOST_ARRAYS:]:
        parts.append(("others", sum(array.bytes for array in held[MOST_ARRAYS:])))
    if cost.layers > 1:
        parts.append(("layers", cost.layers_peak_bytes - cost.peak_bytes))
    return [(name, size, style) for name, size in parts]


def _bars(parts: Sequence[Part], written: Callable[[float], str], width: int) -> list[Text]:
    most = max((size for _, size, _ in parts), default=0)
    lines = []
    for name, size, style in parts:
        line = _labelled(name, written(size))
        room = width - line.cell_len - 1
        lines.append(line.append(f" {bar(size, most, room)}" if room >= LEAST_BAR else "", style))
    return lines


def _limit_lines(cost: PlanCost, width: int, palette: Palette) -> list[Text]:
    """The memory of a device that a program may use, and the part of it that the plan takes."""
    if not cost.limit_bytes:
        return []
    share = cost.layers_peak_bytes / cost.limit_bytes
    line = _labelled("of HBM", human_bytes(cost.limit_bytes))
    percent = "< 0.1 %" if share < 0.001 else f"{share * 100:.{int(share < 0.1)}f} %"
    sign = "✗ " if cost.over_bytes else ""
    room = width - line.cell_len - len(f" {sign} {percent}")
    line.append(f" {bar(min(share, 1), 1, room)}", palette.lanes["memory"])
    line.pad_right(width - len(sign) - len(percent) - line.cell_len)
    return [line.append(sign, SIGNS["✗"]).append(percent)]
