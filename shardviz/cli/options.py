"""Options that several commands share, each defined once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shardviz.cli.output import MIN_WIDTH, CommandOutput
from shardviz.cli.streams import write_ascii
from shardviz.errors import QuestionError, quote
from shardviz.forms.form import COLLECTIVE_FIELDS, PROBLEM_FIELDS, TABLE_KEYS, YES_OR_NO, FormField
from shardviz.lazy_names import LazyImports
from shardviz.notation.mesh import parse_mesh

with LazyImports():
    from shardviz.answers import plans
    from shardviz.devices import job as devices_job
    from shardviz.documents import summaries
    from shardviz.hardware import quantities
    from shardviz.reports import entries
    from shardviz.targets import hardware

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from shardviz.forms.examples import Example
    from shardviz.planner.problem import Problem
    from shardviz.reports.changes import ReportSummary
    from shardviz.reports.entries import Sort


F = TypeVar("F", bound=Callable[..., Any])


class Count(click.IntRange):
    """A whole number, of at least `min` where that is given."""

    name = "whole number"

    def _describe_range(self) -> str:
        """The bounds for the help: nothing where there are none, which click would write as ``x<=None``."""
        return "" if self.min is None and self.max is None else super()._describe_range()


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
    """Return whether the user gave an option, by its parameter's name; else it has its default."""
    return ctx.get_parameter_source(option) is not click.core.ParameterSource.DEFAULT


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


def _names(of: Callable[[], Iterable[str]]) -> Callable[..., list[str]]:
    return lambda _ctx, _param, incomplete: [name for name in of() if name.startswith(incomplete)]


def _algorithms() -> Iterable[str]:
    from shardviz.collectives.algorithms import ALGORITHMS

    return ALGORITHMS


def _examples() -> Mapping[str, Example]:
    from shardviz.forms.examples import named_examples

    return named_examples()


def refuse_both(options: Mapping[str, bool], hint: str = "leave out one of them") -> None:
    """Raise `QuestionError` where two of some options are given."""
    first, *others = [option for option, is_given in options.items() if is_given] or [""]
    if others:
        raise QuestionError(f"{first} and {others[0]} cannot be combined", hint)


def _all(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    def add(command: F) -> F:
        return reduce(lambda done, option: option(done), reversed(options), command)

    return add


_COMPLETIONS = {"targets": targets, "machine": targets, "algorithm": _names(_algorithms)}


def of_field(field: FormField, **changes: Any) -> Callable[[F], F]:
    """The option of a form's field; `changes` are this command's own words for it."""
    words: dict[str, Any] = {"default": field.default or None, "show_default": bool(field.default)}
    words |= {"metavar": field.metavar, "help": field.help}
    if field.choices == YES_OR_NO:
        words = {"flag_value": YES_OR_NO[1], "type": str, "default": field.default, "help": field.help}
    elif field.choices:
        words["type"] = click.Choice(field.choices)
    if field.name in _COMPLETIONS:
        words["shell_complete"] = _COMPLETIONS[field.name]
    words |= changes
    if "show_default" in words:
        words["show_default"] = words["default"] is not None
    return click.option(field.flag, **words)


def field(name: str, **changes: Any) -> Callable[[F], F]:
    """The option of a problem's field of that name, as `of_field` has it."""
    return of_field(PROBLEM_FIELDS[name], **changes)


mesh, device_order, dtype, machine = map(field, ("mesh", "device_order", "dtype", "machine"))
algorithm = of_field(COLLECTIVE_FIELDS["algorithm"])


def problem(specs: Callable[[F], F], without: Sequence[str] = (), **target: Any) -> Callable[[F], F]:
    """The options of a problem beside its einsum: a command's own for `specs`, and its words for `target`;
    fields that it is `without` have none."""
    own: dict[str, Callable[[Any], Any]] = {"specs": specs, "targets": field("targets", **target)}
    names = [name for name in TABLE_KEYS if name not in ("einsum", *without)]
    return _all(*(own.get(name) or field(name) for name in names))


collective = _all(
    *(of_field(field) for name, field in COLLECTIVE_FIELDS.items() if name not in ("op", "algorithm")),
    algorithm,
)
"""The options of a collective beside its operation."""
timeout = click.option(
    "--timeout",
    type=Positive("number of seconds"),
    metavar="SECONDS",
    default=300.0,
    show_default=True,
    help="Time limit of each target; inf for none.",
)


def job(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a job of several processes, which the command gets as a `JobAddress` named ``job``."""

    @wraps(command)
    def in_job(
        *given: Any, coordinator: str | None, processes: int | None, process: int | None, **more: Any
    ) -> Any:
        address = devices_job.job_address(coordinator, processes, process)
        return command(*given, job=address, **more)

    add = _all(
        click.option(
            "--coordinator",
            metavar="HOST:PORT",
            help="Where the processes of a job meet: process 0's host and a free port of it; "
            "default: found by JAX under srun, mpirun, Kubernetes and on Cloud TPU.",
        ),
        click.option("--processes", type=Count(1), metavar="N", help="How many processes the job has."),
        click.option("--process", type=Count(0), metavar="I", help="The number of this one, from 0."),
    )
    return add(in_job)


links = _all(
    click.option("--latency", metavar="TIME", help="Latency of one hop of a collective; default: 1us."),
    click.option(
        "--bandwidth",
        metavar="RATE",
        help="Bandwidth of one link, one way; default: the target's, or a TPU v5e's 45GB/s.",
    ),
)
"""The links that a collective runs over."""
rounds = _all(
    click.option(
        "--round", "number", type=Count(), metavar="N", help="Show one round; 0 is before the first."
    ),
    click.option(
        "--transfers", is_flag=True, help="List every message: from, to, chunks, values, bytes, links, time."
    ),
    click.option("--compare", is_flag=True, help="Show a table of all algorithms instead."),
)
"""The part of a collective that is shown, and how."""


def selection(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of what is listed of a program, which the command gets as a `Selection` named
    ``selection``."""

    @wraps(command)
    def with_selection(
        *given: Any,
        sort: Sort,
        top: int | None,
        ops: tuple[str, ...],
        axes: tuple[str, ...],
        least_bytes: str | None,
        source: str,
        **more: Any,
    ) -> Any:
        least = 0 if least_bytes is None else quantities.SIZE.parse(least_bytes)
        chosen = entries.Selection(sort, top, ops, axes, least, source)
        return command(*given, selection=chosen, **more)

    add = _all(
        click.option(
            "--sort",
            type=click.Choice(("cost", "order", "bytes")),
            default="cost",
            show_default=True,
            help="The most expensive first, or in the program's order, or by bytes sent.",
        ),
        click.option("--top", type=Count(1), metavar="N", help="Show so many lines of collectives."),
        click.option(
            "--op", "ops", multiple=True, metavar="OP", help="Only this operation; may be given again."
        ),
        click.option(
            "--axis",
            "axes",
            multiple=True,
            metavar="AXIS",
            help="Only over this mesh axis; may be given again.",
        ),
        click.option(
            "--min-bytes",
            "least_bytes",
            metavar="SIZE",
            help="Only what moves at least 1MiB, say, in all its runs.",
        ),
        click.option(
            "--source",
            default="",
            metavar="PLACE",
            help="Only from a file, a line such as step.py:12, a scope or an argument.",
        ),
    )
    return add(with_selection)


trips = click.option(
    "--trips", metavar="LOOP=N,…", help="How often loops run whose length the program does not tell."
)


class SummaryPath(click.ParamType):  # type: ignore[type-arg]
    """The file of a summary: one that is not there, is empty or has another summary. It is looked at before
    anything is compiled, and a program that was named by mistake is not lost."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            # A link stays one: what it names is written.
            path = Path(value).resolve()
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
        if taken or value == "-":
            self.fail(f"{quote(str(value))} {taken or 'is not the name of a file'}", param, ctx)
        return path


save = click.option(
    "--save",
    type=SummaryPath(),
    metavar="FILE",
    help="Keep all collectives, seconds and memory in FILE too, for shardviz diff.",
)


def keep(path: Path, summary: ReportSummary, unread: Sequence[str]) -> None:
    """Write a program, or several that run one after the other. Raises `QuestionError` where that fails, and
    where not all of them could be read: what is kept would be short."""
    if unread:
        problem = f"{quote(str(path))} is not written: {unread[0]}"
        raise QuestionError(problem, "it would not have the whole program")
    summaries.save_summary(summary, path)


def _write_plainly(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        write_ascii()


plain = click.option(
    "--plain",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_write_plainly,
    help="Write ASCII alone: no box drawing, no Greek letters.",
)


def _take_example(ctx: click.Context, _param: click.Parameter, name: str | None) -> None:
    """Have the fields of an example stand for options that are not given; without a name, list all."""
    if name is None or ctx.resilient_parsing:
        return
    from shardviz.forms.examples import named_example

    if not name:
        for example in _examples().values():
            click.echo(f"{example.name:10} {example.title}")
        ctx.exit()
    fields = named_example(name).options
    ctx.default_map = {"program": fields["einsum"], **fields}


def _refuse_beside_example(ctx: click.Context, param: click.Parameter, given: str) -> str:
    source = ctx.get_parameter_source(param.name or "")
    if ctx.default_map and source is click.core.ParameterSource.COMMANDLINE:
        raise QuestionError(f"{quote(given)} and --example are two programs", "leave out one of them")
    return given


def program(name: str) -> Callable[[F], F]:
    """The argument that is a program, called `name`, or an example in its place, whose fields stand for
    options that are not given."""
    return _all(
        click.argument(name, callback=_refuse_beside_example),
        click.option(
            "--example",
            is_flag=False,
            flag_value="",
            is_eager=True,
            expose_value=False,
            metavar="[NAME]",
            callback=_take_example,
            shell_complete=_names(_examples),
            help="A layer that ships, with its mesh, sizes and specs; without a name, list all.",
        ),
    )


def output(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of the output, which the command gets as an `CommandOutput` named ``output``."""

    @wraps(command)
    def shown(*given: Any, as_json: bool, width: int | None, color: str, **more: Any) -> Any:
        return command(*given, output=CommandOutput(as_json, width, color), **more)

    add = _all(
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead."),
        click.option(
            "--width",
            type=Count(MIN_WIDTH, 1000),
            metavar="COLUMNS",
            help="Columns to use instead of the terminal's.",
        ),
        click.option(
            "--color",
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="Colour: auto, always or never.",
        ),
        plain,
    )
    return add(shown)


OF_PROBLEM = [name for name in TABLE_KEYS if name not in ("einsum", "specs", "targets", "machine")]
"""The options that state a problem beside its einsum and specs."""


def stated_problem(einsum: str, specs: str | None, given: Mapping[str, Any], ranked: bool = False) -> Problem:
    """The problem of a command's options; specs of operands may be open where it is `ranked`. Raises
    `QuestionError` for options that do not state one."""
    words = {name: given[name] for name in OF_PROBLEM if name in given}
    mesh = parse_mesh(words.pop("mesh"), words.pop("device_order"))
    sizes, backward = words.pop("sizes"), words.pop("backward", "no") == "yes"
    if sizes is not None and not sizes.strip():
        raise QuestionError("--sizes is empty", "write b=8,d=2048,f=8192, or leave out --sizes")
    if ranked and backward:
        problem = "--backward is about one sharding of the arrays, and a ranking has many"
        raise QuestionError(problem, "give --specs 'XY,Y_->X_'")
    return plans.problem_of(
        einsum, mesh, specs=specs, sizes=sizes or "", backward=backward, ranked=ranked, **words
    )
