"""Completion of command lines in bash, zsh and fish, by click's protocol: `_SHARDVIZ_COMPLETE=bash_source`
prints the script that a shell loads, which asks again, with `bash_complete`, at every press of the key."""

from __future__ import annotations

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
    get_completion_class,
)

from shardviz.cli.process import COMPLETION, ExitCode
from shardviz.errors import QuestionError, quote


@add_completion_class
class BashColons(BashComplete):
    """bash, which reads ``v5e:2`` as ``v5e``, ``:`` and ``2``, and completes what follows the colon."""

    def get_completion_args(self) -> tuple[list[str], str]:
        before, incomplete = super().get_completion_args()
        words: list[str] = []
        for word in (*before, incomplete):
            if words and word and (word == ":" or words[-1].endswith(":")):
                words[-1] += word
            else:
                words.append(word)
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        start = incomplete.rfind(":") + 1
        completions = super().get_completions(args, incomplete)
        return [CompletionItem(item.value[start:], item.type, item.help) for item in completions]


@add_completion_class
class FishLists(FishComplete):
    """fish, with values that have commas of their own, as ``shardy,cpu`` has."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')


def answer_shell(instruction: str, commands: click.Command) -> int:
    """Print what the value of `COMPLETION` asks for, a shell's script or completions; the exit code. click's
    own answer is bytes, which a stream with stand-ins for lacking characters does not take."""
    shell, _, wanted = instruction.partition("_")
    completion_class = get_completion_class(shell)
    if completion_class is None or wanted not in ("source", "complete"):
        problem = f"{COMPLETION} is {quote(instruction)}, not a completion request"
        raise QuestionError(problem, "write bash_source, zsh_source or fish_source")
    completion = completion_class(commands, {}, "shardviz", COMPLETION)
    try:
        click.echo(completion.source() if wanted == "source" else completion.complete())
    except (KeyError, ValueError):
        problem = f"{instruction} reads the command line in COMP_WORDS and COMP_CWORD"
        hint = f"load the script that sets them: {COMPLETION}={shell}_source shardviz"
        raise QuestionError(problem, hint) from None
    return ExitCode.FINE
