"""einshard's expressions: ``b d -> b2 d4``, ``d f -> 2 d4 f``, ``... -> * ...``.

::

    left    := (name | '...') …
    right   := (name? integer? '*'? | '...') …      with at least one of the three

The right side lists the axes of a mesh of its own, over all devices in order of their numbers: ``a2`` splits
a two ways, a bare integer replicates, ``*`` multiplies an axis by its share of the devices that are left, the
n-th root for n stars. A name is split by its last axis, and replicated over others. The source is einshard
0.2.0 (yixiaoer/einshard), which on TPUs orders devices by their place in the torus."""

from __future__ import annotations

import math
import re
from typing import NamedTuple, NoReturn

from shardviz.errors import QuestionError, plural, quote
from shardviz.notation.reading import Context, Reading, placeholder_dims
from shardviz.notation.scanner import MAX_RANK, Scanner
from shardviz.sharding import Mesh, PartitionSpec
from shardviz.sharding.digits import Digit, Nest, axes_of_groups, digits_of_blocks, merged, row_major, value

_HINT = "write an einshard expression as b d -> b2 d4"
_NAME = re.compile(r"[^\W\d]+")
_INTEGER = re.compile(r"[1-9][0-9]*")
_STAR = re.compile(r"\*")


class _Element(NamedTuple):
    """One axis: the name it splits ("" for none), and on the right its integer, and whether it has a star."""

    name: str
    number: int = 1
    starred: bool = False


def read_einshard(text: str, context: Context) -> Reading:
    """Read an expression against the mesh of `context`, whose devices it uses up, and its rank for
    ``...``."""
    mesh = context.known_mesh("an einshard expression")
    scanner = Scanner(text, _HINT)
    left = _elements(scanner, is_left=True)
    scanner.expect("->")
    right_at = scanner.pos
    right = _elements(scanner, is_left=False)
    if any(element.name == "..." for element in (*left, *right)):
        left, right = _expanded(scanner, left, right, context)
    names = [element.name for element in left]
    context.check_rank(scanner, len(names))
    sizes = _axis_sizes(scanner, right, mesh.size, right_at)
    last = {element.name: i for i, element in enumerate(right)}
    for name in names:
        if name not in last:
            problem = f"{quote(name, 30)} is missing on the right"
            scanner.fail(problem, right_at, len(text), "name it on both sides")
    digits = row_major(sizes)
    dims = _axes_of([digits[last[name]] for name in names], mesh)
    if dims is None:
        problem = f"these blocks do not follow axes of the mesh {mesh}"
        scanner.fail(problem, right_at, len(text), "give a mesh whose axes have the sizes of the right side")
    return Reading(PartitionSpec(dims), dims=tuple(names))


def write_einshard(reading: Reading, context: Context) -> str:
    """An expression that places every block on the same devices. Raises `QuestionError` for partial sums and
    where there is none: one axis of einshard's mesh splits a dimension, so the devices along it must be a
    single run of numbers with one stride."""
    mesh = context.known_mesh("an einshard expression")
    spec = reading.spec
    if spec.unreduced:
        problem = f"einshard notation cannot express partial sums over {', '.join(spec.unreduced)}"
        raise QuestionError(problem, "leave out the unreduced axes")
    if not spec.dims:
        problem = "einshard cannot express an array without dimensions"
        raise QuestionError(problem, "use another notation")
    names = reading.dim_names
    if len(set(names)) < len(names) or not all(map(_is_name, names)):
        names = placeholder_dims(spec.rank)
    split = [(digit, name) for name, digit in zip(names, _digits(spec, mesh), strict=True) if digit.size > 1]
    words = _with_replication(sorted(split, key=lambda item: -item[0].stride), mesh.size)
    written = [name for _, name in split]
    for i, name in enumerate(names):
        if name not in written:
            later = [at for at, (word, _) in enumerate(words) if word in names[i + 1 :]]
            words.insert(min(later, default=len(words)), (name, 1))
    right = " ".join(f"{name}{size if size > 1 or not name else ''}" for name, size in words)
    return f"{' '.join(names)} -> {right}"


def _elements(scanner: Scanner, is_left: bool) -> list[_Element]:
    """The names of the left side, up to ``->``, or the axes of the right one, up to the end."""
    elements: list[_Element] = []
    while not (scanner.peek("->") if is_left else scanner.at_end):
        start = scanner.skip()
        name = scanner.take("...") or _name(scanner)
        number = starred = None
        if not is_left and name != "...":
            number, starred = scanner.match(_INTEGER), scanner.match(_STAR)
        if scanner.pos == start:
            scanner.fail_here(
                "a name, '...' or '->'" if is_left else "a name, a number from 1 on, '*' or '...'"
            )
        if is_left and any(name == other.name for other in elements):
            problem = f"{quote(name, 30)} stands twice on the left, again"
            scanner.fail(problem, start, scanner.pos, "give every dimension its own name")
        elements.append(_Element(name, scanner.to_int(number) if number else 1, starred is not None))
        most, what = (MAX_RANK, "dimensions") if is_left else (2 * MAX_RANK, "axes")
        scanner.at_most(most, elements, what, start)
        is_apart = scanner.pos < scanner.skip()
        if not (is_apart or scanner.at_end or scanner.peek("->")):
            scanner.fail_here("a space")
    if not elements:
        scanner.fail_here("a name or '...'" if is_left else "a name, a number, '*' or '...'")
    return elements


def _name(scanner: Scanner) -> str:
    """A name, which has letters and ``_`` but no digits, or ""."""
    before = scanner.pos
    word = scanner.match(_NAME)
    if word is None or _is_name(word.text):
        return word.text if word else ""
    scanner.pos = before
    return ""


def _is_name(text: str) -> bool:
    return all(char == "_" or char.isalpha() for char in text)


def _expanded(
    scanner: Scanner, left: list[_Element], right: list[_Element], context: Context
) -> tuple[list[_Element], list[_Element]]:
    dotted = [[i for i, element in enumerate(side) if element.name == "..."] for side in (left, right)]
    if any(len(places) != 1 for places in dotted):
        problem = "'...' stands on one side only, or twice"
        scanner.fail(problem, 0, len(scanner.text), "write it once on each side")
    rank = context.known_rank(scanner)
    hidden = rank - len(left) + 1
    if hidden < 0:
        problem = f"{plural(len(left) - 1, 'name')}, but the array has {plural(rank, 'dimension')}"
        scanner.fail(problem, 0, len(scanner.text), "leave out the dimensions that the array lacks")
    axes = [*map(_Element, placeholder_dims(hidden, [element.name for element in (*left, *right)]))]
    ((one,), (other,)) = dotted
    return [*left[:one], *axes, *left[one + 1 :]], [*right[:other], *axes, *right[other + 1 :]]


def _axis_sizes(scanner: Scanner, right: list[_Element], devices: int, start: int) -> list[int]:
    stars = sum(element.starred for element in right)
    needed = math.prod(element.number for element in right)
    share = 1
    if stars and devices % needed == 0:
        # Rounded, as a floating root of 64 is less than 4; the check below is exact.
        share = round((devices // needed) ** (1 / stars))
    if needed * share**stars != devices:
        shown = f"{needed}·n{f'^{stars}' if stars > 1 else ''} devices" if stars else plural(needed, "device")
        problem = f"the right side needs {shown}, not {devices},"
        hint = "the product of the right side is the number of devices"
        scanner.fail(problem, start, len(scanner.text), hint)
    return [element.number * (share if element.starred else 1) for element in right]


def _axes_of(digits: list[Digit], mesh: Mesh) -> tuple[tuple[str, ...], ...] | None:
    nests: tuple[Nest, ...] | None = tuple((digit,) for digit in digits)
    if mesh.device_order is not None:
        blocks = [tuple(value((digit,), device) for digit in digits) for device in mesh.device_order]
        nests = digits_of_blocks([digit.size for digit in digits], blocks)
    return None if nests is None else axes_of_groups(nests, mesh.shape)


def _digits(spec: PartitionSpec, mesh: Mesh) -> list[Digit]:
    """For each dimension the one digit of a device's number that is its block."""
    groups: list[tuple[Digit, ...]] = [tuple(mesh.digit(axis) for axis in dim) for dim in spec.dims]
    if mesh.device_order is not None:
        blocks: list[tuple[int, ...]] = [()] * mesh.size
        for position, device in enumerate(mesh.device_order):
            blocks[device] = tuple(value(group, position) for group in groups)
        groups = list(digits_of_blocks(spec.parts(mesh), blocks) or _no_expression(spec, mesh))
    runs = [merged(group) or (Digit(1, 1),) for group in groups]
    return [run[0] if len(run) == 1 else _no_expression(spec, mesh) for run in runs]


def _no_expression(spec: PartitionSpec, mesh: Mesh) -> NoReturn:
    raise QuestionError(
        f"einshard cannot place {spec} on the mesh {mesh}: it splits a dimension by one axis of its own, "
        "and the devices along these axes are not one run in the order of their numbers",
        "use PartitionSpec text, or a mesh in which the axes of a dimension stand side by side",
    )


def _with_replication(split: list[tuple[Digit, str]], devices: int) -> list[tuple[str, int]]:
    """Names and sizes of the right side's axes, with bare integers for the devices between them."""
    words: list[tuple[str, int]] = []
    left = devices
    for digit, name in split:
        if left > digit.size * digit.stride:
            words.append(("", left // (digit.size * digit.stride)))
        words.append((name, digit.size))
        left = digit.stride
    if left > 1:
        words.append(("", left))
    return words
