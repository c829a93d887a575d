"""A program's collectives: totals first, then each in program order under the line that it comes from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.hlo import Collective, CollectiveMatmul, HloModule, ShardyModule
from shardviz.hlo.collective import by_permute
from shardviz.hlo.totals import Total, totals
from shardviz.render.lines import Cell, fitting_columns, printable_line, records, sentence, sentences, table
from shardviz.render.palette import Palette
from shardviz.render.programs.collective_rows import parts_of_axes, reads_of, row_lines, rows_of, way_out
from shardviz.render.programs.cost_lines import cost_lines, rest_lines, sum_lines
from shardviz.render.programs.hlo_picture import NO_AXES
from shardviz.reports.entries import BY_COST, Selection
from shardviz.reports.program_report import DumpedModule, ProgramReport
from shardviz.sharding import Mesh
from shardviz.timeline.program_timeline import ProgramTimeline
from shardviz.units import estimated_seconds, human_bytes

NO_MESH = "no mesh: numbers are positions among the program's devices; name its axes to see them"
FOUND = "found in the text; name it yourself to see your axes"
OWN_NAMES = "a collective has axes where its own groups name them; for the others they are not determined"
NO_COUNT = "an unknown number of times"
NOT_YET = "the partitioner, which inserts them, runs later: read the text of the compiled program"
MAY_COME = "the partitioner runs later and may insert more: read the text of the compiled program"
BRANCHES = "in branches of conditionals: the sums count every branch, and a run takes one of each"
NOWHERE = "source line unknown"


def hlo_view(
    report: ProgramReport, given: Mesh | None, width: int, palette: Palette, selection: Selection = BY_COST
) -> list[Text]:
    """The module's name and facts, its mesh, and its collectives by what they cost, with their sums; or, in
    the program's order, the totals and the collectives grouped by source.

    `given` is the mesh that the user named, if any. With the report's timeline there are seconds, and the
    page ends with the total of all that it runs.
    """
    if selection.sort == "order":
        lines = _in_order(report, given, selection, width, palette)
    else:
        lines = _by_cost(report, given, selection, width, palette)
    if report.timeline is not None:
        from shardviz.render.times.report import brief_view

        lines += brief_view(report.timeline, width, palette)
    return [printable_line(line) for line in lines]


def _by_cost(
    report: ProgramReport, given: Mesh | None, selection: Selection, width: int, palette: Palette
) -> list[Text]:
    lines = [*module_lines(report.module, given, width, palette), Text()]
    if not report.entries:
        return lines + _nothing(report.module, width)
    lines += cost_lines(report, selection, width, palette)
    lines += sum_lines(report, selection, width, palette)
    return lines + _remarks(report.module, [each.collective for each in report.entries], width)


def _in_order(
    report: ProgramReport, given: Mesh | None, selection: Selection, width: int, palette: Palette
) -> list[Text]:
    module = report.module
    moving = [each.collective for each in selection.shown(report.entries)]
    lines = [
        *module_lines(module, given, width, palette),
        Text(),
        *_totals(module, totals(moving), width, report.timeline),
    ]
    matmuls = module.collective_matmuls if isinstance(module, HloModule) else ()
    is_scheduled = isinstance(module, HloModule) and module.is_scheduled
    for source, those in _by_source(moving, matmuls).items():
        lines += [Text(), *sentence(source or NOWHERE, width, style="bold" if source else "dim")]
        rows = rows_of(those, module.mesh or NO_AXES, palette, matmuls)
        tells_how = is_scheduled and any(row.algorithm or row.when != "synchronous" for row in rows)
        lines += row_lines(rows, width, tells_how)
    if left_out := rest_lines(report, selection.groups(report.entries), selection.top):
        lines += [Text(), *left_out]
    return lines + _remarks(module, moving, width)


def _remarks(module: HloModule | ShardyModule, moving: Sequence[Collective], width: int) -> list[Text]:
    """Below the collectives: what the figures leave out or take together, and the parts of axes."""
    lines = []
    if module.unread_collectives:
        unread = plural(module.unread_collectives, "collective")
        lines += sentence(f"not read: {unread}, not in the sums", width)
    if module.awaits_partitioner:
        lines += sentence(MAY_COME, width, style="dim")
    if count := sum(each.in_branch for each in moving):
        lines += sentence(f"{plural(count, 'collective is', 'collectives are')} {BRANCHES}", width)
    if count := sum(each.op == "slice" for each in module.collectives):
        words = f"and {plural(count, 'local slice')} of replicated arrays: nothing is sent"
        lines += sentence(words, width, style="dim")
    lines += sentences(parts_of_axes(moving, module.mesh), width, style="dim")
    return [Text(), *lines] if lines else []


def module_lines(
    module: HloModule | ShardyModule, given: Mesh | None, width: int, palette: Palette
) -> list[Text]:
    """``jit_f  8 partitions, scheduled``, then the mesh."""
    return [*_heading(module, width), *_mesh_lines(module, given, width, palette)]


def _heading(module: HloModule | ShardyModule, width: int) -> list[Text]:
    if isinstance(module, ShardyModule):
        facts = ["StableHLO, no schedule"]
    else:
        facts = [plural(module.num_partitions, "partition")]
        facts += [plural(module.replica_count, "replica")] * (module.replica_count > 1)
        facts += [f"one of {module.num_slices} slices"] * (module.num_slices > 1)
        facts += ["scheduled" if module.is_scheduled else "not scheduled"]
    return sentence(f"  {', '.join(facts)}", width, lead=module.name or "a program without a name")


def _mesh_lines(
    module: HloModule | ShardyModule, given: Mesh | None, width: int, palette: Palette
) -> list[Text]:
    mesh = module.mesh
    if mesh is None:
        told = any(each.group_count for each in module.collectives)
        return sentence(NO_MESH, width, style="dim") if told else []
    sizes = zip(mesh.axis_names, mesh.axis_sizes, strict=True)
    axes = Text(", ").join(Text(f"{name}={size}", palette.axis(mesh, name)) for name, size in sizes)
    cells = [Text("mesh ").append_text(axes), Text(plural(mesh.size, "device"))]
    found = [Text(FOUND, "dim")] if isinstance(module, HloModule) and given is None else []
    lines = records([cells + found], width)
    if isinstance(module, HloModule) and module.mesh_orders > 1:
        many = f"the text has the devices of this mesh in {module.mesh_orders} orders"
        lines += sentence(f"{many}: {OWN_NAMES}", width, style="dim")
    return lines


def _totals(
    module: HloModule | ShardyModule, found: Sequence[Total], width: int, timeline: ProgramTimeline | None
) -> list[Text]:
    """One line a kind: how often, the bytes of all its runs, and their time; then all together."""
    if not found:
        return _nothing(module, width)
    among = [each for each in found if not each.is_host_transfer]
    times = None
    if timeline is not None:
        from shardviz.render.times.report import seconds_by_op

        times = seconds_by_op(timeline)
    rows = [_total_cells(f"{each.op}{way_out(each)}", [each], times) for each in among]
    if len(among) > 1:
        rows.append(_total_cells("all", among, times))
    transfers = [each for each in found if each.is_host_transfer]
    rows += [_total_cells(f"{each.op}{way_out(each)}", [each], None) for each in transfers]
    head = ("total", "runs", "bytes", "sent by a device", "", "time" if times else "")
    lines = fitting_columns(rows, width, 0, {1, 2, 3, 5}, head) or records(
        [
            [name, f"×{runs}", f"{size} bytes", f"{sent} sent", *rest]
            for name, runs, size, sent, *rest in rows
        ],
        width,
    )
    unknown = sum(each.unknown for each in found)
    if unknown:
        runs = plural(unknown, "collective runs", "collectives run")
        lines += sentence(f"?: {runs} {NO_COUNT}; not in the sums", width)
    return lines


def _nothing(module: HloModule | ShardyModule, width: int) -> list[Text]:
    if module.unread:
        return [Text("no collective in what can be read")]
    if module.awaits_partitioner:
        return sentence(NOT_YET, width, lead="no collective yet: ")
    return [Text("no collective: nothing is sent")]


def _total_cells(
    name: str, parts: Sequence[Total], times: Mapping[tuple[str, bool], float] | None
) -> list[Cell]:
    more = " + ?" * any(each.unknown for each in parts)
    sent = sum(each.wire_bytes for each in parts)
    numbers = sum(each.count for each in parts), sum(each.bytes for each in parts), sent
    cells: list[Cell] = [(name, "bold"), *(f"{each:,}{more}" for each in numbers), (human_bytes(sent), "dim")]
    if times is not None:
        known = [times.get((each.op, each.between_slices)) for each in parts]
        told = [estimated_seconds(sum(each for each in known if each is not None))] * any(known)
        cells.append(" + ".join(told + ["?"] * (None in known)))
    return cells


def _by_source(
    collectives: Iterable[Collective], matmuls: Iterable[CollectiveMatmul]
) -> dict[str, list[Collective]]:
    """The collectives of each source line, in the order in which the lines first come. Within a line those
    that read alike come together; the permutes of a collective matmul are one thing."""
    parts = by_permute(matmuls)
    found: dict[str, dict[object, list[Collective]]] = defaultdict(lambda: defaultdict(list))
    for each in collectives:
        matmul = parts.get(each.name)
        found[matmul.source if matmul else each.source][matmul or reads_of(each)].append(each)
    return {source: [one for same in kinds.values() for one in same] for source, kinds in found.items()}


MODULE_HEADINGS = ("", "module", "devices", "collectives", "sent by a device", "time")


def modules_view(modules: Sequence[DumpedModule], width: int, selection: Selection = BY_COST) -> list[Text]:
    """A line a module, by XLA's number of it, with what the selection has of it; those without such a
    collective are counted, and those that cannot be read in full say why."""
    read = [(each.file, each.report) for each in modules if each.report is not None]
    sending = [(file, report) for file, report in read if selection.chosen(report.entries)]
    rows = [_module_cells(str(file.number), file.module, [report], selection) for file, report in sending]
    if len(sending) > 1:
        rows.append(_module_cells("", "all", [report for _, report in sending], selection))
    lines = []
    if rows:
        has_times = any(report.timeline is not None for _, report in sending)
        lines = table(rows, width, 0, {0, 2, 3, 4, 5}, MODULE_HEADINGS[: None if has_times else -1])
    whole = [report for _, report in read if not report.module.unread]
    if silent := [report for report in whole if not selection.chosen(report.entries)]:
        words = f"{plural(len(silent), 'module sends', 'modules send')} nothing"
        words += " of the kind" * (selection != BY_COST)
        times = [report.timeline.seconds for report in silent if report.timeline is not None]
        words += f", in {estimated_seconds(sum(times))}" if times else ""
        lines += sentence(words, width, style="dim")
    for each in modules:
        if each.error:
            lines += sentence(each.error, width, lead=f"{each.file.path}: ")
    if sending:
        one = f"shardviz hlo {sending[-1][0].path}"
        lines += [Text(), *sentence(f"the collectives of one: {one}", width, style="dim")]
    return lines


def _module_cells(
    number: str, name: str, reports: Sequence[ProgramReport], selection: Selection
) -> list[Cell]:
    """The cells of a line: the sums of one module, or of several."""
    chosen = [entry.collective for each in reports for entry in selection.chosen(each.entries)]
    found = [total for total in totals(chosen) if not total.is_host_transfer]
    more = " + ?" * any(total.unknown for total in found)
    programs = [each.module for each in reports if isinstance(each.module, HloModule)]
    devices = {each.num_partitions * each.replica_count * each.num_slices for each in programs}
    times = [each.timeline for each in reports if each.timeline is not None]
    return [
        number,
        (name, "bold"),
        f"{devices.pop():,}" if len(devices) == 1 else "",
        f"{sum(total.count for total in found):,}{more}",
        human_bytes(sum(total.wire_bytes for total in found)) + more,
        estimated_seconds(sum(each.seconds for each in times)) if times else "",
    ]
