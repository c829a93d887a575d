"""PartitionSpec text: ``P('X', None)``, ``PartitionSpec('X', unreduced={'Y'})``.

A bare tuple reads as well, the spec of a ``NamedSharding(mesh, P('X'))``, whose mesh is passed over but for
its ``device_ids``, and ``SingleDeviceSharding(jax.devices()[3])``. ``P.UNCONSTRAINED`` and ``reduced`` axes
do not change the layout and are left to a note. A part of an axis reads in quotes, as in ``P('X:(1)2')``,
which JAX itself cannot say."""

from __future__ import annotations

import re

from shardviz.errors import QuestionError, plural
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import Scanner, Word
from shardviz.sharding import PartitionSpec

_HINT = "write a PartitionSpec as P('X', None) or P(('X', 'Y'), None)"
_NAMED_HINT = "write a NamedSharding as NamedSharding(mesh, P('X', None))"
_MODULES = r"(?:\w++\.)*+"
_NAMED = re.compile(rf"{_MODULES}NamedSharding\s*\(")
_SINGLE = re.compile(rf"{_MODULES}SingleDeviceSharding\s*\(")
_DEVICE = re.compile(r"\bid=(\d{1,9})\b|\[(\d{1,9})\]|\A\s*(\d{1,9})\s*\Z")
_DEVICE_IDS = re.compile(r"device_ids=(?:array\()?([\[\]\d,\s]+)")
_SPEC = re.compile(rf"{_MODULES}(?:PartitionSpec|P)\b")
_OPEN = re.compile(rf"{_MODULES}UNCONSTRAINED\b")


def read_jax(text: str, context: Context) -> Reading:
    """Read a PartitionSpec; with a known rank, entries left out at the end are None, as in JAX."""
    scanner = Scanner(text, _HINT, context.axis_sizes)
    reading = jax_spec(scanner, context.rank)
    if reading.spec.only_device is not None:
        context.known_rank(scanner)
    scanner.expect_end()
    if context.rank is not None and reading.spec.rank > context.rank:
        entries = plural(reading.spec.rank, "entry", "entries")
        problem = f"{entries} for an array of {plural(context.rank, 'dimension')}"
        scanner.fail(problem, 0, len(text), "write at most one entry for each dimension")
    return reading


def jax_spec(scanner: Scanner, rank: int | None) -> Reading:
    """The PartitionSpec that stands next, or that of a NamedSharding or a SingleDeviceSharding."""
    scanner.skip()
    start, hint = scanner.pos, scanner.hint
    ids: list[int] | None = None
    if scanner.match(_SINGLE):
        scanner.hint = "write an array on one device as SingleDeviceSharding(jax.devices()[3])"
        device = _DEVICE.search(_argument(scanner))
        if device is None:
            scanner.fail("the device id is missing", start, scanner.pos)
        _close(scanner)
        ids = [int(device[1] or device[2] or device[3])]
        reading = Reading(PartitionSpec.replicated(rank or 0))
    elif scanner.match(_NAMED):
        scanner.hint = _NAMED_HINT
        named = _DEVICE_IDS.search(_argument(scanner))
        ids = [int(number) for number in re.findall(r"\d{1,9}", named[1])] if named else None
        scanner.expect(",")
        if scanner.take("spec"):
            scanner.expect("=")
        reading = _partition_spec(scanner, rank)
        scanner.hint = _NAMED_HINT
        _close(scanner)
    else:
        reading = _partition_spec(scanner, rank)
    scanner.hint = hint
    if ids is None:
        return reading
    return reading._replace(spec=scanner.on_devices(reading.spec, ids, start))


def _argument(scanner: Scanner) -> str:
    """Pass what stands before the next comma or closing bracket that is not within brackets."""
    start, depth = scanner.pos, 0
    while scanner.pos < len(scanner.text):
        char = scanner.text[scanner.pos]
        depth += (char in "([{") - (char in ")]}")
        if depth < 0 or (char == "," and not depth):
            break
        scanner.pos += 1
    return scanner.text[start : scanner.pos]


def _close(scanner: Scanner) -> None:
    while scanner.take(","):
        _argument(scanner)
    scanner.expect(")")


def _partition_spec(scanner: Scanner, rank: int | None) -> Reading:
    scanner.hint = _HINT
    scanner.next(_SPEC)
    scanner.expect("(")
    dims: list[list[Word]] = []
    unreduced: list[Word] = []
    open_dims: list[int] = []
    notes: list[str] = []
    for _ in scanner.items(")"):
        start = scanner.skip()
        if scanner.take("unreduced_kind"):
            # Newer JAX prints it.
            scanner.expect("=")
            scanner.take("UnreducedKind.", "<UnreducedKind.")
            kind = scanner.name("a kind of reduction")
            if kind.text != "sum":
                hint = "shardviz models partial sums only"
                scanner.fail("the pending reduction is not a sum", kind, hint=hint)
        elif keyword := scanner.take("unreduced", "reduced"):
            scanner.expect("=")
            axes = _set(scanner)
            if keyword == "unreduced":
                unreduced = axes
            else:
                listed = ", ".join(axis.text for axis in axes)
                notes.append(f"reduced over {listed}: whole on every device, and its gradient is unreduced")
        elif scanner.match(_OPEN):
            open_dims.append(len(dims))
            dims.append([])
            notes.append(f"dimension {len(dims) - 1} is open: the compiler may split it")
        else:
            if scanner.take("None"):
                dims.append([])
            elif scanner.take("("):
                dims.append([scanner.string("an axis in quotes") for _ in scanner.items(")")])
            else:
                dims.append([scanner.string("None, an axis in quotes or a tuple of axes")])
            if unreduced:
                scanner.fail("an entry follows unreduced=", start)
    dims += [[] for _ in range((rank or 0) - len(dims))]
    return Reading(scanner.spec(dims, unreduced), open_dims=tuple(open_dims), notes=tuple(notes))


def write_jax(reading: Reading, context: Context) -> str:
    """The text that JAX prints; a dimension that is open beyond its axes is written with its axes alone."""
    if reading.spec.only_device is not None:
        return f"SingleDeviceSharding(jax.devices()[{reading.spec.only_device}])"
    if reading.spec.devices:
        problem = "a PartitionSpec does not name the devices of its mesh"
        raise QuestionError(problem, "make a NamedSharding of it with a mesh in that order")
    entries = [
        "P.UNCONSTRAINED" if number in reading.open_dims and not dim else str(PartitionSpec((dim,)))[2:-1]
        for number, dim in enumerate(reading.spec.dims)
    ]
    if unreduced := context.mesh_order(reading.spec.unreduced):
        entries.append(f"unreduced={{{', '.join(map(repr, unreduced))}}}")
    return f"P({', '.join(entries)})"


def _set(scanner: Scanner) -> list[Word]:
    wrapped = scanner.take("frozenset(", "set(")
    if wrapped and scanner.take(")"):
        return []
    scanner.expect("{")
    axes = [scanner.string("an axis in quotes") for _ in scanner.items("}")]
    if wrapped:
        scanner.expect(")")
    return axes
