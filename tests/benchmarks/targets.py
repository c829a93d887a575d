"""Answers of the compilers once jax is loaded: a new question each time, so that nothing is remembered."""

from __future__ import annotations

import statistics
import time

from timing import line

from shardviz.compiler import Worker, parse_targets
from shardviz.notation import parse_mesh
from shardviz.planner import problem_from_text

BUDGETS = {"shardy": "40 ms", "cpu": "250 ms"}
QUESTIONS = 12


def report() -> None:
    mesh = parse_mesh("X=2,Y=4")
    with Worker() as worker:
        for target in parse_targets("shardy,cpu"):
            seconds = []
            for number in range(1, QUESTIONS + 1):
                problem = problem_from_text(
                    "bd,df->bf", mesh=mesh, specs="XY,Y_->X_", sizes=f"b={8 * number},d=2048,f=8192"
                )
                start = time.perf_counter()
                worker.ask(problem, target)
                seconds.append(time.perf_counter() - start)
            median = statistics.median(seconds[2:])
            line(
                f"{target.name}: a changed spec to its answer", f"{median * 1e3:.0f} ms", BUDGETS[target.name]
            )


if __name__ == "__main__":
    report()
