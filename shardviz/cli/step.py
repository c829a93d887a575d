"""`shardviz step`: a collective, round by round, value by value."""

from __future__ import annotations

from typing import Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand

EXAMPLES = (
    ("Four numbers, gathered around a ring", "shardviz step all_gather --mesh i=4 --data 3,9,5,2"),
    ("An all-reduce: reduce-scatter, then all-gather", "shardviz step psum --mesh i=4"),
    ("Every algorithm for it, on eight devices", "shardviz step psum --mesh i=8 --compare"),
)
MAX_PIECES = 1024


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@click.argument("operation", metavar="OP")
@options.mesh
@options.collective
@click.option(
    "--pieces", type=options.Count(1, MAX_PIECES), metavar="N", help="How many pieces a pipeline sends."
)
@click.option(
    "--gather-dimension", type=options.Count(), metavar="N", help="all_gather: the dimension that grows."
)
@click.option(
    "--scatter-dimension", type=options.Count(), metavar="N", help="psum_scatter: the dimension that is cut."
)
@click.option(
    "--split-axis", type=options.Count(), metavar="N", help="all_to_all: the dimension that is cut."
)
@click.option(
    "--concat-axis", type=options.Count(), metavar="N", help="all_to_all: the dimension that grows."
)
@click.option("--untiled", is_flag=True, help="JAX's tiled=False: devices get a dimension of their own.")
@click.option("--perm", metavar="(N,N),…", help="ppermute: who sends to whom.")
@click.option("--source", type=options.Count(), metavar="N", help="pbroadcast: who sends.")
@click.option("--send-sizes", metavar="N,N;…", help="ragged_all_to_all: rows from each device to each.")
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
    from shardviz.stepping.parameters import check_operation

    check_operation(operation, parameters)
    shown = StepOptions(number, animate, speed, compare, as_json, width, color)
    shown.check(on)
    # JAX loads in a process of its own while this one computes and draws.
    with Verifier("none" if compare else on, timeout) as verifier:
        from shardviz.notation import parse_mesh
        from shardviz.stepping.links import links_from_text
        from shardviz.stepping.question_text import question_from_options

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
