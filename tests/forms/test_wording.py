"""What the application says of an error: sentences, in its own words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shardviz
from shardviz.errors import QuestionError, ShardvizError
from shardviz.forms.wording import as_sentence, error_words
from shardviz.planner.problem.reading import problem_from_text
from shardviz.sharding import Mesh
from shardviz.targets import check_axis_types, check_mesh, parse_targets


def words_of(function, *arguments):
    with pytest.raises(ShardvizError) as raised:
        function(*arguments)
    return error_words(raised.value)


def test_hints_name_fields_and_keys_in_place_of_options():
    problem = problem_from_text("bd,df->bf", mesh=Mesh(("X",), (2,)), specs="_X,X_->__{U_X}")
    assert words_of(check_axis_types, problem).endswith(
        " Set axes to explicit, or set targets to none to ask the planner alone."
    )
    (target,) = parse_targets("v5e:2x4")
    said = words_of(check_mesh, target, Mesh(("X", "Y"), (2, 2)))
    assert said.startswith("v5e:2x4 has 8 devices")
    assert " Set targets to " in said
    assert ", or set mesh to X=4,Y=2." in said
    assert as_sentence("ask again to start it anew, or ask --target shardy") == (
        "Press r to start it anew, or set targets to shardy."
    )
    assert as_sentence("give it a multiple of 8, or change its --spec") == (
        "Give it a multiple of 8, or change its spec."
    )
    assert as_sentence("--data has 5 numbers") == "Data has 5 numbers."


def test_names_keep_their_letters_and_examples_their_options():
    for name in (
        "psum sends nothing.",
        "b has two sizes.",
        "jax.lax has none.",
        "cpu was killed.",
        "'a' is odd.",
    ):
        assert as_sentence(name) == name
    assert as_sentence("a mesh has axes") == "A mesh has axes."
    example = "write for example: all_gather --axis X"
    assert as_sentence(example) == "Write for example: all_gather --axis X."
    assert error_words(QuestionError("the file has no name")) == "The file has no name."


def test_no_hint_for_the_compilers_keeps_an_option():
    """All texts of the rooms that the application asks, but for those of the command line alone."""
    root = Path(shardviz.__file__).parent
    for room in ("collectives", "compiler", "stepping/question.py", "hardware", "forms/resolve.py"):
        files = [root / room] if room.endswith(".py") else sorted((root / room).rglob("*.py"))
        for text in re.findall(r'"([^"\n]*--[a-z][^"\n]*)"', "\n".join(map(Path.read_text, files))):
            if "xla_force" not in text:
                assert "--" not in as_sentence(text), text
