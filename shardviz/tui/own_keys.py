"""Keys of one's own: a TOML file in the platform's configuration directory, with a table for each part of
the application, such as ``[step]`` and ``next-round = "l"``. Footer, help and palette show them too."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations
from pathlib import Path

from shardviz.errors import QuestionError, did_you_mean, quote
from shardviz.tui.registry import AREAS, COMMANDS, set_own_keys, table_of
from shardviz.user_files import open_file

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


def keys_path() -> Path:
    """The path of the file: in `$XDG_CONFIG_HOME/shardviz` on Linux, and its like elsewhere."""
    from platformdirs import user_config_path

    return user_config_path("shardviz", appauthor=False) / FILE


def version(path: Path) -> tuple[int, ...]:
    """Numbers that differ when a file was written anew; the error's where it cannot be looked at."""
    try:
        status = path.stat()
    except OSError as error:
        return (error.errno or 0,)
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def use_own_keys(path: Path) -> QuestionError | None:
    """Have the commands the keys of a file, the usual ones where there is none. Of a file that cannot be
    read, names what does not exist, or has two commands for one key, the error is returned, and all keys are
    the usual ones."""
    set_own_keys({})
    where = quote(str(path), 120)
    try:
        if path.exists():
            chosen = _read(path, where)
            set_own_keys(chosen)
            _check_clashes(chosen, where)
    except OSError as error:
        return QuestionError(f"{where} cannot be read: {error.strerror or error}", "look at its permissions")
    except QuestionError as error:
        set_own_keys({})
        return error
    return None


def _read(path: Path, where: str) -> dict[str, tuple[str, ...]]:
    """The keys in a file, as a person writes them, by the commands' ids."""
    import tomllib  # few people have such a file

    try:
        with open_file(path) as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise QuestionError(f"{where} has more than {MAX_BYTES:,} bytes", "it is a file of keys")
        document = tomllib.loads(content.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise QuestionError(f"{where} is not TOML: {error}", 'write [step] and below it play = "p"') from None
    tables = {table_of(area): area for area in AREAS}
    found = {}
    for table, rows in document.items():
        if not isinstance(rows, dict):
            problem = f"{where}: {quote(table)} is outside any table"
            raise QuestionError(problem, 'write [step] and below it play = "p"')
        if table not in tables:
            problem = f"{where}: unknown table [{table}]"
            raise QuestionError(problem, f"{did_you_mean(table, tables)}the tables are {', '.join(tables)}")
        names = [command.setting for command in COMMANDS if command.area == tables[table]]
        for name, value in rows.items():
            found[f"{table}.{name}"] = _keys(value, f"{where}: [{table}] {name}")
            if name not in names:
                hint = f"{did_you_mean(name, names)}the commands are {', '.join(names)}"
                raise QuestionError(f"{where}: [{table}] has no command {quote(name)}", hint)
    return found


def _keys(value: object, place: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise QuestionError(f"{place} is not a key", 'write it in quotes, several in brackets: ["p", "f2"]')
    for text in texts:
        if text not in NAMED and (len(text) != 1 or not text.isprintable() or text == " "):
            raise QuestionError(
                f"{place}: {quote(text)} is not a key that every terminal sends",
                f"{did_you_mean(text, NAMED)}write a character, or one of {', '.join(NAMED[:16])}, f1 to "
                "f12, ctrl+a and others",
            )
    return tuple(texts)


def _check_clashes(chosen: Collection[str], where: str) -> None:
    """Raise `QuestionError` for a key that two commands have which work at the same time, as a person has
    `chosen` for one of these ids: the usual keys that a lesson takes from others are none of these."""
    for one, other in combinations(COMMANDS, 2):
        keys = set(one.keys) & set(other.keys) - (set(one.usual) & set(other.usual))
        works_with = one.area == other.area or "app" in (one.area, other.area)
        if keys and works_with and (one.id in chosen or other.id in chosen):
            both = " and of ".join(f"[{table_of(each.area)}] {each.setting}" for each in (one, other))
            raise QuestionError(f"{where}: {min(keys)} is the key of {both}", "give one of them another key")
