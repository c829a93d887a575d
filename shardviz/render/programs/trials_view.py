"""A function under combinations of values, the fastest first, and a function that JAX refuses under the
changes that it accepts: a line each."""

from __future__ import annotations

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import Cell, bar, sentence, sentences, shared, table
from shardviz.render.palette import BEST, SIGNS
from shardviz.reports.lowered_module import ShardingRefusal
from shardviz.reports.trials import OPTION, TrialTable
from shardviz.units import human_bytes, seconds

FIGURES = ("step", "per sample", "exposed", "sent per device", "memory", "")
LONG = 20
"""Columns of a name: of a longer one, such as a flag of XLA, the end tells it apart."""
FEW = 5
"""Lines of JAX's words that are shown unless all are asked for."""


def trials_view(answer: TrialTable, width: int) -> list[Text]:
    """The table, and below it the reasons why there is no program or no time."""
    trials = answer.trials
    short = [name.removeprefix(OPTION) for name in trials[0].values]
    names = [name if len(name) <= LONG else f"…{name[1 - LONG :]}" for name in short]
    memory = [one.answer.memory for one in trials if one.answer.memory is not None]
    most, last = max((one.peak_bytes for one in memory), default=0), len(names) + len(FIGURES)
    rows: list[list[Cell]] = []
    for one in trials:
        is_refused = one.answer.status != "ok"
        peak = None if one.answer.memory is None else one.answer.memory.peak_bytes
        times = (one.seconds, one.sample_seconds, one.exposed_seconds)
        rows.append([("✗", SIGNS["✗"]) if is_refused else (BEST * one.is_best, "bold"), *one.values.values()])
        rows[-1] += ["" if each is None else seconds(each) for each in times]
        rows[-1] += ["" if each is None else human_bytes(each) for each in (one.bytes_sent, peak)]
        rows[-1].append((bar(peak or 0, most, 12), SIGNS["✗"] if is_refused else ""))
    right = range(len(names) + 1, last)
    without = ([last], [last, last - 2], [last, last - 2, last - 3])
    words = f"{plural(len(trials), 'combination')} on {answer.target}"
    lines = sentence(words, width, lead=f"{answer.name}  ")
    head = [word * any(row[i] for row in rows) for i, word in enumerate(("", *names, *FIGURES))]
    lines += table(rows, width, 0, right, head, without)
    values = [
        " ".join(f"{name}={value}" for name, value in zip(short, one.values.values(), strict=True))
        for one in trials
    ]
    errors = zip(values, (one.answer.error for one in trials), strict=True)
    lines += shared(errors, width, 0, "✗ {}: ")
    by = " per sample" if any(one.sample_seconds for one in trials) else ""
    limit = f", of {human_bytes(memory[0].limit_bytes)}" if memory and memory[0].limit_bytes else ""
    notes = [f"{BEST} Pareto-optimal: nothing faster{by} uses less memory."] * any(o.is_best for o in trials)
    notes += [f"Memory is the compiler's peak per device{limit}."] * bool(memory)
    notes += [f"No times: {words}." for words in dict.fromkeys(one.untimed for one in trials) if words]
    return [*lines, *sentence(" ".join(notes), width, style="dim")]


def refusal_view(refusal: ShardingRefusal, width: int, verbose: bool) -> list[Text]:
    """The place, the types of the arrays, JAX's words, whole if `verbose`, and each change that JAX accepts:
    what the whole program with it sends and takes on a target."""
    lines = sentence(f"  {refusal.source}", width, lead=refusal.place)
    lines += sentence("  ".join(refusal.types), width, 2)
    words = sentences(refusal.words.splitlines(), width, 2)
    lines += words if verbose or len(words) <= FEW else [*words[: FEW - 1], Text("  … -v shows all", "dim")]
    if not refusal.changes:
        return [*lines, Text(), *sentence("JAX accepted no change that was tried.", width)]
    priced = [change for change in refusal.changes if change.sent_bytes is not None]
    shown = refusal.changes if verbose or not priced else priced
    timed = any(change.seconds is not None for change in shown)
    rows: list[list[Cell]] = []
    for change in shown:
        sent = "" if change.sent_bytes is None else human_bytes(change.sent_bytes)
        took = "" if change.seconds is None else seconds(change.seconds)
        peak = "" if change.peak_bytes is None else human_bytes(change.peak_bytes)
        note = f"then {change.then}" if change.then else change.note
        rows.append([sent, *[took] * timed, peak, change.code, (note, "dim")])
    hidden = len(refusal.changes) - len(shown)
    more = f" ({hidden} more lead to another refusal: -v)" * (hidden > 0)
    target = f" The whole program with each, on {refusal.target}:" * bool(priced)
    lines += [Text(), *sentence(f"JAX accepts these changes{more}.{target}", width)]
    head = [word for word in ("sent", "time", "peak", "in its place") if timed or word != "time"]
    told = [" sent", *[""] * timed, " peak", "", ""]
    return [*lines, *table(rows, width, 2, range(2 + timed), head, told=told)]
