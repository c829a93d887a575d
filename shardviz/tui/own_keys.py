"""Keys of one's own: a TOML file in the platform's configuration directory, with a table for each part of
the application, such as ``[step]`` and ``next-round = "l"``.

The registry's commands have them from when the file is read; footer, help and palette have them from there.
While the application runs, a line above the footer looks after the file, and says why it is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from pathlib import Path

from rich.text import Text
from textual.message import Message
from textual.widget import Widget

from shardviz.errors import QuestionError, did_you_mean, quote
from shardviz.forms.wording import as_sentence
from shardviz.tui.registry import AREAS, COMMANDS, set_own_keys, table_of

ChosenKeys = Mapping[str, Mapping[str, tuple[str, ...]]]
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


def keys_path() -> Path:
    """The path of the file: in `$XDG_CONFIG_HOME/shardviz` on Linux, and its like elsewhere."""
    from platformdirs import user_config_path

    return user_config_path("shardviz", appauthor=False) / FILE


def read_own_keys(path: Path) -> ChosenKeys:
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
        problem = f"{where}: {quote(table)} is outside any table"
        raise QuestionError(problem, 'write [step] and below it play = "p"')
    found = {}
    for name, value in rows.items():
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            problem = f"{where}: [{table}] {name} is not a key"
            raise QuestionError(problem, 'write it in quotes, several in brackets: ["p", "f2"]')
        for text in texts:
            if text not in NAMED and (len(text) != 1 or not text.isprintable() or text == " "):
                raise QuestionError(
                    f"{where}: [{table}] {name}: {quote(text)} is not a key that every terminal sends",
                    f"{did_you_mean(text, NAMED)}write a character, or one of {', '.join(NAMED[:16])}, f1 to "
                    "f12, ctrl+a and others",
                )
        found[name] = tuple(texts)
    return found


def use_own_keys(path: Path) -> QuestionError | None:
    """Have the commands the keys of a file, the usual ones where there is none.

    Of a file that cannot be read, names what does not exist, or has two commands for one key, the error is
    returned, and all keys are the usual ones.
    """
    set_own_keys({})
    try:
        if path.exists():
            chosen = read_own_keys(path)
            check_names(chosen, path)
            own = {f"{table}.{name}": keys for table, rows in chosen.items() for name, keys in rows.items()}
            set_own_keys(own)
            check_clashes(own.keys(), path)
    except OSError as error:
        return unread(path, error)
    except QuestionError as error:
        set_own_keys({})
        return error
    return None


def check_names(chosen: ChosenKeys, path: Path) -> None:
    """Raise `QuestionError` for a table or a command that does not exist."""
    where = quote(str(path), 120)
    tables = {table_of(area): area for area in AREAS}
    for table, rows in chosen.items():
        if table not in tables:
            problem = f"{where}: unknown table [{table}]"
            raise QuestionError(problem, f"{did_you_mean(table, tables)}the tables are {', '.join(tables)}")
        names = [command.setting for command in COMMANDS if command.area == tables[table]]
        for name in rows:
            if name not in names:
                hint = f"{did_you_mean(name, names)}the commands are {', '.join(names)}"
                raise QuestionError(f"{where}: [{table}] has no command {quote(name)}", hint)


def check_clashes(chosen: Collection[str], path: Path) -> None:
    """Raise `QuestionError` for a key that two commands have which work at the same time, as a person has
    `chosen` for one of these ids: the usual keys that a lesson takes from others are none of these."""
    for one, other in combinations(COMMANDS, 2):
        keys = set(one.keys) & set(other.keys) - (set(one.usual) & set(other.usual))
        works_with = one.area == other.area or "app" in (one.area, other.area)
        if keys and works_with and (one.id in chosen or other.id in chosen):
            both = " and of ".join(
                f"[{table_of(command.area)}] {command.setting}" for command in (one, other)
            )
            problem = f"{quote(str(path), 120)}: {min(keys)} is the key of {both}"
            raise QuestionError(problem, "give one of them another key")


LOOK_S = 1.0
"""Seconds between two looks at whether the file has changed."""


class OwnKeys(Widget):
    """Uses the keys of a file, at first and whenever it has changed. Where they are refused it says why,
    until it is hidden, whatever else is notified."""

    DEFAULT_CSS = """
    OwnKeys { height: auto; max-height: 4; padding: 0 1; background: $panel; display: none; }
    """

    class Reloaded(Message):
        """The commands have other keys now."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._as_of: tuple[int, ...] = ()
        self._refused: QuestionError | None = None

    def on_mount(self) -> None:
        self.look()
        self.set_interval(LOOK_S, self.look)

    def look(self) -> None:
        """Read the file if it is another than last time."""
        try:
            found = self._path.stat()
            as_of: tuple[int, ...] = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
        except FileNotFoundError:
            as_of = ()
        except OSError as error:
            as_of = (error.errno or 0,)
        if as_of != self._as_of:
            self._as_of, self._refused = as_of, use_own_keys(self._path)
            self.display = self._refused is not None
            self.refresh(layout=True)
            self.post_message(self.Reloaded())

    def render(self) -> Text:
        if self._refused is None:
            return Text()
        said = Text(f"✗ {as_sentence(self._refused.message)}", "bold")
        said.append(" The default keys apply; esc hides this line. ", "not bold")
        return said.append(as_sentence(self._refused.hint), "dim not bold")
