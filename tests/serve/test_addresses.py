"""Under which names the server may be called, and by whose pages."""

from __future__ import annotations

import socket

import pytest

from shardviz.serve.addresses import is_our_host, is_same_origin


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "[::1]:8000",
        "192.168.1.7:80",
        socket.gethostname(),
        "room.local",
    ],
)
def test_our_names(host):
    assert is_our_host(host, "room.local")


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example:8000",
        "a@localhost",
        "x:y",
        "[::1%25x; script-src *]",
    ],
)
def test_names_that_somebody_else_may_have_given(host):
    assert not is_our_host(host, "127.0.0.1")


@pytest.mark.parametrize(
    ("origin", "host", "same"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000", True),
        ("https://Room.local", "room.local", True),
        ("http://127.0.0.1:8001", "127.0.0.1:8000", False),
        ("http://evil.example", "127.0.0.1:8000", False),
        ("null", "127.0.0.1:8000", False),
        ("", "", False),
        ("http://", "", False),
        ("file://127.0.0.1:8000", "127.0.0.1:8000", False),
    ],
)
def test_origins(origin, host, same):
    assert is_same_origin(origin, host) is same
