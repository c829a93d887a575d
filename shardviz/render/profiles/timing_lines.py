"""Collectives as they ran, beside what was predicted, and the devices for which others waited."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.text import Text

from shardviz.errors import plural
from shardviz.profiles.collective_timing import CollectiveTiming
from shardviz.profiles.profile import Profile
from shardviz.render.caption import axes_text
from shardviz.render.lines import columns, records, sentence
from shardviz.render.palette import Palette
from shardviz.render.sanitize import printable
from shardviz.render.times.report import percent
from shardviz.units import estimated_seconds, human_bytes, measured_rate

MOST = 20
"""Collectives that are listed; --json has all."""
MOST_STRAGGLERS = 5
_FILE = re.compile(r".*/([^/]+:\d+)")
_GIVING_WAY = ("least to most", "source", "algbw", "runs", "bytes")
"""Columns that narrower pages are without, the first ones first."""
_LEFT = frozenset(("collective", "axes", "source"))


def timing_lines(profile: Profile, width: int, palette: Palette) -> list[Text]:
    """A row a collective, those first for which devices wait longest."""
    shown = profile.collectives[:MOST]
    if not shown:
        return []
    rows = [_cells(each, profile, palette) for each in shown]
    names = [name for name in rows[0] if any(row[name] for row in rows)]
    for count in range(len(_GIVING_WAY) + 1):
        kept = [name for name in names if name not in _GIVING_WAY[:count]]
        cells = [[Text(name, "bold") for name in kept], *([row[name] for name in kept] for row in rows)]
        right = frozenset(place for place, name in enumerate(kept) if name not in _LEFT)
        found = columns(cells, width, 2, right)
        if found is not None:
            break
    else:
        found = records(
            [[_labelled(name, row[name]) for name in names if row[name]] for row in rows], width, 2
        )
    rest = len(profile.collectives) - len(shown)
    return [*found, *[Text(f"  and {plural(rest, 'collective')}, which --json lists", "dim")] * (rest > 0)]


def _labelled(name: str, cell: Text) -> Text:
    return cell if name in _LEFT else Text.assemble(cell, (f" {name}", "dim"))


def _cells(each: CollectiveTiming, profile: Profile, palette: Palette) -> dict[str, Text]:
    """The cells of a row by their columns; empty ones where it is not known."""
    collective, mesh = each.collective, profile.mesh
    name = printable(each.name)
    # The steps are those of the profile's main program: of another one its name is told.
    other = f" in {printable(each.module)}" if each.module not in ("", profile.program) else ""
    label = name if each.op in name else f"{each.op} {name}"
    axes = Text() if mesh is None or not each.axes else axes_text(each.axes, mesh, palette)
    predicted = Text()
    if each.predicted is not None:
        times = each.seconds / each.predicted if each.predicted else 0.0
        ratio = f" × {times:,.0f}" if times >= 9.5 else f" × {times:.2g}" if times else ""
        predicted = Text.assemble(estimated_seconds(each.predicted), (ratio, "dim"))
    source = "" if collective is None else _FILE.sub(r"\1", collective.source)
    return {
        "collective": Text.assemble((label, "bold"), (other, "dim")),
        "axes": axes,
        "bytes": Text("" if collective is None else human_bytes(collective.bytes)),
        "runs": _runs(each),
        "time": Text(estimated_seconds(each.seconds), "bold"),
        "least to most": Text(f"{estimated_seconds(each.least)} to {estimated_seconds(each.most)}"),
        "algbw": Text(measured_rate(each.algbw) if each.algbw else ""),
        "busbw": Text(measured_rate(each.busbw) if each.busbw else ""),
        "predicted": predicted,
        "waited": Text("?", "bold") if each.waited is None else Text(estimated_seconds(each.waited)),
        "exposed": Text(estimated_seconds(each.exposed)),
        "source": Text(printable(source), "dim"),
    }


def _runs(each: CollectiveTiming) -> Text:
    """The runs of a group, and how many groups there are; of groups that ran unequally often all runs."""
    if each.groups == 1 or each.runs % each.groups:
        return Text(f"{each.runs:,}")
    return Text.assemble(f"{each.runs // each.groups:,}", (f" × {each.groups:,}", "dim"))


def straggler_lines(profile: Profile, width: int) -> list[Text]:
    """The devices for which others waited, and where; the worst first."""
    lines = []
    for each in profile.stragglers[:MOST_STRAGGLERS]:
        share = percent(each.times / each.runs)
        words = (
            f"was the last in {each.times:,} of {plural(each.runs, 'run')} ({share}) of "
            f"{printable(each.collective)}; others waited {estimated_seconds(each.seconds)} in all"
        )
        lines += sentence(words, width, 2, f"{printable(each.device)} ")
    return lines


def wait_words(timings: Sequence[CollectiveTiming]) -> str:
    """The meaning of the columns, in a sentence."""
    words = "time is from the last device's arrival to the last one's end; waited is the time before"
    if any(each.waited is None for each in timings):
        words += (
            "; ? where devices of a group are not in the profile, or not known: then time includes the wait "
            "for them"
        )
    elif any(each.waited for each in timings):
        words += ", for the last to arrive"
    has_groups = any(each.groups > 1 for each in timings)
    return f"runs × groups of devices; {words}" if has_groups else words
