"""Rows of a search as the machine's compiler makes them: the time of its schedule beside the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from shardviz.planner.search.mesh_ranking import MeshSharding, problem_of
from shardviz.reports.program_report import answer_times

if TYPE_CHECKING:
    from shardviz.planner.problem import Problem
    from shardviz.planner.search.question import SearchQuestion
    from shardviz.reports.target_result import TargetResult

ALIKE = 0.15
"""Figures that are as close as this, in parts of the estimate, are told alike."""


@dataclass(frozen=True)
class CompiledSharding:
    """A row of a search, and the times of the program that the compiler made of it (seconds of a step, each
    operation by the compiler's cycles and the links): in all, of compute, and of what waits. Where there is
    no program, `error` says why. `memory_bytes` is the compiler's peak of one layer, None where it is not
    known.
    """

    found: MeshSharding
    seconds: float | None = None
    work: float | None = None
    exposed: float | None = None
    memory_bytes: int | None = None
    error: str = ""

    @property
    def differences(self) -> tuple[tuple[str, float, float], ...]:
        """Where the estimate was wrong: name, the estimate's and the compiled seconds of each part that is
        not alike, the largest difference first."""
        if self.seconds is None or self.work is None or self.exposed is None:
            return ()
        time = self.found.time
        parts = (("compute", time.work, self.work), ("exposed communication", time.exposed, self.exposed))
        by_size = sorted(parts, key=lambda each: -abs(each[2] - each[1]))
        return tuple(each for each in by_size if abs(each[2] - each[1]) > ALIKE * time.seconds)


def one_layer(question: SearchQuestion, sharding: MeshSharding) -> Problem:
    """The problem that is compiled for a row: one layer of the program, with the row's mesh and shardings."""
    return replace(problem_of(question, sharding), layers=1)


def compiled_sharding(
    question: SearchQuestion, sharding: MeshSharding, answer: TargetResult
) -> CompiledSharding:
    """A row with the times of the compiler's `answer` to `one_layer` of it; an answer without says why."""
    told = answer_times(answer, one_layer(question, sharding).mesh, question.machine)
    if told.times is None:
        return CompiledSharding(sharding, error=answer.error or (told.error.message if told.error else ""))
    layers = question.step.layers
    model = told.times.model
    return CompiledSharding(
        sharding,
        model.seconds * layers,
        model.compute_seconds * layers,
        sum(seconds for _, seconds in model.exposed_seconds) * layers,
        None if model.memory is None else model.memory.peak_bytes,
    )


def by_compiled_time(rows: Sequence[CompiledSharding]) -> list[CompiledSharding]:
    """The rows by the times of the compiler's schedule; those without one last, as they were."""
    return sorted(rows, key=lambda row: (row.seconds is None, row.seconds or 0.0))
