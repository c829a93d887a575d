"""The devices that send to each other: ``(0,1),(1,2)`` as `jax.lax.ppermute` takes it, or ``0->1,1->2``; and
how many rows each device sends to each: ``1,2;0,3``, a line for each sender."""

from __future__ import annotations

from shardviz.errors import quote
from shardviz.notation.scanner import Scanner, Word

_PERMUTATION_HINT = "write pairs of source and destination: (0,1),(1,2)"


def parse_permutation(text: str, group_size: int) -> tuple[tuple[int, int], ...]:
    """Read pairs of members of a group; ``[]`` is nobody sends.

    Raises `NotationError` for text of another form, a member that the group does not have, and one that
    sends or receives twice.
    """
    scanner = Scanner(text)
    closing = "]" if scanner.take("[") else ""
    pairs: list[tuple[int, int]] = []
    seen: tuple[set[int], set[int]] = (set(), set())
    while not scanner.at_end and not (closing and scanner.peek(closing)):
        pair = _pair(scanner)
        for members, word, does in zip(seen, pair, ("sends", "receives"), strict=True):
            member = scanner.to_int(word)
            if member >= group_size:
                problem = f"there is no device {member} in a group of {group_size:,}"
                hint = f"devices of a group count from 0 to {group_size - 1}"
                scanner.fail(problem, word.start, word.stop, hint)
            if member in members:
                problem = f"device {member} {does} twice, again"
                hint = "in a ppermute a device sends to one device at most, and receives from one"
                scanner.fail(problem, word.start, word.stop, hint)
            members.add(member)
        pairs.append((int(pair[0].text), int(pair[1].text)))
        if not (closing and scanner.peek(closing)):
            scanner.separate("another pair", _PERMUTATION_HINT)
    if closing:
        scanner.expect(closing, _PERMUTATION_HINT)
        scanner.expect_end(_PERMUTATION_HINT)
    elif not pairs:
        scanner.fail("there is no pair", 0, len(text), f"{_PERMUTATION_HINT}; [] sends nothing")
    return tuple(pairs)


def _pair(scanner: Scanner) -> tuple[Word, Word]:
    if scanner.take("("):
        source = scanner.whole("a source", _PERMUTATION_HINT)
        scanner.expect(",", _PERMUTATION_HINT)
        target = scanner.whole("a destination", _PERMUTATION_HINT)
        scanner.take(",")
        scanner.expect(")", _PERMUTATION_HINT)
        return source, target
    source = scanner.whole("a pair", _PERMUTATION_HINT)
    if not scanner.take("->", "→"):
        scanner.fail_here(f"{quote('->')} after {quote(source.text, 20)}", _PERMUTATION_HINT)
    return source, scanner.whole("a destination", _PERMUTATION_HINT)


_SIZES_HINT = "write a line for each sender with ; between them: 1,2;0,3"


def parse_send_sizes(text: str, group_size: int) -> tuple[tuple[int, ...], ...]:
    """Read one row of `group_size` numbers for each of as many senders.

    Raises `NotationError` for text of another form and for another number of rows or of numbers in one.
    """
    scanner = Scanner(text)
    if scanner.at_end:
        scanner.fail("there is no line of numbers", 0, len(text), _SIZES_HINT)
    rows: list[tuple[int, ...]] = []
    while True:
        scanner.skip()
        start = scanner.pos
        rows.append(_line(scanner, group_size))
        if len(rows) > group_size:
            problem = f"a line too many for a group of {group_size:,}"
            scanner.fail(problem, start, scanner.pos, "write as many lines as there are devices")
        if not scanner.take(";"):
            break
    scanner.expect_end(_SIZES_HINT)
    if len(rows) < group_size:
        problem = f"only {len(rows):,} of {group_size:,} lines"
        scanner.fail(problem, 0, len(text), _SIZES_HINT)
    return tuple(rows)


def _line(scanner: Scanner, group_size: int) -> tuple[int, ...]:
    scanner.skip()
    start = scanner.pos
    sizes: list[int] = []
    while not scanner.at_end and not scanner.peek(";"):
        if scanner.peek("-"):
            scanner.fail("a negative number of rows", scanner.pos, scanner.pos + 1, "send 0 rows or more")
        sizes.append(scanner.integer("a number of rows", _SIZES_HINT))
        if not scanner.peek(";"):
            scanner.separate("another number", _SIZES_HINT)
        if len(sizes) > group_size:
            break
    if len(sizes) != group_size:
        shown = quote(scanner.text[start : scanner.pos].strip(), 30)
        plural = "" if len(sizes) == 1 else "s"
        count = "a number too many" if len(sizes) > group_size else f"{len(sizes)} number{plural}"
        problem = f"the line {shown} has {count} for a group of {group_size:,},"
        scanner.fail(problem, start, scanner.pos, "write how many rows go to each device, its own among them")
    return tuple(sizes)
