"""`shardviz passes`: a program's shardings and collectives through a compiler, pass by pass."""

from __future__ import annotations

from typing import Any

import click

from shardviz.cli import options
from shardviz.cli.output import CommandOutput, wait_for
from shardviz.cli.process import ExitCode
from shardviz.cli.target_session import started_worker
from shardviz.errors import CompilerError, QuestionError, TargetError
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.documents import programs
    from shardviz.render.programs import passes_view

ALL = "all"


class StageNumber(options.Count):
    """The number of a stage, or `ALL`."""

    name = "number of a stage"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return ALL if value == ALL else super().convert(value, param, ctx)


@options.command(
    "passes",
    {
        "specs": {"is_flag": False, "flag_value": "", "type": click.UNPROCESSED},
        "diff": {"flag_value": ALL, "type": StageNumber()},
    },
)
@click.argument("einsum")
def command(
    einsum: str,
    specs: str | None,
    target: str,
    diff: int | str | None,
    timeout: float,
    output: CommandOutput,
    **problem: Any,
) -> int:
    """Follow EINSUM through a compiler: the passes that changed its shardings or collectives.

    EINSUM is an einsum, a chain of them with semicolons, or a product as the scaling book writes it."""
    targets = options.asked_targets(target, problem["mesh"])
    if len(targets) != 1:
        count = f"{len(targets)} targets are given" if targets else "none is given"
        raise TargetError(f"passes follows one compiler, and {count}", "give one, such as --target cpu")
    (asked,) = targets
    if not (specs or "").strip() and "[" not in einsum:
        raise QuestionError(
            "passes needs --specs: it follows one sharding",
            "give --specs 'XY,Y_->X_'; shardviz explain ranks all of them",
        )
    with started_worker(timeout, asked) as worker:
        stated = options.stated_problem(einsum, specs, problem)
        traced = wait_for(worker.trace(stated, asked), asked.name)
    compiled = traced.compiled
    if compiled.status == "unavailable":
        raise TargetError(compiled.error, compiled.hint)
    if compiled.status != "ok":
        raise CompilerError(f"{compiled.target}: {compiled.error}", compiled.hint)
    stages = range(1, len(traced.stages) + 1)
    diffs = frozenset(stages if diff == ALL else () if diff is None else [int(diff)])
    if not diffs <= {*stages}:
        hint = f"stages are 1 to {len(stages)}; --diff without a number shows all"
        raise QuestionError(f"stage {diff} does not exist", hint)
    output.answer(
        lambda: programs.passes_document(traced, stated, diffs),
        lambda: passes_view.passes_view(traced, stated, *output.page, diffs, output.verbose),
        "the collectives of each stage, and the compiler's names of its passes",
    )
    return ExitCode.FINE
