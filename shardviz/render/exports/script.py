"""A program that runs as it is, as a Python file or a notebook, on devices that JAX simulates. Notebooks are
nbformat 4.5: https://nbformat.readthedocs.io/en/latest/format_description.html"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from shardviz.codegen.collective import rounds_code
from shardviz.codegen.plan import plan_code
from shardviz.codegen.problem import layout_code, problem_code
from shardviz.errors import QuestionError, plural
from shardviz.forms.form import one_line
from shardviz.planner.plan import Plan
from shardviz.planner.problem import Problem
from shardviz.render.exports import Subject
from shardviz.sharding import Layout


def script(subject: Subject) -> str:
    """The program, with comments on how to run it. Raises `ShardvizError` where none can show the same."""
    code = code_of(subject)
    lines = [f"# To run it: pip {install(code)}, then python and this file's name."]
    if subject.command:
        lines.append(f"# In a terminal: {one_line(subject.command)}")
    docstring, newline, rest = code.partition("\n")
    if not docstring.startswith('"""') or not docstring.endswith('"""', 3):
        return "\n".join([*lines, "", code])
    return docstring + newline + "\n".join(lines) + newline + rest


def code_of(subject: Subject) -> str:
    """The bare program: a docstring of one line, then the code."""
    shown = subject.shown
    if isinstance(shown, str):
        return shown
    if isinstance(shown, Problem):
        return problem_code(shown, subject.target)
    if isinstance(shown, Plan):
        return plan_code(shown)
    if isinstance(shown, Layout):
        return layout_code(shown)
    if subject.run is None:
        raise QuestionError("a timeline has no program", "use svg, html or trace")
    return rounds_code(subject.run)


def install(code: str) -> str:
    """The arguments of pip for a program: JAX, and the compiler of hardware that is described in it."""
    for platform, extra in (("tpu", "tpu"), ("cuda", "cuda12")):
        if f'platform="{platform}"' in code:
            return f'install -U "jax[{extra}]"'
    return "install -U jax"


_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")
"""Characters with a meaning in Markdown; $ begins a formula."""
_SETTING = ("import ", "from ", "jax.config.", "os.environ", "#", " ", ")")
"""Beginnings of lines that import, or set up JAX, before anything is made."""
_SIMULATED = re.compile(r'jax\.config\.update\("jax_num_cpu_devices", (\d+)\)')


def notebook(subject: Subject) -> str:
    """The notebook as JSON, without outputs. Raises `ShardvizError` where no program can show the same."""
    code = code_of(subject)
    title = _SPECIAL.sub(r"\\\1", one_line(subject.title))
    lines = [f"# {title}", ""]
    if subject.command:
        lines += ["In a terminal:", "", f"    {one_line(subject.command)}", ""]
    _, _, more = (ast.get_docstring(ast.parse(code)) or "").partition("\n")
    if more.strip():
        lines += [_SPECIAL.sub(r"\\\1", more.strip()), ""]
    lines.append("Run the cells in order. ")
    if match := _SIMULATED.search(code):
        count = plural(int(match[1]), "device")
        lines[-1] += (
            f"They simulate {count} on any CPU, even if the runtime has a TPU or a GPU; for real devices, "
            "remove the lines that set this up. If JAX has already run in this kernel, restart it first: the "
            "number of devices is set only once."
        )
    parts = [("markdown", "\n".join(lines)), ("code", f"%pip -q {install(code)}")]
    return notebook_of([*parts, *(("code", part) for part in _sections(code))])


def notebook_of(cells: Iterable[tuple[str, str]]) -> str:
    """The notebook of these cells as JSON: each ``markdown`` or ``code``, and its text."""
    parts: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells):
        parts.append(
            {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(True)}
        )
        parts[-1] |= {"execution_count": None, "outputs": []} if kind == "code" else {}
    document = {
        "cells": parts,
        "metadata": {
            "colab": {"provenance": []},
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _sections(code: str) -> Iterator[str]:
    """The program in cells, without its docstring: the setting, the data, the function, then after each part
    that prints. Parts end at blank lines, unless what follows is indented."""
    tree = ast.parse(code)
    first = tree.body[0].end_lineno or 0 if ast.get_docstring(tree) is not None else 0
    held: list[str] = []
    is_setting = True
    for part in re.split(r"\n{2,}(?=\S)", "\n".join(code.splitlines()[first:]).strip("\n")):
        sets = all(line.startswith(_SETTING) for line in part.splitlines())
        is_program = re.search(r"^def program\(", part, re.MULTILINE) is not None
        if held and ((is_setting and not sets) or is_program):
            yield "\n\n".join(held)
            held = []
        is_setting = is_setting and sets
        held.append(part)
        prints = "print(" in part and not re.search(r"^(?:def|class) ", part, re.MULTILINE)
        if is_program or prints:
            yield "\n\n".join(held)
            held = []
    if held:
        yield "\n\n".join(held)
