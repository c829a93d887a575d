"""Shardy's shardings: ``<@mesh, [{"X"}, {"Y"}]>``, ``#sdy.sharding<mesh<["X"=2]>, [{"X"}]>``.

The grammar is that of the ``sdy`` dialect's ``TensorShardingAttr``. ``?`` (the compiler may
split the dimension further), priorities (``p1``) and ``replicated={…}`` steer propagation and do not
change the layout: they are left to notes. A part of an axis (``"Y":(1)2``) is refused, because a
PartitionSpec has whole axes.
"""

from __future__ import annotations

import re

from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import Scanner, Word

_HINT = 'write a Shardy sharding as <@mesh, [{"X"}, {}]>'
_PRIORITY = re.compile(r"p[0-9]{1,9}")


def read_shardy(text: str, context: Context) -> Reading:
    """Read a tensor's sharding.

    Raises `NotationError` for text of another form, an unknown axis, an axis used twice, parts of axes,
    pending reductions other than sums, and an inline mesh that differs from the one of `context`.
    """
    scanner = Scanner(text)
    if scanner.take("sdy.sharding"):
        scanner.expect("=", _HINT)
    scanner.take("#sdy.sharding")
    scanner.expect("<", _HINT)
    if not scanner.take("@"):
        _inline_mesh(scanner, context)
    elif scanner.peek('"'):
        scanner.string("a mesh", _HINT)
    else:
        scanner.name("a mesh", _HINT)
    scanner.expect(",", _HINT)
    scanner.expect("[", _HINT)
    notes: list[str] = []
    dims: list[list[Word]] = []
    while not scanner.take("]"):
        dims.append(_dim(scanner, len(dims), notes))
        if not scanner.take(",") and not scanner.peek("]"):
            scanner.fail_here("',' or ']'", _HINT)
    unreduced: list[Word] = []
    while scanner.take(","):
        unreduced += _axis_set(scanner, notes)
    scanner.expect(">", _HINT)
    scanner.expect_end(_HINT)
    context.check_rank(scanner, len(dims))
    return Reading(scanner.spec(dims, unreduced, context.axis_names), notes=tuple(notes))


def write_shardy(reading: Reading, context: Context) -> str:
    """The sharding as MLIR prints it inside an attribute, over a mesh named ``@mesh`` as JAX names it."""
    dims = ", ".join(_braces(dim) for dim in reading.spec.dims)
    unreduced = context.mesh_order(reading.spec.unreduced)
    return f"<@mesh, [{dims}]{f', unreduced={_braces(unreduced)}' if unreduced else ''}>"


def _braces(axes: tuple[str, ...]) -> str:
    listed = ", ".join(f'"{axis}"' for axis in axes)
    return f"{{{listed}}}"


def _inline_mesh(scanner: Scanner, context: Context) -> None:
    """``mesh<["X"=2, "Y"=4]>``, which must agree with the known mesh."""
    scanner.skip()
    start = scanner.pos
    scanner.expect("mesh<", _HINT)
    scanner.expect("[", _HINT)
    sizes: list[tuple[str, int]] = []
    while not scanner.take("]"):
        name = scanner.string("an axis in quotes", _HINT)
        scanner.expect("=", _HINT)
        sizes.append((name.text, scanner.integer("the size of the axis", _HINT)))
        if not scanner.take(",") and not scanner.peek("]"):
            scanner.fail_here("',' or ']'", _HINT)
    if scanner.take(","):
        scanner.expect("device_ids", _HINT)
        scanner.expect("=", _HINT)
        scanner.expect("[", _HINT)
        while not scanner.take("]"):
            scanner.integer("a device", _HINT)
            scanner.take(",")
    scanner.expect(">", _HINT)
    if context.mesh is not None and sizes != list(context.mesh.shape.items()):
        hint = f"give the mesh that the text has, not {context.mesh}"
        scanner.fail("this mesh differs from the one asked about", start, scanner.pos, hint)


def _dim(scanner: Scanner, dim: int, notes: list[str]) -> list[Word]:
    """``{"X", "Y", ?}p1``."""
    scanner.expect("{", _HINT)
    axes = _axes(scanner, f"dimension {dim}", notes)
    scanner.skip()
    priority = scanner.match(_PRIORITY)
    if priority:
        notes.append(f"dimension {dim} has priority {priority.text[1:]} in propagation")
    return axes


def _axes(scanner: Scanner, what: str, notes: list[str]) -> list[Word]:
    axes: list[Word] = []
    while not scanner.take("}"):
        if scanner.take("?"):
            notes.append(f"{what} is open: the compiler may split it further")
            scanner.expect("}", _HINT)
            return axes
        axis = scanner.string("an axis in quotes", _HINT)
        if scanner.take(":"):
            hint = "a PartitionSpec has whole axes; make two axes of it in the mesh"
            scanner.fail("a part of an axis cannot be told", axis.start - 1, scanner.pos, hint)
        axes.append(axis)
        if not scanner.take(",") and not scanner.peek("}"):
            scanner.fail_here("',' or '}'", _HINT)
    return axes


def _axis_set(scanner: Scanner, notes: list[str]) -> list[Word]:
    """``unreduced={…}`` gives its axes, ``replicated={…}`` a note."""
    scanner.skip()
    start = scanner.pos
    kind = scanner.take("replicated", "unreduced") or scanner.fail_here("'unreduced='", _HINT)
    scanner.expect("=", _HINT)
    if reduction := scanner.take("max", "min"):
        problem = f"the pending reduction is a {reduction}"
        scanner.fail(problem, start, scanner.pos, "shardviz models partial sums only")
    scanner.take("sum")
    scanner.expect("{", _HINT)
    axes = _axes(scanner, f"{kind} axes", notes)
    if kind == "replicated":
        listed = ", ".join(axis.text for axis in axes)
        notes.append(f"the compiler may not split any dimension over {listed}")
        return []
    return axes
