"""`shardviz explain`: the plan of a matmul, and what the compilers make of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from shardviz.cli import options
from shardviz.cli.exit_code import ExitCode
from shardviz.cli.group import Command
from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from shardviz.cli.asking import Conversation
    from shardviz.cli.presenting import Manner
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
    (
        "The plan's second step, round by round",
        "shardviz explain 'bd,df->bf' --specs 'XY,Y_' --sizes b=4,d=8,f=4 --step 2",
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
    help="How the arrays are split: 'XY,Y_->X_'. Without a value, or left out: all ways, ranked.",
)
@click.option("--sizes", metavar="DIM=N,…", help="Every dimension's size; 1024, 2048, 8192, 128, … if none.")
@options.dtype
@click.option(
    "--target", default=DEFAULT_TARGETS, show_default=True, help="Who to ask; none asks the planner only."
)
@click.option(
    "--axis-types",
    type=click.Choice(["auto", "explicit"]),
    default="auto",
    show_default=True,
    help="explicit: JAX's types carry the shardings.",
)
@click.option(
    "--limit", type=options.Count(1), metavar="N", default=20, show_default=True, help="Lines of a ranking."
)
@click.option("--step", type=int, metavar="N", help="Step through the plan's step N, a collective.")
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

    if specs == "":
        raise QuestionError("--specs is empty", "write 'XY,Y_->X_', or --specs alone to rank all ways")
    if sizes is not None and not sizes.strip():
        raise QuestionError("--sizes is empty", "write b=8,d=2048,f=8192, or leave out --sizes")
    ranked = specs == RANKED or (specs is None and "[" not in einsum)
    chosen = ctx.get_parameter_source("target") is not click.core.ParameterSource.DEFAULT
    if ranked and chosen and target != "none":
        click.echo("shardviz: note: a ranking asks the planner only, not --target", err=True)
    if ranked and step is not None:
        raise QuestionError(
            "--step is a step of one plan, and a ranking has many", "give --specs 'XY,Y_->X_'"
        )

    stepping = {
        "--algorithm": algorithm is not None,
        "--round": number is not None,
        "--play": animate,
        "--speed": speed is not None,
        "--compare": compare,
    }
    for option, given in stepping.items():
        if given and step is None:
            raise QuestionError(
                f"{option} is about the rounds of one collective", "choose one of the plan with --step N"
            )

    def question() -> Problem:
        from shardviz.notation import parse_mesh
        from shardviz.planner import problem_from_text

        return problem_from_text(
            einsum,
            mesh=parse_mesh(mesh, device_order),
            specs=None if specs == RANKED else specs,
            sizes=sizes or "",
            dtype=dtype,
            axis_types=axis_types,
        )

    if step is not None:
        from shardviz.cli.presenting import Manner

        manner = Manner(number, animate, speed, compare, as_json, width, color)
        return _step(question, step, algorithm, target if chosen else None, timeout, manner)
    # The compilers' process loads JAX while this one reads the question and draws.
    with Conversation.begin("none" if ranked else target, timeout, may_drop=not chosen) as conversation:
        from shardviz.cli.screen import screen

        problem = question()
        page = screen(width, color)
        if ranked:
            _rank(problem, page, limit, as_json)
            return ExitCode.FINE
        return _explain(problem, conversation, page, as_json)


def _rank(problem: Problem, page: Screen, limit: int, as_json: bool) -> None:
    from shardviz.planner import search

    candidates = search(problem)
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.render.documents import ranking_document

        print_json(ranking_document(candidates))
        return
    from shardviz.render.ranking_view import ranking_view

    page.show(ranking_view(problem, candidates, page.width, page.palette, limit))


def _explain(problem: Problem, conversation: Conversation, page: Screen, as_json: bool) -> int:
    from shardviz.cli.asking import differences
    from shardviz.planner import plan

    conversation.ask(problem)
    planned = plan(problem)
    if as_json:
        from shardviz.cli.screen import print_json
        from shardviz.render.documents import explain_document

        compiled = tuple(conversation.answers())
        found = [difference for each in compiled for difference in differences(planned, each)]
        print_json(explain_document(planned, compiled, found))
        return conversation.exit_code
    from shardviz.render.explain_view import explain_view

    page.show(explain_view(planned, page.width, page.palette))
    for each in conversation.answers():
        # Loaded while the compilers work, and not at all when none is asked.
        from shardviz.render.target_view import target_view

        page.show(target_view(each, differences(planned, each), problem, page.width, page.palette))
    return conversation.exit_code


def _step(
    question: Callable[[], Problem],
    number: int,
    algorithm: str | None,
    target: str | None,
    timeout: float,
    manner: Manner,
) -> int:
    """Step through one collective of the plan; JAX verifies it on the devices among the targets, if any."""
    from shardviz.cli.judge import Judge
    from shardviz.cli.presenting import present
    from shardviz.compiler import parse_targets

    asked = None
    if target is not None:
        names = [each.name for each in parse_targets(target)]
        asked = next((name for name in ("real", "cpu") if name in names), "none")
    manner.check(asked, "--target")
    with Judge.begin("none" if manner.compare else asked, timeout, "--target") as judge:
        from rich.text import Text

        from shardviz.planner import plan
        from shardviz.render.plan_view import step_lines
        from shardviz.stepping.links import links_from_text
        from shardviz.stepping.plan_step import question_of_step

        planned = plan(question())
        stepped = question_of_step(planned, number, algorithm)
        heading = []
        if not manner.as_json:
            page = manner.page
            heading = [*step_lines(planned, number, page.width, page.palette), Text()]
        links = links_from_text(stepped.schedule.pattern.dims, None, None, None)
        return present(stepped, links, judge, manner, heading)
