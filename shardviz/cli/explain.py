"""`shardviz explain`: the plan of a matmul, and what the compilers make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from shardviz.cli import options
from shardviz.cli.exit_code import ExitCode
from shardviz.cli.group import Command
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shardviz.cli.screen import Screen
    from shardviz.planner import Problem

DEFAULT_TARGETS = "shardy,cpu"
RANKED = "\0"
"""The value of `--specs` without one: no argument of a process can be this."""
EXAMPLES = (
    (
        "A matmul split on both operands, by the planner, Shardy and XLA",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_' --sizes b=8,d=2048,f=8192",
    ),
    ("Every sharding worth considering, ranked", "shardviz explain 'bd,df->bf' --mesh X=2,Y=4 --specs"),
    ("Only those in which the batch is split", "shardviz explain 'bd,df->bf' --specs 'X_,?->X_'"),
    (
        "The plan's second step, round by round",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_' --sizes b=4,d=8,f=4 --step 2",
    ),
    (
        "What two TPUs would run, beside simulated devices, with neither here",
        "shardviz explain 'bd,df->bf' --specs 'XY,_Y' --target cpu,v2:2x2,v5e:2x4",
    ),
    (
        "The program that a compiler makes of it",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_' --target cpu --hlo",
    ),
    (
        "In the scaling book's notation, without a compiler",
        "shardviz explain 'A[B_X, D] * W[D, F_Y]' --target none",
    ),
)


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("einsum")
@options.mesh
@options.device_order
@click.option(
    "--specs",
    is_flag=False,
    flag_value=RANKED,
    type=click.UNPROCESSED,
    metavar="[SPECS]",
    help="How the arrays are split: 'XY,Y_->X_'. Without a value, or left out, all ways are ranked; with ? "
    "for an operand, all of that one.",
)
@options.sizes
@options.dtype
@click.option(
    "--target",
    default=DEFAULT_TARGETS,
    show_default=True,
    shell_complete=options.targets,
    help="Who to ask; none asks the planner only.",
)
@options.axis_types
@click.option(
    "--limit", type=options.Count(1), metavar="N", default=20, show_default=True, help="Lines of a ranking."
)
@click.option(
    "--step", type=options.Count(), metavar="N", help="Step through the plan's step N, a collective."
)
@options.links
@click.option("--no-layout", is_flag=True, help="Leave out the pictures of the arrays.")
@click.option("--hlo", "with_hlo", is_flag=True, help="Show each target's final program as well.")
@options.algorithm
@options.answers
@options.timeout
@options.as_json
@options.page
@click.pass_context
def command(
    ctx: click.Context,
    einsum: str,
    mesh: str,
    device_order: str | None,
    specs: str | None,
    sizes: str | None,
    dtype: str,
    target: str,
    axis_types: Literal["auto", "explicit"],
    limit: int,
    step: int | None,
    latency: str | None,
    bandwidth: str | None,
    no_layout: bool,
    with_hlo: bool,
    algorithm: str | None,
    number: int | None,
    animate: bool,
    speed: float | None,
    compare: bool,
    timeout: float,
    as_json: bool,
    width: int | None,
    color: str,
) -> int:
    """Explain which collectives EINSUM needs on a mesh, and which ones the compilers insert.

    EINSUM is an einsum, a chain of them with semicolons, or a product as the scaling book writes it.
    """
    from shardviz.cli.asking import Conversation
    from shardviz.cli.question import problem_from_options
    from shardviz.compiler import parse_targets

    ranked = is_ranking(einsum, specs)
    chosen = options.is_given(ctx, "target")
    if ranked and chosen and parse_targets(target):
        click.echo("shardviz: note: a ranking asks the planner only, not --target", err=True)
    if ranked and step is not None:
        raise QuestionError(
            "--step is a step of one plan, and a ranking has many", "give --specs 'XY,Y_->X_'"
        )

    if with_hlo and (ranked or step is not None or target == "none"):
        lacking = {
            "give --specs 'XY,Y_->X_'": ranked,
            "leave out --step": step is not None,
            "ask a compiler, as with --target cpu": target == "none",
        }
        hint = " and ".join(what for what, is_lacking in lacking.items() if is_lacking)
        raise QuestionError("--hlo shows what compilers make of one plan", hint)

    if no_layout and (ranked or step is not None or as_json):
        raise QuestionError(
            "--no-layout leaves out the pictures of one plan's arrays, and there are none here",
            "leave out --no-layout",
        )

    if step is None:
        refuse_stepping(ctx.params)

    def question() -> Problem:
        given = None if specs == RANKED else specs
        return problem_from_options(einsum, mesh, device_order, given, sizes, dtype, axis_types, ranked)

    if step is not None:
        from shardviz.cli.plan_step import step_of_plan
        from shardviz.cli.presenting import Manner

        manner = Manner(number, animate, speed, compare, as_json, width, color)
        return step_of_plan(
            question, step, algorithm, latency, bandwidth, target if chosen else None, timeout, manner
        )
    # The compilers' process loads JAX while this one reads the question and draws.
    with Conversation.begin("none" if ranked else target, timeout, may_drop=not chosen) as conversation:
        from shardviz.cli.screen import screen

        problem = question()
        page = screen(width, color)
        if ranked:
            _rank(problem, page, limit, as_json)
            return ExitCode.FINE
        from shardviz.cli.explaining import explain

        return explain(problem, conversation, page, as_json, with_hlo, not no_layout)


def is_ranking(einsum: str, specs: str | None) -> bool:
    """Whether all ways to split some array are asked about. Raises `QuestionError` for empty specs."""
    if specs == "":
        raise QuestionError("--specs is empty", "write 'XY,Y_->X_', or --specs alone to rank all ways")
    if specs is None or specs == RANKED:
        return specs == RANKED or "[" not in einsum
    return leaves_open(specs)


def leaves_open(specs: str) -> bool:
    """Whether the specs leave an operand open, as in ``X_,?->?``; an open intermediate or result is the
    compiler's choice."""
    for number, part in enumerate(specs.split(";")):
        operands = part.partition("->")[0].split(",")
        if any(operand.strip(" ()[]") == "?" for operand in operands[min(number, 1) :]):
            return True
    return False


def refuse_stepping(given: Mapping[str, object]) -> None:
    """Raise `QuestionError` for options about the rounds of a collective, where none is chosen."""
    stepping = {
        "--algorithm": given["algorithm"] is not None,
        "--latency": given["latency"] is not None,
        "--bandwidth": given["bandwidth"] is not None,
        "--round": given["number"] is not None,
        "--play": given["animate"],
        "--speed": given["speed"] is not None,
        "--compare": given["compare"],
    }
    for option, is_given in stepping.items():
        if is_given:
            raise QuestionError(
                f"{option} is about the rounds of one collective", "choose one of the plan with --step N"
            )


def _rank(problem: Problem, page: Screen, limit: int, as_json: bool) -> None:
    from shardviz.planner import search

    candidates = search(problem)
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.documents.plans import ranking_document

        print_json(ranking_document(candidates))
        return
    from shardviz.render.plans.ranking_view import ranking_view

    page.show(ranking_view(problem, candidates, page.width, page.palette, limit))
