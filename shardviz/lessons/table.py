"""A table of a lesson's file, read key by key: what is wrong is said with file, key and reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from shardviz.errors import QuestionError, quote

_BARE = re.compile(r"[\w.-]{1,40}", re.ASCII)
MAX_NAME = 400
"""Characters of a file's name that a message shows."""
KINDS = {str: "a text", bool: "a truth value", int: "a number", float: "a number", list: "a list"}


class LessonError(QuestionError):
    """What is wrong with a lesson: in its file `name`, at `key` (empty: the whole), for a `reason`."""

    def __init__(self, name: str, key: str, reason: str, hint: str = "") -> None:
        super().__init__(": ".join(filter(None, (quote_name(name), key, reason))), hint)
        self.name, self.key, self.reason = name, key, reason


class Table:
    """`values` under `path`, the dotted key of the table in the file `name`; empty for the whole file."""

    def __init__(self, name: str, path: str, values: Mapping[str, Any]) -> None:
        self.name, self.path, self.values = name, path, values

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fail(self, key: str | None, reason: str, hint: str = "") -> NoReturn:
        """Raise `LessonError` for a key; for the table itself where that is None."""
        shown = "" if key is None else shown_key(key)
        raise LessonError(self.name, ".".join(filter(None, (self.path, shown))), reason, hint)

    def only(self, known: Sequence[str]) -> None:
        """Refuse keys that are not known."""
        for key in self.values:
            if key not in known:
                self.fail(key, "there is no such key", closest(key, known))

    def text(self, key: str, default: str | None = None, words: int = 0, lines: bool = False) -> str:
        """A text that is not empty, as one line, or with `lines` one for each paragraph; with `words`, of at
        most so many. `default` is that of a key that is not there; None where it has to be."""
        if key not in self.values and default is not None:
            return default
        value = self._typed(key, str, 'write it in quotes: "…"')
        check_shown(self, key, value)
        paragraphs = [" ".join(part.split()) for part in value.strip().split("\n\n")]
        found = "\n".join(filter(None, paragraphs))
        if not found:
            self.fail(key, "the text is empty")
        if not lines and "\n" in found:
            self.fail(key, "it has more than one paragraph", "leave out the empty line")
        if words and len(found.split()) > words:
            self.fail(key, f"it has {len(found.split())} words", f"at most {words} are read beside a picture")
        return found

    def setting(self, key: str) -> str:
        """A text as it stands, which may be empty: an option's value."""
        value: str = self._typed(key, str, 'write it in quotes: "…"')
        check_shown(self, key, value)
        return value.replace("\n", " ")

    def texts(self, key: str, most: int) -> tuple[str, ...]:
        """A list of texts, at most `most`; an empty one where the key is not there."""
        if key not in self.values:
            return ()
        values = self._typed(key, list, 'write ["…", "…"]')
        if len(values) > most:
            self.fail(key, f"there are {len(values)}", f"there may be up to {most}")
        inner = Table(self.name, self.path, {f"{key}.{n}": value for n, value in enumerate(values, 1)})
        return tuple(inner.text(each) for each in inner.values)

    def settings(self, key: str) -> dict[str, str]:
        """A table of texts as they stand."""
        inner = self.table(key)
        return {name: inner.setting(name) for name in inner.values}

    def table(self, key: str) -> Table:
        """A table within this one."""
        path = ".".join(filter(None, (self.path, shown_key(key))))
        return Table(self.name, path, self._typed(key, dict, f"write [{path}] and its keys below"))

    def tables(self, key: str) -> list[Table]:
        """The tables of a list, whose paths count them from 1."""
        values = self._typed(key, list, f"write [[{key}]] above each")
        for value in values:
            if not isinstance(value, dict):
                self.fail(key, f"it is a list of tables, not of {kind_of(value)}", f"write [[{key}]]")
        return [Table(self.name, f"{key}.{number}", value) for number, value in enumerate(values, 1)]

    def choice(self, key: str, known: Sequence[str], default: str | None = None) -> str:
        """One of some words."""
        found = self.text(key, default)
        if found not in known and found != default:
            self.fail(key, f"{quote(found, 30)} is none of {', '.join(known)}", closest(found, known))
        return found

    def _typed(self, key: str, kind: type, hint: str) -> Any:
        if key not in self.values:
            self.fail(key, "it is missing", hint)
        value = self.values[key]
        if type(value) is not kind:
            wanted = "a table" if kind is dict else KINDS[kind]
            self.fail(key, f"it is {kind_of(value)}, not {wanted}", hint)
        return value


def check_shown(table: Table, key: str, text: str) -> None:
    """Refuse characters that a terminal cannot show, but for line breaks."""
    for char in text:
        if char != "\n" and not char.isprintable():
            table.fail(key, f"it has the character {quote(char)}, which no terminal shows", "leave it out")


def closest(word: str, known: Sequence[str]) -> str:
    """The hint that names the word that was meant, or all that there are."""
    from difflib import get_close_matches

    near = get_close_matches(word, known, 1, 0.6)
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"


def shown_key(key: str) -> str:
    """A key of the file as it is named in messages; an empty one, and one with blanks, in quotes."""
    return key if _BARE.fullmatch(key) else quote(key, 40)


def kind_of(value: object) -> str:
    """What TOML calls a value."""
    return KINDS.get(type(value), "a table" if isinstance(value, dict) else "a date")


def quote_name(name: str) -> str:
    """A file's name as it is said in messages."""
    return name if name.isprintable() and len(name) <= MAX_NAME else quote(name, MAX_NAME)
