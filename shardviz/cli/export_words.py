"""The words of a command, read as the command reads them → what an export shows."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Literal

import click

from shardviz.cli.options import is_given
from shardviz.collectives.operations import PARAMETERS
from shardviz.errors import QuestionError, quote

if TYPE_CHECKING:
    from shardviz.compiler import Target
    from shardviz.drafts.scene import Scene
    from shardviz.lessons.lesson import Lesson
    from shardviz.planner import Plan, Problem
    from shardviz.render.exports.subject import Subject
    from shardviz.stepping.collective_run import CollectiveRun
    from shardviz.stepping.question import CollectiveQuestion

Part = Literal["problem", "plan", "rounds", "start"]
COMMANDS = ("explain", "step", "layout", "lesson")
"""Those whose words can be exported."""
PRINTED = {
    "number": "--round",
    "animate": "--play",
    "compare": "--compare",
    "no_layout": "--no-layout",
    "with_hlo": "--hlo",
    "devices": "--devices",
    "style": "--style",
    "plain": "--plain",
    "as_json": "--json",
    **{mode: f"--{mode}" for mode in ("present", "check", "reset")},
    "as_list": "--list",
}
"""Options that choose what of an answer a terminal shows."""


@dataclass(frozen=True)
class Asked:
    """What is exported, and what the words say of pictures: columns, rounds a second; None is as usual."""

    subject: Subject
    width: int | None = None
    speed: float | None = None


def asked_in_words(ctx: click.Context, words: Sequence[str], part: Part | None) -> Asked:
    """What ``shardviz`` with these words shows. Raises whatever that command would for them.

    `part` is what of a problem is meant; None is the problem itself, or the step that the words choose.
    """
    name, *rest = words[1:] if words[0] == "shardviz" and len(words) > 1 else words
    if name not in COMMANDS:
        raise QuestionError(
            f"{quote(name, 30)} is not a command that can be exported",
            "write explain before an einsum; the words begin with explain, step, layout or lesson",
        )
    command = import_module(f"shardviz.cli.{name}").command
    given = command.make_context(name, list(rest), parent=ctx.parent)
    readers = {"explain": _explained, "step": _stepped, "layout": _laid_out, "lesson": _lesson}
    if part is not None and (name in ("step", "layout") or (part == "start" and name == "explain")):
        raise QuestionError(f"{name} has no {part} to choose", "leave out --as")
    subject = replace(readers[name](given, part), command=shlex.join(["shardviz", name, *rest]))
    for parameter, option in PRINTED.items():
        if given.get_parameter_source(parameter) is not None and is_given(given, parameter):
            raise QuestionError(
                f"{option} chooses what a terminal shows, and an export has all of it",
                f"leave out {option}",
            )
    return Asked(subject, given.params.get("width"), given.params.get("speed"))


def asked_in_string(text: str, part: Part | None) -> Asked:
    """What a share string shows. Raises `ShardvizError` for one that cannot be read, and for a lesson that
    there is not."""
    from shardviz.drafts.reading import read
    from shardviz.drafts.share import from_string
    from shardviz.drafts.words import command_line

    if part == "start":
        raise QuestionError("a share string is of a lesson as it stands, not of its start", "name the lesson")
    shared = from_string(text)
    draft, title = shared.draft, ""
    if shared.lesson:
        from shardviz.lessons.sharing import attempt_of

        attempt = attempt_of(shared)
        draft, title = attempt.shown, _title(attempt.lesson)
    subject = _scene(read(draft), shared.screen, part, title)
    alone = draft.collective is not None and part is None
    return Asked(replace(subject, command=command_line(draft, "step" if alone else "explain")))


def _only_collective(plan: Plan) -> int:
    """The number of the one collective of a plan. Raises `QuestionError` where it has none, or several."""
    from shardviz.planner.plan import LOCAL_OPS

    places = [place for place, step in enumerate(plan.steps, 1) if step.op not in LOCAL_OPS]
    if len(places) != 1:
        named = ", ".join(f"{place} ({plan.steps[place - 1].op})" for place in places)
        raise QuestionError(
            f"a collective's rounds are wanted, and this plan has {len(places) or 'no'} collectives",
            f"choose one with --step: {named}" if places else "split a summed dimension, or step through one",
        )
    return places[0]


def _explained(ctx: click.Context, part: Part | None) -> Subject:
    """The problem of `shardviz explain`, its plan, or one step of it."""
    from shardviz.cli.explain import is_ranking, refuse_stepping
    from shardviz.cli.question import problem_from_options
    from shardviz.planner import plan
    from shardviz.render.exports.subject import Subject, title_of

    given = ctx.params
    if is_ranking(given["einsum"], given["specs"]):
        raise QuestionError("a ranking is many plans, and an export shows one", "give --specs 'XY,Y_->X_'")
    names = ("einsum", "mesh", "device_order", "specs", "sizes", "dtype", "axis_types")
    problem = problem_from_options(**{name: given[name] for name in names})
    stepping = [given[name] for name in ("algorithm", "latency", "bandwidth")]
    if given["step"] is not None:
        if part not in (None, "rounds"):
            raise QuestionError(
                f"--step is one step, and --as {part} is all of them", "leave out one of them"
            )
        walk = _walk_of_step(plan(problem), given["step"], *stepping)
        return Subject(walk, f"Step {given['step']} of {title_of(problem)}: {title_of(walk)}")
    if part != "rounds":
        refuse_stepping(given)
    shown: Problem | Plan | CollectiveRun = problem
    if part == "plan":
        shown = plan(problem)
    elif part == "rounds":
        planned = plan(problem)
        shown = _walk_of_step(planned, _only_collective(planned), *stepping)
    target = _target(given["target"]) if is_given(ctx, "target") else None
    return Subject(shown, title_of(shown), target=target)


def _target(text: str) -> Target | None:
    """Whose program is meant: the one target that is named."""
    from shardviz.compiler import parse_targets

    targets = parse_targets(text)
    if len(targets) > 1:
        names = ", ".join(target.name for target in targets)
        raise QuestionError(f"a program is compiled for one target, not for {names}", "name one of them")
    return targets[0] if targets else None


def _stepped(ctx: click.Context, part: Part | None) -> Subject:
    """The collective of `shardviz step`."""
    from shardviz.notation import parse_mesh
    from shardviz.render.exports.subject import Subject, title_of
    from shardviz.stepping.question import question_from_options

    del part
    given = ctx.params
    names = ("axis", "data", "shape", "spec", "dtype", "algorithm", "pieces")
    parameters = {name: given[name] for name in PARAMETERS}
    question = question_from_options(
        given["operation"],
        parameters,
        mesh=parse_mesh(given["mesh"]),
        **{name: given[name] for name in names},
    )
    walk = _walk(question, given["topology"], given["latency"], given["bandwidth"])
    return Subject(walk, title_of(walk))


def _laid_out(ctx: click.Context, part: Part | None) -> Subject:
    """The array of `shardviz layout`."""
    from shardviz.notation import parse_layout, parse_mesh
    from shardviz.render.exports.subject import Subject, title_of

    del part
    given = ctx.params
    mesh = parse_mesh(given["mesh"], given["device_order"])
    dtype = given["dtype"] if is_given(ctx, "dtype") else None
    layout = parse_layout(given["shape"], mesh, given["spec"], dtype)
    return Subject(layout, title_of(layout))


def _lesson(ctx: click.Context, part: Part | None) -> Subject:
    """A lesson's own program, or what its solution shows, or its start."""
    from shardviz.drafts.reading import read
    from shardviz.lessons.course import find
    from shardviz.render.exports.subject import JaxProgram, Subject

    lessons = ctx.params["lessons"]
    if len(lessons) != 1:
        raise QuestionError("an export shows one lesson", "give its number or its name: lesson 11")
    lesson = find(lessons[0])
    if lesson.program and part is None:
        return Subject(JaxProgram(lesson.program), _title(lesson))
    if part == "start":
        return _scene(read(lesson.setup), lesson.screen, None, _title(lesson))
    return _scene(read(lesson.solution), lesson.screen, part, _title(lesson))


def _title(lesson: Lesson) -> str:
    return f"Lesson {lesson.number}: {lesson.title}" if lesson.number else lesson.title


def _scene(scene: Scene, screen: str, part: Part | None, title: str = "") -> Subject:
    """What a screen shows of a draft: its own collective, else its problem, or the plan; `title` goes before
    its own."""
    from shardviz.render.exports.subject import Subject, title_of

    shown: Problem | Plan | CollectiveRun = scene.problem
    if scene.collective is not None and part in (None, "rounds"):
        shown = _walk(scene.collective)
    elif part == "rounds":
        shown = _walk_of_step(scene.plan, _only_collective(scene.plan))
    elif part == "plan" or (part is None and screen == "plan"):
        shown = scene.plan
    return Subject(shown, f"{title}. {title_of(shown)}" if title else title_of(shown))


def _walk_of_step(
    plan: Plan,
    number: int,
    algorithm: str | None = None,
    latency: str | None = None,
    bandwidth: str | None = None,
) -> CollectiveRun:
    from shardviz.stepping.plan_step import question_of_step

    return _walk(question_of_step(plan, number, algorithm), None, latency, bandwidth)


def _walk(
    question: CollectiveQuestion,
    topology: str | None = None,
    latency: str | None = None,
    bandwidth: str | None = None,
) -> CollectiveRun:
    from shardviz.hardware.links import links_from_text
    from shardviz.stepping.collective_run import CollectiveRun

    return CollectiveRun(
        question, links_from_text(question.schedule.pattern.dims, topology, latency, bandwidth)
    )
