"""A dictionary from outside, read key by key: lessons and machines in TOML, and the JSON of share strings,
sessions and progress. Each error names its key."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeVar

from shardviz.errors import ShardvizError, most_like, quote

T = TypeVar("T")
_BARE = re.compile(r"[\w.-]{1,40}", re.ASCII)
_IN_QUOTES = 'write it in quotes: "…"'
KINDS = {str: "a text", bool: "a truth value", int: "a number", float: "a number", list: "a list"}
KINDS |= {dict: "a table", type(None): "null"}

ErrorAt = Callable[[str, str, str], ShardvizError]
"""Makes the error of a dotted key (empty: the whole), a reason and a hint."""


class StrictTable:
    """The `values` under `path`, the dotted key of the table; empty for the whole. Every method raises what
    `error_at` makes: for a key that is missing, unknown or of another type, and for text that a terminal
    cannot show."""

    def __init__(self, values: object, error_at: ErrorAt, path: str = "") -> None:
        self.path, self._error_at = path, error_at
        if not isinstance(values, dict):
            hint = f"write [{path}] and its keys below" if path else "the whole begins with { in JSON"
            self.fail(None, f"it is {kind_of(values)}, not a table", hint)
        self.values: dict[str, Any] = values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fail(self, key: str | None, reason: str, hint: str = "") -> NoReturn:
        """Raise the error of a key; of the table itself where that is None."""
        raise self._error_at(self._path_of(key), reason, hint)

    def only(self, known: Sequence[str]) -> None:
        for key in self.values:
            if key not in known:
                self.fail(key, "there is no such key", closest(key, known))

    def exactly(self, known: Sequence[str]) -> None:
        self.only(known)
        for key in known:
            self._value(key)

    def text(self, key: str, default: str | None = None, words: int = 0, lines: bool = False) -> str:
        """A text that is not empty, as one line, or with `lines` one for each paragraph; with `words`, of at
        most so many. `default` is that of a key that is not there; None where it has to be."""
        if key not in self.values and default is not None:
            return default
        value = self.typed(key, str, _IN_QUOTES)
        self.check_shown(key, value)
        paragraphs = [" ".join(part.split()) for part in value.strip().split("\n\n")]
        prose = "\n".join(filter(None, paragraphs))
        if not prose:
            self.fail(key, "the text is empty")
        if not lines and "\n" in prose:
            self.fail(key, "it has more than one paragraph", "leave out the empty line")
        if words and len(prose.split()) > words:
            self.fail(key, f"it has {len(prose.split())} words", f"at most {words} are read beside a picture")
        return prose

    def setting(self, key: str) -> str:
        """A text as it stands, which may be empty: an option's value."""
        value = self.typed(key, str, _IN_QUOTES)
        self.check_shown(key, value)
        return value.replace("\n", " ")

    def line(self, key: str, most: int) -> str:
        """A text as it stands, on one line, of at most so many characters."""
        value = self.typed(key, str, _IN_QUOTES)
        if len(value) > most:
            self.fail(key, f"it has {len(value):,} characters", f"at most {most:,} are read")
        if not value.isprintable():
            self.fail(key, f"it has characters that a line cannot show: {quote(value, 30)}", "leave them out")
        return value

    def choice(self, key: str, known: Sequence[str], default: str | None = None) -> str:
        word = self.text(key, default)
        if word not in known and word != default:
            self.fail(key, f"{quote(word, 30)} is none of {', '.join(known)}", closest(word, known))
        return word

    def count(self, key: str, most: int) -> int:
        value = self.typed(key, int)
        if not 0 <= value <= most:
            hint = "give a smaller number" if value > most else "give 0 or more"
            shown = f"{value:,}" if abs(value) < 10**15 else "it"
            self.fail(key, f"{shown} is outside the range 0 to {most:,}", hint)
        return value

    def listed(self, key: str, most: int) -> StrictTable:
        """A list of at most so many values, as a table whose keys count them from 1."""
        values = self.typed(key, list, 'write ["…", "…"]')
        if len(values) > most:
            self.fail(key, f"there are {len(values):,}", f"there may be up to {most:,}")
        counted = {str(number): value for number, value in enumerate(values, 1)}
        return StrictTable(counted, self._error_at, self._path_of(key))

    def texts(self, key: str, most: int) -> tuple[str, ...]:
        inner = self.listed(key, most) if key in self.values else None
        return () if inner is None else tuple(map(inner.text, inner.values))

    def settings(self, key: str) -> dict[str, str]:
        inner = self.table(key)
        return {name: inner.setting(name) for name in inner.values}

    def table(self, key: str, default: dict[str, Any] | None = None) -> StrictTable:
        """A table within this one; `default` are the values of one that is not there."""
        path = self._path_of(key)
        if key not in self.values and default is None:
            self.fail(key, "it is missing", f"write [{path}] and its keys below")
        return StrictTable(self.values.get(key, default), self._error_at, path)

    def tables(self, key: str) -> list[StrictTable]:
        """The tables of a list, whose paths count them from 1."""
        values = self.typed(key, list, f"write [[{key}]] above each")
        for value in values:
            if not isinstance(value, dict):
                self.fail(key, f"it is a list of tables, not of {kind_of(value)}", f"write [[{key}]]")
        return [
            StrictTable(value, self._error_at, f"{self._path_of(key)}.{number}")
            for number, value in enumerate(values, 1)
        ]

    def typed(self, key: str, kind: type[T], hint: str = "") -> T:
        """A value of a type, and of none that derives from it."""
        value = self._value(key, hint)
        if not isinstance(value, kind) or type(value) is not kind:
            self.fail(key, f"it is {kind_of(value)}, not {KINDS[kind]}", hint)
        return value

    def check_shown(self, key: str, text: str) -> None:
        """Refuse characters that a terminal cannot show, but for line breaks."""
        for char in text:
            if char != "\n" and not char.isprintable():
                self.fail(key, f"it has the character {quote(char)}, which no terminal shows", "leave it out")

    def _value(self, key: str, hint: str = "") -> object:
        if key not in self.values:
            self.fail(key, "it is missing", hint)
        return self.values[key]

    def _path_of(self, key: str | None) -> str:
        return ".".join(filter(None, (self.path, "" if key is None else shown_key(key))))


def parsed_table(
    text: str | bytes, parse: Callable[[Any], object], kind: str, hint: str, error_at: ErrorAt
) -> StrictTable:
    """The table that a text of this kind, TOML or JSON, holds, as `parse` reads it."""
    try:
        values = parse(text)
    except (ValueError, RecursionError) as error:  # a number may be too long for Python, not for TOML
        reason = str(error) if isinstance(error, ValueError) else "its lists are too deep"
        raise error_at("", f"it is not {kind}: {quote(reason, 100)[1:-1]}", hint) from None
    return StrictTable(values, error_at)


def closest(word: str, known: Sequence[str]) -> str:
    """The hint that names the word that was meant, or all that there are."""
    near = most_like(word, known)
    return f"did you mean {near}?" if near else f"there are {', '.join(known)}"


def shown_key(key: str) -> str:
    """A key as messages name it; an empty one, and one with spaces, in quotes."""
    return key if _BARE.fullmatch(key) else quote(key, 40)


def kind_of(value: object) -> str:
    return KINDS.get(type(value), "a date")
