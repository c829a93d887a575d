"""A form as a command line, and a pasted command line as a form."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from string import ascii_letters
from typing import TYPE_CHECKING, Any, Literal

from shardviz.errors import QuestionError, quote
from shardviz.forms.axis_edits import enter_mesh
from shardviz.forms.form import (
    COLLECTIVE_FIELDS,
    FLAG,
    OPEN,
    PROBLEM_FIELDS,
    SPECS,
    TABLE_KEYS,
    YES_OR_NO,
    CollectiveFields,
    ProblemForm,
    parameter_names,
)
from shardviz.forms.options import form_from_options
from shardviz.forms.parsing import Einsums, parsed, spec_texts
from shardviz.forms.retain_fields import sizes_text
from shardviz.forms.spans import split_product
from shardviz.notation.einsum import Einsum
from shardviz.notation.mesh import parse_mesh
from shardviz.sharding import PartitionSpec

if TYPE_CHECKING:
    import click


_VIEW_FLAGS = {"--json", "--compare", "--hlo", "--last", "--no-layout", "--plain", "--time"}
_VIEW_FLAGS |= {"--matmul", "--verbose", "-v"}
_VIEW_VALUES = {"--limit", "--step", "--round", "--timeout", "--vary", "--versus", "--width", "--color"}
_VIEW_VALUES |= {"--screen", "--topology", "--latency", "--bandwidth", "--on", "--algorithm"}
_VIEW_VALUES |= {"--coordinator", "--processes", "--process", "--why"}
"""Options that choose how a problem is seen, or by whom: they are passed over."""

CommandName = Literal["explain", "tui", "step"]


def to_command_line(form: ProblemForm, command: CommandName = "explain") -> str:
    """``shardviz explain 'bd,df->bf' --specs 'XY,Y_->X_'``, to be pasted into a shell."""
    return shlex.join(["shardviz", *to_arguments(form, command)])


def to_arguments(form: ProblemForm, command: CommandName = "explain") -> list[str]:
    """The arguments of ``shardviz``, without options that have their defaults. ``step`` takes the form's
    collective; raises `ValueError` where it has none. Fields with errors stay as they are: the command says
    what is wrong with them."""
    if command == "step":
        own = form.collective
        if own is None:
            raise ValueError("the form has no collective of its own")
        mesh = "" if form.mesh == ProblemForm.mesh else form.mesh
        options = [("--mesh", mesh), ("--machine", form.machine.strip())]
        options += [
            (field.flag, getattr(own, name)) for name, field in COLLECTIVE_FIELDS.items() if field.flag
        ]
        options += [(_flag(name), text) for name, text in own.parameters]
        return ["step", own.op, *_options(options)]
    einsum, specs, sizes = _problem_texts(form)
    texts = {name: getattr(form, name) for name in TABLE_KEYS if name != "einsum"}
    texts |= {"device_order": form.device_order.strip(), "specs": specs, "sizes": sizes}
    if form.backward != FLAG:
        del texts["remat"], texts["optimizer"], texts["frozen"]
    fields = PROBLEM_FIELDS | {"specs": SPECS}
    given = [(fields[name].flag, text) for name, text in texts.items() if text != fields[name].default]
    return [command, einsum, *_options(given)]


def _flag(parameter: str) -> str:
    return f"--{parameter.replace('_', '-')}"


def _options(given: Sequence[tuple[str, str]]) -> list[str]:
    words = []
    for flag, text in given:
        if flag in ("--untiled", PROBLEM_FIELDS["backward"].flag) and text == FLAG:
            words.append(flag)
        elif text.startswith("-"):
            words.append(f"{flag}={text}")
        elif text:
            words += [flag, text]
    return words


def _problem_texts(form: ProblemForm) -> tuple[str, str, str]:
    """Einsum, specs and sizes; a product has its specs in subscripts, unless it cannot say them all."""
    mesh, einsums = parsed(form).mesh, parsed(form).einsums
    if mesh is None or einsums is None or len(einsums.rows) != len(form.specs):
        return form.einsum, _joined(form.specs), form.sizes
    specs = parsed(form).specs
    written = spec_texts(specs)
    if einsums.program is not None:
        return form.einsum, _named(written, einsums), form.sizes
    if einsums.product is None:
        return form.einsum, _joined(written, einsums), form.sizes
    decided = [spec for spec in specs if not isinstance(spec, str)]
    product = split_product(einsums, decided, mesh.shape) if len(decided) == len(specs) else None
    layers = str(einsums.layers).replace("×", "x")
    if product is not None:
        return "".join(span.text for span in product) + layers, "", form.sizes
    free = iter([letter for letter in ascii_letters if letter not in einsums.dims])
    letters = {dim: dim if len(dim) == 1 else next(free, dim) for dim in einsums.dims}
    sizes = parsed(form).sizes
    renamed = form.sizes if sizes is None else sizes_text({letters.get(d, d): n for d, n in sizes.items()})

    def lettered(dims: Sequence[str]) -> tuple[str, ...]:
        return tuple(letters[dim] for dim in dims)

    parts = [Einsum(tuple(map(lettered, part.operands)), lettered(part.result)) for part in einsums.parts]
    return "; ".join(map(str, parts)) + layers, _joined(written, einsums), renamed


def _joined(specs: tuple[str, ...], einsums: Einsums | None = None) -> str:
    """The specs of all rows as ``--specs`` takes them; a last result that is open is left out."""
    if einsums is None:
        return f"{','.join(specs[:-1])}->{specs[-1]}" if len(specs) > 1 else "".join(specs)
    parts = []
    for operands, result in einsums.places:
        text = ",".join(specs[operand] for operand in operands)
        parts.append(text if specs[result] == "?" else f"{text}->{specs[result]}")
    return "; ".join(parts)


def _named(specs: tuple[str, ...], einsums: Einsums) -> str:
    """The specs of the rows that are split, by name; one at least, or a ranking would be asked for."""
    given = [
        f"{row.name}={spec}"
        for row, spec in zip(einsums.rows, specs, strict=True)
        if (spec != OPEN if row.role == "result" else spec.strip("_ "))
    ]
    return ", ".join(given or [f"{einsums.rows[0].name}={specs[0]}"])


def form_from_line(text: str, form: ProblemForm) -> ProblemForm:
    """The form of a command line: ``shardviz explain 'bd,df->bf' --mesh X=2 …``. The line of ``step`` puts
    its collective, on its mesh, beside the problem of `form`. Options of a view are passed over. Raises
    `ShardvizError` for text that is not such a line, and as the command does."""
    return form_from_arguments(_split(text), form)


def form_from_arguments(words: Sequence[str], form: ProblemForm) -> ProblemForm:
    """As `form_from_line`, from words that a shell has taken apart already."""
    left = [word for word in words if word != "$"]
    if left[:1] == ["shardviz"]:
        del left[0]
    name = left.pop(0) if left else "tui"
    if name == "step":
        collective, mesh, machine = _collective(left)
        entered = replace(form, collective=collective, machine=machine or "")
        return _on_mesh(entered, mesh or ProblemForm.mesh)
    if name not in ("explain", "tui"):
        problem = f"{quote(name, 30)} is not a command that has a problem"
        raise QuestionError(problem, "paste the line of explain, tui or step")
    given, options = _read(name, left)
    if (example := options.pop("example", None)) is not None:
        if given:
            raise QuestionError(f"{quote(given[0])} and --example are two programs", "leave out one of them")
        # With a reader of TOML, which other lines do not need.
        from shardviz.forms.examples import named_example

        shipped = named_example(example).options
        given, options = [shipped.pop("einsum")], {**shipped, **options}
    if len(given) > 1 or (name == "explain" and not given):
        shown = " ".join(map(quote, given)) or "nothing"
        raise QuestionError(f"{name} takes one einsum, not {shown}", "put the einsum in quotes: 'bd,df->bf'")
    if options.get("axis_types", "auto") not in PROBLEM_FIELDS["axis_types"].choices:
        types = quote(options["axis_types"], 30)
        raise QuestionError(f"{types} is not an axis type", "the axis types are auto and explicit")
    if not options.get("specs"):
        options.pop("specs", None)
    return form_from_options(*given, **options)


def with_collective_from_line(text: str, form: ProblemForm) -> ProblemForm:
    """The form with the collective of a line of ``step``, with that word or without: ``psum --axis X``. It is
    on the form's mesh unless the line has another. Raises `ShardvizError`."""
    words = _split(text)
    collective, mesh, machine = _collective(words[1:] if words[:1] == ["step"] else words)
    entered = replace(form, collective=collective)
    if machine is not None:
        entered = replace(entered, machine=machine)
    return entered if mesh is None else _on_mesh(entered, mesh)


def _collective(words: Sequence[str]) -> tuple[CollectiveFields, str | None, str | None]:
    given, options = _read("step", words)
    if len(given) != 1:
        shown = " ".join(map(quote, given)) or "nothing"
        problem = f"step takes one operation, not {shown}"
        raise QuestionError(problem, "write for example: all_gather --axis X")
    mesh, machine = options.pop("mesh", None), options.pop("machine", None)
    parameters = tuple((name, options.pop(name)) for name in parameter_names() if name in options)
    return CollectiveFields(given[0], parameters=parameters, **options), mesh, machine


def _read(name: str, words: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """The arguments of a command, and the texts of its options for a form, as click reads them."""
    import click

    command = _click_command(name)
    try:
        params = command.make_context(name, list(words)).params
    except click.NoSuchOption as error:
        known = sorted(
            param.opts[0] for param in command.params if param.expose_value and param.name != "words"
        )
        problem = f"there is no option {quote(error.option_name, 30)} here"
        raise QuestionError(problem, f"a problem has {', '.join(known)}") from None
    except click.BadOptionUsage as error:
        problem = f"{error.option_name} has no value"
        raise QuestionError(problem, f"write {error.option_name} and its value") from None
    return list(params.pop("words")), {name: text for name, text in params.items() if text is not None}


@cache
def _click_command(name: str) -> click.Command:
    """A command with its options for a form; those that choose a view are passed over."""
    import click

    texts = {"--mesh": "mesh", "--machine": "machine"}
    params: list[click.Parameter] = [click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)]
    if name == "step":
        texts |= {field.flag: field.name for field in COLLECTIVE_FIELDS.values() if field.flag}
        texts |= {_flag(parameter): parameter for parameter in parameter_names() if parameter != "untiled"}
        params.append(click.Option(["--untiled"], flag_value=FLAG, type=str))
    else:
        texts |= {field.flag: field.name for field in PROBLEM_FIELDS.values() if field.flag}
        texts |= {"--example": "example"} if name == "explain" else {}
        params.append(click.Option(["--specs"], is_flag=False, flag_value="", type=click.UNPROCESSED))
        for field in PROBLEM_FIELDS.values():
            if field.choices == YES_OR_NO:
                del texts[field.flag]
                params.append(click.Option([field.flag, field.name], flag_value=YES_OR_NO[1], type=str))
    params += [click.Option([flag, name], type=click.UNPROCESSED) for flag, name in texts.items()]
    for flag in (_VIEW_FLAGS | _VIEW_VALUES) - {*texts}:
        params.append(click.Option([flag], is_flag=flag in _VIEW_FLAGS, expose_value=False))
    return click.Command(name, params=params, add_help_option=False)


def _on_mesh(form: ProblemForm, mesh: str) -> ProblemForm:
    """The form on the mesh of a collective; on another than its own nothing is split, so that it fits."""
    asked = str(parse_mesh(mesh))
    before = parsed(form).mesh
    if before is not None and asked == str(before):
        return form
    entered = enter_mesh(replace(form, device_order=""), asked)
    specs = parsed(entered).specs
    whole = [PartitionSpec.replicated(s.rank) if isinstance(s, PartitionSpec) else s for s in specs]
    return replace(entered, specs=spec_texts(whole))


def _split(text: str) -> list[str]:
    try:
        # A backslash before a blank continued the line when it was several.
        return shlex.split(re.sub(r"\\(?=\s)", "", text))
    except ValueError:
        raise QuestionError(f"a quote in {quote(text)} is not closed", "close it") from None
