"""shardlib's shape strings: ``B/X D/Y``, ``I/X/Y`` for one dimension over two axes, X major (MatX-inc/seqax,
``shardlib/shardtypes.py``). A whole type such as ``f32[b'B/X D/Y']`` is not read."""

from __future__ import annotations

import re

from shardviz.errors import QuestionError
from shardviz.notation.reading import Context, Reading
from shardviz.notation.scanner import Scanner, Word

_HINT = "write each dimension and its axes: B/X D/Y"
_DIM = re.compile(r"[A-Za-z][A-Za-z0-9_]*|[0-9]+")


def read_shardlib(text: str, context: Context) -> Reading:
    """Read a shape string; a number in place of a dimension's name is its size."""
    scanner = Scanner(text, _HINT, context.axis_sizes)
    if scanner.at_end:
        scanner.fail("there is no dimension", 0)
    words: list[Word] = []
    dims: list[list[Word]] = []
    while not scanner.at_end:
        words.append(scanner.match(_DIM) or scanner.fail_here("a dimension"))
        axes: list[Word] = []
        while scanner.text.startswith("/", scanner.pos):
            scanner.pos += 1
            axes.append(scanner.axis())
        dims.append(axes)
        if scanner.pos < len(text) and not text[scanner.pos].isspace():
            scanner.fail_here("'/' or a space")
    context.check_rank(scanner, len(dims))
    spec = scanner.spec(dims)
    shape = tuple(scanner.to_int(word) for word in words if word.text[0].isdigit())
    return Reading(
        spec,
        dims=None if shape else tuple(word.text for word in words),
        shape=shape if len(shape) == len(words) else None,
    )


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
