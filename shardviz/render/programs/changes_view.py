"""The changes from one program to another: a line for each collective, the sums, and the broken limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import columns, records, sentence
from shardviz.render.paths import short_place
from shardviz.render.programs.summary_view import beside_words, runs_words, sent_words
from shardviz.render.sanitize import printable, printable_line
from shardviz.reports.changes import (
    MOST_SHARE,
    BrokenLimit,
    Change,
    ChangeKind,
    ReportChanges,
    ReportSummary,
    SummaryLine,
)
from shardviz.units import estimated_seconds, human_bytes

MARKS: dict[ChangeKind, str] = {"added": "+", "removed": "-", "less overlapped": "↑", "more overlapped": "↓"}
"""More to wait for than before, or less; of other changes their bytes tell."""
MAX_CHANGES = 40
UNKNOWN = "not known"


def changes_view(found: ReportChanges, broken: Sequence[BrokenLimit], width: int) -> list[Text]:
    """The collectives that change, the figures before and after, and each broken limit with its figures."""
    lines = _hardware(found, width)
    lines += [Text()] * bool(lines)
    shown = found.changes[:MAX_CHANGES]
    if found.changes:
        lines += [Text(plural(len(found.changes), "change"), "bold"), Text()]
    elif found.before.lines or found.after.lines:
        lines += sentence(f"no collective changes: {_same(found)}", width)
    else:
        lines += sentence("no collective before and after", width)
    for change in shown:
        lines += _change_lines(change, width)
    if len(found.changes) > len(shown):
        lines.append(Text(f"… and {plural(len(found.changes) - len(shown), 'more change')}", "dim"))
    lines += [Text(), *_figures(found, width)]
    lines += [Text()] * bool(broken)
    for each in broken:
        lines += sentence(printable(each.message), width, lead="✗ ")
    return [printable_line(line) for line in lines]


def changes_text(found: ReportChanges, broken: Sequence[BrokenLimit], width: int) -> str:
    """The page as plain text."""
    return "\n".join(line.plain.rstrip() for line in changes_view(found, broken, width))


def _same(found: ReportChanges) -> str:
    lines = len(found.after.lines)
    told = f"{plural(lines, 'line of the summary is', 'lines of the summary are')} the same"
    return told if found.same == lines else f"{told}, {lines - found.same:,} of them but for the place"


def _hardware(found: ReportChanges, width: int) -> list[Text]:
    """The mesh and the machine; where they differ, before and after."""
    lines = []
    for name, old, new in (
        ("mesh", _mesh(found.before), _mesh(found.after)),
        ("machine", found.before.machine or "none", found.after.machine or "none"),
    ):
        if old != new:
            lines += sentence(printable(f"{old} → {new}"), width, lead=f"another {name}: ")
        elif old != "none":
            lines += sentence(printable(f"{name} {old}"), width, style="dim")
    return lines


def _mesh(summary: ReportSummary) -> str:
    return ",".join(f"{axis}={size}" for axis, size in summary.mesh) or "none"


def _change_lines(change: Change, width: int) -> list[Text]:
    """The change and its figures; below them where it stands."""
    line = change.after or change.before
    assert line is not None
    over = f" over {', '.join(line.axes)}" if line.axes else ""
    head = Text.assemble(
        (_mark(change), "bold"), f" {change.kind}: ", (printable(f"{line.op}{over}"), "bold")
    )
    lines = records([[head, Text(printable(_figure(change)))]], width)
    where = [
        line.place,
        *([line.phase] if line.phase not in (None, "forward") else []),
        short_place(line.source),
    ]
    if any(where):
        lines += sentence(printable(", ".join(filter(None, where))), width, 4, style="dim")
    return lines


def _mark(change: Change) -> str:
    if mark := MARKS.get(change.kind):
        return mark
    before, after, more = change.before, change.after, change.wire_bytes
    if before is not None and after is not None and not _is_known(before, after):
        more = after.wire_bytes - before.wire_bytes if before.runs == after.runs else 0
    return "↑" if more > 0 else "↓" if more < 0 else "≠"


def _figure(change: Change) -> str:
    """The figures that the change is about."""
    before, after = change.before, change.after
    if before is None or after is None:
        line = before or after
        assert line is not None
        return f"{line.shape}, {runs_words(line)}, {sent_words(line)} sent"
    shape = _from_to(before.shape, after.shape)
    if change.kind in ("more overlapped", "less overlapped"):
        return f"{shape}, work beside {beside_words(before)} runs before, {beside_words(after)} now"
    if not _is_known(before, after):
        sent = _from_to(human_bytes(before.wire_bytes), human_bytes(after.wire_bytes))
        was, now = runs_words(before), runs_words(after)
        runs = now if was == now else f"{was} before, {now} now"
        return f"{shape}, {runs}, {sent} a run sent"
    runs, sent = (
        _from_to(runs_words(before), runs_words(after)),
        _from_to(sent_words(before), sent_words(after)),
    )
    return f"{shape}, {runs}, {sent} sent"


def _is_known(*lines: SummaryLine | None) -> bool:
    """Return whether it is known how often all of them run."""
    return all(line is None or line.runs is not None for line in lines)


def _from_to(before: str, after: str) -> str:
    return after if before == after else f"{before} to {after}"


def _figures(found: ReportChanges, width: int) -> list[Text]:
    """A line for each quantity that one of the two has."""
    before, after = found.before, found.after
    known = _is_known(*before.lines, *after.lines)
    name = "sent by a device" if known else "sent outside of unknown loops"
    rows = [_row(name, before.wire_bytes, after.wire_bytes, _bytes)]
    if before.seconds is not None or after.seconds is not None:
        rows.append(_row("time", before.seconds, after.seconds, estimated_seconds))
    if before.memory is not None or after.memory is not None:
        rows.append(_row("memory at the peak", before.memory, after.memory, _bytes))
    head = [Text(words, "bold") for words in ("", "before", "after", "")]
    lines = columns([head, *rows], width, 0, frozenset({1, 2, 3}))
    if lines is None:
        told = [[Text(f"{name}:"), Text(f"{old} to {new}"), share] for name, old, new, share in rows]
        lines = records(told, width)
    return lines


def _row(name: str, before: float | None, after: float | None, written: Callable[[float], str]) -> list[Text]:
    share = ""
    if before is not None and after is not None and before != after:
        share = _share(after / before) if before else "new"
    told = [UNKNOWN if each is None else written(each) for each in (before, after)]
    return [Text(name), *map(Text, told), Text(share)]


def _share(ratio: float) -> str:
    return f"×{ratio:,.3g}" if ratio > MOST_SHARE else f"{(ratio - 1) * 100:+.1f} %"


def _bytes(count: float) -> str:
    return human_bytes(round(count))
