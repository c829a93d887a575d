"""Shardy's shardings: ``<@mesh, [{"X"}, {"Y"}]>``, the ``sdy`` dialect's ``TensorShardingAttr``.

``?``, priorities (``p1``) and ``replicated={…}`` steer propagation: they are left to notes.
``<@maximal_mesh_3, []>`` is an array that device 3 holds alone, as is ``mesh<[], device_ids=[3]>``."""

from __future__ import annotations

import re

from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import Scanner, Word

_HINT = 'write a Shardy sharding as <@mesh, [{"X"}, {}]>'
_MAXIMAL = re.compile(r"maximal_mesh_\d{1,9}\b")
_PRIORITY = re.compile(r"p[0-9]{1,9}")


def read_shardy(text: str, context: Context) -> Reading:
    """Read a tensor's sharding, whose inline mesh must be that of `context`."""
    scanner = Scanner(text, _HINT, context.axis_sizes)
    if scanner.take("sdy.sharding"):
        scanner.expect("=")
    scanner.take("#sdy.sharding")
    scanner.expect("<")
    notes: list[str] = []
    devices: list[int] = []
    before_mesh = scanner.pos
    if not scanner.take("@"):
        devices = _inline_mesh(scanner, context)
    elif (maximal := scanner.match(_MAXIMAL)) is not None:
        devices = [int(maximal.text.rpartition("_")[2])]
    elif scanner.peek('"'):
        scanner.string("a mesh")
    else:
        scanner.name("a mesh")
    scanner.expect(",", "[")
    dims: list[list[Word]] = []
    open_dims: list[int] = []
    for _ in scanner.items("]"):
        number = len(dims)
        axes, is_open = scanner.braces(_axis)
        if is_open:
            open_dims.append(number)
            notes.append(f"dimension {number} is open: the compiler may split it further")
        if priority := scanner.next(_PRIORITY):
            notes.append(f"dimension {number} has priority {priority.text[1:]} in propagation")
        dims.append(axes)
    unreduced: list[Word] = []
    while scanner.take(","):
        unreduced += _axis_set(scanner, notes)
    scanner.expect(">")
    scanner.expect_end()
    if len(devices) == 1 and not dims:
        dims = [[] for _ in range(context.known_rank(scanner))]
    context.check_rank(scanner, len(dims))
    spec = scanner.spec(dims, unreduced)
    if named := context.devices_at(devices) if devices else ():
        spec = scanner.on_devices(spec, named, before_mesh)
    return Reading(spec, open_dims=tuple(open_dims), notes=tuple(notes))


def write_shardy(reading: Reading, context: Context) -> str:
    """The sharding as MLIR prints it inside an attribute, over a mesh named ``@mesh`` as JAX names it; of an
    array on devices of its own with that mesh. Raises `QuestionError` where no mesh is known for another
    order."""
    spec = reading.spec
    mesh = "@mesh"
    if spec.only_device is not None:
        return f"<@maximal_mesh_{context.positions_of(spec.devices)[0]}, []>"
    if spec.devices:
        axes = ", ".join(f'"{name}"={size}' for name, size in context.known_mesh("Shardy").shape.items())
        mesh = f"mesh<[{axes}], device_ids=[{', '.join(map(str, context.positions_of(spec.devices)))}]>"
    dims = ", ".join(_braces(dim, number in reading.open_dims) for number, dim in enumerate(spec.dims))
    unreduced = context.mesh_order(spec.unreduced)
    return f"<{mesh}, [{dims}]{f', unreduced={_braces(unreduced)}' if unreduced else ''}>"


def _braces(axes: tuple[str, ...], is_open: bool = False) -> str:
    listed = [f'"{axis}"{colon}{part}' for axis, colon, part in (name.partition(":") for name in axes)]
    return f"{{{', '.join([*listed, *['?'] * is_open])}}}"


def _inline_mesh(scanner: Scanner, context: Context) -> list[int]:
    """``mesh<["X"=2, "Y"=4], device_ids=[…]>``, which must agree with the known mesh unless it has no axes
    and one device; the places of its devices, if it names them."""
    start = scanner.skip()
    scanner.expect("mesh<", "[")
    sizes: list[tuple[str, int]] = []
    for _ in scanner.items("]"):
        name = scanner.string("an axis in quotes")
        scanner.expect("=")
        sizes.append((name.text, scanner.integer("the size of the axis")))
    ordered: list[int] = []
    if scanner.take(","):
        scanner.expect("device_ids", "=", "[")
        while not scanner.take("]"):
            ordered.append(scanner.integer("a device"))
            scanner.take(",")
    scanner.expect(">")
    is_one_device = not sizes and len(ordered) == 1
    if context.mesh is not None and not is_one_device and sizes != list(context.mesh.shape.items()):
        hint = f"give the mesh that the text has, not {context.mesh}"
        scanner.fail("this mesh differs from the given one", start, scanner.pos, hint)
    return ordered


def _axis(scanner: Scanner) -> Word:
    return scanner.part_of(scanner.string("an axis in quotes"))


def _axis_set(scanner: Scanner, notes: list[str]) -> list[Word]:
    start = scanner.skip()
    kind = scanner.take("replicated", "unreduced") or scanner.fail_here("'unreduced='")
    scanner.expect("=")
    if reduction := scanner.take("max", "min"):
        problem = f"the pending reduction is a {reduction}"
        scanner.fail(problem, start, scanner.pos, "shardviz models partial sums only")
    scanner.take("sum")
    axes, is_open = scanner.braces(_axis)
    if is_open:
        notes.append(f"{kind} axes is open: the compiler may split it further")
    if kind == "replicated":
        listed = ", ".join(axis.text for axis in axes)
        notes.append(f"the compiler may not split any dimension over {listed}")
        return []
    return axes
