"""How a message quotes the text that it is about."""

from __future__ import annotations

import pickle
from time import process_time
from traceback import format_exception

import pytest

from shardviz.errors import (
    CompilerError,
    NotationError,
    QuestionError,
    ShardvizError,
    did_you_mean,
    place,
    quote,
)
from shardviz.lessons.lesson_file import LessonError


@pytest.mark.parametrize(
    "error",
    [
        QuestionError("a fault", "a hint"),
        NotationError("unknown axis", "XQ,Y_", 1, hint="a hint"),
        CompilerError("it died", log="its last words"),
        LessonError("a.toml", "goal", "it is missing"),
    ],
)
def test_an_error_is_the_same_after_it_went_to_another_process(error: ShardvizError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args, vars(again)) == (
        type(error),
        str(error),
        error.args,
        vars(error),
    )


def test_the_hint_stands_below_a_traceback() -> None:
    """Python and pytest print the notes of an exception below its message."""
    error = NotationError("unknown axis", "XQ,Y_", 1, hint="name an axis of the mesh")
    assert format_exception(error)[-1] == "hint: name an axis of the mesh\n"
    assert format_exception(QuestionError("a fault"))[-1].endswith("a fault\n")


def test_what_is_left_out_of_a_long_text_is_marked() -> None:
    text = "(" + "0123456789" * 10 + ")"
    assert place("XZ,Y_", 1, 2) == "at character 2 of 'XZ,Y_'"
    assert place(text, 0, 5) == f"at character 1 of '{text[:30]}…'"
    assert place(text, 50, 51) == f"at character 51 of '…{text[25:76]}…'"
    assert place(text, 100, 102) == f"at character 101 of '…{text[75:]}'"


def test_a_quote_is_short_and_quick_and_has_no_control_characters() -> None:
    started = process_time()
    assert quote("a" * 10_000_000) == f"'{'a' * 29}…{'a' * 29}'"
    assert len(place("[" * 10_000_000, 0, 10_000_000)) < 100
    assert quote("\x1b[2J\ud800") == "'\\x1b[2J\\ud800'"
    assert process_time() - started < 2


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("modle", "did you mean model? "),
        ("x", "did you mean X? "),
        ("DATA", "did you mean data? "),
        ("Q", ""),
        ("q" * 1000, ""),
    ],
)
def test_a_word_that_is_like_a_known_one_is_suggested(word: str, hint: str) -> None:
    assert did_you_mean(word, ("X", "Y", "data", "model")) == hint
