"""Seconds of a program that a compiler has made of a lesson's problem; its text ships with the lessons."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from importlib.resources import files
from math import fsum
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lessons.measures.answers import SECONDS, ComputedAnswer
from shardviz.strict_table import closest

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.machine import Machine
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import ProgramTimeline

FIGURES = ("total", "sending", "exposed")


def compiled(resolved: ResolvedProblem, program: str, figure: str) -> ComputedAnswer:
    """A time of a compiled program on the problem's machine: in all; of its sending, hidden or not; and of
    that for which the device waits."""
    if program not in programs():
        raise QuestionError(f"there is no program {quote(program, 30)}", closest(program, programs()))
    if figure not in FIGURES:
        raise QuestionError(f"a program has no figure {quote(figure, 30)}", closest(figure, FIGURES))
    timeline = compiled_timeline(program, resolved.machine, resolved.problem.mesh)
    links = {lane.name for lane in timeline.lanes if lane.kind in ("axis", "network")}
    sending = fsum(taken for name, taken in timeline.communication_seconds if name in links)
    exposed = fsum(waited for name, waited in timeline.exposed_seconds if name in links)
    found = {"total": timeline.seconds, "sending": sending, "exposed": exposed}
    return SECONDS.answer(Fraction(found[figure]))


@cache
def compiled_timeline(program: str, machine: Machine, mesh: Mesh) -> ProgramTimeline:
    """The timeline of one of `programs`. Raises `QuestionError` for a mesh or a machine of another size."""
    from shardviz.timeline.of_program import program_timeline

    text = (files("shardviz.lessons") / "compiled" / f"{program}.txt").read_text(encoding="utf-8")
    return program_timeline(text, machine, mesh=mesh)


@cache
def programs() -> tuple[str, ...]:
    """The names of the programs that ship with the lessons."""
    folder = files("shardviz.lessons") / "compiled"
    return tuple(sorted(each.name.removesuffix(".txt") for each in folder.iterdir()))
