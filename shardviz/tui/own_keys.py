"""Keys of one's own: a TOML file in the platform's configuration directory, with a table for each part of
the application, such as ``[step]`` and ``next-round = "l"``.

The registry asks for them as it gives its commands their keys; footer, help, palette and documents have them
from there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from pathlib import Path

from shardviz.errors import QuestionError, did_you_mean, quote

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
        raise unread(path, error) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise QuestionError(f"{where} is not TOML: {error}", 'write [step] and below it play = "p"') from None
    return {table: _table(where, table, rows) for table, rows in document.items()}


def unread(path: Path, error: OSError) -> QuestionError:
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


def choose(keys: OwnKeys) -> None:
    """Have the registry use these keys, when it is loaded next."""
    global _chosen
    _chosen = keys


def own_keys(table: str, name: str) -> tuple[str, ...] | None:
    """The keys of one's own for a command; None where it keeps its usual ones."""
    return _chosen.get(table, {}).get(name)


def table_of(area: str) -> str:
    """The name of a part of the application in the file."""
    return "everywhere" if area == "app" else area
