"""Every notation for one array's sharding, in one table, and the translation between them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.notation.book import read_book, write_book_reading
from shardviz.notation.einshard import read_einshard, write_einshard
from shardviz.notation.gspmd import read_gspmd, write_gspmd
from shardviz.notation.jax_spec import read_jax, write_jax
from shardviz.notation.reading import Context, Reading
from shardviz.notation.shardlib import read_shardlib, write_shardlib
from shardviz.notation.shardy import read_shardy, write_shardy
from shardviz.notation.spec_string import read_spec_string, write_spec_string
from shardviz.notation.typeof import read_typeof, write_typeof


@dataclass(frozen=True)
class Notation:
    """A way to write a sharding. `looks` matches the beginning of texts that are written so.

    `read` and `write` raise `ShardvizError` for what they cannot read or say; what `write` gives, `read`
    reads as the same spec, and the same dimensions, shape and dtype where the notation has them.
    """

    key: str
    title: str
    looks: re.Pattern[str]
    read: Callable[[str, Context], Reading]
    write: Callable[[Reading, Context], str]


NOTATIONS = (
    Notation("shardviz", "spec string", re.compile(""), read_spec_string, write_spec_string),
    Notation(
        "jax",
        "PartitionSpec",
        re.compile(r"(jax\.sharding\.)?(PartitionSpec|P)\s*\(|\(\s*(['\"(]|None\b)"),
        read_jax,
        write_jax,
    ),
    Notation("book", "scaling book", re.compile(r"[\w'\\{}*<>/]*\["), read_book, write_book_reading),
    Notation(
        "typeof",
        "jax.typeof",
        re.compile(r"~?\w+(<\w+>)?\[[^]]*@|~?(bool|pred|[a-z]+[0-9]\w*)(<\w+>)?\[[0-9,\s]*\]"),
        read_typeof,
        write_typeof,
    ),
    Notation("shardlib", "shardlib", re.compile(r"\w+(\s+\w+)*\s*/|\w+/"), read_shardlib, write_shardlib),
    Notation("einshard", "einshard", re.compile(r"[^\[\]{}<>@/(),;?]*->"), read_einshard, write_einshard),
    Notation("gspmd", "GSPMD in HLO", re.compile(r"\{"), read_gspmd, write_gspmd),
    Notation("shardy", "Shardy", re.compile(r"#?sdy\.sharding|<"), read_shardy, write_shardy),
)
"""In the order in which they are shown. A text is taken for the last one that it looks like."""


def find_notation(key: str) -> Notation:
    """The notation under a key; `QuestionError` for a key that none has."""
    for known in NOTATIONS:
        if known.key == key:
            return known
    keys = ", ".join(known.key for known in NOTATIONS)
    raise QuestionError(f"unknown notation {quote(key, 30)}", f"the notations are {keys}")


def detect(text: str) -> Notation:
    """The notation that a text looks like."""
    stripped = text.strip()
    return next(known for known in reversed(NOTATIONS) if known.looks.match(stripped))


def read_sharding(text: str, context: Context, key: str | None = None) -> Reading:
    """Read one array's sharding in the notation of `key`, or in the one that it looks like.

    Raises `ShardvizError` as the notation's reader does.
    """
    return (detect(text) if key is None else find_notation(key)).read(text, context)


def translate(text: str, to: str, context: Context, key: str | None = None) -> str:
    """One array's sharding in another notation; raises `ShardvizError` where it cannot be said there."""
    target = find_notation(to)
    return target.write(read_sharding(text, context, key), context)


def write_all(reading: Reading, context: Context) -> dict[str, str | ShardvizError]:
    """The sharding in every notation, by key; the error where a notation cannot say it."""
    written: dict[str, str | ShardvizError] = {}
    for known in NOTATIONS:
        try:
            written[known.key] = known.write(reading, context)
        except ShardvizError as error:
            written[known.key] = error
    return written
