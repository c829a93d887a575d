"""The cost of a collective in sentences, and in a table beside all other algorithms."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from shardviz.collectives.pattern import LowerBound
from shardviz.errors import plural
from shardviz.hardware.comparisons import NotCompared, fastest, is_cut
from shardviz.hardware.timelines import Timeline
from shardviz.render.lines import fitting_columns, records, sentence, shared
from shardviz.render.palette import BEST, Palette
from shardviz.render.rounds.step_notes import headline
from shardviz.stepping.collective_run import CollectiveRun
from shardviz.units import exact_bytes, human_bytes, rate, seconds

MAX_GROUP = 4096
"""Members of a group beyond which only `--compare` looks at the other algorithms."""
OTHERS = 6
"""Algorithms to compare with in a sentence; `--compare` has all."""
HEADINGS = ("", "algorithm", "rounds", "sent", "× least", "busiest link", "waiting", "time")
RIGHT = frozenset({2, 3, 4, 5, 6, 7})
LEFT_OUT = ((4, 5), (4, 5, 6), (2, 4, 5, 6), (2, 3, 4, 5, 6))
"""The columns that a table does without, where there is less and less room."""
MAX_LINE = 1000
"""Columns of a line that its reader breaks."""
CHOSEN = "▸"


def cost_lines(run: CollectiveRun, width: int) -> list[Text]:
    """Rounds and bytes against the least possible and the other algorithms, then the time on these links."""
    schedule, timeline, bound = run.schedule, run.timeline, run.bound
    if schedule.pattern.group_size == 1:
        return sentence("one device alone: nothing to send", width, lead=f"{schedule.algorithm}: ")
    cut = f" of {schedule.chunks:,} chunks" if is_cut(schedule) else ""
    words = f"{plural(schedule.rounds, 'round')}{cut}, {_sent(timeline)}. {least(bound)}."
    compared = run.rows if schedule.pattern.group_size <= MAX_GROUP else ()
    rows = [row for row in _able(compared) if row.algorithm != schedule.algorithm]
    if rows:
        named = [
            f"{row.algorithm} {plural(row.rounds, 'round')}, {human_bytes(row.device_bytes)}"
            for row in rows[:OTHERS]
        ]
        more = f"; {len(rows) - OTHERS} more: --compare" if len(rows) > OTHERS else ""
        words += f" Others: {'; '.join(named)}{more}."
    lines = sentence(words, width, lead=f"{schedule.algorithm}: ")
    took = f"on a {run.links.topology}, {link_text(run)}"
    if timeline.waiting:
        took += f"; {plural(timeline.waiting, 'message')} must wait for a link"
    if _goes_far(timeline):
        took += "; a message of several hops is passed on once it is whole (store and forward)"
    lines += sentence(took, width, lead=f"{duration(timeline.seconds, timeline.waiting)} ")
    return [*lines, *formula_lines(run, width)]


def _goes_far(timeline: Timeline) -> bool:
    """Return whether messages go over several links, by the first round of each phase."""
    first = 0
    for phase in timeline.schedule.phases:
        load = timeline[first]
        if load.hops > load.messages:
            return True
        first += phase.rounds
    return False


def formula_lines(run: CollectiveRun, width: int) -> list[Text]:
    """The time in closed form, independent of the algorithm: its bound, how it is counted, and what the book
    counts for the bytes where they take longer than the hops."""
    found = run.closed_form
    if found is None or not found.bound:
        return []
    said = f"bound by {found.bound}: {found.convention}"
    if found.textbook_seconds >= found.latency_seconds:
        said += f". The book counts {seconds(found.textbook_seconds)}"
    return sentence(said, width, lead=f"{seconds(found.seconds)} {found.words}, ")


def least(bound: LowerBound) -> str:
    """``Lower bound: 24 bytes; 2 rounds at one message per round``."""
    if not bound.rounds:
        return "Nothing has to be sent"
    return (
        f"Lower bound: {exact_bytes(bound.wire_bytes)}; {plural(bound.rounds, 'round')} at one message per "
        "round"
    )


def _sent(timeline: Timeline) -> str:
    """``24 bytes sent by each device``, or the most that one of them sends."""
    total = sum(count * int(load.bytes.sum()) for _, load, count in timeline.different_rounds())
    most = timeline.device_bytes
    everyone = total == most * timeline.topology.devices
    return (
        f"{exact_bytes(most)} sent by each device"
        if everyone
        else f"at most {exact_bytes(most)} sent by a device"
    )


def duration(time: float, waiting: int | None) -> str:
    """A time as `seconds`; a lower bound where it is unknown how many messages have to wait."""
    return f"{'≥ ' if waiting is None else ''}{seconds(time)}"


def link_text(run: CollectiveRun) -> str:
    """``1 µs and 45 GB/s a v5e link, assumed``."""
    links = run.links
    which = "" if links.machine is None else ", assumed" if links.assumed else f" of {links.machine.name}"
    return f"{seconds(links.spec.latency)} and {rate(links.spec.bandwidth)} {links.each}{which}"


def comparison_view(
    run: CollectiveRun,
    crossovers: Sequence[tuple[int, str]],
    left_out: Sequence[tuple[str, str]],
    width: int,
    palette: Palette,
) -> list[Text]:
    """The table of `run.rows` (chosen one marked), then one line on which is fastest from which payload on.
    `crossovers` are (bytes, algorithm) and `left_out` (algorithm, reason), as `shardviz.hardware` gives
    them."""
    able = _able(run.rows)
    best, starred = fastest(run.rows), _starred(run)
    rows = [_cells(run, row, row.algorithm in starred) for row in able]
    lines = fitting_columns(rows, width, 0, RIGHT, HEADINGS)
    if lines is None:
        lines = records([[*row[:2], *_named(row[2:])] for row in rows], width)
    asked = [*sentence(_question(run), width), *formula_lines(run, width)]
    lines = [*headline(run, width, palette), *asked, Text(), *lines]
    reasons = [row for row in run.rows if isinstance(row, NotCompared)]
    lines += shared(reasons, width, lead="– {}: ", style="dim")
    lines += [Text(), *_crossovers_line(run, crossovers, left_out, best, width)]
    skipped = [(name, f"not compared at other payloads, since {reason}") for name, reason in left_out]
    lines += shared(skipped, width, lead="– {}: ", style="dim")
    star = f"{BEST} fastest here, " if starred else ""
    notes = f"{star}{CHOSEN} the algorithm that step shows. {least(run.bound)}."
    cut = [f"{row.algorithm} in {row.chunks} chunks" for row in able if is_cut(row.schedule)]
    if cut:
        notes += f" Chunk count chosen for speed: {_and(cut)}."
    return [*lines, *sentence(notes, width, style="dim")]


def algorithm_lines(run: CollectiveRun, width: int) -> tuple[Text, list[Text]]:
    """The names of the columns, and a line for each algorithm that can do it: the columns for which there is
    room, the time in any case."""
    starred = _starred(run)
    rows = [_cells(run, row, row.algorithm in starred) for row in _able(run.rows)]
    lines = fitting_columns(rows, width, 0, RIGHT, HEADINGS, LEFT_OUT)
    return (Text(), [row[1] for row in rows]) if lines is None else (lines[0], lines[1:])


def _able(rows: Sequence[Timeline | NotCompared]) -> list[Timeline]:
    return [row for row in rows if isinstance(row, Timeline)]


def fastest_line(
    run: CollectiveRun, crossovers: Sequence[tuple[int, str]], left_out: Sequence[tuple[str, str]]
) -> Text:
    """``fastest: up to 1.2 KiB recursive-doubling, from there ring``; empty where that is not known."""
    lines = _crossovers_line(run, crossovers, left_out, fastest(run.rows), MAX_LINE)
    return Text(" ").join(lines)


def _starred(run: CollectiveRun) -> Sequence[str]:
    """The fastest algorithms; none where all are."""
    best = fastest(run.rows)
    return () if len(best) == len(_able(run.rows)) > 1 else best


def _question(run: CollectiveRun) -> str:
    size = run.schedule.pattern.group_size
    what = f"{exact_bytes(run.bytes)} over {plural(size, 'device')}"
    return f"{what}, on a {run.links.topology} with {link_text(run)}"


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


def _named(cells: Sequence[Text]) -> list[Text]:
    rounds, sent, ratio, busiest, waiting, time = (cell.plain for cell in cells)
    return [
        Text(plural(int(rounds.replace(",", "")), "round")),
        Text(f"{sent} sent" + (f" ({ratio}× least)" if ratio else "")),
        Text(f"{busiest} on a link"),
        *([] if waiting == "0" else [Text(f"{waiting} waiting")]),
        Text(time, cells[-1].style),
    ]


def _crossovers_line(
    run: CollectiveRun,
    crossovers: Sequence[tuple[int, str]],
    left_out: Sequence[tuple[str, str]],
    best: Sequence[str],
    width: int,
) -> list[Text]:
    """``up to 1.2 KiB recursive-doubling, from there ring``, among those that were looked at. Nothing where
    the fastest of the table, `best`, was not looked at, and where only one was."""
    skipped = {algorithm for algorithm, _ in left_out}
    if not crossovers or (best and skipped.issuperset(best)):
        return []
    looked_at = [row.algorithm for row in _able(run.rows) if row.algorithm not in skipped]
    if skipped and len(looked_at) < 2:
        return []
    among = f" among {_and(looked_at)}" if skipped else ""
    if best and len(best) == len(looked_at) > 1 and not skipped:
        return sentence("all take the same time here", width, lead="fastest: ")
    names = [algorithm for _, algorithm in crossovers]
    said = [f"up to {human_bytes(end)} {name}" for name, (end, _) in zip(names, crossovers[1:], strict=False)]
    said.append(f"from there {names[-1]}" if said else f"{names[-1]} at any payload")
    words = ", ".join(said)
    here = next((name for start, name in reversed(crossovers) if start <= run.bytes), names[0])
    ties = [name for name in best if name != here]
    if best and here not in best:
        # Chunks that are not equally large, as a payload of few elements has, are sent in other times.
        words += f"; here {_and(best)}, since chunks have whole elements"
    elif ties:
        words += f"; here as fast: {_and(ties)}"
    return sentence(words, width, lead=f"fastest{among}: ")


def _and(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
