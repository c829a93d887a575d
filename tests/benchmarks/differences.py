"""Why Shardy differs from the plan, counted over all 1,452 shardings of bd,df->bf on X=2, Y=4."""

from __future__ import annotations

from collections import Counter
from itertools import product

from shardviz.compare import compare
from shardviz.compiler import Worker, parse_targets
from shardviz.notation import parse_mesh
from shardviz.planner import Planner, problem_from_text

SPECS = ("__", "X_", "Y_", "_X", "_Y", "XY", "YX", "(XY)_", "(YX)_", "_(XY)", "_(YX)")


def report() -> None:
    mesh = parse_mesh("X=2,Y=4")
    planner = Planner(mesh)
    (shardy,) = parse_targets("shardy")
    codes: Counter[str] = Counter()
    less = equal = more = alike = 0
    with Worker() as worker:
        for a, w, out in product(SPECS, SPECS, ("?", *SPECS)):
            problem = problem_from_text(
                "bd,df->bf", mesh=mesh, specs=f"{a},{w}->{out}", sizes="b=8,d=2048,f=8192"
            )
            plan, answer = planner.plan(problem), worker.ask(problem, shardy)
            sent = sum(one.wire_bytes for one in answer.collectives)
            less, equal, more = (
                less + (plan.wire_bytes < sent),
                equal + (plan.wire_bytes == sent),
                more + (plan.wire_bytes > sent),
            )
            differences = compare(plan, "shardy", answer.collectives, answer.result_spec)
            alike += not differences
            codes.update(difference.code for difference in differences)
    print(f"Shardy as planned: {alike:,} of {alike and less + equal + more:,}")
    print(f"the plan sends fewer bytes in {less:,}, as many in {equal:,}, more in {more:,} (by sub-axes)")
    for code, count in codes.most_common():
        print(f"{count:6,}  {code}")


if __name__ == "__main__":
    report()
