"""The types that `jax.typeof` prints under Explicit axes, ``bf16[8@X,2048@Y]``, ``f32[I@(X,Y),J]{U:Z}``,
where names stand for sizes that are not known; and shardlib's shape strings: ``B/X D/Y``, ``I/X/Y`` for
one dimension over two axes, X major (MatX-inc/seqax, ``shardlib/shardtypes.py``; of a whole type such as
``f32[b'B/X D/Y']`` only what is in quotes)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shardviz.errors import QuestionError
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import Scanner, Word
from shardviz.sharding import canonical_dtype

_TYPE_HINT = "write an array type as bf16[8@X,2048@Y] or f32[I@(X,Y),J]{U:Z}"
_SHAPE_HINT = "write each dimension and its axes: B/X D/Y"
_DTYPE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_SIZE = re.compile(r"[0-9]+|[A-Za-z][A-Za-z0-9_]*")
_MEMORY = re.compile(r"<[a-z_]+>")


def read_typeof(text: str, context: Context) -> Reading:
    """Read an array's type. Reduced axes (``{R:Y}``) do not change the layout and are left to a note; varying
    axes (``{V:Y}``) belong to one device's piece and cannot be read."""
    scanner = Scanner(text, _TYPE_HINT, context.axis_sizes)
    scanner.take("~")
    word = scanner.next(_DTYPE) or scanner.fail_here("a dtype")
    try:
        dtype = canonical_dtype(word.text)
    except QuestionError as error:
        scanner.fail(error.message, word, hint=error.hint)
    scanner.match(_MEMORY)
    scanner.expect("[")
    sizes: list[Word] = []
    dims: list[list[Word]] = []
    for _ in scanner.items("]", last_comma=False):
        sizes.append(scanner.next(_SIZE) or scanner.fail_here("a size"))
        dims.append(_axes(scanner) if scanner.take("@") else [])
    unreduced: list[Word] = []
    notes: list[str] = []
    for _ in scanner.items("}") if scanner.take("{") else ():
        start = scanner.skip()
        kind = scanner.take("U:", "R:", "V:") or scanner.fail_here("'U:' or 'R:'")
        if kind == "V:":
            hint = "give the type of the whole array, outside shard_map"
            scanner.fail("varying axes do not describe the whole array", start, scanner.pos, hint)
        axes = _axes(scanner)
        if kind == "U:":
            unreduced += axes
        else:
            listed = ", ".join(axis.text for axis in axes)
            notes.append(f"reduced over {listed}: whole on every device, and its gradient is unreduced")
    scanner.expect_end()
    context.check_rank(scanner, len(dims))
    return _reading(scanner, sizes, dims, unreduced)._replace(dtype=dtype, notes=tuple(notes))


def _reading(
    scanner: Scanner, sizes: Sequence[Word], dims: Sequence[Sequence[Word]], unreduced: Sequence[Word] = ()
) -> Reading:
    """The spec, with the shape where every size is a number, or the dimensions where every one is a name."""
    spec = scanner.spec(dims, unreduced)
    shape = tuple(scanner.to_int(size) for size in sizes if size.text[0].isdigit())
    names = tuple(size.text for size in sizes) if sizes and not shape else None
    return Reading(spec, names, shape if len(shape) == len(sizes) else None)


def write_typeof(reading: Reading, context: Context) -> str:
    """The type as JAX prints it; a size that is not known is the dimension's name."""
    entries = []
    for i, (dim, axes) in enumerate(zip(reading.dim_names, reading.spec.dims, strict=True)):
        size = context.sizes.get(dim, dim) if reading.shape is None else reading.shape[i]
        entries.append(f"{size}@{_group(axes)}" if axes else str(size))
    unreduced = context.mesh_order(reading.spec.unreduced)
    suffix = f"{{U:{_group(unreduced)}}}" if unreduced else ""
    return f"{short_dtype(reading.dtype or 'f32')}[{','.join(entries)}]{suffix}"


def short_dtype(dtype: str) -> str:
    """JAX's short name of a dtype under its HLO name: s32 is i32, pred is bool, f8e5m2 is f8_e5m2."""
    if dtype == "pred":
        return "bool"
    return re.sub(r"^f(\d)e", r"f\1_e", re.sub(r"^s(\d+)$", r"i\1", dtype))


def _axes(scanner: Scanner) -> list[Word]:
    """``X`` or ``(X,Y)``."""
    if not scanner.take("(") or scanner.peek(")"):
        return [scanner.axis()]
    return [scanner.axis() for _ in scanner.items(")", last_comma=False)]


def _group(axes: tuple[str, ...]) -> str:
    return axes[0] if len(axes) == 1 else f"({','.join(axes)})"


def read_shardlib(text: str, context: Context) -> Reading:
    """Read a shape string; a number in place of a dimension's name is its size."""
    scanner = Scanner(text, _SHAPE_HINT, context.axis_sizes)
    if scanner.at_end:
        scanner.fail("there is no dimension", 0)
    words: list[Word] = []
    dims: list[list[Word]] = []
    while not scanner.at_end:
        words.append(scanner.match(_SIZE) or scanner.fail_here("a dimension"))
        axes: list[Word] = []
        while scanner.text.startswith("/", scanner.pos):
            scanner.pos += 1
            axes.append(scanner.axis())
        dims.append(axes)
        if scanner.pos < len(text) and not text[scanner.pos].isspace():
            scanner.fail_here("'/' or a space")
    context.check_rank(scanner, len(dims))
    return _reading(scanner, words, dims)


def write_shardlib(reading: Reading, context: Context) -> str:
    """The shape string. Raises `QuestionError` for partial sums and for an array without dimensions."""
    del context
    spec = reading.spec
    if spec.unreduced:
        problem = f"shardlib notation cannot express partial sums over {', '.join(spec.unreduced)}"
        raise QuestionError(problem, "leave out the unreduced axes or use the book's")
    if not spec.dims:
        raise QuestionError("shardlib writes an array without dimensions as nothing", "use another notation")
    return " ".join("/".join((name, *axes)) for name, axes in zip(reading.dim_names, spec.dims, strict=True))
