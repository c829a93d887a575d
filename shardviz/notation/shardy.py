"""Shardy's shardings: ``<@mesh, [{"X"}, {"Y"}]>``, ``#sdy.sharding<mesh<["X"=2]>, [{"X"}]>``.

The grammar is that of the ``sdy`` dialect's ``TensorShardingAttr``. ``?`` (the compiler may
split the dimension further), priorities (``p1``) and ``replicated={…}`` steer propagation and do not
change the layout: they are left to notes. A part of an axis (``"Y":(1)2``) is read against a mesh that is
refined for it (`shardviz.notation.reading`), and refused against any other.
"""

from __future__ import annotations

import re

from shardviz.errors import quote
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import Scanner, Word

_HINT = 'write a Shardy sharding as <@mesh, [{"X"}, {}]>'
_PRIORITY = re.compile(r"p[0-9]{1,9}")


def read_shardy(text: str, context: Context) -> Reading:
    """Read a tensor's sharding.

    Raises `NotationError` for text of another form, an unknown axis, an axis used twice, parts of axes,
    pending reductions other than sums, and an inline mesh that differs from the one of `context`.
    """
    scanner = Scanner(text, _HINT)
    if scanner.take("sdy.sharding"):
        scanner.expect("=")
    scanner.take("#sdy.sharding")
    scanner.expect("<")
    notes: list[str] = []
    if not scanner.take("@"):
        notes += _inline_mesh(scanner, context)
    elif scanner.peek('"'):
        scanner.string("a mesh")
    else:
        scanner.name("a mesh")
    scanner.expect(",")
    scanner.expect("[")
    dims: list[list[Word]] = []
    open_dims: list[int] = []
    for _ in scanner.items("]"):
        axes, is_open = _dim(scanner, len(dims), context, notes)
        open_dims += [len(dims)] if is_open else []
        dims.append(axes)
    unreduced: list[Word] = []
    while scanner.take(","):
        unreduced += _axis_set(scanner, context, notes)
    scanner.expect(">")
    scanner.expect_end()
    context.check_rank(scanner, len(dims))
    spec = scanner.spec(dims, unreduced, context.axis_names)
    return Reading(spec, open_dims=tuple(open_dims), notes=tuple(notes))


def write_shardy(reading: Reading, context: Context) -> str:
    """The sharding as MLIR prints it inside an attribute, over a mesh named ``@mesh`` as JAX names it."""
    dims = ", ".join(
        _braces(dim, context, number in reading.open_dims) for number, dim in enumerate(reading.spec.dims)
    )
    unreduced = context.mesh_order(reading.spec.unreduced)
    return f"<@mesh, [{dims}]{f', unreduced={_braces(unreduced, context)}' if unreduced else ''}>"


def _braces(axes: tuple[str, ...], context: Context, is_open: bool = False) -> str:
    listed = [f'"{axis}"' for axis in axes]
    if context.refined is not None:
        parts = context.refined.joined(axes)
        listed = [
            f'"{part.axis}"' + ("" if part.is_whole else f":({part.above}){part.size}") for part in parts
        ]
    return f"{{{', '.join([*listed, *['?'] * is_open])}}}"


def _inline_mesh(scanner: Scanner, context: Context) -> list[str]:
    """``mesh<["X"=2, "Y"=4]>``, which must agree with the known mesh; a note where it orders its devices."""
    scanner.skip()
    start = scanner.pos
    scanner.expect("mesh<")
    scanner.expect("[")
    sizes: list[tuple[str, int]] = []
    for _ in scanner.items("]"):
        name = scanner.string("an axis in quotes")
        scanner.expect("=")
        sizes.append((name.text, scanner.integer("the size of the axis")))
    ordered: list[int] = []
    if scanner.take(","):
        scanner.expect("device_ids")
        scanner.expect("=")
        scanner.expect("[")
        while not scanner.take("]"):
            ordered.append(scanner.integer("a device"))
            scanner.take(",")
    scanner.expect(">")
    given = context.given_mesh
    if given is not None and sizes != list(given.shape.items()):
        hint = f"give the mesh that the text has, not {given}"
        scanner.fail("this mesh differs from the one asked about", start, scanner.pos, hint)
    if ordered == [*range(len(ordered))]:
        return []
    return ["the text's device_ids are left out: what is written here counts the devices in the mesh's order"]


def _dim(scanner: Scanner, dim: int, context: Context, notes: list[str]) -> tuple[list[Word], bool]:
    """``{"X", "Y", ?}p1``: the axes, and whether the compiler may add to them."""
    scanner.expect("{")
    axes, is_open = _axes(scanner, context, f"dimension {dim}", notes)
    scanner.skip()
    priority = scanner.match(_PRIORITY)
    if priority:
        notes.append(f"dimension {dim} has priority {priority.text[1:]} in propagation")
    return axes, is_open


def _axes(scanner: Scanner, context: Context, what: str, notes: list[str]) -> tuple[list[Word], bool]:
    axes: list[Word] = []
    for _ in scanner.items("}"):
        if scanner.take("?"):
            notes.append(f"{what} is open: the compiler may split it further")
            scanner.expect("}")
            return axes, True
        axes += _axis(scanner, context)
    return axes, False


def _axis(scanner: Scanner, context: Context) -> list[Word]:
    """``"Y"`` or ``"Y":(1)2``: the axes that make it in a mesh that is refined for parts of axes."""
    axis = scanner.string("an axis in quotes")
    has_part = scanner.take(":")
    refined = context.refined
    if refined is None or axis.text not in refined.given.axis_names:
        if has_part and (context.axis_names is None or axis.text in context.axis_names):
            hint = "a PartitionSpec has whole axes; make two axes of it in the mesh"
            if context.mesh is None:
                hint = f"say how large {quote(axis.text, 30)} is: give the mesh"
            scanner.fail("a part of an axis cannot be told", axis.start - 1, scanner.pos, hint)
        return [axis]
    if not has_part:
        return [axis._replace(text=name) for name in refined.axes_of(axis.text)]
    scanner.expect("(")
    above = scanner.integer("a number")
    scanner.expect(")")
    names = refined.axes_of(axis.text, above, scanner.integer("a number"))
    if not names:
        size = refined.given.axis_size(axis.text)
        scanner.fail(f"an axis of size {size} has no such part", axis.start - 1, scanner.pos)
    return [axis._replace(text=name) for name in names]


def _axis_set(scanner: Scanner, context: Context, notes: list[str]) -> list[Word]:
    """``unreduced={…}`` gives its axes, ``replicated={…}`` a note."""
    scanner.skip()
    start = scanner.pos
    kind = scanner.take("replicated", "unreduced") or scanner.fail_here("'unreduced='")
    scanner.expect("=")
    if reduction := scanner.take("max", "min"):
        problem = f"the pending reduction is a {reduction}"
        scanner.fail(problem, start, scanner.pos, "shardviz models partial sums only")
    scanner.take("sum")
    scanner.expect("{")
    axes, _ = _axes(scanner, context, f"{kind} axes", notes)
    if kind == "replicated":
        listed = ", ".join(context.named([axis.text for axis in axes]))
        notes.append(f"the compiler may not split any dimension over {listed}")
        return []
    return axes
