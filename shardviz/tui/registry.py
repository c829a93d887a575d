"""Every command of the application, in the order in which help shows them, and the keys that a person has
chosen for some: a TOML file in the platform's configuration directory, with a table for each part of the
application, such as ``[step]`` and ``next-round = "l"``. Footer, help and palette show them too."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

from textual.binding import Binding, BindingType

from shardviz.errors import QuestionError, did_you_mean, quote
from shardviz.user_files import open_file

EVERYWHERE = ("ctrl+q", "ctrl+z")
"""Keys that mean their command in fields and dialogs as well, whatever else a person has chosen for it."""
PAIRS = ("+-", "<>", "↑↓", "←→")
ARROWS = {"up": "↑", "down": "↓", "left": "←", "right": "→"}
NO_KEY = "no-key"
"""A key that does not exist: that of a command in a keymap whose keys a person has taken away."""
_NAMES = {"solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus"}
_NAMES |= {"plus_sign": "plus", "low_line": "underscore"}
"""Textual's names of characters, where they differ from Unicode's."""

_own: dict[str, tuple[str, ...]] = {}
"""The keys that a person has chosen, as they write them, by the commands' ids."""


@dataclass(frozen=True)
class Command:
    """Something that a person can do, with a key or from the palette.

    `name` is the action: ``action_<name>`` of the widget of `area` ("problem", "layout", "plan", "step",
    "compiler" or "time"), or of the application ("app", "lesson"). `usual` are its keys unless a person has
    chosen others, by Textual's names, the first the one that is shown, as `shown` where that is clearer.
    `title` names it in palette and help, `help` is a sentence. `footer` is its word in the footer; empty
    where it does not appear there. Keys that are `taken` mean something else now."""

    area: str
    name: str
    usual: tuple[str, ...]
    title: str
    help: str
    footer: str = ""
    shown: str = ""
    taken: frozenset[str] = frozenset()

    @property
    def action(self) -> str:
        """``move`` of ``move(1)``."""
        return self.name.partition("(")[0]

    @property
    def setting(self) -> str:
        """Its name in a file of keys: ``next-round``."""
        return "-".join(re.findall(r"\w+", self.title.lower().replace("'", "")))

    @cached_property
    def id(self) -> str:
        """``step.next-round``: the id of its bindings, by which a keymap has other keys for it."""
        return f"{table_of(self.area)}.{self.setting}"

    @property
    def keys(self) -> tuple[str, ...]:
        """Textual's names of the keys that mean it now."""
        keys = self.usual
        if _own and (own := _own.get(self.id)) is not None:
            keys = (*map(textual_name, own), *(key for key in self.usual if key in EVERYWHERE))
        return tuple(key for key in dict.fromkeys(keys) if key not in self.taken)

    @property
    def key_text(self) -> str:
        """The key as people know it."""
        own = _own.get(self.id) if _own else None
        if own is not None and not self.taken:
            return own[0] if own else next(iter(self.keys), "")
        return self.shown or next(iter(self.keys), "")

    @property
    def own_key(self) -> str:
        """The key alone, where `key_text` has that of the next command beside it, as ``+-`` in the footer."""
        key = next(iter(self.keys), "")
        return ARROWS.get(key, self.key_text[0]) if key and self.key_text in PAIRS else self.key_text

    def without(self, taken: Collection[str]) -> Command | None:
        """The command where some keys mean something else; None where it has no other."""
        keys = self.keys
        lost = {key for key in keys if key in taken}
        if not lost:
            return self
        return replace(self, taken=self.taken | lost, shown="") if len(lost) < len(keys) else None


def keymap() -> dict[str, str]:
    """The keys that a person has chosen, as Textual has them of a keymap; those that work everywhere are
    bindings of their own, which it leaves alone."""
    chosen = (command for command in COMMANDS if command.id in _own)
    return {
        command.id: ",".join(key for key in command.keys if key not in EVERYWHERE) or NO_KEY
        for command in chosen
    }


def table_of(area: str) -> str:
    """The name of a part of the application in a file of keys."""
    return "everywhere" if area == "app" else area


def textual_name(key: str) -> str:
    """The name that Textual has for a key: ``question_mark`` of ``?``."""
    if len(key) != 1 or key.isalnum():
        return key
    name = unicodedata.name(key, key).lower().replace("-", "_").replace(" ", "_")
    return _NAMES.get(name, name)


def bindings(commands: Iterable[Command], priority: bool = False) -> list[BindingType]:
    """Textual's bindings for the commands of one widget, with `priority` before a field. Each has one without
    a key, in whose place it has keys of one's own: also a command without usual ones, and in a field, which
    takes the letters before."""
    return [
        Binding(key, command.name, command.title, show=False, priority=True)
        if key in EVERYWHERE
        else Binding(key, command.name, command.title, show=False, priority=priority, id=command.id)
        for command in commands
        for key in (*command.usual, NO_KEY)
    ]


def _read_tables() -> dict[str, tuple[Command, ...]]:
    """The tables of `commands.txt`, where each command is a line."""
    tables: dict[str, tuple[Command, ...]] = {}
    area = name = ""
    for line in Path(__file__).with_name("commands.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            name, area = line[1:].partition("]")[0].split()
            tables[name] = ()
        elif line.startswith(">"):
            READING[area] = line[2:]
        elif line and not line.startswith("#"):
            action, keys, *words = (cell.strip() for cell in line.split("|"))
            command = Command(area, action, tuple(keys.split()), *words)  # type: ignore[arg-type]  # at most four
            tables[name] += (command,)
    return tables


READING: dict[str, str] = {}
"""A sentence or two on each part of the application: how to read it."""
TABLES = _read_tables()
"""The commands of each part, and of each kind of window."""
APP, PROBLEM, LESSON = TABLES["APP"], TABLES["PROBLEM"], TABLES["LESSON"]
LAYOUT, PLAN, STEP = TABLES["LAYOUT"], TABLES["PLAN"], TABLES["STEP"]
COMPILER, TIME = TABLES["COMPILER"], TABLES["TIME"]
TYPING, SEARCHING = TABLES["TYPING"], TABLES["SEARCHING"]
COMMANDS: tuple[Command, ...] = (*APP, *PROBLEM, *LAYOUT, *PLAN, *STEP, *COMPILER, *TIME, *LESSON)

AREAS = {
    "app": "Everywhere",
    "problem": "Problem",
    "layout": "1 Layout",
    "plan": "2 Plan",
    "step": "3 Step",
    "compiler": "4 Compiler",
    "time": "5 Time",
    "lesson": "Lesson",
}
"""The names of the parts of the application."""

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
    _own.clear()
    where = quote(str(path), 120)
    try:
        if path.exists():
            _own.update(_read(path, where))
            _check_clashes(where)
    except OSError as error:
        return QuestionError(f"{where} cannot be read: {error.strerror or error}", "look at its permissions")
    except QuestionError as error:
        _own.clear()
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


def _check_clashes(where: str) -> None:
    """Raise `QuestionError` for a key that two commands have which work at the same time, as a person has
    chosen for one of them: the usual keys that a lesson takes from others are none of these."""
    for one, other in combinations(COMMANDS, 2):
        keys = set(one.keys) & set(other.keys) - (set(one.usual) & set(other.usual))
        works_with = one.area == other.area or "app" in (one.area, other.area)
        if keys and works_with and (one.id in _own or other.id in _own):
            both = " and of ".join(f"[{table_of(each.area)}] {each.setting}" for each in (one, other))
            raise QuestionError(f"{where}: {min(keys)} is the key of {both}", "give one of them another key")
