"""Options that several commands share, each defined once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shardviz.cli.output import MIN_WIDTH, CommandOutput
from shardviz.cli.streams import write_ascii
from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.forms.form import COLLECTIVE_FIELDS, PROBLEM_FIELDS, TABLE_KEYS, YES_OR_NO, FormField
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh
from shardviz.targets import Target, parse_targets

with LazyImports():
    from shardviz.answers import plans
    from shardviz.devices import job as devices_job
    from shardviz.documents import summaries
    from shardviz.forms import examples
    from shardviz.hardware import quantities
    from shardviz.reports import entries
    from shardviz.targets import hardware

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from shardviz.planner.problem import Problem
    from shardviz.reports.changes import ReportSummary
    from shardviz.sharding import Mesh


F = TypeVar("F", bound=Callable[..., Any])
Command = Callable[[Callable[..., Any]], Callable[..., Any]]
"""What makes another function of the function of a command."""


class Count(click.IntRange):
    """A whole number, of at least `min` where that is given."""

    name = "whole number"

    def _describe_range(self) -> str:
        """The bounds for the help: nothing where there are none, which click would write as ``x<=None``."""
        return "" if self.min is None and self.max is None else super()._describe_range()


class Seconds(click.FloatRange):
    """A number above 0; ``inf`` is one, ``nan`` is none."""

    name = "number of seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a valid {self.name}.", param, ctx)
        return number


def option(names: str, metavar: str | None, words: str, **more: Any) -> Callable[[F], F]:
    """An option by its names, such as ``--op ops``, with the `words` of its help, which a default ends."""
    shown = bool(more.get("default"))
    return click.option(*names.split(), metavar=metavar, help=words, show_default=shown, **more)


def flag(names: str, words: str) -> Callable[[F], F]:
    """An option without a value, as `option` has it."""
    return click.option(*names.split(), is_flag=True, help=words)


def count(
    names: str, words: str, least: int | None = None, most: int | None = None, **more: Any
) -> Callable[[F], F]:
    """An option that is a whole number between two limits, as `option` has it."""
    return option(names, more.pop("metavar", "N"), words, type=Count(least, most), **more)


def is_given(ctx: click.Context, option: str) -> bool:
    """Return whether the user gave an option, by its parameter's name; else it has its default."""
    return ctx.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT


def given_options(ctx: click.Context) -> list[str]:
    """The options, by their first flags, and arguments that the user gave, in the command's order."""
    return [param.opts[0] for param in ctx.command.params if is_given(ctx, str(param.name))]


def targets(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    """Targets to complete a value with, the one after its last comma."""
    from click.shell_completion import CompletionItem

    before, comma, name = incomplete.rpartition(",")
    return [
        CompletionItem(f"{before}{comma}{choice.name}", help=choice.what)
        for group in hardware.target_groups()
        for choice in group.choices
        if choice.name.startswith(name)
    ]


def asked_targets(names: str, mesh: str | None) -> tuple[Target, ...]:
    """The targets; a chip without a size is refused with those that fit the mesh, where that can be read."""
    devices = 0
    with suppress(ShardvizError):
        devices = parse_mesh(mesh or "").size
    return parse_targets(names, devices)


def asked_mesh(mesh: str | None, device_order: str | None) -> Mesh | None:
    """The mesh that is named, if one is. Raises `QuestionError` for an order of devices without one."""
    if mesh is None and device_order is not None:
        raise QuestionError("--device-order needs a mesh", "add --mesh X=2,Y=4")
    return None if mesh is None else parse_mesh(mesh, device_order)


def _names(of: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    return lambda _ctx, _param, incomplete: [name for name in of() if name.startswith(incomplete)]


def _algorithms() -> Iterable[str]:
    from shardviz.collectives.algorithms import ALGORITHMS

    return ALGORITHMS


def refuse_both(options: Mapping[str, bool], hint: str = "leave out one of them") -> None:
    """Raise `QuestionError` where two of some options are given."""
    first, *others = [option for option, is_given in options.items() if is_given] or [""]
    if others:
        raise QuestionError(f"{first} and {others[0]} cannot be combined", hint)


def _all(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    def add(command: F) -> F:
        return reduce(lambda done, option: option(done), reversed(options), command)

    return add


def _gathered(name: str, of: Callable[..., Any], names: str, *options: Callable[[Any], Any]) -> Command:
    """Options that a command gets as one value of that name, which `of` makes of theirs, by their `names`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def gathering(*given: Any, **more: Any) -> Any:
            made = of(*[more.pop(option) for option in names.split()])
            return command(*given, **{name: made}, **more)

        return _all(*options)(gathering)

    return add


_METAVARS = {"targets": "NAME,…", "spec": "SPEC", "specs": "SPECS"}
"""The metavars of fields that name none, where their value is more than a name."""
_COMPLETIONS = {"targets": targets, "machine": targets, "algorithm": _names(_algorithms)}


def of_field(field: FormField, **changes: Any) -> Callable[[F], F]:
    """The option of a form's field; `changes` are this command's own words for it."""
    metavar = field.metavar or _METAVARS.get(field.name, "NAME")
    words: dict[str, Any] = {"default": field.default or None, "metavar": metavar, "help": field.help}
    if field.choices == YES_OR_NO:
        words = {"flag_value": YES_OR_NO[1], "type": str, "default": field.default, "help": field.help}
    elif field.choices:
        words |= {"type": click.Choice(field.choices), "metavar": field.metavar}
    words |= {"shell_complete": _COMPLETIONS.get(field.name)} | changes
    return click.option(
        field.flag, show_default="flag_value" not in words and words["default"] is not None, **words
    )


def field(name: str, **changes: Any) -> Callable[[F], F]:
    """The option of a problem's field of that name, as `of_field` has it."""
    return of_field(PROBLEM_FIELDS[name], **changes)


mesh, device_order, machine = map(field, ("mesh", "device_order", "machine"))
load = option(
    "--load",
    "FACTOR[,CAPACITY]",
    "Tokens of a model's fullest expert, by the mean; perhaps the most that an expert takes, too: 1.5,1.25.",
    default="",
)
dtype = field("dtype", metavar="NAME", help="Element type, such as f32 or int8.")
"""That of one array; those of a problem are the field's."""
algorithm = of_field(COLLECTIVE_FIELDS["algorithm"])


def problem(specs: Callable[[F], F], without: Sequence[str] = (), **target: Any) -> Callable[[F], F]:
    """The options of a problem beside its einsum; a command has its own `specs`, and words for `target`."""
    own: dict[str, Callable[[Any], Any]] = {"specs": specs, "targets": field("targets", **target)}
    names = [name for name in TABLE_KEYS if name not in ("einsum", *without)]
    return _all(*(own.get(name) or field(name) for name in names))


collective = _all(
    *(of_field(field) for name, field in COLLECTIVE_FIELDS.items() if name not in ("op", "algorithm")),
    algorithm,
)
"""The options of a collective beside its operation."""
timeout = option(
    "--timeout",
    "SECONDS",
    "Time limit per target; inf for none.",
    type=Seconds(0, min_open=True),
    default=300.0,
)
job = _gathered(
    "job",
    lambda *given: devices_job.job_address(*given),
    "coordinator processes process",
    option(
        "--coordinator",
        "HOST:PORT",
        "Address of process 0: its host and a free port; default: JAX's, under srun, mpirun, Kubernetes and "
        "on Cloud TPU.",
    ),
    count("--processes", "Number of processes in the job.", 1),
    count("--process", "Number of this process, from 0.", 0),
)
"""The options of a job of several processes, which a command gets as a `JobAddress`."""
links = _all(
    option("--latency", "TIME", "Latency per hop of a collective; default: 1us."),
    option(
        "--bandwidth", "RATE", "Bandwidth per link, one way; default: the target's, or a TPU v5e's 45GB/s."
    ),
)
"""The links that a collective runs over."""
rounds = _all(
    count("--round number", "Show one round; 0 is the state before the first."),
    flag("--compare", "Show a table of all algorithms instead."),
)
"""The part of a collective that is shown, and how."""


selection = _gathered(
    "selection",
    lambda *given: entries.Selection(*given),
    "sort top ops axes least_bytes source",
    option(
        "--sort",
        None,
        "Order: most expensive first, program order, or most bytes sent.",
        type=click.Choice(("cost", "order", "bytes")),
        default="cost",
    ),
    count("--top", "Number of lines of collectives to show.", 1),
    option("--op ops", "OP", "Show only this operation; may be repeated.", multiple=True),
    option("--axis axes", "AXIS", "Show only this mesh axis; may be repeated.", multiple=True),
    option(
        "--min-bytes least_bytes",
        "SIZE",
        "Show only what moves at least SIZE over all runs.",
        callback=lambda _ctx, _param, least: 0 if least is None else quantities.SIZE.parse(least),
    ),
    option(
        "--source",
        "PLACE",
        "Show only what comes from a file, a line such as step.py:12, a scope or an argument.",
        default="",
    ),
)
"""The options of what is listed of a program, which a command gets as a `Selection`."""
trips = option("--trips", "LOOP=N,…", "Trip counts of loops, if the program does not show them.")


def _summary_path(ctx: click.Context, param: click.Parameter, name: str | None) -> Path | None:
    """The file of a summary: one that is not there, is empty or has another summary. It is looked at before
    anything is compiled, and a program that was named by mistake is not lost."""
    if name is None:
        return None
    try:
        # A link stays one: what it names is written.
        path = Path(name).resolve()
        if not path.exists():
            taken = ""
        elif not path.is_file():
            taken = "is not a file"
        else:
            with path.open(encoding="utf-8", errors="replace") as file:
                head = file.read(summaries.HEAD)
            taken = "" if not head.strip() or summaries.says_summary(head) else "holds something else"
    except (OSError, ValueError) as error:
        taken = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if taken or name == "-":
        raise click.BadParameter(f"{quote(name)} {taken or 'is not the name of a file'}", ctx, param)
    return path


save = option(
    "--save",
    "FILE",
    "Also save all collectives, seconds and memory to FILE, for shardviz diff.",
    callback=_summary_path,
)


def keep(path: Path, summary: ReportSummary, unread: Sequence[str]) -> None:
    """Write a program, or several that run one after the other. Raises `QuestionError` where that fails, and
    where not all of them could be read: what is kept would be short."""
    if unread:
        raise QuestionError(f"{quote(str(path))} is not written: {unread[0]}", "it would be incomplete")
    summaries.save_summary(summary, path)


plain = option(
    "--plain",
    None,
    "Write only ASCII: no box drawing, no Greek letters.",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda ctx, _param, wanted: write_ascii() if wanted and not ctx.resilient_parsing else None,
)


def _take_example(ctx: click.Context, _param: click.Parameter, name: str | None) -> None:
    """Have the fields of an example stand for options that are not given; without a name, list all."""
    if name is None or ctx.resilient_parsing:
        return
    if not name:
        for example in examples.named_examples().values():
            click.echo(f"{example.name:10} {example.title}")
        ctx.exit()
    fields = examples.named_example(name).options
    ctx.default_map = {"program": fields["einsum"], **fields}


def _refuse_beside_example(ctx: click.Context, param: click.Parameter, given: str) -> str:
    source = ctx.get_parameter_source(param.name or "")
    if ctx.default_map and source is click.core.ParameterSource.COMMANDLINE:
        raise QuestionError(f"{quote(given)} and --example cannot be combined", "leave out one of them")
    return given


def program(name: str) -> Callable[[F], F]:
    """The argument that is a program, called `name`, or an example, which brings its own options."""
    return _all(
        click.argument(name, callback=_refuse_beside_example),
        option(
            "--example",
            "[NAME]",
            "An example layer with its mesh, sizes and specs; without a name, list all.",
            is_flag=False,
            flag_value="",
            is_eager=True,
            expose_value=False,
            callback=_take_example,
            shell_complete=_names(lambda: examples.named_examples()),
        ),
    )


_OUTPUT = (
    flag("--json as_json", "Print one JSON object instead."),
    count("--width", "Columns to use; default: the terminal's.", MIN_WIDTH, 1000),
    option("--color", None, "Colours.", type=click.Choice(["auto", "always", "never"]), default="auto"),
    plain,
)
output = _gathered("output", CommandOutput, "as_json width color", *_OUTPUT)
"""The options of the output, which a command gets as a `CommandOutput`."""
long_output = _gathered(
    "output",
    CommandOutput,
    "as_json width color verbose",
    flag("-v --verbose", "Show everything: reasons, arithmetic, links, assumptions."),
    *_OUTPUT,
)
"""The same of a command whose page is its answer alone unless everything is asked for."""


def stated_problem(einsum: str, specs: str | None, given: Mapping[str, Any], ranked: bool = False) -> Problem:
    """The problem of options; operands may be open where it is `ranked`. Raises `QuestionError` for none."""
    words = {name: given[name] for name in TABLE_KEYS if name in given}
    for name in ("einsum", "specs", "targets", "machine"):
        words.pop(name, None)
    mesh = parse_mesh(words.pop("mesh"), words.pop("device_order"))
    sizes, backward = words.pop("sizes"), words.pop("backward", "no") == "yes"
    if sizes is not None and not sizes.strip():
        raise QuestionError("--sizes is empty", "write b=8,d=2048,f=8192, or leave out --sizes")
    if ranked and backward:
        raise QuestionError("--backward needs one sharding, not a ranking", "give --specs 'XY,Y_->X_'")
    return plans.problem_of(
        einsum, mesh, specs=specs, sizes=sizes or "", backward=backward, ranked=ranked, **words
    )
