"""`shardviz program`: a function of the user's own, compiled for hardware that is not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli import options
from shardviz.cli.group import ExampleCommand
from shardviz.cli.output import CommandOutput, print_json, working
from shardviz.errors import QuestionError, TargetError, quote
from shardviz.forms.form import PROBLEM_FIELDS

if TYPE_CHECKING:
    from shardviz.compiler.target_program import TargetProgram
    from shardviz.hardware.machine import Machine
    from shardviz.reports.selection import Selection
    from shardviz.reports.suggestions import Suggestion
    from shardviz.reports.why import Reason

EXAMPLES = (
    (
        "A train step that ships with shardviz, on 16 simulated devices",
        "shardviz program train_step --mesh data=4,model=4",
    ),
    (
        "Your own on two kinds of TPU, side by side",
        "shardviz program step.py:step --mesh data=4 --target v5e:2x2,v5p:2x2x1",
    ),
    (
        "Why its collectives are there, and what avoids them",
        "shardviz program train_step --mesh data=4,model=4 --why",
    ),
    (
        "What runs when, and live memory",
        "shardviz program step.py:step --mesh data=4 --target v5e:2x2 --time",
    ),
)


class CompilerOption(click.ParamType):  # type: ignore[type-arg]
    """``NAME=VALUE``, an option of a compiler."""

    name = "option"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).removeprefix("--").partition("=")
        if not name or not equals:
            self.fail(
                f"{quote(str(value))} is not an option with its value, such as xla_name=true", param, ctx
            )
        return name, text


@click.command(cls=ExampleCommand, examples=EXAMPLES)
@click.argument("function", metavar="FILE.py:FUNCTION")
@options.of_field(PROBLEM_FIELDS["mesh"], default=None, show_default=False)
@options.of_field(
    PROBLEM_FIELDS["targets"],
    default="cpu",
    show_default=True,
    shell_complete=options.targets,
    help="Hardware to compile for, comma-separated.",
)
@options.of_field(PROBLEM_FIELDS["axis_types"])
@click.option(
    "--option",
    "compiler_options",
    type=CompilerOption(),
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the compiler, such as xla_enable_async_all_gather=true; may be given again.",
)
@options.selection
@click.option(
    "--why", "with_reasons", is_flag=True, help="Show why each collective is there, and what avoids it."
)
@options.of_field(
    PROBLEM_FIELDS["machine"],
    shell_complete=options.targets,
    help="Hardware that times are for, or FILE.toml; default: the target's.",
)
@click.option(
    "--time", "with_times", is_flag=True, help="Show when each instruction runs instead, and live memory."
)
@options.timeout
@options.output
def command(
    function: str,
    mesh: str | None,
    target: str,
    axis_types: str,
    compiler_options: Sequence[tuple[str, str]],
    selection: Selection,
    with_reasons: bool,
    machine: str | None,
    with_times: bool,
    timeout: float,
    output: CommandOutput,
) -> int:
    """List the collectives of your own function on hardware that you do not have.

    FUNCTION takes a jax mesh of the axes and sizes of --mesh, and returns the function to compile and its
    arguments: return step, params, batch. Arguments are arrays or jax.ShapeDtypeStruct, with shardings.

    This runs FILE.py, in a process of its own, with simulated devices; the function itself is traced and
    compiled, not run. In place of FILE.py:FUNCTION the name of an example does: train_step.
    """
    from shardviz.cli.target_session import ProgramSession
    from shardviz.compiler import check_mesh, parse_targets
    from shardviz.compiler.suggesting import dearest_reasons
    from shardviz.compiler.user_file import find_function
    from shardviz.hardware.machine_file import named_machine
    from shardviz.notation import parse_mesh

    targets = parse_targets(target)
    if not targets:
        raise TargetError("a program is compiled for a target, and none is named", "give --target v5e:4x4")
    if mesh is None:
        raise QuestionError("a program needs a mesh", "add --mesh data=4,model=4, or another")
    wanted = parse_mesh(mesh)
    if len(targets) == 1:
        check_mesh(targets[0], wanted)
    on = None if machine is None else named_machine(machine)
    file, name = find_function(function)
    with ProgramSession(targets, timeout) as session:
        program = session.run_file(file, name, wanted, axis_types)
        session.ask(program, dict(compiler_options), with_costs=with_times)
        found = [*session.programs()]
        tried: list[dict[Reason, Suggestion]] = []
        if with_reasons:
            with working("trying other shardings on Shardy"):
                tried = [session.suggestions(program, dearest_reasons(each)) for each in found]
        _show(name, found, on, with_times, selection, tried, output)
        return session.exit_code


def _show(
    name: str,
    programs: Sequence[TargetProgram],
    machine: Machine | None,
    with_times: bool,
    selection: Selection,
    tried: Sequence[Mapping[Reason, Suggestion]],
    output: CommandOutput,
) -> None:
    """Print one target's page, or a line for each of several with what costs most in each; then the times.
    What was `tried` of each target's collectives makes its page longer."""
    from shardviz.reports.entries import entries_of

    for each in programs:
        if each.module is not None:
            selection.check(entries_of(each.module), each.mesh)
    told = [each.times(machine) for each in programs]
    timed = [
        (each, None if times.times is None else times.times.model)
        for each, times in zip(programs, told, strict=True)
    ]
    if output.as_json:
        from shardviz.documents.programs import program_document

        print_json(program_document(name, timed, with_times, selection, tried))
        return
    from shardviz.render.programs.program_view import program_view, programs_view

    width = output.width
    if len(programs) > 1:
        output.show(programs_view(timed, width, output.palette, selection))
    elif not with_times or programs[0].module is None:
        output.show(program_view(*timed[0], width, output.palette, selection, tried[0] if tried else None))
    if with_times:
        from shardviz.render.programs.program_view import program_lines
        from shardviz.render.times.tellers import target_times_view

        for each, times in zip(programs, told, strict=True):
            if each.module is not None:
                head = program_lines(each, width, output.palette)
                output.show([*head, *target_times_view(times, width, output.palette)])
