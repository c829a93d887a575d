"""The modules of a folder of dumps: a line for each that sends something, and the total."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.hlo import HloModule
from shardviz.hlo.totals import totals
from shardviz.render.lines import sentence, table
from shardviz.render.sanitize import printable, printable_line
from shardviz.timeline.dumped_modules import DumpedModule
from shardviz.units import estimated_seconds, human_bytes

HEADINGS = ("", "module", "devices", "collectives", "sent by a device", "time")
RIGHT = frozenset({0, 2, 3, 4, 5})


def modules_view(modules: Sequence[DumpedModule], width: int) -> list[Text]:
    """A line a module, by XLA's number of it; those without a collective are counted, and those that cannot
    be read say why."""
    sending = [each for each in modules if each.module is not None and each.module.collectives]
    rows = [_cells(str(each.file.number), each.file.module, [each]) for each in sending]
    if len(sending) > 1:
        rows.append(_cells("", "all", sending))
    lines = []
    if rows:
        has_times = any(each.timeline is not None for each in sending)
        head = [Text(heading, "bold") for heading in HEADINGS[: None if has_times else -1]]
        lines = table([head, *rows], width, right=RIGHT)
    silent = sum(each.module is not None and not each.module.collectives for each in modules)
    if silent:
        lines += sentence(f"{plural(silent, 'module sends', 'modules send')} nothing", width, style="dim")
    for each in modules:
        if each.error:
            lines += sentence(printable(each.error), width, lead=f"{printable(each.file.path)}: ")
    if sending:
        one = f"shardviz hlo {printable(sending[-1].file.path)}"
        lines += [Text(), *sentence(f"the collectives of one: {one}", width, style="dim")]
    return [printable_line(line) for line in lines]


def _cells(number: str, name: str, modules: Sequence[DumpedModule]) -> list[Text]:
    """The cells of a line: the sums of one module, or of several."""
    found = [total for each in modules if each.module for total in totals(each.module.collectives)]
    found = [total for total in found if not total.is_host_transfer]
    more = " + ?" * any(total.unknown for total in found)
    programs = [each.module for each in modules if isinstance(each.module, HloModule)]
    devices = {each.num_partitions * each.replica_count * each.num_slices for each in programs}
    times = [each.timeline for each in modules if each.timeline is not None]
    return [
        Text(number),
        Text(printable(name), "bold"),
        Text(f"{devices.pop():,}" if len(devices) == 1 else ""),
        Text(f"{sum(total.count for total in found):,}{more}"),
        Text(human_bytes(sum(total.wire_bytes for total in found)) + more),
        Text(estimated_seconds(sum(each.seconds for each in times)) if times else ""),
    ]
