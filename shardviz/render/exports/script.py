"""A Python program that runs as it is: JAX is all it needs, and it simulates the devices itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardviz.drafts.plain_text import one_line
from shardviz.render.exports.subject import Program

if TYPE_CHECKING:
    from shardviz.render.exports.subject import Subject


def script(subject: Subject) -> str:
    """The program, with what it needs to run. Raises `ShardvizError` where no program can show the same."""
    return with_heading(subject, code_of(subject))


def code_of(subject: Subject) -> str:
    """The bare program: a docstring of one line, then the code."""
    from shardviz.planner import Plan, Problem
    from shardviz.sharding import Layout

    shown = subject.shown
    if isinstance(shown, Program):
        return shown.code
    if isinstance(shown, Problem):
        from shardviz.codegen.problem import problem_code

        return problem_code(shown, subject.target)
    if isinstance(shown, Plan):
        from shardviz.codegen.plan import plan_code

        return plan_code(shown)
    if isinstance(shown, Layout):
        from shardviz.codegen.layout import layout_code

        return layout_code(shown)
    from shardviz.codegen.rounds import rounds_code

    return rounds_code(shown)


def with_heading(subject: Subject, code: str) -> str:
    """The program with comments behind its docstring: how to run it, and what shows the same."""
    lines = [f"# To run it: pip {install(code)}, then python with the name of this file."]
    if subject.command:
        lines.append(f"# In a terminal: {one_line(subject.command)}")
    docstring, newline, rest = code.partition("\n")
    if not docstring.startswith('"""') or not docstring.endswith('"""', 3):
        return "\n".join([*lines, "", code])
    return docstring + newline + "\n".join(lines) + newline + rest


def install(code: str) -> str:
    """What pip is to do for a program: JAX, and the compiler of hardware that is described in it."""
    for platform, extra in (("tpu", "tpu"), ("cuda", "cuda12")):
        if f'platform="{platform}"' in code:
            return f'install -U "jax[{extra}]"'
    return "install -U jax"
