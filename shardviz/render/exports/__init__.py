"""Exports of a `Subject`: one file each, which needs nothing of shardviz to run or to be opened.

script      a Python program that simulates the devices, or the same as a notebook for Jupyter and Colab
sections    what pictures and pages show, part by part; the rounds of a collective as frames of one page
svg         a picture
html        a page for a browser
site        lessons as static pages
lesson_notebook  a lesson as a notebook
"""

from __future__ import annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardviz.codegen.code_literals import spec_code
from shardviz.planner.plan import Plan
from shardviz.planner.problem import Problem
from shardviz.reports.trials import TrialTable
from shardviz.sharding import Layout

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.targets import Target
    from shardviz.hardware.machine import PlacedMesh
    from shardviz.planner.pricing.costs import Sweep
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.timeline.program_timeline import ProgramTimeline


@dataclass(frozen=True)
class JaxProgram:
    """A JAX program of its own, as a lesson has one."""

    code: str


@dataclass(frozen=True)
class Timelines:
    """Timelines for pictures below one another: a plan's or a program's, by each of its tellers."""

    timelines: tuple[ProgramTimeline, ...]


@dataclass(frozen=True)
class SweepChart:
    """A problem's cost over sizes."""

    sweep: Sweep


@dataclass(frozen=True)
class Subject:
    """The subject of an export in any format: ``python(subject) -> str``, ``svg(subject) -> str``, and so on.

    `shown` is a `Problem` (the question: mesh, einsums, how each array is split), a `Plan` (its steps, with
    the problem that they answer), a `CollectiveRun` (one collective, round by round), a `Layout` (one array),
    `Timelines`, a `SweepChart` or a `TrialTable`, which have no program, or a `JaxProgram`, which has no
    picture. `title` is one line of plain text for a heading, `command` the command line that shows the same.
    `target` is the one whose program of a problem is exported; None is simulated devices. `placed` is the
    mesh on the machine that prices a problem or a plan; with None they have no prices.
    """

    shown: Problem | Plan | CollectiveRun | Layout | Timelines | SweepChart | TrialTable | JaxProgram
    title: str
    command: str = ""
    target: Target | None = None
    placed: PlacedMesh | None = None

    @property
    def run(self) -> CollectiveRun | None:
        """The collective, if it is one; its class need not be loaded for the others."""
        without = Problem | Plan | Layout | Timelines | SweepChart | TrialTable | JaxProgram
        return None if isinstance(self.shown, without) else self.shown


def subject_of(resolved: ResolvedProblem, screen: str, title: str = "") -> Subject:
    """The subject of a screen: its form's own collective, else the plan on the plan's, else the problem;
    `title` goes before its own."""
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
