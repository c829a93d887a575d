"""How many rows everyone sends to everyone: ``1,2;0,3``, a line for each sender."""

from __future__ import annotations

from shardviz.errors import quote
from shardviz.notation.scanner import Scanner

_HINT = "write a line for each sender with ; between them: 1,2;0,3"


def parse_send_sizes(text: str, group_size: int) -> tuple[tuple[int, ...], ...]:
    """Read one row of `group_size` numbers for each of as many senders.

    Raises `NotationError` for text of another form and for another number of rows or of numbers in one.
    """
    scanner = Scanner(text)
    if scanner.at_end:
        scanner.fail("there is no line of numbers", 0, len(text), _HINT)
    rows: list[tuple[int, ...]] = []
    while True:
        scanner.skip()
        start = scanner.pos
        rows.append(_row(scanner, group_size))
        if len(rows) > group_size:
            problem = f"a line too many for a group of {group_size:,}"
            scanner.fail(problem, start, scanner.pos, "write as many lines as there are devices")
        if not scanner.take(";"):
            break
    scanner.expect_end(_HINT)
    if len(rows) < group_size:
        problem = f"only {len(rows):,} of {group_size:,} lines"
        scanner.fail(problem, 0, len(text), _HINT)
    return tuple(rows)


def _row(scanner: Scanner, group_size: int) -> tuple[int, ...]:
    scanner.skip()
    start = scanner.pos
    sizes: list[int] = []
    while not scanner.at_end and not scanner.peek(";"):
        if scanner.peek("-"):
            scanner.fail("a negative number of rows", scanner.pos, scanner.pos + 1, "send 0 rows or more")
        sizes.append(scanner.integer("a number of rows", _HINT))
        if not scanner.peek(";"):
            scanner.separate("another number", _HINT)
        if len(sizes) > group_size:
            break
    if len(sizes) != group_size:
        shown = quote(scanner.text[start : scanner.pos].strip(), 30)
        plural = "" if len(sizes) == 1 else "s"
        count = "a number too many" if len(sizes) > group_size else f"{len(sizes)} number{plural}"
        problem = f"the line {shown} has {count} for a group of {group_size:,},"
        scanner.fail(problem, start, scanner.pos, "write how many rows go to each device, its own among them")
    return tuple(sizes)
