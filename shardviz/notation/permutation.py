"""Who sends to whom: ``(0,1),(1,2)`` as `jax.lax.ppermute` takes it, or ``0->1,1->2``."""

from __future__ import annotations

from shardviz.errors import quote
from shardviz.notation.scanner import Scanner, Word

_HINT = "write pairs of source and destination: (0,1),(1,2)"


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
            scanner.separate("another pair", _HINT)
    if closing:
        scanner.expect(closing, _HINT)
        scanner.expect_end(_HINT)
    elif not pairs:
        scanner.fail("there is no pair", 0, len(text), f"{_HINT}; [] sends nothing")
    return tuple(pairs)


def _pair(scanner: Scanner) -> tuple[Word, Word]:
    if scanner.take("("):
        source = scanner.whole("a source", _HINT)
        scanner.expect(",", _HINT)
        target = scanner.whole("a destination", _HINT)
        scanner.take(",")
        scanner.expect(")", _HINT)
        return source, target
    source = scanner.whole("a pair", _HINT)
    if not scanner.take("->", "→"):
        scanner.fail_here(f"{quote('->')} after {quote(source.text, 20)}", _HINT)
    return source, scanner.whole("a destination", _HINT)
