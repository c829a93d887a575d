"""shardviz's own spec strings, which mirror an einsum letter by letter: ``XY,Y_->X_``.

::

    chain   := specs (';' specs)*
    specs   := (list | '(' list ')' | '[' list ']') ('->' operand)?
    list    := operand (',' operand)*
    operand := '?' | ('()' | compact | spaced)? unreduced? devices? | P('X', None)
    compact := entry+               no spaces: one letter, one axis
    spaced  := entry (' ' entry)*   with a space somewhere: a word is an axis
    entry   := '_' | '?' | axis | '(' axis+ '?'? ')'
    axis    := name | name ':(' before ')' size     the part of an axis behind so many parts of it
    unreduced := '{U_' (compact | spaced) '}'   without '_'
    devices := '@' id | '@(' id (' ' id)* ')'

``_`` leaves a dimension whole, ``(XY)`` splits one over X and then Y, ``?`` leaves the sharding to the
compiler, and as an entry one dimension; ``(X?)_`` is split over X and may be split further. ``__@3`` is an
array that device 3 alone holds, ``X_@(3 2 1 0)`` one whose devices stand in that order along the mesh's axes.
One dimension over an axis with a long name is written ``( data )``; when the mesh's axes are known, plain
``data`` reads as that axis too, unless it can be read letter by letter. In later parts of a chain nothing
before the first comma means ``?``. What JAX and HLO print stands for an operand, too. Specs by name are
written ``W1=_Y, X=X_``; arrays that are not named are not split."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from shardviz.errors import NotationError, quote
from shardviz.notation.einsum import MAX_PARTS
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import MAX_RANK, Scanner, Word
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.axis_parts import whole_axis

_HINT = "write one entry for each dimension, as in XY,Y_->X_ or 'data model, model _ -> data _'"
_RESULT_HINT = "write -> before the spec of the result, as in XY,Y_->X_"
_UNREDUCED_HINT = "write partial sums over Y as {U_Y}"
_PART = r":\(\d++\)\d++"
_DEVICES_HINT = "write the one device that holds the array as __@3, and another order of all as X_@(3 2 1 0)"
_BODY = re.compile(rf"(?:[\w\s?]|{_PART}|\((?:[\w(\s?]|{_PART})*\)?)*")
_OPEN = re.compile(r"\?(?=\s*(?:[,;)\]]|->|\Z))")
_PYTHON = re.compile(
    r"(?:\w++\.)++\w|(?:NamedSharding|SingleDeviceSharding|PartitionSpec)\s*\(|\(\s*(?:\(?\s*['\"‘“]|None\s*[,)])"
    r"|P\s*\(\s*(?:['\"‘“()]|None\b|(?:un)?reduced\b|P\.)"
)
"""The beginning of a text that Python reads; a spec string has no quotes and no points."""
_QUOTED = re.compile(r"['\"‘“]")
_UNQUOTED = re.compile(r"P\s*\(")
_HLO = re.compile(r"\{(?!\s*U_)(?:[^{}]|\{[^{}]*\})*\}")
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9_]*(?:{_PART})?|\S")
_MARK = re.compile(rf"[_?]|\((?:[^):]|{_PART}|:)*+\)")
_LETTER = re.compile(rf"[A-Za-z](?:{_PART})?|\S")
_NAMED_HINT = "write a spec for each array that is split, as in X=X_,W1=_Y"
_NAMED = re.compile(r"\s*[A-Za-z][A-Za-z0-9_']*\s*=(?!=)")


@dataclass(frozen=True)
class SpecPart:
    """The specs of one einsum's operands and result; None where the compiler may choose. `places` are where
    they stand in the text."""

    operands: tuple[PartitionSpec | None, ...]
    result: PartitionSpec | None = None
    places: tuple[tuple[int, int], ...] = field(default=(), compare=False)


def parse_specs(
    text: str, axis_sizes: Mapping[str, int] | None = None, ranks: Sequence[Sequence[int]] = ()
) -> tuple[SpecPart, ...]:
    """Read spec strings, one part for each ``;``. `ranks` are those of each part's operands and result, where
    they are known: a PartitionSpec may leave out entries at its end. Raises `NotationError`."""
    scanner = Scanner(text, _HINT, axis_sizes)
    if scanner.at_end:
        scanner.fail("there is no spec", 0)
    known = iter(ranks)
    parts = [_part(scanner, next(known, ()), first=True)]
    while scanner.take(";"):
        parts.append(_part(scanner, next(known, ()), first=False))
        scanner.at_most(MAX_PARTS, parts, "parts", scanner.pos, "use a shorter chain")
    scanner.expect_end()
    return tuple(parts)


def write_spec(spec: PartitionSpec | None) -> str:
    """The spec string of one array: compact where every axis is one letter, else spaced."""
    if spec is None:
        return "?"
    text = _entries(spec.dims, spec.open_dims) if spec.dims else "()"
    if spec.unreduced:
        text += f"{{U_{_entries([(axis,) for axis in spec.unreduced])}}}"
    return text + write_devices(spec.devices)


def write_devices(devices: Sequence[int]) -> str:
    """``@3`` for one device, ``@(3 2 1 0)`` for an order of several, "" for the mesh's own."""
    if not devices:
        return ""
    ids = " ".join(map(str, devices))
    return f"@{ids}" if len(devices) == 1 else f"@({ids})"


def write_specs(parts: Sequence[SpecPart]) -> str:
    """The text that `parse_specs` reads as `parts`."""
    written = []
    for part in parts:
        operands = ",".join(map(write_spec, part.operands))
        written.append(operands if part.result is None else f"{operands}->{write_spec(part.result)}")
    return "; ".join(written)


def read_spec_string(text: str, context: Context) -> Reading:
    """Read the spec string of one array; raises `NotationError` as `parse_specs` does, and for several."""
    scanner = Scanner(text, _HINT, context.axis_sizes)
    if scanner.at_end:
        scanner.fail("there is no spec", 0)
    spec = scan_spec(scanner, context.rank)
    scanner.expect_end("give the spec of one array, as in X_ or 'data _'")
    if spec is None:
        scanner.fail("'?' leaves the sharding to the compiler", 0, len(text), "give a spec, as in X_")
    context.check_rank(scanner, spec.rank)
    notes = tuple(f"dimension {dim} is open: the compiler may split it" for dim in spec.open_dims)
    return Reading(spec, open_dims=spec.open_dims, notes=notes)


def write_spec_string(reading: Reading, context: Context) -> str:
    """The spec string; see `write_spec`."""
    del context
    return write_spec(replace(reading.spec, open_dims=reading.open_dims))


def _entries(dims: Sequence[tuple[str, ...]], open_dims: Sequence[int] = ()) -> str:
    """Entries side by side; apart by spaces when some axis has a long name, or is a part of one. One long
    name alone stands in parentheses with spaces."""
    axes = [axis for dim in dims for axis in dim]
    between = " " if any(len(axis) > 1 for axis in axes) else ""
    entries = [_entry(dim, number in open_dims, between) for number, dim in enumerate(dims)]
    text = between.join(entries)
    is_plain = " " in text or all(len(whole_axis(axis)) == 1 for axis in axes)
    return text if is_plain else f"( {text} )"


def _entry(axes: tuple[str, ...], is_open: bool, between: str) -> str:
    """``_``, ``X``, ``(XY)``, ``?``, ``(X?)`` or ``(data ?)``: a long name alone would be letters where they
    are axes, too."""
    if is_open:
        apart = between if len(axes) == 1 and len(whole_axis(axes[0])) > 1 else ""
        return f"({between.join(axes)}{apart}?)" if axes else "?"
    return f"({between.join(axes)})" if len(axes) > 1 else "".join(axes) or "_"


def _part(scanner: Scanner, ranks: Sequence[int], first: bool) -> SpecPart:
    known = iter(ranks[:-1])
    places: list[tuple[int, int]] = []

    def spec(rank: int | None) -> PartitionSpec | None:
        start = scanner.skip()
        scanned = scan_spec(scanner, rank)
        places.append((start, start + max(1, len(scanner.text[start : scanner.pos].strip()))))
        return scanned

    scanner.skip()
    end = list_end(scanner.text, scanner.pos)
    closing = "" if end is None else scanner.text[end]
    scanner.pos += len(closing)
    if not first and (scanner.at_end or scanner.peek(",") or scanner.peek("->") or scanner.peek(";")):
        operands: list[PartitionSpec | None] = [None]
        places.append((scanner.pos, scanner.pos + 1))
        next(known, None)
    else:
        operands = [spec(next(known, None))]
    while scanner.take(",") and not (closing and scanner.peek(closing)):
        operands.append(spec(next(known, None)))
        scanner.at_most(MAX_RANK, operands, "operands", scanner.pos, "use one or two operands")
    if closing:
        scanner.expect(closing)
        if scanner.peek(","):
            scanner.fail("the list of operands has ended", scanner.pos, hint=_RESULT_HINT)
    rank = ranks[-1] if ranks else None
    result = spec(rank) if scanner.take("->") else None
    if not (scanner.at_end or scanner.peek(";")):
        scanner.fail_here("the end of a spec")
    return SpecPart(tuple(operands), result, tuple(places))


def list_end(text: str, start: int) -> int | None:
    """Where the bracket around the specs of all operands closes that opens at `start`, as in a Python list;
    None where none opens there, and where it is around the axes of a dimension, or never closes."""
    if text[start : start + 1] not in ("(", "["):
        return None
    depth, is_list = 0, text[start] == "[" or _PYTHON.match(text, start + 1) is not None
    for end in range(start, len(text)):
        depth += (text[end] in "([{") - (text[end] in ")]}")
        is_list = is_list or (text[end] == "," and depth == 1)
        if not depth:
            is_tuple = text[end + 1 :].lstrip().startswith(",") and _PYTHON.match(text, start) is not None
            return end if is_list and not is_tuple else None
    return None


def scan_spec(scanner: Scanner, rank: int | None) -> PartitionSpec | None:
    """The spec of one array that stands next, None for ``?``; part of `parse_specs`."""
    if scanner.next(_OPEN):
        return None
    start, sizes = scanner.pos, scanner.axis_sizes
    if _QUOTED.match(scanner.text, start):
        hint = "write specs without quotes, as in XY,Y_->X_, or as P('X', 'Y')"
        scanner.fail("a quoted spec begins", start, hint=hint)
    unquoted = sizes is not None and "P" not in sizes and _UNQUOTED.match(scanner.text, start)
    if unquoted or _PYTHON.match(scanner.text, start):
        # Imported late, as HLO's below: most specs are spec strings.
        from shardviz.notation.jax_spec import jax_spec

        reading = jax_spec(scanner, rank)
        if len(reading.notes) > len(reading.open_dims):
            hint = "name the axes of each dimension, or leave the whole array open with ?"
            scanner.fail(reading.notes[0], start, scanner.pos, hint)
        return replace(reading.spec, open_dims=reading.open_dims)
    if sizes is not None and (hlo := scanner.match(_HLO)):
        from shardviz.notation.gspmd import read_gspmd

        try:
            return read_gspmd(hlo.text, Context(Mesh(tuple(sizes), tuple(sizes.values())), rank)).spec
        except NotationError:
            if rank is not None:
                raise
            return PartitionSpec(())
    body = scanner.match(_BODY)
    open_dims: list[int] = []
    dims = [] if body is None else _dims(scanner, body, open_dims)
    unreduced: list[Word] = []
    if scanner.take("{"):
        scanner.expect("U_", hint=_UNREDUCED_HINT)
        inside = scanner.match(_BODY) or scanner.fail_here("a mesh axis", _UNREDUCED_HINT)
        axes = _dims(scanner, inside, [])
        if [] in axes or not axes:
            scanner.fail("'{U_}' takes axes only", inside, hint=_UNREDUCED_HINT)
        unreduced = [axis for entry in axes for axis in entry]
        scanner.expect("}", hint=_UNREDUCED_HINT)
    spec = replace(scanner.spec(dims, unreduced), open_dims=tuple(open_dims))
    before_devices = scanner.pos
    if not scanner.take("@"):
        return spec
    if not scanner.take("("):
        ids = [scanner.integer("the id of a device", _DEVICES_HINT)]
    else:
        ids = []
        while not scanner.take(")"):
            ids.append(scanner.integer("the id of a device or ')'", _DEVICES_HINT))
            scanner.take(",")
    return scanner.on_devices(spec, ids, before_devices)


def _dims(scanner: Scanner, body: Word, open_dims: list[int]) -> list[list[Word]]:
    """The entries of an operand: for each dimension its axes; those that are open go to `open_dims`."""
    stripped = body.text.strip()
    if stripped == "()":
        return []
    start = body.start + body.text.index(stripped)
    operand = Word(stripped, start, start + len(stripped))
    if (whole := _long_name(scanner, operand)) is not None:
        return [[whole]]
    spaced = len(stripped.split()) > 1
    dims: list[list[Word]] = []
    for piece in _pieces(scanner, operand, spaced, marks="_?("):
        if len(dims) > MAX_RANK:
            scanner.fail(f"a spec of more than {MAX_RANK} dimensions is too long", piece.start, operand.stop)
        axes = piece.text[1:-1] if piece.text[0] == "(" else piece.text
        if axes.rstrip().endswith("?"):
            open_dims.append(len(dims))
            axes = axes.rstrip()[:-1]
        if piece.text[0] == "(":
            # The spaces stay: they make a name of what would be letters.
            inside = Word(axes, piece.start + 1, piece.start + 1 + len(axes))
            dims.append(_axes_of_one_dim(scanner, inside, spaced))
        else:
            dims.append([piece] if axes.strip("_") else [])
            if dims[-1] and scanner.axis_sizes is not None:
                advice = _advice(whole_axis(axes), stripped, scanner.axis_sizes, spaced)
                scanner.check_known(piece, advice=advice)
    return dims


def _advice(unknown: str, operand: str, axis_sizes: Mapping[str, int], spaced: bool) -> str:
    """Another cause of an unknown axis: a space too many or too few, or Python's None."""
    if "None" in operand:
        return "; write _ for None"
    if spaced and all(letter in axis_sizes for letter in unknown):
        return f"; with a space in it, a spec needs one between {' and '.join(unknown)}"
    long = next((name for name in axis_sizes if len(name) > 1 and name in operand), "")
    return f"; separate a long name with spaces: {long} _" if long and not spaced else ""


def _axes_of_one_dim(scanner: Scanner, inside: Word, spaced: bool) -> list[Word]:
    if (whole := _long_name(scanner, inside)) is not None:
        return [whole]
    if not inside.text.strip():
        scanner.fail("nothing stands between '(' and ')'", inside.start - 1, inside.stop + 1)
    sizes = scanner.axis_sizes
    # With spaces around it, it is a name.
    if sizes is not None and all(letter in sizes for letter in inside.text):
        spaced = False
    axes = [*islice(_pieces(scanner, inside, spaced), MAX_RANK + 2)]
    if len(axes) > MAX_RANK + 1:
        scanner.fail(f"more than {MAX_RANK} axes on one dimension", axes[-1].start, inside.stop)
    return axes


def _pieces(scanner: Scanner, span: Word, spaced: bool, marks: str = "") -> Iterator[Word]:
    """The axes in a piece of a spec, and the `marks` between them: a bracket has all that it encloses."""
    start = span.start
    while start < span.stop:
        if scanner.text[start].isspace():
            start += 1
            continue
        is_mark = scanner.text[start] in marks
        pattern = _MARK if is_mark else _NAME if spaced else _LETTER
        match = pattern.match(scanner.text, start, span.stop)
        if is_mark and match is None:
            scanner.fail("'(' is not closed,", start, hint=_HINT)
        if match is None or not (is_mark or (match[0][0].isascii() and match[0][0].isalpha())):
            scanner.pos = start
            scanner.fail_here("an axis, '_' or '('")
        yield Word(match[0], start, match.end())
        start = match.end()


def _long_name(scanner: Scanner, word: Word) -> Word | None:
    """`word` where it is one known axis, or a part of it, and cannot be read letter by letter."""
    name = whole_axis(word.text)
    sizes = scanner.axis_sizes
    if sizes is None or len(name) < 2 or name not in sizes:
        return None
    return None if all(char == "_" or char in sizes for char in name) else word


def is_named(text: str) -> bool:
    return _NAMED.match(text) is not None


def parse_named_specs(
    text: str, axis_sizes: Mapping[str, int] | None, ranks: Mapping[str, int]
) -> dict[str, PartitionSpec | None]:
    """Read the specs of arrays by name; None for ``?``, which leaves one open. `ranks` are all arrays'.
    Raises `NotationError`, also for a spec of another rank."""
    scanner = Scanner(text, _NAMED_HINT, axis_sizes)
    specs: dict[str, PartitionSpec | None] = {}
    while not scanner.at_end:
        name = scanner.name("the name of an array")
        if name.text not in ranks:
            problem = f"no array is called {quote(name.text, 30)}, which is given a spec,"
            scanner.fail(problem, name, hint=f"the arrays are {', '.join(ranks)}")
        if name.text in specs:
            scanner.fail(f"{name.text} is given a spec twice, again", name, hint="give it one spec")
        scanner.expect("=")
        start = scanner.skip()
        rank = ranks[name.text]
        spec = scan_spec(scanner, rank)
        if spec is not None and spec.rank != rank:
            problem = f"the spec {quote(write_spec(spec))} of {name.text} has {spec.rank} of {rank} entries,"
            hint = "write one entry for each dimension; _ leaves a dimension unsharded"
            scanner.fail(problem, start, scanner.pos, hint)
        specs[name.text] = spec
        if not scanner.at_end and not scanner.take(",", ";"):
            scanner.fail_here("',' and the next array")
    return specs


def write_named_specs(specs: Mapping[str, PartitionSpec | None]) -> str:
    return ", ".join(f"{name}={write_spec(spec)}" for name, spec in specs.items())
