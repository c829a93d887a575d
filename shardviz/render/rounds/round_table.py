"""The rounds of a large collective in a table: which rounds, who sends what to whom, bytes, time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.text import Text

from shardviz.errors import QuestionError, plural
from shardviz.render.lines import columns, sentence
from shardviz.render.rounds.cost_lines import duration
from shardviz.render.rounds.sends_line import sends_line
from shardviz.render.units import human_bytes
from shardviz.stepping.collective_run import CollectiveRun

MAX_ROWS = 12
LOOKED_AT = 64
"""Rounds of a phase that are looked at one by one, where they are not alike…"""
LOOKED_AT_SENDS = 2**20
"""…and what they send together."""
HEADINGS = ("", "rounds", "who sends what to whom", "a device", "a round")


def round_table(walk: CollectiveRun, width: int) -> list[Text]:
    """One line for consecutive rounds that read alike; the first and last ones of many.

    Raises `QuestionError` for more rounds, or larger ones, than can be added up.
    """
    if walk.timeline.too_long:
        raise QuestionError(
            f"{walk.schedule.algorithm} on {plural(walk.mesh.size, 'device')}: {walk.timeline.too_long}",
            "take a smaller mesh, fewer axes with --axis, or --round N for one round",
        )
    rows = [[Text(heading, "bold") for heading in HEADINGS]]
    found = [(key, [*run]) for key, run in groupby(_rounds(walk), key=lambda each: each[1:])]
    shown = found if len(found) <= MAX_ROWS else [*found[: MAX_ROWS - 2], found[-1]]
    for (phase, words, sent, time), run in shown:
        first, last = run[0][0][0], run[-1][0][1]
        numbers = f"{first:,}" if first == last else f"{first:,}–{last:,}"
        rows.append([Text(phase, "bold"), Text(numbers), Text(words), Text(sent), Text(time, "dim")])
    lines = columns(rows, width, right=frozenset({3, 4}))
    if lines is None:
        lines = []
        for name, which, *rest in ([cell.plain for cell in row] for row in rows[1:]):
            said = "{}: {}, {} a device, {} a round".format(name, *rest)
            lines += sentence(said, width, lead=f"round{'s' if '–' in which else ''} {which}  ")
    left_out = sum(run[-1][0][1] - run[0][0][0] + 1 for _, run in found[MAX_ROWS - 2 : -1])
    if len(found) > MAX_ROWS:
        lines += sentence(f"{plural(left_out, 'round')} before the last not shown", width, style="dim")
    return lines


def _rounds(walk: CollectiveRun) -> Iterator[tuple[tuple[int, int], str, str, str, str]]:
    """(first and last number, phase, words, bytes, time) of rounds.

    Rounds that are alike are looked at once; of many that are not, the first ones and the last.
    """
    schedule, timeline = walk.schedule, walk.timeline
    first = 1
    for phase in schedule.phases:
        last = first + phase.rounds - 1
        spans = [(first, last)] if phase.alike else [(number, number) for number in range(first, last + 1)]
        most = LOOKED_AT_SENDS // max(1, len(phase.sends(phase.rounds // 2)))
        most = max(3, min(LOOKED_AT, most))
        if len(spans) > most:
            spans = [*spans[: most - 2], (first + most - 2, last - 1), (last, last)]
        name = walk.phase_name(phase)
        for start, stop in spans:
            if stop > start and not phase.alike:
                yield (start, stop), name, "…", "", ""
                continue
            load = timeline[start - 1]
            words = sends_line(phase.sends(start - first), schedule.pattern, walk.operation.axes)
            sent, time = human_bytes(load.device_bytes), duration(load.seconds, load.waiting)
            yield (start, stop), name, words, sent, time
        first = last + 1
