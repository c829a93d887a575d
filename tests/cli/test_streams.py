"""Streams that are closed, full or gone: one line, a documented exit code, and never a traceback."""

from __future__ import annotations

import ast
import codecs
import contextlib
import io
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import shardviz
from shardviz.cli.group import run
from shardviz.cli.process import CLEAR_LINE
from shardviz.cli.streams import (
    GREEK,
    STAND_INS,
    MessageStream,
    OutputStream,
    in_ascii_words,
    open_standard_streams,
    replaced,
)
from shardviz.render.palette import GLYPHS

SHARDVIZ = [sys.executable, "-m", "shardviz"]
EXPLAIN = ("explain", "bd,df->bf", "--specs", "XY,Y_->X_")
COMMANDS = [
    ("--help",),
    ("--version",),
    ("explain", "--help"),
    (*EXPLAIN, "--target", "none"),
    (*EXPLAIN, "--target", "none", "--json"),
    ("explain", "bd,df->bf", "--specs", "X_,?", "--limit", "2"),
    ("layout", "8x8", "--spec", "XY"),
    ("step", "psum", "--mesh", "i=4", "--on", "none"),
    ("step", "all_gather", "--mesh", "i=8", "--algorithm", "bidirectional-ring", "--on", "none"),
    ("step", "psum", "--mesh", "i=4", "--compare"),
    ("step", "all_to_all", "--mesh", "i=2", "--on", "none", "--json"),
    ("translate", "XY", "--to", "jax"),
    ("info",),
]


def in_shell(words: tuple[str, ...], redirection: str, **environ: str) -> subprocess.CompletedProcess[str]:
    line = f"{shlex.join([*SHARDVIZ, *words])} {redirection}"
    return subprocess.run(
        ["sh", "-c", line], capture_output=True, text=True, timeout=120, env=environ or None
    )


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")


@pytest.mark.parametrize("redirection", [">&-", pytest.param("> /dev/full", marks=needs_full)])
@pytest.mark.parametrize("words", [("--help",), (*EXPLAIN, "--target", "none", "--json")], ids=" ".join)
def test_output_that_cannot_be_written_is_one_line(words: tuple[str, ...], redirection: str) -> None:
    done = in_shell(words, redirection)
    assert done.returncode == 2
    first, hint = done.stderr.splitlines()
    assert first.startswith("shardviz: error: cannot write to standard output: ")
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("redirection", ["2>&-", pytest.param("2> /dev/full", marks=needs_full)])
def test_words_that_nobody_can_hear_change_nothing(redirection: str) -> None:
    assert in_shell(("zzz",), redirection).returncode == 2


def test_compilers_answer_with_closed_streams() -> None:
    done = in_shell((*EXPLAIN, "--target", "shardy"), "<&- 2>&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert "all-reduce over Y" in done.stdout


def test_a_reader_that_has_gone_is_no_error() -> None:
    words = (*EXPLAIN, "--target", "shardy")
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*SHARDVIZ, *words], stdout=write, stderr=subprocess.PIPE, text=True, timeout=120)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def printed_in(encoding: str, words: tuple[str, ...]) -> tuple[bytes, bytes]:
    """What a command writes on stdout and on stderr, which have an encoding."""
    out, err = io.BytesIO(), io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding))
        patch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding))
        open_standard_streams()
        run(words)
        sys.stdout.flush()
        sys.stderr.flush()
        return out.getvalue(), err.getvalue()


@pytest.mark.parametrize("words", [*COMMANDS, ("layout", "…", "--spec", "XY")], ids=" ".join)
def test_an_ascii_terminal_gets_ascii(words: tuple[str, ...]) -> None:
    printed = b"".join(printed_in("ascii", words))
    assert printed
    assert printed.isascii()
    # A question mark stands for itself: as many stand where nothing needs a stand-in.
    assert printed.count(b"?") == b"".join(printed_in("utf-8", words)).count(b"?")


@pytest.mark.parametrize(
    "words",
    [
        ("layout", "8x8", "--spec", "XY", "--plain"),
        ("step", "psum", "--mesh", "i=4", "--on", "none", "--plain"),
        (*EXPLAIN, "--target", "none", "--plain", "--color", "always"),
        ("layout", "8x8", "--plain", "--spec", "…"),
        ("translate", "--plain", "X→β"),
    ],
    ids=" ".join,
)
def test_plain_is_ascii_on_a_terminal_that_has_more(words: tuple[str, ...]) -> None:
    """The same as on a terminal that has no more."""
    plain = printed_in("utf-8", words)
    assert b"".join(plain).isascii()
    assert plain == printed_in("ascii", tuple(word for word in words if word != "--plain"))
    assert any(plain)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("translate", "X_→β", "--plain"), rb"'X_\u2192\u03b2'"),
        (("explain", "bd,df->bf", "--mesh", "é=2", "--plain"), rb"'\xe9=2'"),
        (("tui", "--β", "x"), "'--β'".encode()),
    ],
)
def test_what_was_typed_is_recognised_in_ascii(words: tuple[str, ...], shown: bytes) -> None:
    assert shown in printed_in("utf-8", words)[1]


def test_an_error_goes_to_a_stream_without_an_encoding() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as stderr:
        assert run(["layout", "8x8", "--spec", "β"]) == 2
    assert "'β'" in stderr.getvalue()


def test_ascii_pictures_have_frames_and_letters() -> None:
    done = in_shell(("layout", "8x8", "--spec", "X_"), "", PYTHONIOENCODING="ascii")
    assert "I 8 +-----------+" in done.stdout
    assert " X0 | a 0,1,2,3 |" in done.stdout
    assert "8x8 -> 4x8 per device" in done.stdout


HOSTILE = "\x1b[31mred\x07\r\x9b\u202e\x1b]0;title\x07"
ESCAPED = r"\x1b[31mred\x07\r\x9b\u202e\x1b]0;title\x07"
BOLD = "\x1b[1mbold\x1b[0m\t→ é"


@pytest.mark.parametrize(
    ("stream", "written", "shown"),
    [
        (MessageStream, f"shardviz: error: {HOSTILE}\n", f"shardviz: error: {ESCAPED}\n"),
        (MessageStream, f"{CLEAR_LINE}cpu: {CLEAR_LINE}", CLEAR_LINE + r"cpu: \r\x1b[2K"),
        (OutputStream, f"{BOLD}{HOSTILE[8:]}\n", f"{BOLD}{ESCAPED[11:]}\n"),
    ],
)
def test_characters_that_a_terminal_obeys_are_written_as_escapes(
    stream: type[OutputStream], written: str, shown: str
) -> None:
    inner = io.StringIO()
    stream(inner).write(written)
    assert inner.getvalue() == shown


def test_escapes_of_a_text_reach_neither_messages_nor_json() -> None:
    mesh = "{mesh['\x9b\u202eX\x07'=2,'b'=4], [{'b'}, {%s}]}"
    _, message = printed_in("utf-8", ("translate", mesh % "'q'"))
    document, _ = printed_in("utf-8", ("translate", mesh % "", "--json"))
    for text in (message.decode(), document.decode()):
        assert text.replace("\n", "").isprintable()
        assert "\\u202e" in text
    assert json.loads(document)["text"] == mesh % ""


def test_letters_are_those_of_the_shards() -> None:
    assert GREEK == GLYPHS


def test_every_stand_in_is_one_character_and_columns_stay() -> None:
    assert all(len(character) == 1 and character.isascii() for character in STAND_INS.values())


def test_an_arrow_between_words_is_two_characters_and_columns_stay() -> None:
    rows = ("A  8×16 → 4 here  32 B  1", "B  8×16 → 64 here   1 KiB  2", "C  →  D", "a→1  b", "1, 2, … → 3")
    written = [in_ascii_words(row) for row in rows]
    assert written == [
        "A  8×16 -> 4 here 32 B  1",
        "B  8×16 -> 64 here  1 KiB  2",
        "C  -> D",
        "a→1  b",
        "1, 2, ... -> 3",
    ]


def test_marks_differ_from_one_another_and_from_arrows() -> None:
    marks = [STAND_INS[mark] for mark in "▸★→·–╱○◐●"]
    assert len(set(marks)) == len(marks)


def test_everything_that_is_printed_has_a_stand_in() -> None:
    printed = set()
    for path in Path(shardviz.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if text.isascii():
            continue
        tree = ast.parse(text)
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
