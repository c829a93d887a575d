"""`shardviz serve`: the application in a browser, for a class."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from importlib import util
from pathlib import Path

import click

from shardviz.cli import options
from shardviz.cli.output import print_note
from shardviz.cli.process import ExitCode
from shardviz.errors import QuestionError, plural
from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, from_string, to_string
from shardviz.lessons.attempt import attempt_of
from shardviz.lessons.course import course, faults, find, teach
from shardviz.serve.addresses import listen, own_address
from shardviz.targets import pip
from shardviz.user_files import is_folder


@options.command("serve")
def command(host: str, port: int, sessions: int, lesson: str | None, shared: str | None, follow: bool) -> int:
    """Serve the application to browsers, by default on this machine only.

    Visitors can use everything except files; compilers are Shardy and XLA for simulated
    devices. A session ends with its page, or after 60 minutes without a key press."""
    if os.name != "posix":
        raise QuestionError("shardviz serve needs Linux or macOS", "on Windows, start it in WSL")
    if util.find_spec("textual_serve") is None or util.find_spec("aiohttp") is None:
        problem = "shardviz serve needs textual-serve, which is not installed"
        raise QuestionError(problem, pip("install", "textual-serve"))
    begin, key = _beginning(lesson, shared), secrets.token_urlsafe(16) if follow else ""
    from shardviz.serve.server import Rules, Server

    listening = listen(host, port)
    bound, port = listening.getsockname()[:2]
    names = [f"[{bound}]" if ":" in bound else bound]
    if bound in ("0.0.0.0", "::"):
        # Under what others reach this machine: its address, and its name where the network knows that.
        names = [name for name in (own_address(), socket.gethostname()) if name]
    urls = [f"http://{name}:{port}/" for name in names]
    for url in urls:
        click.echo(url)
    if follow:
        print_note(f"the teacher's page leads; keep its address secret: {urls[0]}{key}/")
        print_note(f"the class's progress and predictions: {urls[0]}{key}/class")
    who = f"{plural(sessions, 'pupil')} can take over" if follow else plural(sessions, "visitor")
    print_note(f"{who} at a time; Ctrl-C ends it")
    if bound != "::1" and not bound.startswith("127."):
        print_note("no password: anyone who can reach this machine over its network can open a session")
    server = Server(Rules(begin, host, sessions, key=key))
    number = asyncio.run(server.serve(listening))
    # Ctrl-C is how it is meant to end.
    return ExitCode.FINE if number == signal.SIGINT else ExitCode.INTERRUPTED - signal.SIGINT + number


def _beginning(lesson: str | None, shared: str | None) -> str:
    options.refuse_both({"--lesson": lesson is not None, "--from": shared is not None})
    if lesson is not None:
        if lesson.endswith(".toml") or is_folder(Path(lesson)):
            teach(str(Path(lesson).resolve()))
            for fault in faults():
                print_note(fault.message)
            lesson = str(course()[0].number)
        start_lesson = find(lesson, may_read_files=False)
        return to_string(Shared(start_lesson.setup, start_lesson.screen, start_lesson.name))
    begin = from_string(shared) if shared is not None else Shared(ProblemForm())
    if begin.lesson:
        attempt_of(begin)
    return to_string(begin)
