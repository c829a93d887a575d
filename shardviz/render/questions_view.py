"""The figures of a question beside its fields, with those of the question before; and questions as a list."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.forms.resolve import ResolvedProblem
from shardviz.forms.summary import BESIDE, is_same_question, summary, what_differs
from shardviz.planner.pricing.costs import PlanCost
from shardviz.render.lines import GAP, bar, rule
from shardviz.render.palette import DIM, SIGNS, Palette
from shardviz.render.plan_view import time_words
from shardviz.render.plans_compared import collective_counts
from shardviz.render.problem_picture import GUTTER, LABELS, parts_line
from shardviz.units import human_bytes

VALUES = 8
"""Columns of most figures: ``99.9 MiB``, ``99.9 µs``."""
HEADINGS = ("time", "sent", "memory", "collectives")
LEAST_NAME = 18
"""Columns of a problem, with its mark, for which figures are left out."""
MARK = "▸"
"""Stands before the question that is shown now."""


DIGITS = (
    "╭─╮╶╮ ╶─╮╶─╮╷ ╷╭─╴╭─╴╶─╮╭─╮╭─╮",
    "│ │ │ ┌─┘ ─┤╰─┤╰─╮├─╮  │├─┤╰─┤",
    "╰─╯╶┴╴╰─╴╶─╯  ╵╶─╯╰─╯  ╵╰─╯╶─╯",
)
"""Three lines of three columns for each digit."""
ROOMY = 8
"""From so many lines the time is written in large digits."""


def figures_beside(
    resolved: ResolvedProblem,
    before: ResolvedProblem | None,
    width: int,
    height: int,
    palette: Palette,
    is_beside_plan: bool = False,
) -> list[Text]:
    """The answer below the fields, under a line: the time, large where `height` has room for that, then bytes
    and memory, each with what it was in the question `before`. Where they do not fit there is nothing. Beside
    a plan that has one collective, its row has the bytes."""
    cost = resolved.cost
    state = "of the last valid problem" if resolved.faults else "planning …"
    lines = [rule([state] if resolved.faults or resolved.planning is not None else [], width)]
    for label, written in (("time", _time), ("sent", _sent), ("memory", _memory)):
        was = ""
        if before is not None and written(before.cost) != written(cost):
            was = f"{'':{GAP}}was {written(before.cost)}"
        elif label == "sent" and is_beside_plan and len(cost.plan.collectives) * cost.layers == 1:
            continue
        if label == "time" and height >= ROOMY:
            lines += _large(written(cost), was, width)
            continue
        line = _labelled(label, written(cost)).append(was, DIM)
        line.stylize("bold" if label == "time" else "", GUTTER + LABELS)
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    limit = _limit_lines(cost, width, palette)
    return [] if len(lines) > height else [*lines, *limit[: height - len(lines)]]


def _large(value: str, was: str, width: int) -> list[Text]:
    """``8.84 ms`` in digits of three lines, its unit and what it was in letters of one."""
    number, _, unit = value.rpartition(" ")
    if not number:
        return [_labelled("time", value).append(was, DIM)]
    lines = []
    for row, digits in enumerate(DIGITS):
        line = Text().append(f"{'':{GUTTER}}{'time' if row == 1 else '':{LABELS}}", DIM)
        for letter in number:
            shown = digits[3 * int(letter) :][:3] if letter.isdigit() else (letter if row == 2 else " ")
            line.append(shown, "bold")
        line.append(f" {unit}" if row == 2 else "", "bold").append(was if row == 1 else "", DIM)
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return lines


def question_rows(
    questions: Sequence[ResolvedProblem], now: ResolvedProblem, width: int, palette: Palette
) -> list[Text]:
    """Headings, and a line for each question: what differs from the one that is shown now, which has a mark
    and is told in full; then its time, its bytes, its memory and its collectives, as many of these as leave
    room for the problem."""
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
    for question in questions:
        mark, own = "", what_differs(question, now)
        if is_same_question(question, now):
            mark, own = MARK, tuple(part for part in summary(question) if part.kind not in BESIDE)
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
