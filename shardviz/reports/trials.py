"""Variants that are compiled, with time and memory: of a user's function, by values, and rows of a search."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf, prod
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports

with LazyImports():  # no other trial needs them
    from shardviz.planner.search import mesh_ranking
    from shardviz.reports import program_report

if TYPE_CHECKING:
    from shardviz.planner.problem import Problem
    from shardviz.planner.search.mesh_choices import MeshSharding
    from shardviz.planner.search.question import SearchQuestion
    from shardviz.reports.program_report import TargetProgram, TimesAnswer
    from shardviz.reports.target_result import TargetResult

MOST = 64
"""Combinations of one question: each may compile for minutes."""
OPTION, LIBTPU = "option=", "libtpu"
"""Before the name of a compiler's option, and the name of installations of libtpu."""
Combination = Mapping[str, str]
"""For each name that is tried a value, as typed."""


def parse_try(text: str) -> tuple[str, list[str]]:
    """The name and the values of ``batch=8,16``, ``option=xla_flag=true,false`` or ``libtpu=PATH,PATH``.
    Commas in brackets or quotes divide nothing. Raises `QuestionError` for anything else."""
    kind = OPTION * text.startswith(OPTION)
    name, _, listed = text.removeprefix(kind).removeprefix("--").partition("=")
    pieces, depth = [""], 0
    for part in re.findall(r"""'[^']*'|"[^"]*"|.""", listed):
        depth += (part in "([{") - (part in ")]}")
        pieces += [""] if part == "," and depth <= 0 else [pieces.pop() + part]
    values = dict.fromkeys(filter(None, map(str.strip, pieces)))
    if not values or not name.isidentifier():
        hint = "write --try batch=8,16 for a parameter of the function, or --try option=xla_flag=true,false"
        raise QuestionError(f"{quote(text)} is not a name with values to try", hint)
    return kind + name, [*values]


def combinations(tries: Sequence[str]) -> list[Combination]:
    """Every combination. Raises `QuestionError` for a name that is tried twice, and for more than `MOST`."""
    names, values = zip(*map(parse_try, tries), strict=True)
    if twice := [name for name in names if names.count(name) > 1]:
        raise QuestionError(
            f"--try names {twice[0]} twice", f"write --try {twice[0]}=… once, with all values"
        )
    if (count := prod(map(len, values))) > MOST:
        raise QuestionError(f"these are {count:,} combinations; at most {MOST} are tried", "try fewer values")
    return [dict(zip(names, combination, strict=True)) for combination in product(*values)]


def options_of(combination: Combination) -> dict[str, str]:
    return {name.removeprefix(OPTION): text for name, text in combination.items() if name.startswith(OPTION)}


def keywords_of(combination: Combination) -> dict[str, Any]:
    """The values that the function is called with: Python's literals, other words as text."""

    def literal(text: str) -> Any:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            return text

    own = (name for name in combination if name != LIBTPU and not name.startswith(OPTION))
    return {name: literal(combination[name]) for name in own}


@dataclass(frozen=True)
class Trial:
    """A target's `answer` to one combination of `values`, without its text: the `seconds` of a run, and
    `exposed_seconds` of it in which a device waits, or in `untimed` why there are none. Where a batch is
    tried, `sample_seconds` are those of one of it. With `is_best` none that is as fast takes less memory."""

    values: Combination
    answer: TargetResult
    bytes_sent: int | None = None
    seconds: float | None = None
    exposed_seconds: float | None = None
    sample_seconds: float | None = None
    untimed: str = ""
    is_best: bool = False


@dataclass(frozen=True)
class TrialTable:
    """The `trials` of a function, by its `name`, for a target, ranked."""

    name: str
    target: str
    trials: tuple[Trial, ...]


def trial_of(combination: Combination, program: TargetProgram, times: TimesAnswer) -> Trial:
    """A target's answer in short."""
    answer = replace(program.answer, text="")
    if times.times is None:
        why = times.error.message if times.error is not None and answer.status == "ok" else ""
        return Trial(combination, answer, program.bytes_sent, untimed=why)
    model, batch = times.times.model, keywords_of(combination).get("batch")
    exposed = sum(waits for _, waits in model.exposed_seconds)
    by_sample = model.seconds / batch if isinstance(batch, int) and batch > 0 else None
    return Trial(combination, answer, program.bytes_sent, model.seconds, exposed, by_sample)


def ranked(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    """The trials by time, then by memory, those without a program last; the best of them are marked."""

    def figures(one: Trial) -> tuple[bool, float, float]:
        cost = one.seconds if one.sample_seconds is None else one.sample_seconds
        memory = one.answer.memory
        return one.answer.status != "ok", cost or inf, inf if memory is None else memory.peak_bytes

    best, marked = (False, inf, inf), []
    for one in sorted(trials, key=figures):
        own = figures(one)
        best = own if own[1] < inf and own[2] < best[2] else best
        marked.append(replace(one, is_best=own == best and own[1] < inf))
    return tuple(marked)


@dataclass(frozen=True)
class CompiledSharding:
    """A row of a search, and the seconds of a step that the compiler made of it: in all, of compute, and of
    what waits; without a program, the `error`. `memory_bytes` is the compiler's peak of one layer."""

    found: MeshSharding
    seconds: float | None = None
    work: float | None = None
    exposed: float | None = None
    memory_bytes: int | None = None
    error: str = ""

    @property
    def differences(self) -> tuple[tuple[str, float, float], ...]:
        """The parts of which the estimate was wrong by more than 15 % of all seconds, the largest difference
        first: name, the estimate's seconds and the compiled ones."""
        if self.seconds is None or self.work is None or self.exposed is None:
            return ()
        time = self.found.time
        parts = (("compute", time.work, self.work), ("exposed communication", time.exposed, self.exposed))
        by_size = sorted(parts, key=lambda part: -abs(part[2] - part[1]))
        return tuple(part for part in by_size if abs(part[2] - part[1]) > 0.15 * time.seconds)


def one_layer(question: SearchQuestion, sharding: MeshSharding) -> Problem:
    """The problem that is compiled for a row: one layer of the program, with the row's mesh and shardings."""
    return replace(mesh_ranking.problem_of(question, sharding), layers=1)


def compiled_sharding(
    question: SearchQuestion, sharding: MeshSharding, answer: TargetResult
) -> CompiledSharding:
    """A row with the times of the compiler's `answer` to `one_layer` of it; an answer without says why."""
    told = program_report.answer_times(answer, one_layer(question, sharding).mesh, question.machine)
    if told.times is None:
        return CompiledSharding(sharding, error=answer.error or (told.error.message if told.error else ""))
    stage, model = sharding.stage, told.times.model
    layers = question.step.layers if stage is None else stage.layers
    return CompiledSharding(
        sharding,
        model.seconds * layers * (1 if stage is None else 1 + stage.bubble),
        model.compute_seconds * layers,
        sum(seconds for _, seconds in model.exposed_seconds) * layers,
        None if model.memory is None else model.memory.peak_bytes,
    )


def by_compiled_time(rows: Sequence[CompiledSharding]) -> list[CompiledSharding]:
    """The rows by the times of the compiler's schedule; those without one last, as they were."""
    return sorted(rows, key=lambda row: (row.seconds is None, row.seconds or 0.0))
