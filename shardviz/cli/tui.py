"""`shardviz tui`: the application, on a problem in the words of `shardviz explain`."""

from __future__ import annotations

from typing import Any

import click

from shardviz.cli import options
from shardviz.cli.output import print_json
from shardviz.cli.process import ExitCode
from shardviz.cli.streams import no_terminal
from shardviz.documents.fields import KINDS
from shardviz.errors import QuestionError
from shardviz.forms.options import form_from_options
from shardviz.forms.share import from_string
from shardviz.forms.state_file import SESSION_NAME, StateError, load_session, state_path
from shardviz.forms.wording import error_words
from shardviz.lessons.attempt import attempt_of


@options.command("tui")
@click.argument("einsum", required=False)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    einsum: str | None,
    screen: str,
    last: bool,
    shared: str | None,
    as_json: bool,
    **problem: Any,
) -> int:
    """Open the application: build a mesh, shard the arrays of EINSUM, see what moves."""
    chosen = {name for name in ctx.params if options.is_given(ctx, name)}
    if as_json and shared is None:
        raise QuestionError("--json needs a shared string", "add --from STRING, or leave out --json")
    if shared is not None:
        _check_alone("--from", chosen - {"shared", "screen", "as_json"})
        sent = from_string(shared)
        if as_json:
            print_json(KINDS["shared"].document(shared=sent))
            return ExitCode.FINE
        attempt = attempt_of(sent) if sent.lesson else None
    if reason := no_terminal():
        raise QuestionError(reason, "open it in a terminal; shardviz explain prints an answer anywhere")
    from shardviz.cli.open_app import open_app

    if shared is not None:
        shown = screen if "screen" in chosen else sent.screen
        return open_app(None if attempt else sent.draft, shown, lesson=attempt)
    if last:
        _check_alone("--last", chosen - {"last", "screen"})
        try:
            session = load_session()
        except StateError as error:
            if state_path(SESSION_NAME).exists():
                raise
            # It was damaged, and is set aside.
            return open_app(None, screen, warning=error_words(error))
        if session is None:
            raise QuestionError("no session is saved", "leave out --last to start a new one")
        shown = screen if "screen" in chosen else session.screen
        return open_app(session.history, shown)
    problem["targets"] = problem.pop("target")
    if "mesh" not in chosen:
        problem["mesh"] = None
    return open_app(form_from_options(einsum, **problem), screen)


def _check_alone(option: str, others: set[str]) -> None:
    if others:
        named = "EINSUM" if "einsum" in others else f"--{min(others).replace('_', '-')}"
        raise QuestionError(f"{option} and {named} cannot be combined", "leave out one of them")
