"""Whatever a terminal sends: what cannot be read is dropped, and what follows is read."""

from __future__ import annotations

import random

import pytest
from textual import events

from shardviz.tui.resilient_app import TerminalInput

MALFORMED = [
    b"\x1b[97:65;1u",
    b"\x1b[9999999999u",
    b"\x1b[1114112;1u",
    b"\x1b[97;;99999999999u",
    b"\x1b[97;1;1:2:1114112u",
    b"\x1b[55296u",
    b"\x1b[97;5:6;7:8u",
    b"\x1b[48;0;0;0;0t\x1b[<0;3;4M",
    b"\xe9",
    b"\xff\xfe\x80",
    b"\x1b[200~\xe9\x1b[97:65;1u\x1b[201~",
]


@pytest.mark.parametrize("data", MALFORMED)
def test_what_follows_is_read(data):
    read = [*TerminalInput().feed(data + b"x")]
    assert [message.key for message in read if isinstance(message, events.Key)][-1] == "x"


def test_a_character_in_two_pieces_is_one():
    typed = TerminalInput()
    assert [*typed.feed(b"\xce")] == []
    (key,) = typed.feed(b"\xb1")
    assert key.character == "α"


def test_where_the_mouse_is_it_still_knows():
    typed = TerminalInput()
    for data in (b"\x1b[48;24;80;480;1600t", b"\x1b[97:65;1u"):
        [*typed.feed(data)]
    (moved,) = typed.feed(b"\x1b[<35;201;21M")
    assert (moved.x, moved.y) == (10, 1)


def test_no_sequence_stops_the_reading():
    source, typed = random.Random(3), TerminalInput()
    pieces = [
        "\x1b",
        "[",
        "u",
        "~",
        ";",
        ":",
        "1",
        "9",
        "99999",
        "M",
        "<",
        "t",
        "48",
        "57344",
        "R",
        "x",
        "é",
        "O",
    ]
    for _ in range(4_000):
        sequence = "\x1b[" + "".join(source.choices(pieces, k=source.randrange(1, 9)))
        [*typed.feed(sequence.encode())]
    [*typed.feed(b"\x1b[201~" + b" " * 40)]
    assert [*typed.feed(b"x")][-1].key == "x"
