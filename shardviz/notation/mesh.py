"""Mesh text: ``X=2,Y=4``, and ``Mesh('X': 2, 'Y': 4)`` as JAX prints it."""

from __future__ import annotations

from shardviz.errors import quote
from shardviz.notation.device_order import with_device_order
from shardviz.notation.scanner import MAX_RANK, Scanner, Word
from shardviz.sharding import Mesh
from shardviz.sharding.mesh import is_axis_name

_HINT = "write each axis and its size: X=2,Y=4"


def parse_mesh(text: str, device_order: str | None = None) -> Mesh:
    """Read a mesh: axes with their sizes, apart by commas, spaces or both.

    `device_order` is text, too: the ids of the devices in the mesh's row-major order, or ``row-major`` for
    0, 1, 2, …; None leaves it to JAX.

    Raises `NotationError` for text of another form, a size below 1 and an axis named twice, and
    `QuestionError` for more devices than any question needs.
    """
    scanner = Scanner(text)
    if scanner.at_end:
        scanner.fail("there is no mesh axis", 0, hint=_HINT)
    sizes: dict[str, int] = {}
    if scanner.take("AbstractMesh(", "Mesh("):
        _printed_axes(scanner, sizes)
    else:
        while not scanner.at_end:
            name = scanner.name("an axis name", _HINT)
            scanner.expect("=", _HINT)
            _add(scanner, sizes, name)
            scanner.separate("another axis", _HINT)
    if not sizes:
        scanner.fail("there is no mesh axis", 0, len(text), _HINT)
    mesh = Mesh(tuple(sizes), tuple(sizes.values()))
    return mesh if device_order is None else with_device_order(mesh, device_order)


def _printed_axes(scanner: Scanner, sizes: dict[str, int]) -> None:
    """``'X': 2, 'Y': 4, axis_types=(Auto, Auto))``, the types passed over."""
    while not scanner.take(")"):
        if scanner.take("axis_types"):
            scanner.expect("=", _HINT)
            scanner.expect("(", _HINT)
            while not scanner.take(")"):
                scanner.name("an axis type", _HINT)
                scanner.take(",")
        else:
            name = scanner.string("an axis name in quotes", _HINT)
            if not is_axis_name(name.text):
                hint = "use letters, digits and _, starting with a letter"
                scanner.fail(f"{quote(name.text, 30)} is not an axis name", name.start, name.stop, hint)
            scanner.expect(":", _HINT)
            _add(scanner, sizes, name)
        if not scanner.take(",") and not scanner.peek(")"):
            scanner.fail_here("',' or ')'", _HINT)
    scanner.expect_end(_HINT)


def _add(scanner: Scanner, sizes: dict[str, int], name: Word) -> None:
    scanner.skip()
    start = scanner.pos
    negative = scanner.take("-")
    size = scanner.integer(f"the size of mesh axis {name.text[:30]}", _HINT)
    if negative or size < 1:
        problem = f"mesh axis {name.text[:30]} has the size {negative}{size}"
        scanner.fail(problem, start, scanner.pos, "an axis has a size of 1 or more")
    if name.text in sizes:
        problem = f"mesh axis {name.text[:30]} is named twice, again"
        scanner.fail(problem, name.start, name.stop, "give every axis its own name")
    sizes[name.text] = size
    if len(sizes) > MAX_RANK:
        scanner.fail(f"more than {MAX_RANK} mesh axes,", name.start, name.stop, "use fewer axes")
