"""Options that several commands share, each defined once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from shardviz.errors import QuestionError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from shardviz.planner import Problem


F = TypeVar("F", bound=Callable[..., Any])

MIN_WIDTH = 40
"""Columns below which pictures cannot be drawn."""
DEFAULT_MESH = "X=2,Y=4"


class Count(click.IntRange):
    """A whole number, of at least `min` where that is given."""

    name = "whole number"


class Positive(click.FloatRange):
    """A number above 0; ``inf`` is one, ``nan`` is none. `name` is what messages call it."""

    def __init__(self, name: str) -> None:
        super().__init__(0, min_open=True)
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return number


def is_given(ctx: click.Context, option: str) -> bool:
    """Whether somebody chose the value of an option, by its parameter's name; else it is the usual one."""
    return ctx.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT


def targets(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Targets to complete a value with, the one after its last comma."""
    from click.shell_completion import CompletionItem

    from shardviz.compiler.groups import target_groups

    before, comma, name = incomplete.rpartition(",")
    return [
        CompletionItem(f"{before}{comma}{choice.name}", help=choice.what)
        for group in target_groups()
        for choice in group.choices
        if choice.name.startswith(name)
    ]


def _algorithms(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from shardviz.collectives.algorithms import ALGORITHMS

    return [name for name in ALGORITHMS if name.startswith(incomplete)]


mesh = click.option(
    "--mesh", default=DEFAULT_MESH, show_default=True, metavar="NAME=SIZE,…", help="Axes of the mesh."
)
device_order = click.option(
    "--device-order",
    metavar="ID,…",
    help="Device ids in the mesh's order, or row-major; if none, as jax.make_mesh has it.",
)
dtype = click.option("--dtype", default="bf16", show_default=True, help="Element type, such as f32 or int8.")
sizes = click.option(
    "--sizes",
    metavar="DIM=N,…",
    help="Sizes of dimensions: b=8,d=2k,f=4Ki; without: 1024, 2048, 8192, then 128.",
)
axis_types = click.option(
    "--axis-types",
    type=click.Choice(["auto", "explicit"]),
    default="auto",
    show_default=True,
    help="explicit: JAX's types carry the shardings.",
)
algorithm = click.option(
    "--algorithm",
    metavar="NAME",
    shell_complete=_algorithms,
    help="ring, bruck, halving-doubling, …; --compare lists them.",
)
timeout = click.option(
    "--timeout",
    type=Positive("number of seconds"),
    metavar="SECONDS",
    default=300.0,
    show_default=True,
    help="What each target may take; inf is endless.",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead.")


def links(command: F) -> F:
    """`--latency` and `--bandwidth`: what a message takes on the links that a collective runs over."""
    command = click.option(
        "--bandwidth",
        metavar="RATE",
        help="Of one link, one way; the target's, or a TPU v5e's 45GB/s, if none.",
    )(command)
    return click.option("--latency", metavar="TIME", help="Of one hop of a collective; 1us if none.")(command)


def answers(command: F) -> F:
    """`--round`, `--play`, `--speed` and `--compare`: what of a collective is shown, and how."""
    for option in (
        click.option("--compare", is_flag=True, help="Tabulate every algorithm instead."),
        click.option(
            "--speed",
            type=Positive("speed"),
            metavar="N",
            help="With --play: rounds a second; 1 if none.",
        ),
        click.option("--play", "animate", is_flag=True, help="Play the rounds in place; any key stops."),
        click.option(
            "--round", "number", type=Count(), metavar="N", help="Show one round; 0 is before the first."
        ),
    ):
        command = option(command)
    return command


def _write_plainly(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from shardviz.cli.streams import write_ascii

        write_ascii()


plain = click.option(
    "--plain",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_write_plainly,
    help="Write ASCII alone: no box drawing, no Greek letters.",
)


def page(command: F) -> F:
    """`--width`, `--color` and `--plain`: how the output is laid out."""
    command = click.option(
        "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="When to colour."
    )(plain(command))
    return click.option(
        "--width",
        type=Count(MIN_WIDTH, 1000),
        metavar="COLUMNS",
        help="Columns to use instead of the terminal's.",
    )(command)


def problem_from_options(
    einsum: str,
    mesh: str,
    device_order: str | None,
    specs: str | None,
    sizes: str | None,
    dtype: str,
    axis_types: Literal["auto", "explicit"],
    ranked: bool = False,
) -> Problem:
    """The problem that the options of a command describe; specs of operands may be open where it is `ranked`.

    Raises `QuestionError` for what cannot be one."""
    from shardviz.notation import parse_mesh
    from shardviz.planner import problem_from_text

    if sizes is not None and not sizes.strip():
        raise QuestionError("--sizes is empty", "write b=8,d=2048,f=8192, or leave out --sizes")
    return problem_from_text(
        einsum,
        mesh=parse_mesh(mesh, device_order),
        specs=specs,
        sizes=sizes or "",
        dtype=dtype,
        axis_types=axis_types,
        ranked=ranked,
    )
