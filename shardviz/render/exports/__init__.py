"""Exports of a `Subject`: one file each, which needs nothing of shardviz to run or to be opened."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shardviz.codegen.code_literals import spec_code
from shardviz.planner.plan import Plan
from shardviz.lazy_names import LazyImports
from shardviz.planner.problem import Problem
from shardviz.reports.trials import TrialTable
from shardviz.sharding import Layout

with LazyImports():
    from shardviz.planner.pricing import costs

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.pricing.costs import Sweep
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.targets import Target
    from shardviz.timeline.program_timeline import ProgramTimeline


@dataclass(frozen=True)
class Subject:
    """The subject of an export in any format: a `Problem`, a `Plan`, a `CollectiveRun`, a `Layout`; timelines
    for pictures below one another, a `Sweep` or a `TrialTable`, which have no program; or a JAX program's
    text, which has no picture. `title` is a line for a heading, `command` shows the same, `target` is the one
    whose program of a problem is exported (None: simulated devices), `placed` prices a problem or a plan."""

    shown: Problem | Plan | CollectiveRun | Layout | tuple[ProgramTimeline, ...] | Sweep | TrialTable | str
    title: str
    command: str = ""
    target: Target | None = None
    placed: PlacedMesh | None = None

    @property
    def run(self) -> CollectiveRun | None:
        """The collective, if it is one; its class need not be loaded for the others."""
        without = (Problem, Plan, Layout, tuple, costs.Sweep, TrialTable, str)
        return None if isinstance(self.shown, without) else self.shown


def template(name: str) -> str:
    """A file beside this one: what a page or a picture has around its lines, its styles, or its script."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def times_of(*timelines: ProgramTimeline) -> Subject:
    """The subject of timelines below one another, under the name of the first."""
    return Subject(timelines, f"{timelines[0].title} on {timelines[0].machine}")


def subject_of(resolved: ResolvedProblem, screen: str, title: str = "") -> Subject:
    """The subject of a screen: its collective, else the plan or the problem; `title` goes before its own."""
    shown: Problem | Plan | CollectiveRun = resolved.plan if screen == "plan" else resolved.problem
    if resolved.collective is not None:
        from shardviz.stepping.collective_run import run_on

        shown = run_on(resolved.collective, resolved.placed)
    named = f"{title}. {title_of(shown)}" if title else title_of(shown)
    return Subject(shown, named, placed=resolved.placed)


def title_of(shown: Problem | Plan | CollectiveRun | Layout) -> str:
    """One line that says what is shown: ``bd,df->bf on the mesh X=2,Y=4``."""
    if isinstance(shown, Plan):
        return f"The plan of {title_of(shown.problem)}"
    if isinstance(shown, Problem):
        return f"{shown.text} on the mesh {shown.mesh}"
    if isinstance(shown, Layout):
        shape = "×".join(map(str, shown.array.shape)) or "One number"
        return f"{shape}, sharded {spec_code(shown.spec)} on the mesh {shown.mesh}"
    operation = shown.operation
    over = ", ".join(operation.axes)
    return f"{operation.name} over {over} on the mesh {shown.mesh}, by {shown.schedule.algorithm}"
