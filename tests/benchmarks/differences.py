"""Why a target differs from the plan, counted over shardings of bd,df->bf on X=2, Y=4.

Shardy over all 1,452, with ``python tests/benchmarks/differences.py v5e:2x4`` a TPU over every 24th.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice, product

from shardviz.compare import SAME_TRAFFIC, differences
from shardviz.compiler import Worker
from shardviz.notation.mesh import parse_mesh
from shardviz.planner.planner import Planner
from shardviz.planner.problem.reading import problem_from_text
from shardviz.targets import parse_targets

SLOW = 24
"""Of the questions to a compiler that takes long, one in so many."""
SPECS = ("__", "X_", "Y_", "_X", "_Y", "XY", "YX", "(XY)_", "(YX)_", "_(XY)", "_(YX)")


def report(name: str = "shardy") -> None:
    mesh = parse_mesh("X=2,Y=4")
    planner = Planner(mesh)
    (target,) = parse_targets(name)
    questions = islice(product(SPECS, SPECS, ("?", *SPECS)), 0, None, 1 if name == "shardy" else SLOW)
    codes: Counter[str] = Counter()
    less = equal = more = alike = 0
    with Worker() as worker:
        for a, w, out in questions:
            problem = problem_from_text(
                "bd,df->bf", mesh=mesh, specs=f"{a},{w}->{out}", sizes="b=8,d=2048,f=8192"
            )
            plan, answer = planner.plan(problem), worker.ask(problem, target)
            sent = sum(one.wire_bytes for one in answer.collectives)
            less, equal, more = (
                less + (plan.wire_bytes < sent),
                equal + (plan.wire_bytes == sent),
                more + (plan.wire_bytes > sent),
            )
            found = differences(plan, answer)
            alike += all(difference.code in SAME_TRAFFIC for difference in found)
            codes.update(difference.code for difference in found)
    print(f"{name} as planned: {alike:,} of {alike and less + equal + more:,}")
    print(f"the plan sends fewer bytes in {less:,}, as many in {equal:,}, more in {more:,}")
    for code, count in codes.most_common():
        print(f"{count:6,}  {code}")


if __name__ == "__main__":
    report(*sys.argv[1:2])
