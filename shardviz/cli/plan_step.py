"""`shardviz explain --step`: one collective of a plan, value by value."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardviz.cli.presenting import Manner
    from shardviz.planner import Problem


def step_of_plan(
    question: Callable[[], Problem],
    number: int,
    algorithm: str | None,
    latency: str | None,
    bandwidth: str | None,
    target: str | None,
    timeout: float,
    manner: Manner,
) -> int:
    """Step through one collective of the plan; JAX verifies it on the devices among the targets, if any."""
    from shardviz.cli.judge import Judge
    from shardviz.cli.presenting import present
    from shardviz.compiler import parse_targets

    asked, targets = None, () if target is None else parse_targets(target)
    if target is not None:
        names = [each.name for each in targets]
        asked = next((name for name in ("real", "cpu") if name in names), "none")
    manner.check(asked, "--target")
    with Judge.begin("none" if manner.compare else asked, timeout, "--target") as judge:
        from rich.text import Text

        from shardviz.hardware.chips import Gpu
        from shardviz.hardware.links import links_from_text
        from shardviz.planner import plan
        from shardviz.render.plans.plan_view import step_lines
        from shardviz.stepping.collective_run import linked_chip
        from shardviz.stepping.plan_step import question_of_step

        planned = plan(question())
        stepped = question_of_step(planned, number, algorithm)
        heading = []
        if not manner.as_json:
            page = manner.page
            heading = [*step_lines(planned, number, page.width, page.palette), Text()]
        chip = linked_chip(targets, planned.problem.mesh)
        kind = "switch" if isinstance(chip, Gpu) else None
        links = links_from_text(stepped.schedule.pattern.dims, kind, latency, bandwidth, chip)
        return present(stepped, links, judge, manner, heading)
