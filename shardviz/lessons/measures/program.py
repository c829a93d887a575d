"""Programs that ship compiled, and a profile that ships: seconds, bytes, the mesh axes of groups, and what
waited for whom."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, quote
from shardviz.lazy_names import LazyImports
from shardviz.lessons.measures.answers import BYTES, NAMES, NUMBER, SECONDS, ComputedAnswer
from shardviz.strict_table import closest
from shardviz.user_files import EXAMPLES

with LazyImports():
    from shardviz.hlo import module as hlo
    from shardviz.hlo.groups import group_text, replica_groups
    from shardviz.profiles import profile, trace_files
    from shardviz.timeline import of_program

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.machine import Machine
    from shardviz.profiles.profile import Profile
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import ProgramTimeline

FIGURES = ("total", "sending", "exposed")
"""Times of a compiled program."""
COUNTED = ("runs", "sent")
"""Of the collectives of a kind: how often one of them runs, the bytes that a device sends in all runs."""
RAN = ("last", "waited", "longest")
"""Of a collective in a profile: the device that others waited for longest, and for how long; the longest time
from the last arrival to the last end."""


def compiled(resolved: ResolvedProblem, program: str, figure: str) -> ComputedAnswer:
    """A time of a compiled program on the problem's machine: in all; of its sending, hidden or not; and of
    that for which the device waits."""
    _check(figure, FIGURES, "program")
    timeline = compiled_timeline(program, resolved.machine, resolved.problem.mesh)
    links = {lane.name for lane in timeline.lanes if lane.kind in ("axis", "network")}
    sending = math.fsum(taken for name, taken in timeline.communication_seconds if name in links)
    exposed = math.fsum(waited for name, waited in timeline.exposed_seconds if name in links)
    found = {"total": timeline.seconds, "sending": sending, "exposed": exposed}
    return SECONDS.answer(Fraction(found[figure]))


@cache
def compiled_timeline(program: str, machine: Machine, mesh: Mesh) -> ProgramTimeline:
    """The timeline of one of `programs`. Raises `QuestionError` for a mesh or a machine of another size."""
    return of_program.timed_program(_text(program), machine, mesh=mesh)[1]


@cache
def programs() -> tuple[str, ...]:
    """The names of the programs that ship with the lessons."""
    return tuple(sorted(file.stem for file in EXAMPLES.glob("*.txt")))


def _text(program: str) -> str:
    if program not in programs():
        raise QuestionError(f"there is no program {quote(program, 30)}", closest(program, programs()))
    return (EXAMPLES / f"{program}.txt").read_text(encoding="utf-8")


def _check(figure: str, known: tuple[str, ...], of: str) -> None:
    if figure not in known:
        raise QuestionError(f"a {of} has no figure {quote(figure, 30)}", closest(figure, known))


def counted(resolved: ResolvedProblem, program: str, figure: str, kind: str) -> ComputedAnswer:
    """One of `COUNTED` of a compiled program's collectives of an HLO name: ``all-reduce``."""
    _check(figure, COUNTED, "program")
    module = hlo.read_hlo(_text(program), resolved.problem.mesh)
    found = [each for each in module.collectives if each.op == kind]
    runs = sum(each.count or 0 for each in found)
    sent = sum((each.count or 0) * each.wire_bytes for each in found)
    return NUMBER.answer(runs) if figure == "runs" else BYTES.answer(sent)


def along(resolved: ResolvedProblem, groups: str) -> ComputedAnswer:
    """The mesh axes along which HLO's ``replica_groups`` lie."""
    mesh = resolved.problem.mesh
    found = replica_groups.group_axes(group_text.parse_replica_groups(groups, mesh.size), mesh)
    return NAMES.answer(frozenset(found))


def ran(resolved: ResolvedProblem, name: str, figure: str, collective: str) -> ComputedAnswer:
    """One of `RAN` of a collective, by its name, in a profile that ships with its program's text."""
    _check(figure, RAN, "collective in a profile")
    found = _profile(name, resolved.problem.mesh)
    timings = {timing.name: timing for timing in found.collectives}
    if collective not in timings:
        raise QuestionError(f"no {quote(collective, 30)} ran", closest(collective, tuple(timings)))
    if figure == "longest":
        return SECONDS.answer(Fraction(timings[collective].most))
    worst = next(each for each in found.stragglers if each.collective == collective)
    if figure == "waited":
        return SECONDS.answer(Fraction(worst.seconds))
    return NUMBER.answer(int(worst.device.rpartition(" ")[2]))


@cache
def _profile(name: str, mesh: Mesh) -> Profile:
    files = trace_files.read_trace(f"{name}.xplane.pb")
    return profile.profile_of(files, {}, hlo=_text(name), mesh=mesh)
