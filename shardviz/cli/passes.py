"""`shardviz passes`: what a compiler does to a program's shardings and collectives, pass by pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from shardviz.cli import options
from shardviz.cli.exit_code import ExitCode
from shardviz.cli.group import Command
from shardviz.errors import CompilerError, QuestionError, TargetError

if TYPE_CHECKING:
    from shardviz.compiler import Target, Traced

ALL = "all"
EXAMPLES = (
    (
        "How XLA for CPU gets to its all-reduce",
        "shardviz passes 'bd,df->bf' --specs 'XY,Y_->X_' --sizes b=8,d=2048,f=8192",
    ),
    (
        "How the TPU compiler takes an all-gather apart, with the diff of stage 3",
        "shardviz passes 'bd,df->bf' --specs 'XY,_Y' --target v5e:2x4 --diff 3",
    ),
    (
        "Shardy alone, on a mesh that nobody has",
        "shardviz passes 'bd,df->bf' --mesh X=512 --specs '_X,X_' --target shardy",
    ),
)


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


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("einsum")
@options.mesh
@options.device_order
@click.option(
    "--specs",
    is_flag=False,
    flag_value="",
    type=click.UNPROCESSED,
    metavar="SPECS",
    help="How the arrays are split: 'XY,Y_->X_'.",
)
@options.sizes
@options.dtype
@options.axis_types
@click.option(
    "--target",
    default="cpu",
    show_default=True,
    shell_complete=options.targets,
    help="Whose passes: one, such as v5e:2x4.",
)
@click.option(
    "--diff",
    is_flag=False,
    flag_value=ALL,
    type=StageNumber(),
    metavar="[N]",
    help="Show what stage N changed in the program; without N every stage.",
)
@options.timeout
@options.as_json
@options.page
def command(
    einsum: str,
    mesh: str,
    device_order: str | None,
    specs: str | None,
    sizes: str | None,
    dtype: str,
    axis_types: Literal["auto", "explicit"],
    target: str,
    diff: int | str | None,
    timeout: float,
    as_json: bool,
    width: int | None,
    color: str,
) -> int:
    """Follow EINSUM through a compiler: the passes that changed its shardings or its collectives.

    EINSUM is an einsum, a chain of them with semicolons, or a product as the scaling book writes it.
    """
    from shardviz.cli.question import problem_from_options

    asked = _one_target(target)
    if not (specs or "").strip() and "[" not in einsum:
        raise QuestionError(
            "a compiler follows one sharding, and without --specs there are many",
            "give --specs 'XY,Y_->X_'; shardviz explain ranks all of them",
        )
    with _worker(asked, timeout) as worker:
        from shardviz.cli.narration import narrated
        from shardviz.cli.screen import print_json, screen

        problem = problem_from_options(einsum, mesh, device_order, specs, sizes, dtype, axis_types)
        page = screen(width, color)
        traced = narrated(worker.trace(problem, asked), asked.name)
    _check(traced)
    diffs = _chosen(diff, len(traced.stages))
    if as_json:
        from shardviz.documents.programs import passes_document

        print_json(passes_document(traced, problem, diffs))
    else:
        from shardviz.render.programs.passes_view import passes_view

        page.show(passes_view(traced, problem, page.width, page.palette, diffs))
    return ExitCode.FINE


def _one_target(text: str) -> Target:
    from shardviz.compiler import parse_targets

    targets = parse_targets(text)
    if len(targets) != 1:
        asked = f"{len(targets)} targets are given" if targets else "none is given"
        raise TargetError(f"passes follows one compiler, and {asked}", "give one, such as --target cpu")
    return targets[0]


def _worker(target: Target, timeout: float) -> Any:
    """A worker whose compiler loads while the question is read."""
    from shardviz.cli.interrupt import before_the_end
    from shardviz.compiler import Worker

    worker = Worker(timeout)
    before_the_end(worker.kill)
    worker.start(target)
    return worker


def _check(traced: Traced) -> None:
    """Raise what the target said where it gave no answer."""
    compiled = traced.compiled
    if compiled.status == "unavailable":
        raise TargetError(compiled.error, compiled.hint)
    if compiled.status != "ok":
        raise CompilerError(f"{compiled.target}: {compiled.error}", compiled.hint)


def _chosen(diff: int | str | None, count: int) -> frozenset[int]:
    """The numbers of the stages whose diff is wanted."""
    if diff is None:
        return frozenset()
    if diff == ALL:
        return frozenset(range(1, count + 1))
    if not 1 <= int(diff) <= count:
        raise QuestionError(
            f"there is no stage {diff}", f"the stages are 1 to {count}; --diff alone shows the diffs of all"
        )
    return frozenset((int(diff),))
