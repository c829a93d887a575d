"""The last session on disk: whole or not at all, damaged, foreign, or in a folder that cannot be written."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path

import pytest

from shardviz.forms.form import CollectiveFields, ProblemForm
from shardviz.forms.share import MAX_TEXT
from shardviz.forms.state_file import (
    MAX_BYTES,
    SavedSession,
    StateError,
    load_session,
    save_session,
    state_path,
    write_state,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="XDG_STATE_HOME names the folder on Linux")
SESSION = SavedSession(ProblemForm(mesh="X=2,[", collective=CollectiveFields("psum")), "plan")


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Where the session is kept, for this test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "shardviz" / "session.json"


def files(path):
    return sorted(found.name for found in path.parent.iterdir())


def test_a_session_is_found_again_where_the_platform_keeps_state(path):
    assert load_session() is None
    save_session(SESSION)
    assert load_session() == SESSION
    save_session(SavedSession(ProblemForm(), "step"))
    assert load_session() == SavedSession(ProblemForm(), "step")
    assert files(path) == ["session.json"]
    assert state_path("session.json") == path


SAVED = b'{"schema": "shardviz-session/2", "before": [], "after": [], "screen": %s}'


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b"\x00\xff\xfe", "'utf-8' codec can't decode byte 0xff in position 1: invalid start byte"),
        (b"[" * 100_000, "it is not JSON"),
        (b"{}", "it holds no session"),
        (b'{"schema": "shardviz-session/2", "screen": "plan"}', "draft: it is missing"),
        (SAVED % b'[], "draft": 3', "screen: it is a list, not a text"),
        (b" " * (MAX_BYTES + 1), "it has more than 1,000,000 bytes"),
    ],
)
def test_a_damaged_file_is_set_aside_and_said_so(path, content, reason):
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(StateError) as caught:
        load_session()
    assert caught.value.message.endswith(f"session.json' was damaged: {reason}")
    assert caught.value.hint == "it is now session.json.damaged; shardviz begins anew"
    assert (path.parent / "session.json.damaged").read_bytes() == content
    assert load_session() is None
    save_session(SESSION)
    assert load_session() == SESSION


def test_the_steps_of_undo_and_redo_are_kept_as_far_as_there_is_room(path):
    forms = tuple(ProblemForm(mesh=f"X={number}") for number in range(1, 301))
    save_session(SavedSession(ProblemForm(), "plan", forms[:150], forms[150:]))
    found = load_session()
    assert (found.before, found.after) == (forms[50:150], forms[150:250])
    assert found.history.before == found.before
    long = tuple(ProblemForm(einsum="a" * 19_000, mesh=f"X={number}") for number in range(60))
    save_session(SavedSession(ProblemForm(), "plan", long, long))
    assert load_session().before == long[-10:]
    assert path.stat().st_size < MAX_BYTES


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_set_aside_and_said_so(path, make):
    path.parent.mkdir(parents=True)
    make(path)
    with pytest.raises(StateError, match="was damaged: it is not a file") as caught:
        load_session()
    assert caught.value.hint == "it is now session.json.damaged; shardviz begins anew"
    save_session(SESSION)
    assert load_session() == SESSION


def test_every_truncated_file_is_set_aside(path):
    save_session(SESSION)
    content = path.read_bytes()
    for length in range(0, len(content), 7):
        path.write_bytes(content[:length])
        with pytest.raises(StateError):
            load_session()


@pytest.mark.parametrize(
    "change",
    [lambda d: d.update(schema="shardviz-session/3"), lambda d: d["draft"].update(schema="shardviz-draft/2")],
)
def test_a_file_of_another_version_stays(path, change):
    save_session(SESSION)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(StateError, match=r"/[23]', and this shardviz reads shardviz-") as caught:
        load_session()
    assert caught.value.hint == "open it with the shardviz that saved it"
    assert files(path) == ["session.json"]


def test_a_folder_that_cannot_be_written_is_said(path):
    path.parent.parent.mkdir()
    path.parent.write_text("a file where the folder should be")
    with pytest.raises(StateError, match="cannot be written") as caught:
        save_session(SESSION)
    assert caught.value.hint == "set XDG_STATE_HOME to a folder that you may write to"
    with pytest.raises(StateError, match="cannot be read"):
        load_session()


def test_a_crash_while_writing_leaves_the_last_session(path, monkeypatch):
    save_session(SESSION)

    def fail(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StateError, match="cannot be written: No space left on device"):
        save_session(SavedSession(ProblemForm()))
    assert load_session() == SESSION
    assert files(path) == ["session.json"]


def test_a_session_that_could_not_be_read_again_is_not_saved(path):
    save_session(SESSION)
    with pytest.raises(StateError, match=r"cannot be saved: draft\.sizes: it has 20,001 characters"):
        save_session(SESSION._replace(draft=ProblemForm(sizes=" " * (MAX_TEXT + 1))))
    assert load_session() == SESSION
    assert files(path) == ["session.json"]


def test_a_problem_of_another_version_is_named_with_the_session(path):
    save_session(SESSION)
    path.write_text(path.read_text().replace("shardviz-draft/1", "shardviz-draft/2"))
    with pytest.raises(StateError, match=r"^the last session: the problem has the schema 'shardviz-draft/2'"):
        load_session()
    assert files(path) == ["session.json"]


def test_only_its_owner_may_read_a_state_file(path):
    write_state(path, {})
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {0o600}
