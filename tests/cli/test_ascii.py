"""Characters for terminals that have only ASCII."""

from __future__ import annotations

import ast
import codecs
from pathlib import Path

import shardviz
from shardviz.cli.ascii import GREEK, STAND_INS, replaced
from shardviz.render.palette import GLYPHS


def test_letters_are_those_of_the_shards() -> None:
    assert GREEK == GLYPHS


def test_every_stand_in_is_one_character_and_columns_stay() -> None:
    assert all(len(character) == 1 and character.isascii() for character in STAND_INS.values())


def test_marks_differ_from_one_another_and_from_arrows() -> None:
    marks = [STAND_INS[mark] for mark in "▸★→·–╱○◐●"]
    assert len(set(marks)) == len(marks)


def test_everything_that_is_printed_has_a_stand_in() -> None:
    printed = set()
    for path in Path(shardviz.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                printed |= {character for character in node.value if not character.isascii()}
    assert {"─", "→", "×", "α"} <= printed
    assert printed <= set(STAND_INS)


def test_only_what_the_encoding_lacks_is_replaced() -> None:
    codecs.register_error("test-stand-ins", replaced)
    text = "│ α₁ 0…3 │ 8×16 → 4 é\udc80"
    assert text.encode("ascii", "test-stand-ins") == b"| a1 0~3 | 8x16 > 4 ??"
    assert text.encode("latin-1", "test-stand-ins") == "| a1 0~3 | 8×16 > 4 é?".encode("latin-1")
