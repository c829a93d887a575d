"""Shapes: ``16384x16384``, also with ``×``, commas, blanks or brackets; ``()`` is a scalar."""

from __future__ import annotations

import re

from shardviz.errors import NotationError, quote

HINT = "write sizes with x between them: 16384x16384; () is a scalar"
MAX_DIGITS = 19


def parse_shape(text: str) -> tuple[int, ...]:
    """Read ``8x2048`` (also with ``×``, commas, blanks or brackets). Raises `NotationError`."""
    body = text.strip()
    if body in ("()", "[]", "scalar"):
        return ()
    sizes = []
    for match in re.finditer(r"[^x×X*,\s()\[\]]+|[x×X*,]", text):
        piece = match.group()
        if piece in "x×X*,":
            continue
        sizes.append(count_at(match, text, "size", HINT))
    if not sizes:
        raise NotationError("there is no size", text, len(text), hint=HINT)
    return tuple(sizes)


def count_at(match: re.Match[str], text: str, what: str, hint: str) -> int:
    """The number that a match in `text` is; `NotationError` where it is none, calling it `what`."""
    digits = match.group()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > MAX_DIGITS:
        raise NotationError(f"{quote(digits, 30)} is not a {what}", text, *match.span(), hint=hint)
    return int(digits)
