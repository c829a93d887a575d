"""The modules of a folder of dumps: a line for each that sends something, and the total."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.hlo import HloModule
from shardviz.hlo.totals import totals
from shardviz.render.lines import sentence, table
from shardviz.render.sanitize import printable, printable_line
from shardviz.reports.entries import BY_COST, Selection
from shardviz.reports.program_report import DumpedModule, ProgramReport
from shardviz.units import estimated_seconds, human_bytes

HEADINGS = ("", "module", "devices", "collectives", "sent by a device", "time")
RIGHT = frozenset({0, 2, 3, 4, 5})


def modules_view(modules: Sequence[DumpedModule], width: int, selection: Selection = BY_COST) -> list[Text]:
    """A line a module, by XLA's number of it, with what the selection has of it; those without such a
    collective are counted, and those that cannot be read in full say why."""
    read = [(each.file, each.report) for each in modules if each.report is not None]
    sending = [(file, report) for file, report in read if selection.chosen(report.entries)]
    rows = [_cells(str(file.number), file.module, [report], selection) for file, report in sending]
    if len(sending) > 1:
        rows.append(_cells("", "all", [report for _, report in sending], selection))
    lines = []
    if rows:
        has_times = any(report.timeline is not None for _, report in sending)
        head = [Text(heading, "bold") for heading in HEADINGS[: None if has_times else -1]]
        lines = table([head, *rows], width, right=RIGHT)
    whole = [report for _, report in read if not report.module.unread]
    if silent := [report for report in whole if not selection.chosen(report.entries)]:
        words = f"{plural(len(silent), 'module sends', 'modules send')} nothing"
        words += " of the kind" * (selection != BY_COST)
        times = [report.timeline.seconds for report in silent if report.timeline is not None]
        words += f", in {estimated_seconds(sum(times))}" if times else ""
        lines += sentence(words, width, style="dim")
    for each in modules:
        if each.error:
            lines += sentence(printable(each.error), width, lead=f"{printable(each.file.path)}: ")
    if sending:
        one = f"shardviz hlo {printable(sending[-1][0].path)}"
        lines += [Text(), *sentence(f"the collectives of one: {one}", width, style="dim")]
    return [printable_line(line) for line in lines]


def _cells(number: str, name: str, reports: Sequence[ProgramReport], selection: Selection) -> list[Text]:
    """The cells of a line: the sums of one module, or of several."""
    chosen = [entry.collective for each in reports for entry in selection.chosen(each.entries)]
    found = [total for total in totals(chosen) if not total.is_host_transfer]
    more = " + ?" * any(total.unknown for total in found)
    programs = [each.module for each in reports if isinstance(each.module, HloModule)]
    devices = {each.num_partitions * each.replica_count * each.num_slices for each in programs}
    times = [each.timeline for each in reports if each.timeline is not None]
    return [
        Text(number),
        Text(printable(name), "bold"),
        Text(f"{devices.pop():,}" if len(devices) == 1 else ""),
        Text(f"{sum(total.count for total in found):,}{more}"),
        Text(human_bytes(sum(total.wire_bytes for total in found)) + more),
        Text(estimated_seconds(sum(each.seconds for each in times)) if times else ""),
    ]
