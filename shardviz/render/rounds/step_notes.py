"""Words beside the pictures of a collective: its headline, their marks, the end, JAX's verdict; its cost in
sentences, and in a table beside all other algorithms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from rich.text import Text

from shardviz.collectives.schedule import LowerBound
from shardviz.errors import plural
from shardviz.hardware.timelines import NotCompared, Timeline, fastest, is_cut
from shardviz.render.caption import axes_text, mesh_text
from shardviz.render.lines import GLUE, sentence, sentences, shared
from shardviz.render.palette import BEST, PARTIAL, Palette
from shardviz.render.rounds.pieces import ARRIVED, EMPTY, FORMS, NOTHING, FrameStats, TableShape, chunk_name
from shardviz.render.tables import columns, giving_way, records, table
from shardviz.sharding import Mesh
from shardviz.stepping.collective_run import CollectiveRun, Verdict
from shardviz.units import exact_bytes, human_bytes, measured_rate, rate, seconds, shaped, times

SEPARATOR = "   "


def headline(run: CollectiveRun, width: int, palette: Palette) -> list[Text]:
    """``all_gather over i  by ring  mesh i=4, 4 devices  s32[4] as P('i'), 1 per device``."""
    operation, layout = run.operation, run.question.layout
    what = Text.assemble((operation.name, "bold"), " over ", axes_text(operation.axes, run.mesh, palette))
    cells = [
        what,
        Text(run.schedule.algorithm, "bold"),
        Text.assemble("mesh ", mesh_text(run.mesh, palette)),
        Text(
            f"{shaped(layout.array.dtype, layout.array.shape)} {run.question.spec} → "
            f"{times(layout.shard_shape)} per device"
        ),
    ]
    return table([cells], width)


def marks(run: CollectiveRun, drawn: Sequence[tuple[FrameStats, TableShape]], count: int = 0) -> str:
    """``▸ has just arrived ╱ partial sum`` for each mark; `count` is the sum that is named, 0 the largest."""
    return SEPARATOR.join(entry.replace(" ", GLUE) for entry in _entries(run, drawn, count))


def after_words(run: CollectiveRun) -> Iterator[str]:
    """Effects of the operation beyond the rounds: a mean's division, zeros where nothing arrived."""
    size, pattern = run.schedule.pattern.group_size, run.schedule.pattern
    if run.operation.name == "pmean":
        yield f"every total ÷ {size}"
    if pattern.kind == "permute" and len({target for _, target in pattern.perm}) < size:
        yield "0 on devices that receive nothing"
    cuts, after = run.frames.cuts, run.frames.after
    if run.operation.name == "ragged_all_to_all" and cuts is not None and after is not None:
        filled = (int(cuts.sizes[run.held_chunks(member, True)].sum()) for member in range(size))
        if min(filled) < after[0].size:
            yield "0 in rows that receive nothing"


def _entries(run: CollectiveRun, drawn: Sequence[tuple[FrameStats, TableShape]], count: int) -> Iterator[str]:
    pairs = [(cell, FORMS[shape.form]) for stats, shape in drawn for cell in stats.cells]
    full = [(cell, form) for cell, form in pairs if not cell.empty]
    combined = {"pmax": "largest", "pmin": "smallest"}.get(run.operation.name, "")
    if any(cell.arrived and cell.needed for cell, _ in full):
        yield f"{ARRIVED} has just arrived"
    if any(cell.partial and cell.needed for cell, _ in full):
        yield f"{PARTIAL} {f'{combined} so far' if combined else 'partial sum'}"
    counts = [re.search(r"(?:Σ|of )([0-9]+)$", cell.label(form) or "") for cell, form in full if cell.count]
    most = max((int(count[1]) for count in counts if count), default=0)
    if most:
        most = count or most
        yield f"of {most} the {combined} of {most}" if combined else f"Σ{most} the sum of {most}"
    if any(not cell.needed for cell, _ in full):
        yield "( ) no longer needed"
    if any(None in row.cells for stats, _ in drawn for row in stats.rows):
        yield f"{NOTHING} not here"
    if any(cell.empty for cell, _ in pairs):
        yield f"{EMPTY} empty"
    if any(stats.passing for stats, _ in drawn):
        yield "│ waiting to go on"
    for stats, table_shape in drawn:
        sent = next((row.sent for row in stats.rows if row.sent), "")
        if table_shape.sent_at is not None and (arrow := re.match(r"([^ →]+)→([0-9]+)(?: |$)", sent)):
            yield f"{arrow[0].strip()} sent {arrow[1]} to device {arrow[2]}"
            break
    if run.schedule.pattern.kind == "all_to_all":
        group = run.groups[0]
        if len(group) > 1:
            name = chunk_name(run, run.schedule.pattern.pieces(run.schedule.chunks))
            sender, receiver = (run.mesh.device_id(position) for position in group[:2])
            yield f"{name} from device {sender} to device {receiver}"
        yield "columns: destination or source device"
    if any(cell.wraps and form.addends for cell, form in full):
        yield f"{run.result_dtype} wraps around"


def verdict_lines(verdict: Verdict, mesh: Mesh, width: int) -> list[Text]:
    """All values equal, or how many differ, where the first of them is, and a likely cause."""
    result, ran = verdict.verification, verdict.ran
    kind = "simulated CPU device" if ran.target == "cpu" else f"{ran.target} device"
    verifier = f"JAX {dict(ran.versions).get('jax', '')}".strip() + f" on {plural(mesh.size, kind)}: "
    # JAX did not run the array that was asked for.
    elements = plural(verdict.smaller, "element")
    of, on = f" of a smaller array, {elements}", f", on a smaller array of {elements}"
    if not verdict.smaller:
        of = on = ""
    count = f"{result.differing:,} of {plural(result.values, 'value')}{of} differ"
    where = ""
    if result.device is not None:
        index = ", ".join(map(str, result.index))
        device = mesh.device_id(result.device)
        where = f"on device {device} at [{index}] {result.ours} here, {result.theirs} in JAX"
    said = f"every value equal{on}"
    if result.verdict == "rounding":
        ulps = plural(result.ulps, "ulp")
        said = f"{count} by rounding, from another order of additions; at most {ulps}, {where}"
    elif result.verdict == "different":
        said, verifier = f"{count}: {where}" if where else "the results differ", f"✗ {verifier}"
    return sentence(said, width, lead=verifier) + sentences((result.note, ran.note), width, 2, style="dim")


MAX_GROUP = 4096
"""Members of a group beyond which only `--compare` looks at the other algorithms."""
HEADINGS = ("", "algorithm", ">rounds", ">sent", ">× lower bound", ">busiest link", ">waiting", ">time")
CHOSEN = "▸"


def cost_lines(run: CollectiveRun, width: int, verbose: bool = False) -> list[Text]:
    """The rounds, bytes and time, and the lower bound; when `verbose`, other algorithms and formulas, too."""
    schedule, timeline = run.schedule, run.timeline
    if schedule.pattern.group_size == 1:
        return sentence("one device: nothing is sent", width, lead=f"{schedule.algorithm}: ")
    cut = f" of {schedule.chunks:,} chunks" if is_cut(schedule) else ""
    total = sum(count * int(load.bytes.sum()) for _, load, count in timeline.different_rounds())
    most = timeline.device_bytes
    everyone = total == most * timeline.topology.devices
    sent = f"{'' if everyone else 'at most '}{exact_bytes(most)} sent by {'each' if everyone else 'a'} device"
    took = f"{duration(timeline.seconds, timeline.waiting)} on a {run.links.topology}, {link_text(run)}"
    if timeline.waiting:
        took += f"; {plural(timeline.waiting, 'message')} must wait for a link"
    firsts = accumulate((phase.rounds for phase in schedule.phases[:-1]), initial=0)
    if schedule.rounds and any(timeline[first].hops > timeline[first].messages for first in firsts):
        took += "; a message of several hops is forwarded once it is complete (store and forward)"
    counted = f"{plural(schedule.rounds, 'round')}{cut}, {sent}"
    lines = sentence(counted, width, lead=f"{schedule.algorithm}: ") + sentence(took, width)
    closed, hops = run.closed_form.seconds, schedule.rounds * run.used_links.spec.latency
    is_on_torus = any(level.is_torus for level in run.links.levels)
    # Plans price a permute as one to the neighbours.
    if closed and is_on_torus and schedule.pattern.kind != "permute" and timeline.seconds > closed + hops:
        words = "messages are forwarded while they come in, and no round waits for another."
        lines += sentence(f"Plans count {seconds(closed)}: {words}", width)
    lines += sentence(f"{least(run.bound)}.", width, style="dim" * (not verbose))
    if not verbose:
        return lines
    compared = run.rows if schedule.pattern.group_size <= MAX_GROUP else ()
    others = [
        f"{row.algorithm} {plural(row.rounds, 'round')}, {human_bytes(row.device_bytes)}"
        for row in _able(compared)
        if row.algorithm != schedule.algorithm
    ]
    others[6:] = [f"{len(others) - 6} more: --compare"] * (len(others) > 6)
    lines += sentence(f"Others: {'; '.join(others)}." * bool(others), width)
    return [*lines, *formula_lines(run, width)]


def formula_lines(run: CollectiveRun, width: int) -> list[Text]:
    """The time in closed form, of any algorithm: its bound, how it is counted, and what the book counts."""
    time = run.closed_form
    if not time.bound:
        return []
    said = f"bound by {time.bound}: {time.convention}"
    if seconds(time.textbook_seconds) != seconds(time.seconds):
        said += f". The scaling book counts {seconds(time.textbook_seconds)}"
    return sentence(said, width, lead=f"{seconds(time.seconds)} {time.words}, ")


def least(bound: LowerBound) -> str:
    """``Lower bound: 24 bytes; 2 rounds at one message per round``."""
    if not bound.rounds:
        return "Nothing is sent"
    sent, rounds = exact_bytes(bound.wire_bytes), plural(bound.rounds, "round")
    return f"Lower bound: {sent}; {rounds} at one message per round"


def duration(time: float, waiting: int | None) -> str:
    """A time as `seconds`; a lower bound where it is unknown how many messages have to wait."""
    return f"{'≥ ' if waiting is None else ''}{seconds(time)}"


def link_text(run: CollectiveRun) -> str:
    """``1 µs and 45 GB/s per v5e link, assumed``; ``17.9 µs to start, 171 GB/s per h100 link of h100:8``."""
    links = run.used_links
    which = "" if links.machine is None else ", assumed" if links.assumed else f" of {links.machine.name}"
    start = f"{seconds(links.spec.start)} to start, " * (links.spec.start > 0)
    hop = f"{seconds(links.spec.latency)} and " * (links.spec.latency > 0 or not start)
    bandwidth = rate(links.spec.bandwidth) if links is run.links else measured_rate(links.spec.bandwidth)
    return f"{start}{hop}{bandwidth} per {run.links.each}{which}"


def comparison_view(run: CollectiveRun, width: int, palette: Palette) -> list[Text]:
    """The table of `run.rows`, the chosen one and the fastest marked."""
    able = _able(run.rows)
    starred = _starred(run)
    rows = [_cells(run, row, row.algorithm in starred) for row in able]
    lines = columns(rows, width, 0, HEADINGS)
    if lines is None:
        named = []
        for row, cells in zip(able, rows, strict=True):
            _, sent, ratio, busiest, waiting, _ = (cell.plain for cell in cells[2:])
            told = [plural(row.rounds, "round"), f"{sent} sent" + f" ({ratio}× lower bound)" * bool(ratio)]
            told += [f"{busiest} on a link", *[f"{waiting} waiting"] * (waiting != "0")]
            named.append([*cells[:2], *map(Text, told), cells[-1]])
        lines = records(named, width)
    what = f"{exact_bytes(run.bytes)} over {plural(run.schedule.pattern.group_size, 'device')}"
    question = f"{what}, on a {run.links.topology} with {link_text(run)}"
    asked = [*sentence(question, width), *formula_lines(run, width)]
    lines = [*headline(run, width, palette), *asked, Text(), *lines]
    reasons = [row for row in run.rows if isinstance(row, NotCompared)]
    lines += shared(reasons, width, lead="– {}: ", style="dim")
    star = f"{BEST} fastest here, " if starred else ""
    notes = f"{star}{CHOSEN} the algorithm that step shows. {least(run.bound)}."
    cut = [f"{row.algorithm} in {row.chunks} chunks" for row in able if is_cut(row.schedule)]
    if cut:
        notes += f" Chunk count chosen for speed: {' and '.join(cut)}."
    return [*lines, Text(), *sentence(notes, width, style="dim")]


def algorithm_lines(run: CollectiveRun, width: int) -> tuple[Text, list[Text]]:
    """Headings, and a line for each algorithm that can do it: the columns that fit, the time in any case."""
    starred = _starred(run)
    rows = [_cells(run, row, row.algorithm in starred) for row in _able(run.rows)]
    _, *without = giving_way("× lower bound", "busiest link", "waiting", "rounds", "sent")
    lines = columns(rows, width, 0, HEADINGS, without)
    return (Text(), [row[1] for row in rows]) if lines is None else (lines[0], lines[1:])


def _able(rows: Sequence[Timeline | NotCompared]) -> list[Timeline]:
    return [row for row in rows if isinstance(row, Timeline)]


def _starred(run: CollectiveRun) -> Sequence[str]:
    """The fastest algorithms; none where all are."""
    best = fastest(run.rows)
    return () if len(best) == len(_able(run.rows)) > 1 else best


def _cells(run: CollectiveRun, row: Timeline, fastest: bool) -> list[Text]:
    fewest = run.bound.wire_bytes
    chosen = row.algorithm == run.schedule.algorithm
    return [
        Text(CHOSEN * chosen + BEST * fastest, "bold"),
        Text(row.algorithm, "bold"),
        Text(f"{row.rounds:,}"),
        Text(human_bytes(row.device_bytes)),
        Text(f"{row.device_bytes / fewest:.3g}" if fewest else ""),
        Text(human_bytes(row.busiest_bytes)),
        Text("?" if row.waiting is None else f"{row.waiting:,}", "" if row.waiting else "dim"),
        Text(duration(row.seconds, row.waiting), "bold" if fastest else ""),
    ]
