"""`shardviz tui --from`: what somebody has sent, opened or printed."""

from __future__ import annotations

import json

import pytest

from shardviz.cli.group import run
from shardviz.forms.form import ProblemForm
from shardviz.forms.share import Shared, to_document, to_string
from shardviz.lessons.attempt import UNKNOWN, attempt_of, shared_of, stages
from shardviz.lessons.course import course

SHARED = Shared(ProblemForm(mesh="Z=8", specs=("Z_", "__", "Z_")), "plan")


def test_json_shows_what_a_string_says(capsys):
    assert run(["tui", "--from", to_string(SHARED), "--json"]) == 0
    said = {"screen": "plan", "lesson": "", "stage": 0, "draft": to_document(SHARED.draft)}
    assert json.loads(capsys.readouterr().out) == {"schema": "shardviz/1", "kind": "shared", "shared": said}


@pytest.mark.parametrize("others", [{}, {"screen": "compiler"}])
def test_what_was_shared_is_opened(others, monkeypatch):
    opened = []
    monkeypatch.setattr("shardviz.cli.tui.no_terminal", lambda: "")
    monkeypatch.setattr("shardviz.cli.open_app.open_app", lambda *args, **named: opened.append((args, named)))
    words = [word for name, value in others.items() for word in (f"--{name}", value)]
    run(["tui", "--from", f" `{to_string(SHARED)}` ", *words])
    screen = others.get("screen", SHARED.screen)
    assert opened == [((SHARED.draft, screen), {"lesson": None})]


def test_a_lesson_opens_at_the_stage_that_was_shared():
    lesson = course()[0]
    draft = ProblemForm(mesh="Z=8")
    for place, stage in enumerate(stages(lesson)):
        attempt = attempt_of(Shared(draft, "layout", lesson.name, place))
        assert (attempt.stage, attempt.draft) == (stage, draft)
        assert shared_of(attempt, "layout") == Shared(draft, "layout", lesson.name, place)
        passed = sum(kind == "reveal" for kind, _ in stages(lesson)[: place + 1])
        assert attempt.answers.count(UNKNOWN) == passed
    assert attempt_of(Shared(draft, "layout", lesson.name, 99)).stage.kind == "code"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "shardviz1-x"], "was cut or altered"),
        (["--from", "shardviz9-x"], "has version 9"),
        (["--from", to_string(SHARED), "bd,df->bf"], "--from and EINSUM cannot be combined"),
        (["--from", to_string(SHARED), "--mesh", "X=2"], "--from and --mesh cannot be combined"),
        (["--from", to_string(SHARED), "--last"], "--from and --last cannot be combined"),
        (["--json"], "--json needs a shared string"),
        (["--from", to_string(Shared(ProblemForm(), lesson="no-such"))], "there is no lesson 'no-such'"),
    ],
)
def test_what_cannot_be_opened_is_said_in_one_line(words, said, capsys):
    assert run(["tui", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert len(err.splitlines()) == 2
