"""The group of commands, each imported when it is called, so that `--help` answers at once; and the run of
one command line, whose failures become messages on stderr and an exit code."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shardviz import __version__
from shardviz.cli.output import MIN_WIDTH, print_error
from shardviz.cli.process import COMPLETION, ExitCode
from shardviz.cli.streams import Unwritable
from shardviz.errors import JobLost, NotationError, QuestionError, ShardvizError, most_like, quote
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.render import command_lines

if TYPE_CHECKING:
    from shardviz.render.exports import Subject


def _read_sections() -> dict[str, tuple[str, list[str]]]:
    """The sections of `commands.txt` by name: what stands behind the name, and the lines below it."""
    text = Path(__file__).with_name("commands.txt").read_text(encoding="utf-8")
    found = re.findall(r"^\[(@?\w+)\] ?(.*)\n((?:.+\n)+)", text, re.MULTILINE)
    return {name: (head, lines.splitlines()) for name, head, lines in found}


SECTIONS = _read_sections()
HEADS = {name: head.split(" | ") for name, (head, _) in SECTIONS.items() if head}
COMMANDS = {name: words for name, (*_, words) in HEADS.items()}
"""Every command with its line in the list, in the order in which people meet them."""
OPTIONS = {
    "Question": "example mesh device_order specs spec sizes dtype axis_types objective backward no_backward "
    "remat optimizer frozen axes rules changes batch sequence inputs keep data shape axis perm send_sizes",
    "Hardware": "target machine topology latency bandwidth on coordinator processes process timeout",
    "Answer": "",
    "Output": "verbose save as_json width color plain help",
}
"""The options of a command by what they are about, by their parameters' names; others are of the answer."""
TOP_EXAMPLES = 2
"""Examples that stand above the options; the others follow below."""
MAX_WIDTH = 80
"""Columns of help on a wider terminal."""


class HelpFormatter(click.HelpFormatter):
    """click's help with bold headings and coloured names; click strips the colour where none is wanted."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        super().write_usage(click.style(prog, bold=True), args, prefix)

    def write_heading(self, heading: str) -> None:
        super().write_heading(click.style(heading, fg="yellow", bold=True))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        col_max = min(col_max, self.width // 3)
        super().write_dl([(click.style(term, fg="cyan"), text) for term, text in rows], col_max, col_spacing)

    def write_command_line(self, line: str) -> None:
        """A command line in bold; where it is too long it goes on below, and can still be pasted."""
        for part in command_lines.command_lines(line, self.width - self.current_indent):
            end = command_lines.CONTINUED if part.endswith(command_lines.CONTINUED) else ""
            bold = click.style(part.removesuffix(command_lines.CONTINUED).lstrip(), bold=True)
            indent = self.current_indent + len(part) - len(part.lstrip())
            self.write(f"{'':{indent}}{bold}{end}\n")


class HelpContext(click.Context):
    """A context that prints help with our formatter and respects `NO_COLOR` and a dumb terminal."""

    formatter_class = HelpFormatter

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
            self.color = False
        if self.terminal_width is None:
            columns = shutil.get_terminal_size().columns
            self.terminal_width = max(min(columns, MAX_WIDTH), MIN_WIDTH)


class ExampleCommand(click.Command):
    """A command whose help begins with its examples, those of `examples.toml`; `tests/cli` runs them."""

    context_class = HelpContext
    subject: Callable[[click.Context, Any], Subject]

    def exports(
        self, subject: Callable[[click.Context, Any], Subject]
    ) -> Callable[[click.Context, Any], Subject]:
        """Have `shardviz export` write what a function makes of the command's options, told which part of a
        problem is meant."""
        self.subject = subject
        return subject

    @cached_property
    def examples(self) -> list[tuple[str, str]]:
        """The purpose of each example, and its line."""
        import tomllib  # which no answer needs

        table = tomllib.loads(Path(__file__).with_name("examples.toml").read_text(encoding="utf-8"))
        return [*table[self.name or ""].items()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            # click does not say which command has the option that lacks a value.
            error.ctx = error.ctx or ctx
            raise

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_help_text(ctx, formatter)
        _write_examples(formatter, "Examples", self.examples[:TOP_EXAMPLES])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in OPTIONS}
        for param in self.get_params(ctx):
            name = "help" if "--help" in param.opts else param.name
            title = next((title for title, names in OPTIONS.items() if name in names.split()), "Answer")
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                groups[title].append(record)
        if sum(map(len, groups.values())) <= 12:  # one list is not too long
            groups = {"Options": [record for records in groups.values() for record in records]}
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        _write_examples(formatter, "More examples", self.examples[TOP_EXAMPLES:])


def _write_examples(formatter: click.HelpFormatter, title: str, examples: Sequence[tuple[str, str]]) -> None:
    assert isinstance(formatter, HelpFormatter)
    if not examples:
        return
    with formatter.section(title):
        for words, line in examples:
            formatter.write_text(words)
            with formatter.indentation():
                formatter.write_command_line(line)


class LazyGroup(ExampleCommand, click.Group):
    """Commands by name, from `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        return command_named(cmd_name) if cmd_name in COMMANDS else None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        for title, commands in groupby(HEADS, lambda name: HEADS[name][0]):
            with formatter.section(title):
                formatter.write_dl([(name, COMMANDS[name]) for name in commands])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_unknown = bool(args) and args[0] not in COMMANDS and not args[0].startswith("-")
        if is_unknown and not ctx.resilient_parsing:
            close = most_like(args[0], (*COMMANDS, "--help", "--version"))
            hint = f"did you mean {close}?" if close else f"the commands are {', '.join(COMMANDS)}"
            raise QuestionError(f"unknown command {quote(args[0])}", hint)
        return super().resolve_command(ctx, args)


def command_named(name: str) -> ExampleCommand:
    file = HEADS[name][1].removesuffix(".py")
    module = import_module(f"shardviz.cli.{file}")
    # Another command that stands in its file has its own name there.
    command: ExampleCommand = getattr(module, "command" if name == file else name)
    return command


def commands_with(option: str) -> list[str]:
    return [name for name in COMMANDS if any(option in param.opts for param in command_named(name).params)]


@click.group(
    cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="shardviz %(version)s", help="Print the version.")
@click.pass_context
def shardviz(ctx: click.Context) -> None:
    """See where every shard lives and which collectives jit inserts, for any JAX mesh, in a terminal."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def run(args: Sequence[str] | None = None) -> int:
    """Run one command line (by default the process's own) and return its exit code."""
    try:
        if instruction := os.environ.get(COMPLETION):
            from shardviz.cli.completion import answer_shell

            result = answer_shell(instruction, shardviz)
        else:
            result = shardviz.main(args, prog_name="shardviz", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        print_error(*_reworded(error))
        return ExitCode.QUESTION
    except ShardvizError as error:
        hint = error.hint
        if isinstance(error, NotationError) and error.text[error.start :] == "-":
            hint = "quote text with ->, as in 'bd,df->bf'; otherwise the shell writes to a file"
        if not (isinstance(error, JobLost) and error.is_told):
            print_error(error.message, hint)
        return error.exit_code
    except Unwritable as error:
        if error.reader_left:
            return ExitCode.FINE
        problem = f"cannot write to standard output: {error.reason}"
        print_error(problem, "redirect it elsewhere, or print to a terminal")
        return ExitCode.QUESTION
    return result if isinstance(result, int) else ExitCode.FINE


def _reworded(error: click.ClickException) -> tuple[str, str]:
    """click's error as our message and hint."""
    close = getattr(error, "possibilities", None)
    message = " ".join((error.message if close else error.format_message()).split()).rstrip(".")
    if isinstance(error, click.NoSuchOption) and error.option_name[1:2].isdigit():
        problem = f"unknown option {error.option_name}; a number cannot be negative"
        return problem, "write sizes of 0 or more: 16384x16384"
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "shardviz"
    hint = f"did you mean {close[0]}?" if close else f"{command} --help lists its arguments"
    if message.startswith("Got unexpected extra") or getattr(error, "option_name", "")[:2] == "->":
        hint = f"quote a value with spaces or ->; {hint}"
    elif isinstance(error, click.NoSuchOption):
        name = error.option_name
        is_near = any(option.startswith(name) or name.startswith(option) for option in (close or ())[:1])
        if not is_near and (others := commands_with(name)):
            hint = f"it is an option of {', '.join(others)}"
    message = re.sub(r"'([^']{61,})'", lambda long: quote(long[1]), message)
    return message[:1].lower() + message[1:], hint
