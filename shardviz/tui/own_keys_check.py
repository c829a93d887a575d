"""Keys of one's own, given to the registry and held against its commands."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shardviz.errors import QuestionError, did_you_mean, quote
from shardviz.tui.own_keys import OwnKeys, choose, keys_path, read_own_keys, table_of, unread

if TYPE_CHECKING:
    from shardviz.tui.registry import Command


def use_own_keys() -> QuestionError | None:
    """Give the registry the keys of the file, if there is one: before any part of the application is loaded.

    Of a file that cannot be read, names what does not exist, or has two commands for one key, the error is
    returned, and all keys are the usual ones.
    """
    path = keys_path()
    try:
        if not path.exists():
            return None
        chosen = read_own_keys(path)
    except OSError as error:
        return unread(path, error)
    except QuestionError as error:
        return error
    choose(chosen)
    # Its commands get their keys as it is loaded.
    from shardviz.tui import registry

    try:
        check_own_keys(chosen, registry.COMMANDS, registry.AREAS, path)
    except QuestionError as error:
        choose({})
        importlib.reload(registry)
        return error
    return None


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
