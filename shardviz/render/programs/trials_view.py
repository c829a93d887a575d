"""A function under combinations of values: a line each, the fastest first."""

from __future__ import annotations

from rich.text import Text

from shardviz.errors import plural
from shardviz.render.lines import Cell, bar, sentence, shared, table
from shardviz.render.palette import BEST, SIGNS
from shardviz.reports.trials import OPTION, Trial, TrialTable
from shardviz.units import human_bytes, seconds

FIGURES = ("step", "per sample", "exposed", "sent per device", "memory", "")
LONG = 20
"""Columns of a name: of a longer one, such as a flag of XLA, the end tells it apart."""


def trials_view(answer: TrialTable, width: int) -> list[Text]:
    """The table, and below it the reasons why there is no program or no time."""
    trials = answer.trials
    names = [name.removeprefix(OPTION) for name in trials[0].values]
    names = [name if len(name) <= LONG else f"…{name[1 - LONG :]}" for name in names]
    memory = [one.answer.memory for one in trials if one.answer.memory is not None]
    most, last = max((one.peak_bytes for one in memory), default=0), len(names) + len(FIGURES)
    rows, right = [_cells(one, most) for one in trials], range(len(names) + 1, last)
    without = ([last], [last, last - 2], [last, last - 2, last - 3])
    words = f"{plural(len(trials), 'combination')} on {answer.target}"
    lines = sentence(words, width, lead=f"{answer.name}  ")
    head = [word * any(row[i] for row in rows) for i, word in enumerate(("", *names, *FIGURES))]
    lines += table(rows, width, 0, right, head, without)
    lines += shared(((_name(one), one.answer.error) for one in trials), width, 0, "✗ {}: ")
    by = " per sample" if any(one.sample_seconds for one in trials) else ""
    limit = f", of {human_bytes(memory[0].limit_bytes)}" if memory and memory[0].limit_bytes else ""
    notes = [f"{BEST} Pareto-optimal: nothing faster{by} uses less memory."] * any(o.is_best for o in trials)
    notes += [f"Memory is the compiler's peak per device{limit}."] * bool(memory)
    notes += [f"No times: {words}." for words in dict.fromkeys(one.untimed for one in trials) if words]
    return [*lines, *sentence(" ".join(notes), width, style="dim")]


def _name(trial: Trial) -> str:
    return " ".join(f"{name.removeprefix(OPTION)}={value}" for name, value in trial.values.items())


def _cells(trial: Trial, most: int) -> list[Cell]:
    memory, is_refused = trial.answer.memory, trial.answer.status != "ok"
    peak = None if memory is None else memory.peak_bytes
    times = (trial.seconds, trial.sample_seconds, trial.exposed_seconds)
    return [
        ("✗", SIGNS["✗"]) if is_refused else (BEST * trial.is_best, "bold"),
        *trial.values.values(),
        *("" if each is None else seconds(each) for each in times),
        *("" if each is None else human_bytes(each) for each in (trial.bytes_sent, peak)),
        (bar(peak or 0, most, 12), SIGNS["✗"] if is_refused else ""),
    ]
