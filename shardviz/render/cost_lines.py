"""What a collective costs and who agrees with its result, in sentences."""

from __future__ import annotations

from rich.text import Text

from shardviz.render.lines import sentence
from shardviz.render.units import exact_bytes, human_bytes, plural, rate, seconds
from shardviz.render.walk import Walk

OTHERS = 6
"""Algorithms to compare with in a sentence; `--compare` has all."""


def cost_lines(walk: Walk, width: int) -> list[Text]:
    """Rounds and bytes against the least possible and the other algorithms, then the time on these links."""
    schedule, timeline, bound = walk.schedule, walk.timeline, walk.bound
    sent = timeline.device_bytes
    words = (
        f"{plural(schedule.rounds, 'round')}, {exact_bytes(sent)} sent by each device;"
        f" at least {plural(bound.rounds, 'round')} and {exact_bytes(bound.wire_bytes)} are needed."
    )
    rows = [row for row in walk.rows if row.algorithm != schedule.algorithm and not row.reason]
    if rows:
        named = [
            f"{row.algorithm} {plural(row.rounds, 'round')}, {human_bytes(row.device_bytes)}"
            for row in rows[:OTHERS]
        ]
        more = f"; {len(rows) - OTHERS} more: --compare" if len(rows) > OTHERS else ""
        words += f" Others: {'; '.join(named)}{more}."
    lines = sentence(words, width, lead=f"{schedule.algorithm}: ")
    took = f"on a {walk.topology}, {link_text(walk)}"
    if timeline.waiting:
        took += f"; {plural(timeline.waiting, 'message')} must wait for a link"
    return [*lines, *sentence(took, width, lead=f"{duration(timeline.seconds, timeline.waiting)} ")]


def duration(time: float, waiting: int | None) -> str:
    """A time as `seconds`; a lower bound where nobody knows how many messages have to wait."""
    return f"{'≥ ' if waiting is None else ''}{seconds(time)}"


def link_text(walk: Walk) -> str:
    """``1 µs and 45 GB/s a link``."""
    return f"{seconds(walk.wire.latency)} and {rate(walk.wire.bandwidth)} a link"


def verdict_lines(walk: Walk, width: int) -> list[Text]:
    """What JAX says of the result; nothing where it was not asked."""
    ran, judgement = walk.ran, walk.judgement
    if ran is None:
        return []
    version = dict(ran.versions).get("jax", "")
    kind = "simulated CPU devices" if ran.target == "cpu" else f"devices ({ran.target})"
    judge = f"JAX{' ' * bool(version)}{version} on {walk.mesh.size:,} {kind}: "
    if judgement is None:
        lines = sentence(ran.error, width, lead=f"✗ {judge}")
        return lines + (sentence(ran.hint, width, 2, style="dim") if ran.hint else [])
    where = ""
    if judgement.device is not None:
        index = ", ".join(map(str, judgement.index))
        where = (
            f" on device {walk.mesh.device_id(judgement.device)} at [{index}]"
            f" {judgement.ours} here, {judgement.theirs} in JAX"
        )
    if judgement.verdict == "equal":
        lines = sentence("every value equal", width, lead=judge)
    elif judgement.verdict == "rounding":
        said = (
            f"{judgement.differing:,} of {plural(judgement.values, 'value')} differ by rounding, as another"
            f" order of the additions gives; at most {plural(judgement.ulps, 'ulp')},{where}"
        )
        lines = sentence(said, width, lead=judge)
    else:
        said = f"{judgement.differing:,} of {plural(judgement.values, 'value')} differ:{where}"
        lines = sentence(said if where else "the results differ", width, lead=f"✗ {judge}")
    for note in (judgement.note, ran.note):
        lines += sentence(note, width, 2, style="dim") if note else []
    return lines
