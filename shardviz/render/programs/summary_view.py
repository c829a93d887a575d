"""A report that was saved: its collectives with the most bytes first, and what they take together."""

from __future__ import annotations

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import records, sentence
from shardviz.render.sanitize import printable, printable_line
from shardviz.reports.changes import ReportSummary, SummaryLine
from shardviz.units import estimated_seconds, human_bytes

MAX_LINES = 200


def summary_view(summary: ReportSummary, width: int) -> list[Text]:
    """The mesh and the machine, the figures of the whole program, and a record for each line of the
    summary."""
    mesh = ",".join(f"{axis}={size}" for axis, size in summary.mesh)
    told = [f"mesh {mesh}"] * bool(mesh) + [f"machine {summary.machine}"] * bool(summary.machine)
    lines = sentence(printable(", ".join(told)), width, style="dim") if told else []
    known = all(line.runs is not None for line in summary.lines)
    sent = "sent by a device" if known else "sent outside of unknown loops"
    figures = [Text(f"{human_bytes(summary.wire_bytes)} {sent}")]
    if summary.seconds is not None:
        figures.append(Text(f"{estimated_seconds(summary.seconds)} in all"))
    if summary.memory is not None:
        figures.append(Text(f"{human_bytes(summary.memory)} of memory at the peak"))
    lines += records([figures], width)
    if not summary.lines:
        return [*lines, Text(), Text("no collective: nothing is sent")]
    kept = sorted(summary.lines, key=lambda line: -(line.all_wire_bytes or 0))
    lines += [Text(), Text(plural(len(kept), "line"), "bold"), Text()]
    for line in kept[:MAX_LINES]:
        lines += _line(line, width)
    if len(kept) > MAX_LINES:
        lines.append(Text(f"… and {plural(len(kept) - MAX_LINES, 'more line')}", "dim"))
    return [printable_line(line) for line in lines]


def _line(line: SummaryLine, width: int) -> list[Text]:
    """The collective with its figures; below them where it stands."""
    over = f" over {', '.join(line.axes)}" if line.axes else ""
    head = Text(printable(f"{line.op}{over}"), "bold")
    figures = f"{line.shape}, {runs_words(line)}, {sent_words(line)} sent"
    if line.overlapped:
        figures += f", work beside {beside_words(line)} runs"
    lines = records([[head, Text(printable(figures))]], width)
    where = [line.place, *([line.phase] if line.phase not in (None, "forward") else [])]
    return lines + (
        sentence(printable(", ".join(filter(None, where))), width, 4, style="dim") if any(where) else []
    )


def runs_words(line: SummaryLine) -> str:
    """``×3``, or that nobody knows."""
    return "in a loop of unknown length" if line.runs is None else f"×{line.runs:,}"


def beside_words(line: SummaryLine) -> str:
    """``2 of 3``: the runs beside which something runs."""
    return f"{line.overlapped:,}" + ("" if line.runs is None else f" of {line.runs:,}")


def sent_words(line: SummaryLine) -> str:
    """The bytes that a device sends in all runs, or in one where nobody knows how many there are."""
    sent = line.all_wire_bytes
    return f"{human_bytes(line.wire_bytes)} a run" if sent is None else human_bytes(sent)
