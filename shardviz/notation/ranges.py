"""A range of sizes as a user types it: ``b=1Ki:1Mi`` in powers of two, ``b=1Ki:1Mi:4`` in powers of four."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.errors import quote
from shardviz.notation.numbers import scan_size
from shardviz.notation.scanner import Scanner

HINT = "write a dimension or a mesh axis with its first and its last size: b=1Ki:1Mi, or b=1Ki:1Mi:4"
MAX_SIZES = 64


@dataclass(frozen=True)
class SizeRange:
    """The sizes of the dimension or mesh axis `name`; `text` is what was typed."""

    name: str
    sizes: tuple[int, ...]
    text: str


def parse_range(text: str) -> SizeRange:
    """Read ``NAME=FIRST:LAST`` or ``NAME=FIRST:LAST:FACTOR``: FIRST, times the factor (2), up to LAST.

    Raises `NotationError` for text of another form, for sizes that do not grow, and for more than
    `MAX_SIZES`.
    """
    scanner = Scanner(text, HINT)
    name = scanner.name("a dimension or a mesh axis").text
    scanner.expect("=")
    scanner.skip()
    start = scanner.pos
    first = scan_size(scanner, name)
    if not first:
        scanner.fail(f"{quote(name, 30)} begins with 0", start, scanner.pos, "begin with 1 or more")
    scanner.expect(":")
    scanner.skip()
    start = scanner.pos
    last = scan_size(scanner, name)
    stop = scanner.pos
    factor, factor_at = 2, start
    if scanner.take(":"):
        scanner.skip()
        factor_at = scanner.pos
        factor = scan_size(scanner, "the factor")
        if factor < 2:
            scanner.fail(f"a factor of {factor}", factor_at, scanner.pos, "use a factor of 2 or more")
    scanner.expect_end()
    if last <= first:
        scanner.fail(f"{last:,} is not above {first:,}", start, stop, "end with a larger size")
    sizes = [first]
    while sizes[-1] * factor <= last:
        sizes.append(sizes[-1] * factor)
    if len(sizes) > MAX_SIZES:
        scanner.fail(
            f"{len(sizes)} sizes, more than {MAX_SIZES},", 0, len(text), "use a larger factor: b=1:1Gi:4"
        )
    if len(sizes) < 2:
        scanner.fail(
            f"one size: {first:,} times {factor:,} is above {last:,},",
            factor_at,
            scanner.pos,
            "use a smaller factor",
        )
    return SizeRange(name, tuple(sizes), text)
