"""Answers of the compilers once jax is loaded: a new question each time, so that nothing is remembered."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

from timing import line

from shardviz.compiler import Worker
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.problem.reading import problem_from_text
from shardviz.targets import EXTRAS, parse_targets

BUDGETS = {"shardy": "40 ms", "cpu": "250 ms"}
QUESTIONS = 12
PAIRS = 12


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
        if EXTRAS["tpu"].installable:
            _report_costs(worker)


def _report_costs(worker: Worker) -> None:
    """The part of a TPU's answer that its own schedule and account of memory take, in processor time of the
    compiler: problems of another size each are asked without and with them in turn."""
    (target,) = parse_targets("v5e:2x2")
    seconds: dict[bool, list[float]] = {False: [], True: []}
    before = 0.0
    for number in range(1, 2 * PAIRS + 3):
        with_costs = number % 2 == 0
        problem = problem_from_text(
            "be,ef->bf;bf,fg->bg;bg,gh->bh;bh,hi->bi",
            mesh=parse_mesh("X=4"),
            specs=";".join(["X_,_X->X_"] * 4),
            sizes=f"b={512 * number},e=1024,f=1024,g=1024,h=1024,i=1024",
        )
        worker.ask(problem, target, with_costs)
        now = sum(map(_processor_seconds, worker.pids()))
        seconds[with_costs].append(now - before)
        before = now
    without, with_them = (statistics.median(seconds[each][1:]) for each in (False, True))
    line(
        f"{target.name}: its schedule and memory", f"{with_them / without - 1:+.0%} of {without:.2f} s", "15%"
    )


def _processor_seconds(pid: int) -> float:
    """The processor time of a process so far, all its threads together (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    report()
