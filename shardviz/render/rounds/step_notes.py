"""Words beside the pictures of a collective: its headline, their marks, the end, JAX's verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.caption import axes_text, mesh_text, repetition
from shardviz.render.lines import GLUE, sentence, sentences, table
from shardviz.render.palette import PARTIAL, Palette
from shardviz.render.rounds.buffer_rows import FrameStats
from shardviz.render.rounds.buffer_table import BufferTable, TableShape
from shardviz.render.rounds.pieces import ARRIVED, EMPTY, FORMS, NOTHING, chunk_name
from shardviz.sharding import Mesh
from shardviz.stepping.collective_run import CollectiveRun, Verdict
from shardviz.units import shaped, times

SEPARATOR = "   "
ARROW = re.compile(r"([^ →]+)→([0-9]+)(?: |$)")
COUNT = re.compile(r"(?:Σ|of )([0-9]+)$")


def headline(run: CollectiveRun, width: int, palette: Palette) -> list[Text]:
    """``all_gather over i  by ring  mesh i=4, 4 devices  s32[4] as P('i'), 1 a device``."""
    operation, layout = run.operation, run.question.layout
    what = Text.assemble((operation.name, "bold"), " over ", axes_text(operation.axes, run.mesh, palette))
    cells = [
        what,
        Text(run.schedule.algorithm, "bold"),
        Text.assemble("mesh ", mesh_text(run.mesh, palette)),
        Text(
            f"{shaped(layout.array.dtype, layout.array.shape)} {run.question.spec} → "
            f"{times(layout.shard_shape)} a device"
        ),
    ]
    return table([cells], width)


def legend_lines(
    run: CollectiveRun, drawn: Sequence[BufferTable], width: int, palette: Palette
) -> list[Text]:
    """The marks that pictures have, and whether colours repeat."""
    said = marks(run, [(table.stats, table.shape) for table in drawn])
    lines = sentence(said, width, style="dim")
    groups = max((len(table.groups) for table in drawn), default=1)
    notes = (note.plain for note in repetition(groups * run.schedule.chunks, palette))
    return lines + sentences(notes, width, style="dim")


def marks(run: CollectiveRun, drawn: Sequence[tuple[FrameStats, TableShape]], count: int = 0) -> str:
    """``▸ has just arrived   ╱ partial sum``: an entry for each mark that is drawn.

    `count` is the sum that is named, 0 for the largest.
    """
    return SEPARATOR.join(entry.replace(" ", GLUE) for entry in _entries(run, drawn, count))


def after_words(run: CollectiveRun) -> Iterator[str]:
    """Effects of the operation beyond the rounds: a mean's division, zeros where nothing arrived."""
    size, pattern = run.schedule.pattern.group_size, run.schedule.pattern
    if run.operation.name == "pmean":
        yield f"every total ÷ {size}"
    if pattern.kind == "permute" and len({target for _, target in pattern.perm}) < size:
        yield "0 on devices that receive nothing"
    if run.operation.name == "ragged_all_to_all" and _padded(run):
        yield "0 in rows that receive nothing"


def _padded(run: CollectiveRun) -> bool:
    """True if some result has elements that no chunk fills."""
    cuts, size = run.frames.cuts, run.schedule.pattern.group_size
    if cuts is None or run.frames.after is None:
        return False
    elements = run.frames.after[0].size
    return any(int(cuts.sizes[run.held_chunks(member, True)].sum()) < elements for member in range(size))


def _entries(run: CollectiveRun, drawn: Sequence[tuple[FrameStats, TableShape]], count: int) -> Iterator[str]:
    pairs = [(cell, FORMS[shape.form]) for stats, shape in drawn for cell in stats.cells]
    full = [(cell, form) for cell, form in pairs if not cell.empty]
    combined = {"pmax": "largest", "pmin": "smallest"}.get(run.operation.name, "")
    if any(cell.arrived and cell.needed for cell, _ in full):
        yield f"{ARRIVED} has just arrived"
    if any(cell.partial and cell.needed for cell, _ in full):
        yield f"{PARTIAL} {f'{combined} so far' if combined else 'partial sum'}"
    counts = [COUNT.search(cell.label(form) or "") for cell, form in full if cell.count]
    most = max((int(found[1]) for found in counts if found), default=0)
    if most:
        most = count or most
        yield f"of {most} the {combined} of {most}" if combined else f"Σ{most} the sum of {most}"
    if any(not cell.needed for cell, _ in full):
        yield "( ) no longer needed"
    if any(stats.vacant for stats, _ in drawn):
        yield f"{NOTHING} not here"
    if any(cell.empty for cell, _ in pairs):
        yield f"{EMPTY} empty"
    if any(stats.passing for stats, _ in drawn):
        yield "│ waiting to go on"
    for stats, each in drawn:
        arrow = ARROW.match(stats.sent) if each.sent_at is not None else None
        if arrow:
            yield f"{arrow[0].strip()} sent {arrow[1]} to device {arrow[2]}"
            break
    if run.schedule.pattern.kind == "all_to_all":
        yield from _slots(run)
    if any(cell.wraps and form.addends for cell, form in full):
        yield f"{run.result_dtype} wraps around"


def _slots(run: CollectiveRun) -> Iterator[str]:
    schedule, group = run.schedule, run.groups[0]
    if len(group) > 1:
        name = chunk_name(run, schedule.pattern.pieces(schedule.chunks))
        sender, receiver = (run.mesh.device_id(position) for position in group[:2])
        yield f"{name} from device {sender} to device {receiver}"
    yield "columns: the device it goes to, or came from"


def verdict_lines(verdict: Verdict, mesh: Mesh, width: int) -> list[Text]:
    """The verdict: all values equal, or how many differ, where the first of them is, and a likely cause."""
    result = verdict.verification
    jax, devices = _asked(verdict, mesh)
    verifier, count = f"{jax} on {devices}: ", _count(verdict)
    where = _first_difference(verdict, mesh, "in JAX")
    if result.verdict == "equal":
        lines = sentence(_every_value_equal(verdict), width, lead=verifier)
    elif result.verdict == "rounding":
        said = (
            f"{count} differ by rounding, as another order of the additions gives; at most"
            f" {plural(result.ulps, 'ulp')}, {where}"
        )
        lines = sentence(said, width, lead=verifier)
    else:
        said = f"{count} differ: {where}" if where else "the results differ"
        lines = sentence(said, width, lead=f"✗ {verifier}")
    return lines + sentences((result.note, verdict.ran.note), width, 2, style="dim")


def short_verdict(verdict: Verdict, mesh: Mesh, width: int, most: int) -> list[Text]:
    """The same in up to `most` lines, the verdict first: as much as they have room for."""
    result = verdict.verification
    jax, devices = _asked(verdict, mesh)
    verifiers = (f"{jax} on {devices}", jax)
    count = _count(verdict)
    if result.verdict == "equal":
        said = [f"{_every_value_equal(verdict)}: {verifier}" for verifier in verifiers]
    elif result.verdict == "rounding":
        by = f"by rounding, at most {plural(result.ulps, 'ulp')}"
        said = [f"{count} differ {by}, as another order of the additions gives: {verifiers[0]}"]
        said += [f"{count} differ {by}: {verifier}" for verifier in verifiers]
    else:
        where = _first_difference(verdict, mesh, "there")
        said = [f"{count} differ from {jax}" + f", {where}" * bool(where), f"{count} differ from {jax}"]
    ways = [sentence(words, width, lead="✓ " if verdict.agrees else "✗ ") for words in said]
    return next((way for way in ways if len(way) <= most), ways[-1][:most])


def _every_value_equal(verdict: Verdict) -> str:
    return "every value equal" + _smaller(verdict)


def _count(verdict: Verdict) -> str:
    result = verdict.verification
    return f"{result.differing:,} of {plural(result.values, 'value')}{_smaller(verdict)}"


def _smaller(verdict: Verdict) -> str:
    """A note that JAX did not run the array that was asked for."""
    return f" of a smaller array, {plural(verdict.smaller, 'element')} in all" if verdict.smaller else ""


def _asked(verdict: Verdict, mesh: Mesh) -> tuple[str, str]:
    """``JAX 0.10.2`` and ``4 simulated CPU devices``."""
    ran = verdict.ran
    kind = "simulated CPU device" if ran.target == "cpu" else f"{ran.target} device"
    return f"JAX {dict(ran.versions).get('jax', '')}".strip(), plural(mesh.size, kind)


def _first_difference(verdict: Verdict, mesh: Mesh, there: str) -> str:
    """``on device 3 at [1] 3 here, 4 there``; "" where it is not known."""
    result = verdict.verification
    if result.device is None:
        return ""
    index = ", ".join(map(str, result.index))
    device = mesh.device_id(result.device)
    return f"on device {device} at [{index}] {result.ours} here, {result.theirs} {there}"
