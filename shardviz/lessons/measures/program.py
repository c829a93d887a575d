"""Programs that ship compiled, and a profile that ships: seconds, bytes, the mesh axes of groups, and what
waited for whom."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from shardviz.lazy_names import LazyImports
from shardviz.lessons.measures.answers import BYTES, NAMES, NUMBER, SECONDS, ComputedAnswer, check
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


def compiled(resolved: ResolvedProblem, program: str, figure: str) -> ComputedAnswer:
    """A time of a compiled program on the problem's machine: in all; of its sending, hidden or not; and of
    that for which the device waits."""
    timeline = compiled_timeline(program, resolved.machine, resolved.problem.mesh)
    links = {lane.name for lane in timeline.lanes if lane.kind in ("axis", "network")}
    sending = math.fsum(taken for name, taken in timeline.communication_seconds if name in links)
    exposed = math.fsum(waited for name, waited in timeline.exposed_seconds if name in links)
    found = {"total": timeline.seconds, "sending": sending, "exposed": exposed}
    check(figure, found, "a program has no figure {}")
    return SECONDS.answer(Fraction(found[figure]))


@cache
def compiled_timeline(program: str, machine: Machine, mesh: Mesh) -> ProgramTimeline:
    """The timeline of a program that ships. Raises `QuestionError` for a mesh or machine of another size."""
    return of_program.timed_program(_text(program), machine, mesh=mesh)[1]


def _text(program: str) -> str:
    check(program, sorted(file.stem for file in EXAMPLES.glob("*.txt")), "there is no program {}")
    return (EXAMPLES / f"{program}.txt").read_text(encoding="utf-8")


def carried(resolved: ResolvedProblem, program: str, kind: str) -> ComputedAnswer:
    """Bytes that a device sends in a compiled program, in all runs of the collectives of an HLO name."""
    found = hlo.read_hlo(_text(program), resolved.problem.mesh).collectives
    return BYTES.answer(sum((each.count or 0) * each.wire_bytes for each in found if each.op == kind))


def along(resolved: ResolvedProblem, groups: str) -> ComputedAnswer:
    """The mesh axes along which HLO's ``replica_groups`` lie."""
    mesh = resolved.problem.mesh
    found = replica_groups.group_axes(group_text.parse_replica_groups(groups, mesh.size), mesh)
    return NAMES.answer(frozenset(found))


def ran(resolved: ResolvedProblem, name: str, figure: str, collective: str) -> ComputedAnswer:
    """Of a collective in a profile that ships with its program's text: the device that others waited for
    longest (``last``), or the longest time from the last arrival to the last end (``longest``)."""
    check(figure, ("last", "longest"), "a collective in a profile has no figure {}")
    found = _profile(name, resolved.problem.mesh)
    timings = {timing.name: timing for timing in found.collectives}
    check(collective, timings, "no {} ran")
    if figure == "longest":
        return SECONDS.answer(Fraction(timings[collective].most))
    worst = next(each for each in found.stragglers if each.collective == collective)
    return NUMBER.answer(int(worst.device.rpartition(" ")[2]))


@cache
def _profile(name: str, mesh: Mesh) -> Profile:
    files = trace_files.read_trace(f"{name}.xplane.pb")
    return profile.profile_of(files, {}, hlo=_text(name), mesh=mesh)
