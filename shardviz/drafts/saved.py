"""The last session: a form and the screen that showed it, in the platform's state directory."""

from __future__ import annotations

from dataclasses import dataclass

from shardviz.drafts.document import UnknownVersion, from_document, to_document
from shardviz.drafts.form import ProblemForm
from shardviz.drafts.state_file import (
    OTHER_VERSION,
    StateError,
    read_state,
    set_aside,
    state_path,
    write_state,
)
from shardviz.errors import QuestionError

NAME = "session.json"
SCHEMA = "shardviz-session/1"
SCREENS = ("layout", "plan", "step", "compiler")


@dataclass(frozen=True)
class SavedSession:
    """A form, valid or not, and the screen that showed it, one of `SCREENS`."""

    draft: ProblemForm
    screen: str = SCREENS[0]


def save_session(session: SavedSession) -> None:
    """Write the session in place of the last one. Raises `StateError` where that cannot be written."""
    draft = to_document(session.draft)
    try:
        from_document(draft)
    except QuestionError as error:
        raise StateError(f"this session cannot be saved: {error.message}", error.hint) from None
    write_state(state_path(NAME), {"schema": SCHEMA, "screen": session.screen, "draft": draft})


def load_session() -> SavedSession | None:
    """The last session; None where there is none.

    Raises `StateError` for a file that cannot be read: a damaged one is set aside and is gone the next time,
    that of another version stays.
    """
    path = state_path(NAME)
    document = read_state(path, SCHEMA, "the last session")
    if document is None:
        return None
    try:
        if document.keys() != {"schema", "screen", "draft"}:
            raise QuestionError("it holds no session")
        if document["screen"] not in SCREENS:
            raise QuestionError("it names an unknown screen")
        return SavedSession(from_document(document["draft"]), document["screen"])
    except UnknownVersion as error:
        raise StateError(f"the last session: {error.message}", OTHER_VERSION) from None
    except QuestionError as error:
        raise set_aside(path, error.message) from None
