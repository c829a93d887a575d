"""`shardviz export`: a command's answer as a program, a notebook, a picture, a page or a trace."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from shardviz.cli import options
from shardviz.cli.group import command_named
from shardviz.cli.output import working
from shardviz.cli.process import ExitCode
from shardviz.errors import QuestionError, plural, quote
from shardviz.lazy_names import LazyImports
from shardviz.render.exports import Subject as Subject, subject_of, times_of as times_of, title_of as title_of
from shardviz.reports.trials import TrialTable
from shardviz.user_files import new_path, write_file

with LazyImports():
    from shardviz.answers import plans
    from shardviz.forms import command_line, resolve, share
    from shardviz.lessons import attempt as attempts, course
    from shardviz.planner.pricing import costs
    from shardviz.render.exports import lesson_files, pictures, script
    from shardviz.render.times import timeline_rows

FORMS = ("python", "notebook", "svg", "html", "trace")
EXPORTABLE = ("explain", "sweep", "step", "layout", "lesson", "hlo", "program", "profile")
"""Commands that have a subject, which their files make."""
Part = Literal["problem", "plan", "rounds", "start"]
PRINTED = {"as_json", "check", "compare", "devices", "no_layout", "number", "picture", "plain", "present"}
PRINTED |= {"verbose", "why", "with_hlo"}
"""Options that choose what of an answer a terminal shows."""


@options.command("export", context_settings={"ignore_unknown_options": True})
@click.argument("form", metavar="FORMAT", type=click.Choice((*FORMS, "site")))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND…")
@click.pass_context
def command(
    ctx: click.Context,
    form: str,
    words: tuple[str, ...],
    part: Part | None,
    shared: str | None,
    output: str | None,
    force: bool,
) -> int:
    """Write what a COMMAND shows in a FORMAT that needs no shardviz: python, notebook, svg, html or trace.
    site writes the course, or the lessons named, as static pages to the folder of -o.

    COMMAND is explain, sweep, step, layout, lesson, hlo, profile or program --try with its arguments and
    options. A lesson exports its program, or else its solution; --as start omits the solution.
    hlo, profile and explain --time export the timeline; a trace opens in Perfetto, https://ui.perfetto.dev.
    """
    output = None if output == "-" else output
    if force and output is None:
        raise QuestionError("--force needs a file to write", "add --output FILE")
    if form == "site":
        options.refuse_both({"site": True, "--as": part is not None, "--from": shared is not None})
        return _site(words[words[:1] == ("lesson",) :], output, force)
    if bool(words) == (shared is not None):
        hint = "write for example: shardviz export python explain 'bd,df->bf' --specs 'XY,Y_->X_'"
        beside = ", not both" if words else ""
        raise QuestionError(f"give either a command or a share string{beside}", hint)
    path = None if output is None else new_path(output, force)
    if shared is None:
        subject, width = subject_of_words(ctx, words, part)
    else:
        subject, width = _of_string(shared, part), None
    text = written(subject, width, form)
    if path is None:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        write_file(path, text)
        click.echo(f"{path}: {len(text.encode()):,} bytes")
    return ExitCode.FINE


def _site(names: Sequence[str], output: str | None, force: bool) -> int:
    if output is None:
        raise QuestionError("a site needs a folder to write", "add -o FOLDER")
    folder = Path(output).expanduser()
    lessons = [*map(course.find, names)] or course.course()
    new_path(str(folder / lesson_files.INDEX), force)
    count = 0
    with working(lambda: f"drawing {count} of {plural(len(lessons), 'lesson')}"):
        for name, page in lesson_files.site(lessons):
            path = new_path(str(folder / name), force)
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
            write_file(path, page)
            count += 1
    click.echo(f"{folder}: {plural(count, 'page')}; open {folder / name} in a browser")
    return ExitCode.FINE


def written(subject: Subject, columns: int | None, form: str) -> str:
    """The file's text. Raises `ShardvizError` where the subject has no such form."""
    if isinstance(subject.shown, costs.Sweep | TrialTable) and form in ("python", "notebook"):
        shown = "a sweep is a chart" if isinstance(subject.shown, costs.Sweep) else "combinations are a table"
        raise QuestionError(f"{shown}, and {form} is a program", "take svg or html")
    if isinstance(subject.shown, tuple) and form == "trace":
        return timeline_rows.trace(subject.shown)
    if isinstance(subject.shown, tuple) and form not in ("svg", "html"):
        raise QuestionError(f"a timeline cannot be written as {form}", "take svg, html or trace")
    if form == "trace":
        hint = "add --time to explain, or take a compiled program: hlo FILE --machine v5e:2x4"
        raise QuestionError("a trace needs a timeline, which this command does not show", hint)
    if form == "python":
        return script.script(subject)
    if form == "notebook":
        return script.notebook(subject)
    if isinstance(subject.shown, str):
        hint = "take python or notebook, or add --as problem"
        raise QuestionError(f"a program cannot be written as {form}", hint)
    width = {} if columns is None else {"width": columns}
    return (pictures.svg if form == "svg" else pictures.html)(subject, **width)


def subject_of_words(
    ctx: click.Context, words: Sequence[str], part: Part | None
) -> tuple[Subject, int | None]:
    """The subject of ``shardviz`` with these words, and the columns of its pictures. Raises what that command
    would. `part` is what of a problem is meant; None is the problem itself, or the step that the words
    choose."""
    name, *rest = words[1:] if words[0] == "shardviz" and len(words) > 1 else words
    if name not in EXPORTABLE:
        hint = f"write explain before an einsum; others are {', '.join(EXPORTABLE[1:])}"
        raise QuestionError(f"{quote(name, 30)} is not a command that can be exported", hint)
    command = command_named(name)
    given = command.make_context(name, list(rest), parent=ctx.parent)
    if part is not None and (name not in ("explain", "lesson") or (part == "start" and name == "explain")):
        raise QuestionError(f"{name} has no {part} to choose", "leave out --as")
    subject = replace(command.subject(given, part), command=shlex.join(["shardviz", name, *rest]))
    for option in command.params:
        if option.name in PRINTED and options.is_given(given, option.name):
            problem = f"{option.opts[0]} affects only the terminal, not an export"
            raise QuestionError(problem, f"leave out {option.opts[0]}; html has the reasons as well")
    return subject, given.params.get("width")


def titled(shown: Any, **more: Any) -> Subject:
    return Subject(shown, title_of(shown), **more)


def _of_string(text: str, part: Part | None) -> Subject:
    """The subject of a share string. Raises `ShardvizError` for a damaged one, and for an unknown lesson."""
    if part == "start":
        raise QuestionError(
            "a share string holds a lesson's current state, not its start", "give the lesson's name"
        )
    shared = share.from_string(text)
    draft, title = shared.draft, ""
    if shared.lesson:
        attempt = attempts.attempt_of(shared)
        draft, title = attempt.shown, attempt.lesson.full_title
    subject = subject_of_form(resolve.resolve(draft), shared.screen, part, title)
    alone = draft.collective is not None and part is None
    return replace(subject, command=command_line.to_command_line(draft, "step" if alone else "explain"))


def subject_of_form(
    resolved: resolve.ResolvedProblem, screen: str, part: Part | None, title: str = ""
) -> Subject:
    """The subject of a part of a form, or of its screen."""
    if part in ("problem", "plan"):
        resolved = replace(resolved, collective=None)
    elif part == "rounds" and resolved.collective is None:
        run = plans.step_of(resolved.plan, resolved.placed).run
        resolved = replace(resolved, collective=run.question)
    return subject_of(resolved, part or screen, title)
