"""Mesh text: ``X=2,Y=4``, or ``Mesh('X': 2, 'Y': 4)`` as JAX prints it; axes of a mesh; the order of its
devices; and the mesh within the text of a sharding of JAX, Shardy or HLO."""

from __future__ import annotations

import re
from dataclasses import replace

from shardviz.errors import QuestionError, plural, quote
from shardviz.notation.numbers import count_at
from shardviz.notation.scanner import MAX_RANK, Scanner, Word
from shardviz.sharding import Mesh
from shardviz.sharding.mesh import is_axis_name

_HINT = "write each axis and its size: X=2,Y=4"


def parse_mesh(text: str, device_order: str | None = None) -> Mesh:
    """Read a mesh: axes with their sizes, apart by commas, spaces or both. `device_order` is text for
    `with_device_order`; None leaves the order to JAX. Raises `NotationError`, and `QuestionError` for more
    devices than any question needs."""
    scanner = Scanner(text, _HINT)
    if scanner.at_end:
        scanner.fail("there is no mesh axis", 0)
    sizes: dict[str, int] = {}
    if scanner.take("AbstractMesh(", "Mesh("):
        for _ in scanner.items(")"):
            if scanner.take("axis_types"):
                scanner.expect("=", "(")
                while not scanner.take(")"):
                    scanner.name("an axis type")
                    scanner.take(",")
                continue
            name = scanner.string("an axis name in quotes")
            if not is_axis_name(name.text):
                hint = "use letters, digits and _, starting with a letter"
                scanner.fail(f"{quote(name.text, 30)} is not an axis name", name, hint=hint)
            scanner.expect(":")
            _add(scanner, sizes, name)
        scanner.expect_end()
    else:
        for _ in scanner.apart("another axis"):
            name = scanner.name("an axis name")
            scanner.expect("=")
            _add(scanner, sizes, name)
    if not sizes:
        scanner.fail("there is no mesh axis", 0, len(text))
    mesh = Mesh(tuple(sizes), tuple(sizes.values()))
    return mesh if device_order is None else with_device_order(mesh, device_order)


def _add(scanner: Scanner, sizes: dict[str, int], name: Word) -> None:
    start = scanner.skip()
    negative = scanner.take("-")
    size = scanner.integer(f"the size of mesh axis {name.text[:30]}")
    if negative or size < 1:
        problem = f"mesh axis {name.text[:30]} has the size {negative}{size}"
        scanner.fail(problem, start, scanner.pos, "an axis has a size of 1 or more")
    if name.text in sizes:
        problem = f"mesh axis {name.text[:30]} is named twice, again"
        scanner.fail(problem, name, hint="give every axis its own name")
    sizes[name.text] = size
    scanner.at_most(MAX_RANK, sizes, "mesh axes,", name, "use fewer axes")


ROW_MAJOR = "row-major"
MAX_DEVICES = 2**20
"""Longer orders than any compiler takes would fill the memory."""
_ORDER_HINT = f"write the ids with commas, as in 0,1,3,2, or {ROW_MAJOR}"


def with_device_order(mesh: Mesh, text: str) -> Mesh:
    """The mesh with the device ids of the text. Raises `NotationError` and `QuestionError`."""
    if mesh.size > MAX_DEVICES:
        problem = f"an order of {mesh.size:,} devices is too long"
        raise QuestionError(problem, f"give one for a mesh of at most {MAX_DEVICES:,}")
    if text.strip().lower() == ROW_MAJOR:
        return replace(mesh, device_order=tuple(range(mesh.size)))
    ids = [count_at(match, text, "device id", _ORDER_HINT) for match in re.finditer(r"[^,\s]+", text)]
    if len(ids) != mesh.size:
        named = f"the device order names {plural(len(ids), 'device')}"
        raise QuestionError(f"{named}, but the mesh {mesh} has {mesh.size:,}", "name each device once")
    return replace(mesh, device_order=tuple(ids))


def parse_axes(text: str, mesh: Mesh) -> tuple[str, ...]:
    """Read axes of the mesh, apart by commas or spaces. Raises `NotationError`."""
    scanner = Scanner(text, "write mesh axes with commas between them: X,Y")
    axes: list[str] = []
    for _ in scanner.apart("another axis"):
        word = scanner.name("an axis name")
        scanner.check_known(word, mesh.axis_names)
        if word.text in axes:
            problem = f"mesh axis {quote(word.text, 30)} is named twice, again"
            scanner.fail(problem, word, hint="name every axis once")
        axes.append(word.text)
    if not axes:
        scanner.fail("there is no mesh axis", 0, len(text))
    return tuple(axes)


_PYTHON = re.compile(r"(?:Abstract)?Mesh\(")
_SPEC = re.compile(r"(?:PartitionSpec|\bP)\s*\(")
_AXIS = r"\s*+[\"']?\w++[\"']?\s*+=\s*+\d++\s*+"
_MLIR = re.compile(rf"\bmesh(?:<\[|\[|<)({_AXIS}(?:,{_AXIS})*)[\]>]")
_QUOTES = str.maketrans("", "", "\"' ")


def mesh_in_text(text: str) -> str | None:
    """The mesh as `parse_mesh` reads it; None where the text has none."""
    if said := _PYTHON.search(text):
        return text[said.start() : _closed(text, said.end())]
    said = _MLIR.search(text)
    return said and said[1].translate(_QUOTES)


def spec_alone(text: str) -> str:
    if "NamedSharding(" not in text:
        return text
    mesh = _PYTHON.search(text)
    match = _SPEC.search(text, _closed(text, mesh.end()) if mesh else 0)
    return text if match is None else text[match.start() : _closed(text, match.end())]


def _closed(text: str, start: int) -> int:
    """Behind the parenthesis that closes the one before `start`; the end of the text where none does."""
    depth = 1
    for index in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[index], 0)
        if not depth:
            return index + 1
    return len(text)
