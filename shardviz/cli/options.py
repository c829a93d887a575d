"""The options of the commands: the lines of `commands.txt` as click has them, and what several commands do
with their values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from shardviz.cli.group import SECTIONS, ExampleCommand
from shardviz.cli.output import CommandOutput
from shardviz.cli.streams import write_ascii
from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.forms.form import COLLECTIVE_FIELDS, PROBLEM_FIELDS, SPECS, TABLE_KEYS, YES_OR_NO, FormField
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


Settings = Mapping[str, Mapping[str, Any]]
"""What click has to know of some options beyond `commands.txt`, by the names of their parameters."""


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


def keep(path: Path, summary: ReportSummary, unread: Sequence[str]) -> None:
    """Write a program, or several that run one after the other. Raises `QuestionError` where that fails, and
    where not all of them could be read: what is kept would be short."""
    if unread:
        raise QuestionError(f"{quote(str(path))} is not written: {unread[0]}", "it would be incomplete")
    summaries.save_summary(summary, path)


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


def refuse_beside_example(ctx: click.Context, param: click.Parameter, given: str) -> str:
    """The program that a user gave. Raises `QuestionError` for one beside an example, which has its own."""
    source = ctx.get_parameter_source(param.name or "")
    if ctx.default_map and source is click.core.ParameterSource.COMMANDLINE:
        raise QuestionError(f"{quote(given)} and --example cannot be combined", "leave out one of them")
    return given


_SETTINGS: Settings = {
    "example": {
        "flag_value": "",
        "is_eager": True,
        "expose_value": False,
        "callback": _take_example,
        "shell_complete": _names(lambda: examples.named_examples()),
    },
    "least_bytes": {"callback": lambda *told: 0 if told[-1] is None else quantities.SIZE.parse(told[-1])},
    "save": {"callback": _summary_path},
    "plain": {
        "is_eager": True,
        "expose_value": False,
        "callback": lambda ctx, _, is_so: write_ascii() if is_so and not ctx.resilient_parsing else None,
    },
}
"""Those of sections that commands share."""
_GATHERED: dict[str, tuple[str, Callable[..., Any]]] = {
    "@job": ("job", lambda *given: devices_job.job_address(*given)),
    "@selection": ("selection", lambda *given: entries.Selection(*given)),
    "@output": ("output", CommandOutput),
    "@long_output": ("output", lambda verbose, *given: replace(CommandOutput(*given), verbose=verbose)),
}
"""Sections that a command gets as one value: its name, and what makes it of theirs, in their order."""
_COMPLETIONS = {"targets": targets, "machine": targets, "algorithm": _names(_algorithms)}
_METAVARS = {"targets": "NAME,…", "spec": "SPEC"}
"""The metavars of fields that name none, where their value is more than a name."""


def command(
    name: str, settings: Settings | None = None, **of_command: Any
) -> Callable[[Callable[..., Any]], ExampleCommand]:
    """Make a command of a function: its arguments, then the options of the section of that name."""

    def make(function: Callable[..., Any]) -> ExampleCommand:
        own, arguments = [*_options(name, settings)], getattr(function, "__click_params__", [])
        for section in " ".join(SECTIONS[name][1]).split():
            if section in _GATHERED:
                function = _gathering(function, section)
        function.__click_params__ = [*reversed(own), *arguments]  # type: ignore[attr-defined]
        return click.command(name, cls=ExampleCommand, **of_command)(function)

    return make


def _gathering(function: Callable[..., Any], section: str) -> Callable[..., Any]:
    """The function, which gets the options of a section as one value."""
    name, made = _GATHERED[section]
    parts = [str(option.name) for option in _options(section) if option.expose_value]

    @wraps(function)
    def gathering(*given: Any, **more: Any) -> Any:
        value = made(*[more.pop(part) for part in parts])
        return function(*given, **{name: value}, **more)

    return gathering


def _options(section: str, settings: Settings | None = None) -> Iterator[click.Option]:
    """The options of a section, and of those that it names, in their order."""
    known = _SETTINGS if section.startswith("@") else settings or {}
    for line in SECTIONS[section][1]:
        names, *cells = map(str.strip, re.split(r" \|(?= |$)", line))
        if names.startswith("-"):
            yield _option(names.split(), {}, cells, known)
            continue
        for name in names.split():
            if name.startswith("@"):
                yield from _options(name)
            elif name == "parameters":
                yield from _of_parameters()
            elif name == "collective":
                others = (each for each in COLLECTIVE_FIELDS if each not in ("op", "algorithm"))
                yield from (_of_field(COLLECTIVE_FIELDS[each]) for each in (*others, "algorithm"))
            else:
                own = {**COLLECTIVE_FIELDS, **PROBLEM_FIELDS, "specs": SPECS}[name]
                yield _of_field(own, cells, known)


def _of_parameters() -> Iterator[click.Option]:
    """The options of the parameters that only some collectives take."""
    from shardviz.collectives.operations import OPERATIONS, PARAMETERS

    for parameter in PARAMETERS.values():
        operation, *others = (name for name, kind in OPERATIONS.items() if parameter in kind.takes)
        told: dict[str, Any] = {"help": f"{parameter.help}." if others else f"{operation}: {parameter.help}."}
        if parameter.kind is bool:
            told["is_flag"] = True
        else:
            kind = Count() if parameter.kind is int else parameter.kind
            told |= {"type": kind, "metavar": parameter.metavar}
        yield click.Option([parameter.flag], **told)


def _of_field(field: FormField, cells: Sequence[str] = (), settings: Settings | None = None) -> click.Option:
    """The option of a form's field, for which a line may have other words in its cells."""
    told: dict[str, Any] = {"default": field.default or None, "help": field.help}
    if field.choices == YES_OR_NO:
        told |= {"flag_value": YES_OR_NO[1], "type": str}
    elif field.choices:
        told |= {"type": click.Choice(field.choices), "metavar": field.metavar}
    else:
        told["metavar"] = field.metavar or _METAVARS.get(field.name, "NAME")
    told["shell_complete"] = _COMPLETIONS.get(field.name)
    return _option([field.flag], told, cells, settings or {})


def _option(
    names: Sequence[str], told: dict[str, Any], cells: Sequence[str], settings: Settings
) -> click.Option:
    """The option of a line: of its cells those that are not empty say more than what is `told` already."""
    value, default, words = (*cells, "", "", "")[:3]
    told |= _kind(value) if value or not told else {}
    told |= {"help": words} if words else {}
    if default:
        told["default"] = None if default == "-" else default.strip('"')
    told["show_default"] = bool(told.get("default")) and "flag_value" not in told
    parameter = names[-1].lstrip("-").replace("-", "_")
    return click.Option(names, **{**told, **settings.get(parameter, {})})


def _kind(value: str) -> dict[str, Any]:
    """The settings of an option for the cell of its value."""
    words = [word for word in value.split() if word not in ("!", "*")]
    if not words:
        return {"is_flag": True}
    first, *others = words
    told: dict[str, Any] = {"metavar": first, "required": "!" in value, "multiple": value.endswith("*")}
    if "/" in words[-1]:
        told |= {"type": click.Choice(words[-1].split("/")), "metavar": first if others else None}
    elif first.strip("[]") == "N":
        told["type"] = Count(*map(int, others))  # type: ignore[arg-type]  # two at most
    elif first == "SECONDS":
        told["type"] = Seconds(0, min_open=True)
    return told | ({"is_flag": False} if first.startswith("[") else {})


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
