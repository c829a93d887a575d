"""The texts that state a problem: whether one is a program, how often it runs, and its lines."""

from __future__ import annotations

import re

from shardviz.errors import NotationError

PROGRAM_HINT = "write statements as H = X[b, d] * W1[d, f]; Y = silu(H) * W2[f, d]"
_LAYERS = re.compile(r"(?:×\s*|\bx[ \t]+)(\d{1,9})\s*\Z")
_COMMENT = re.compile(r"#[^\n]*")
_ASSIGNS = re.compile(r"(?:\A|;)\s*[A-Za-z][A-Za-z0-9_']*\s*=(?!=)")
_THREE_OPERANDS = re.compile(r"(?:\A|;)\s*(?:[A-Za-z]+\s*,\s*){2,}[A-Za-z]+\s*(?:,|->|→)")
"""An einsum of letters that has more than two operands: a chain's have two, and its results no names."""
_INSIDE = re.compile(r"(?<=\[)[^\]]*|\\?\{[^}]*\}|<sub>[^<]*</sub>|\\\w+|(?<=[*@·×⋅])_\w+")
_BEYOND_PRODUCT = re.compile(r"[;,\n+/()]|-(?!>)|(?<!\w)\d|[A-Za-z][\w']*+(?!\s*+(?:\[|\*\*))")
"""An operation that a product lacks, or a name without brackets, once what stands in brackets is gone."""
_OPEN_END = re.compile(r"(?:[-+*/@=,·×⋅(]|->|→|\\cdot)\s*\Z")
_OPEN_START = re.compile(r"\s*(?:[-+*/@,·×⋅)]|→|\\cdot)")


def is_program(text: str) -> bool:
    """Return whether a text is a program, rather than an einsum, a chain of them or one product."""
    plain = _COMMENT.sub("", text).strip().strip(";")
    if "#" in text:
        return True
    if "[" not in plain:
        return _ASSIGNS.search(plain) is not None or _THREE_OPERANDS.search(plain) is not None
    return _BEYOND_PRODUCT.search(_INSIDE.sub("", plain)) is not None


def split_layers(text: str) -> tuple[str, int]:
    """A text without the ``× 32`` or ``x 32`` at its end, and that number, or 1. Raises `NotationError` for
    0."""
    match = _LAYERS.search(text)
    if match is None:
        return text, 1
    if not int(match.group(1)):
        problem = "a program runs at least once, not 0 times,"
        raise NotationError(problem, text, match.start(1), match.end(1), PROGRAM_HINT)
    return text[: match.start()].rstrip(" \t\r\n;"), int(match.group(1))


def joined_lines(text: str) -> str:
    """A program on one line, with ``;`` between its statements and without comments; any other text, and a
    program on one line, stays."""
    if "\n" not in text.strip() and "#" not in text:
        return text
    statements = (" ".join(each.split()) for each in on_one_line(text).split(";"))
    joined = "; ".join(filter(None, statements))
    return re.sub(r";( (?:×|x )\s*\d+)$", r"\1", joined)


def on_one_line(text: str) -> str:
    """The text with ``;`` for line breaks that end a statement, and blanks for comments and other breaks;
    every character stays in its place."""
    text = _COMMENT.sub(lambda match: " " * len(match.group()), text)
    pieces, depth = [], 0
    lines = text.split("\n")
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        depth += sum(line.count(each) for each in "([{") - sum(line.count(each) for each in ")]}")
        joins = depth > 0 or _OPEN_END.search(line) or _OPEN_START.match(after)
        pieces += [line, " " if joins else ";"]
    return "".join(pieces[:-1]).replace("\r", " ").replace("\t", " ")
