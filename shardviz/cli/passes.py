"""`shardviz passes`: a program's shardings and collectives through a compiler, pass by pass."""

from __future__ import annotations

from typing import Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.options import of_field
from shardviz.cli.output import CommandOutput, print_json, wait_for
from shardviz.cli.process import ExitCode
from shardviz.cli.target_session import started_worker
from shardviz.errors import CompilerError, QuestionError, TargetError
from shardviz.forms.form import SPECS
from shardviz.lazy_names import LazyImports

with LazyImports():
    from shardviz.documents import programs
    from shardviz.render.programs import passes_view as programs_passes_view

ALL = "all"


class StageNumber(click.ParamType):  # type: ignore[type-arg]
    """The number of a stage, or `ALL`."""

    name = "number of a stage"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == ALL:
            return ALL
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)


@click.command("passes", cls=ExampleCommand)
@click.argument("einsum")
@options.problem(
    of_field(SPECS, is_flag=False, flag_value="", type=click.UNPROCESSED),
    without=("machine", "objective"),
    default="cpu",
    help="The one compiler to follow, such as v5e:2x4.",
)
@options.option(
    "--diff",
    "[N]",
    "Show what stage N changed in the program; without N, all stages.",
    is_flag=False,
    flag_value=ALL,
    type=StageNumber(),
)
@options.timeout
@options.long_output
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

    EINSUM is an einsum, a chain of them with semicolons, or a product as the scaling book writes it.
    """
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
    diffs = _chosen(diff, len(traced.stages))
    if output.as_json:
        print_json(programs.passes_document(traced, stated, diffs))
    else:
        output.show(programs_passes_view.passes_view(traced, stated, *output.page, diffs, output.verbose))
        output.show_more("the collectives of each stage, and the compiler's names of its passes")
    return ExitCode.FINE


def _chosen(diff: int | str | None, count: int) -> frozenset[int]:
    if diff is None:
        return frozenset()
    if diff == ALL:
        return frozenset(range(1, count + 1))
    if not 1 <= int(diff) <= count:
        problem = f"stage {diff} does not exist"
        raise QuestionError(problem, f"stages are 1 to {count}; --diff without a number shows all")
    return frozenset((int(diff),))
