"""`shardviz step`: a collective, round by round, value by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from shardviz.cli import options
from shardviz.cli.group import Command
from shardviz.collectives.operations import PARAMETERS, check_operation, takers

EXAMPLES = (
    ("Four numbers, gathered around a ring", "shardviz step all_gather --mesh i=4 --data 3,9,5,2"),
    ("An all-reduce: reduce-scatter, then all-gather", "shardviz step psum --mesh i=4"),
    ("Every algorithm for it, on eight devices", "shardviz step psum --mesh i=8 --compare"),
)
MAX_PIECES = 1024


def _parameters(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command an option for every parameter of an operation."""
    for parameter in reversed(PARAMETERS.values()):
        operation, *others = takers(parameter)
        text = f"{parameter.help}." if others else f"{operation}: {parameter.help}."
        if parameter.kind is bool:
            option = click.option(parameter.flag, is_flag=True, help=text)
        else:
            kind = options.Count() if parameter.kind is int else parameter.kind
            option = click.option(parameter.flag, type=kind, metavar=parameter.metavar, help=text)
        command = option(command)
    return command


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("operation", metavar="OP")
@options.mesh
@click.option("--axis", metavar="NAME,…", help="Mesh axes, the major one first; all of them if none.")
@click.option("--data", metavar="N,…", help="The whole array's numbers in rows; 0, 1, 2, … if none.")
@click.option("--shape", metavar="NxN", help="The whole array's shape; one dimension if none.")
@click.option("--spec", help="How it is split, in any notation; dimension 0 over all axes if none.")
@click.option("--dtype", help="Element type; s32 for whole numbers, f32 for others if none.")
@options.algorithm
@click.option(
    "--pieces", type=options.Count(1, MAX_PIECES), metavar="N", help="How many pieces a pipeline sends."
)
@_parameters
@options.answers
@click.option(
    "--topology", metavar="NAME", help="Links: ring, line, torus, switch, 4x4; a ring or a torus if none."
)
@options.links
@click.option(
    "--on",
    type=click.Choice(["cpu", "real", "none"]),
    help="Who verifies: cpu, real or none; cpu if JAX is there.",
)
@options.timeout
@options.as_json
@options.page
def command(
    operation: str,
    mesh: str,
    axis: str | None,
    data: str | None,
    shape: str | None,
    spec: str | None,
    dtype: str | None,
    algorithm: str | None,
    pieces: int | None,
    number: int | None,
    animate: bool,
    speed: float | None,
    compare: bool,
    topology: str | None,
    latency: str | None,
    bandwidth: str | None,
    on: str | None,
    timeout: float,
    as_json: bool,
    width: int | None,
    color: str,
    **parameters: Any,
) -> int:
    """Step through a collective: who sends what to whom in every round, and what each device then holds.

    OP is JAX's name: all_gather, psum, pmean, pmax, pmin, psum_scatter, all_to_all, ppermute, pbroadcast or
    ragged_all_to_all.
    """
    from shardviz.cli.judge import Judge
    from shardviz.cli.presenting import Manner, present

    check_operation(operation, parameters)
    manner = Manner(number, animate, speed, compare, as_json, width, color)
    manner.check(on)
    # JAX loads in a process of its own while this one computes and draws.
    with Judge.begin("none" if compare else on, timeout) as judge:
        from shardviz.hardware.links import links_from_text
        from shardviz.notation import parse_mesh
        from shardviz.stepping.question import question_from_options

        question = question_from_options(
            operation,
            parameters,
            mesh=parse_mesh(mesh),
            axis=axis,
            data=data,
            shape=shape,
            spec=spec,
            dtype=dtype,
            algorithm=algorithm,
            pieces=pieces,
        )
        links = links_from_text(question.schedule.pattern.dims, topology, latency, bandwidth)
        return present(question, links, judge, manner)
