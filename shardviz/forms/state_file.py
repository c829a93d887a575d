"""JSON files in the platform's state directory, written atomically and read strictly; the last session."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from shardviz.errors import QuestionError, ShardvizError, quote
from shardviz.forms.form import SCREENS, History, ProblemForm
from shardviz.forms.share import UnknownVersion, from_document, to_document
from shardviz.strict_table import StrictTable
from shardviz.user_files import replace_file

T = TypeVar("T")
SESSION_NAME = "session.json"
SESSION_SCHEMA = "shardviz-session/2"
MAX_BYTES = 1_000_000
OTHER_VERSION = "open it with the shardviz that saved it"


class StateError(ShardvizError):
    """A file that cannot be written, or that cannot be read."""


def state_path(name: str) -> Path:
    """The path of a file: in `$XDG_STATE_HOME/shardviz` on Linux, and its like elsewhere."""
    from platformdirs import user_state_path

    return user_state_path("shardviz", appauthor=False) / name


def write_state(path: Path, document: dict[str, Any]) -> None:
    """Replace the file at once, so that a crash leaves the old one or the new one; of a link, the file to
    which it leads. Only its owner may read it. Raises `StateError`."""
    text = json.dumps(document, indent=1)
    try:
        if len(text) > MAX_BYTES:
            raise OSError(f"it would have more than {MAX_BYTES:,} bytes")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text, 0o600)
    except (OSError, RuntimeError) as error:
        problem = f"{quote(str(path), 120)} cannot be written: {getattr(error, 'strerror', None) or error}"
        raise StateError(problem, "set XDG_STATE_HOME to a folder that you may write to") from None


def read_state(path: Path, schema: str, what: str, read: Callable[[StrictTable], T]) -> T | None:
    """The file's object, which has this schema, as `read` reads it; None where there is no file. Raises
    `StateError` for a file that cannot be read, and for one of another version: it stays, and the error calls
    it `what`. A file that is not JSON or not of this kind is set aside."""
    try:
        if path.exists() and not path.is_file():
            raise set_aside(path, "it is not a file")
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        problem = f"{quote(str(path), 120)} cannot be read: {error.strerror or error}"
        raise StateError(problem, "look at its permissions") from None
    kind = schema.rpartition("/")[0]
    try:
        if len(content) > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
        document: object = json.loads(content.decode("utf-8"))
        saved_schema = document.get("schema") if isinstance(document, dict) else None
        if isinstance(saved_schema, str) and saved_schema != schema and saved_schema.startswith(f"{kind}/"):
            problem = f"{what} was saved as {quote(saved_schema, 40)}, and this shardviz reads {schema}"
            raise StateError(problem, OTHER_VERSION)
        if saved_schema != schema:
            raise ValueError(f"it holds no {kind.removeprefix('shardviz-')}")
        return read(StrictTable(document, state_error))
    except UnknownVersion as error:
        raise StateError(f"{what}: {error.message}", OTHER_VERSION) from None
    except RecursionError:
        raise set_aside(path, "it is not JSON") from None
    except (ValueError, QuestionError) as error:
        raise set_aside(path, str(error)) from None


def state_error(key: str, reason: str, hint: str = "") -> QuestionError:
    return QuestionError(": ".join(filter(None, (key, reason))), hint)


def set_aside(path: Path, reason: str) -> StateError:
    """Move a damaged file out of the way, over the one before it; the error that says so."""
    damaged = path.with_name(f"{path.name}.damaged")
    try:
        path.replace(damaged)
    except OSError as error:
        problem = f"{quote(str(path), 120)} is damaged, {reason}, and stays: {error.strerror or error}"
        return StateError(problem, "remove it")
    problem = f"{quote(str(path), 120)} was damaged: {reason}"
    return StateError(problem, f"it is now {damaged.name}; shardviz begins anew")


class SavedSession(NamedTuple):
    """A form, valid or not, its screen, one of `SCREENS`, and the steps `before` and `after` it."""

    draft: ProblemForm
    screen: str = SCREENS[0]
    before: tuple[ProblemForm, ...] = ()
    after: tuple[ProblemForm, ...] = ()

    @property
    def history(self) -> History:
        return History(self.draft, self.before, self.after)


def save_session(session: SavedSession) -> None:
    """Write the session in place of the last one. Raises `StateError` where that cannot be written."""
    for steps in (100, 10, 0):  # of undo, and of redo: fewer where the file would be too large
        document = {
            "schema": SESSION_SCHEMA,
            "screen": session.screen,
            "draft": to_document(session.draft),
            "before": [*map(to_document, session.before[max(0, len(session.before) - steps) :])],
            "after": [*map(to_document, session.after[:steps])],
        }
        if len(json.dumps(document, indent=1)) <= MAX_BYTES:
            break
    try:
        _session(StrictTable(document, state_error))
    except QuestionError as error:
        raise StateError(f"this session cannot be saved: {error.message}", error.hint) from None
    write_state(state_path(SESSION_NAME), document)


def load_session() -> SavedSession | None:
    """The last session; None where there is none. Raises `StateError` for a file that cannot be read: a
    damaged one is set aside and is gone the next time, that of another version stays."""
    return read_state(state_path(SESSION_NAME), SESSION_SCHEMA, "the last session", _session)


def _session(document: StrictTable) -> SavedSession:
    document.exactly(("schema", "screen", "draft", "before", "after"))
    screen = document.choice("screen", SCREENS)
    draft = from_document(document.table("draft"))
    steps = (tuple(map(from_document, document.tables(key))) for key in ("before", "after"))
    return SavedSession(draft, screen, *steps)
