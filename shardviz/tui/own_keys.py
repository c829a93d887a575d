"""Keys of one's own: a TOML file in the platform's configuration directory, with a table for each part of the
application, such as ``[step]`` and ``next-round = "l"``.

It is read before the registry is, which gives its commands these keys; footer, help, palette and documents
have them from there.
"""

from __future__ import annotations

import importlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, did_you_mean, quote

if TYPE_CHECKING:
    from shardviz.tui.registry import Command

OwnKeys = Mapping[str, Mapping[str, tuple[str, ...]]]
"""The keys by table and command, as a person writes them."""

FILE = "keys.toml"
MAX_BYTES = 100_000
NAMED = (
    *("enter", "escape", "space", "tab", "shift+tab", "backspace", "delete", "insert"),
    *("up", "down", "left", "right", "home", "end", "pageup", "pagedown"),
    *(f"shift+{arrow}" for arrow in ("up", "down", "left", "right")),
    *(f"f{number}" for number in range(1, 13)),
    *(f"ctrl+{letter}" for letter in "abdefgklnoprstuvwxy"),
)
"""Keys with a name that every terminal sends; ctrl+i is tab, ctrl+m enter, ctrl+h backspace."""
_NAMES = {"solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus"}
_NAMES |= {"plus_sign": "plus", "low_line": "underscore"}
"""Textual's names of characters, where they differ from Unicode's."""

_chosen: OwnKeys = {}


def keys_path() -> Path:
    """The path of the file: in `$XDG_CONFIG_HOME/shardviz` on Linux, and its like elsewhere."""
    from platformdirs import user_config_path

    return user_config_path("shardviz", appauthor=False) / FILE


def use_own_keys() -> QuestionError | None:
    """Give the registry the keys of the file, if there is one: before any part of the application is loaded.

    Of a file that cannot be read, names what does not exist, or has two commands for one key, the error is
    returned, and all keys are the usual ones.
    """
    global _chosen
    path = keys_path()
    try:
        if not path.exists():
            return None
        _chosen = read_own_keys(path)
    except OSError as error:
        return _unread(path, error)
    except QuestionError as error:
        return error
    from shardviz.tui import registry

    try:
        check_own_keys(_chosen, registry.COMMANDS, registry.AREAS, path)
    except QuestionError as error:
        # Its commands were made with these keys.
        _chosen = {}
        importlib.reload(registry)
        return error
    return None


def read_own_keys(path: Path) -> OwnKeys:
    """The keys in a file. Raises `QuestionError` for one that is not such a file."""
    import tomllib  # few people have such a file

    where = quote(str(path), 120)
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise QuestionError(f"{where} has more than {MAX_BYTES:,} bytes", "it is a file of keys")
        document = tomllib.loads(content.decode("utf-8"))
    except OSError as error:
        raise _unread(path, error) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise QuestionError(f"{where} is not TOML: {error}", 'write [step] and below it play = "p"') from None
    return {table: _table(where, table, rows) for table, rows in document.items()}


def _unread(path: Path, error: OSError) -> QuestionError:
    where = quote(str(path), 120)
    return QuestionError(f"{where} cannot be read: {error.strerror or error}", "look at its permissions")


def _table(where: str, table: str, rows: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(rows, dict):
        raise QuestionError(
            f"{where}: {quote(table)} stands in no table", 'write [step] and below it play = "p"'
        )
    found = {}
    for name, value in rows.items():
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
            raise QuestionError(
                f"{where}: [{table}] {name} is not a key",
                'write it in quotes, several in brackets: ["p", "f2"]',
            )
        for text in texts:
            if not _is_key(text):
                raise QuestionError(
                    f"{where}: [{table}] {name}: {quote(text)} is not a key that every terminal sends",
                    f"{did_you_mean(text, NAMED)}write a character, or one of {', '.join(NAMED[:16])}, f1 to "
                    "f12, ctrl+a and others",
                )
        found[name] = tuple(texts)
    return found


def _is_key(text: str) -> bool:
    return text in NAMED or (len(text) == 1 and text.isprintable() and text != " ")


def textual_name(key: str) -> str:
    """The name that Textual has for a key: ``question_mark`` of ``?``."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace("-", "_").replace(" ", "_")
    return _NAMES.get(name, name)


def own_keys(table: str, name: str) -> tuple[str, ...] | None:
    """The keys of one's own for a command; None where it keeps its usual ones."""
    return _chosen.get(table, {}).get(name)


def check_own_keys(
    chosen: OwnKeys, commands: Sequence[Command], areas: Mapping[str, str], path: Path
) -> None:
    """Raise `QuestionError` for a table or command that does not exist, and for a key that two commands have
    that work at the same time."""
    where = quote(str(path), 120)
    tables = {table_of(area): area for area in areas}
    for table, rows in chosen.items():
        if table not in tables:
            raise QuestionError(
                f"{where}: there is no table [{table}]",
                f"{did_you_mean(table, tables)}there are {', '.join(tables)}",
            )
        names = [command.setting for command in commands if command.area == tables[table]]
        for name in rows:
            if name not in names:
                raise QuestionError(
                    f"{where}: [{table}] has no command {quote(name)}",
                    f"{did_you_mean(name, names)}its commands are {', '.join(names)}",
                )
    for one, other, key in _clashes(chosen, commands):
        both = (f"[{table_of(each.area)}] {each.setting}" for each in (one, other))
        raise QuestionError(
            f"{where}: {key} is the key of {' and of '.join(both)}", "give one of them another key"
        )


def _clashes(chosen: OwnKeys, commands: Sequence[Command]) -> Iterable[tuple[Command, Command, str]]:
    """Two commands with a key that both have, as a person has chosen: the usual keys that a lesson takes from
    others are none of these."""
    for place, one in enumerate(commands):
        for other in commands[place + 1 :]:
            both = set(one.keys) & set(other.keys) - (set(one.usual) & set(other.usual))
            is_chosen = any(each.setting in chosen.get(table_of(each.area), {}) for each in (one, other))
            if both and is_chosen and (one.area == other.area or "app" in (one.area, other.area)):
                yield one, other, min(both)


def table_of(area: str) -> str:
    """The name of a part of the application in the file."""
    return "everywhere" if area == "app" else area
