"""`shardviz step`: a collective, round by round, value by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
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


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@click.argument("operation", metavar="OP")
@options.mesh
@options.collective
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
    help="Devices on which JAX verifies: cpu, real or none; cpu if not given.",
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
    """Step through a collective: which device sends what to which in every round, and what each then holds.

    OP is JAX's name: all_gather, psum, pmean, pmax, pmin, psum_scatter, all_to_all, ppermute, pbroadcast or
    ragged_all_to_all.
    """
    from shardviz.cli.step_output import StepOptions, Verifier, print_step

    check_operation(operation, parameters)
    shown = StepOptions(number, animate, speed, compare, as_json, width, color)
    shown.check(on)
    # JAX loads in a process of its own while this one computes and draws.
    with Verifier("none" if compare else on, timeout) as verifier:
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
        return print_step(question, links, verifier, shown)
