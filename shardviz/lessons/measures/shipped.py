"""Whole models on the problem's mesh and machine; compiled programs and a profile that ship: seconds, bytes,
the mesh axes of groups, and what waited for whom."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from shardviz.errors import QuestionError
from shardviz.lazy_names import LazyImports
from shardviz.lessons.measures.answers import (
    BYTES,
    FLOPS,
    LARGE_NUMBER,
    NUMBER,
    SECONDS,
    AnswerKind,
    ComputedAnswer,
    byte_count,
    check,
    whole_number,
)
from shardviz.units import human_bytes
from shardviz.user_files import EXAMPLES

with LazyImports():
    from shardviz.hlo import module as hlo, replica_groups
    from shardviz.models import answer, rule_files, serving, sources
    from shardviz.planner.problem import training
    from shardviz.profiles import profile, trace_files
    from shardviz.timeline import of_program

if TYPE_CHECKING:
    from shardviz.forms.resolve import ResolvedProblem
    from shardviz.hardware.machine import Machine, PlacedMesh
    from shardviz.sharding import Mesh
    from shardviz.timeline.program_timeline import ProgramTimeline

Figures = dict[str, tuple[AnswerKind, Callable[[Any], object]]]

OF_STEPS: Figures = {
    "flops": (FLOPS, lambda found: found.step.flops),
    "memory": (BYTES, lambda found: byte_count(human_bytes(found.memory.training))),
}
"""Figures of a `ModelAnswer`: of a train step, on each device."""
OF_SERVING: Figures = {
    "cache": (BYTES, lambda found: found.cache_bytes),
    "token": (SECONDS, lambda found: found.decode.step.seconds),
    "rate": (NUMBER, lambda found: round(found.decode.tokens_per_s_per_device)),
    "critical": (NUMBER, lambda found: round(found.critical_batch)),
    "largest": (NUMBER, lambda found: found.largest_batch),
}
"""Figures of a `ServingAnswer`."""
STEP = ("rules", "dtype", "batch", "sequence", "remat", "optimizer")
SERVING = ("rules", "dtype", "batch", "sequence", "cache", "activations")


def model(resolved: ResolvedProblem, name: str, figure: str, *options: str) -> ComputedAnswer:
    """A figure of a model as `shardviz model` has it, with its options: ``batch=32``."""
    if figure == "parameters":
        return LARGE_NUMBER.answer(sources.built_in_model(name).elements)
    check(figure, ("parameters", *OF_STEPS, *OF_SERVING), "a model has no figure {}")
    known, allowed = (OF_SERVING, SERVING) if figure in OF_SERVING else (OF_STEPS, STEP)
    given = tuple(option.partition("=")[::2] for option in options)
    for key, _ in given:
        check(key, allowed, f"{figure} takes no option {{}}")
    kind, of = known[figure]
    value = of(_answered(name, known is OF_SERVING, given, resolved.placed))
    if value is None:
        raise QuestionError(f"{figure} is not known on this machine", "take another machine")
    return kind.answer(Fraction(value) if isinstance(value, float) else value)


@lru_cache(maxsize=32)  # a goal asks for several figures of one answer
def _answered(name: str, is_served: bool, given: tuple[tuple[str, str], ...], placed: PlacedMesh) -> Any:
    asked: dict[str, Any] = dict(given)
    asked |= {key: whole_number(asked[key]) for key in ("batch", "sequence") if key in asked}
    mesh = placed.mesh
    rules = rule_files.named_rules(asked.pop("rules", "fsdp"), mesh)
    of = sources.built_in_model(name)
    if is_served:
        return serving.serving_answer(of, rules, placed, mesh, **asked)
    remat, optimizer = asked.pop("remat", "layer"), asked.pop("optimizer", "adam")
    update = training.parse_training(True, remat, optimizer, mesh)
    return answer.answered(answer.model_question(of, rules, placed, mesh, training=update, **asked))


def compiled(resolved: ResolvedProblem, program: str, figure: str) -> float:
    """A time of a compiled program: in all, of its sending, hidden or not, and of what a device waits."""
    timeline = compiled_timeline(program, resolved.machine, resolved.problem.mesh)
    links = {lane.name for lane in timeline.lanes if lane.kind in ("axis", "network")}
    sending = math.fsum(taken for name, taken in timeline.communication_seconds if name in links)
    exposed = math.fsum(waited for name, waited in timeline.exposed_seconds if name in links)
    times = {"total": timeline.seconds, "sending": sending, "exposed": exposed}
    check(figure, times, "a program has no figure {}")
    return times[figure]


@cache
def compiled_timeline(program: str, machine: Machine, mesh: Mesh) -> ProgramTimeline:
    """The timeline of a program that ships. Raises `QuestionError` for a mesh or machine of another size."""
    return of_program.timed_program(_text(program), machine, mesh=mesh)[1]


def _text(program: str) -> str:
    check(program, sorted(file.stem for file in EXAMPLES.glob("*.txt")), "there is no program {}")
    return (EXAMPLES / f"{program}.txt").read_text(encoding="utf-8")


def carried(resolved: ResolvedProblem, program: str, kind: str) -> int:
    """Bytes that a device sends in a compiled program, in all runs of the collectives of an HLO name."""
    entries = hlo.read_hlo(_text(program), resolved.problem.mesh).collectives
    return sum((entry.count or 0) * entry.wire_bytes for entry in entries if entry.op == kind)


def along(resolved: ResolvedProblem, groups: str) -> frozenset[str]:
    """The mesh axes along which HLO's ``replica_groups`` lie."""
    mesh = resolved.problem.mesh
    axes = replica_groups.group_axes(replica_groups.parse_replica_groups(groups, mesh.size), mesh)
    return frozenset(axes)


def ran(resolved: ResolvedProblem, name: str, figure: str, collective: str) -> ComputedAnswer:
    """Of a collective in a profile that ships with its program's text: the device that others waited for
    longest (``last``), or the longest time from the last arrival to the last end (``longest``)."""
    check(figure, ("last", "longest"), "a collective in a profile has no figure {}")
    profile = _profile(name, resolved.problem.mesh)
    timings = {timing.name: timing for timing in profile.collectives}
    check(collective, timings, "no {} ran")
    if figure == "longest":
        return SECONDS.answer(Fraction(timings[collective].most))
    worst = next(straggler for straggler in profile.stragglers if straggler.collective == collective)
    return NUMBER.answer(int(worst.device.rpartition(" ")[2]))


@cache
def _profile(name: str, mesh: Mesh) -> profile.Profile:
    files = trace_files.read_trace(f"{name}.xplane.pb")
    return profile.profile_of(files, {}, hlo=_text(name), mesh=mesh)
