"""How an error is said: one line, and one with a hint, both on stderr."""

from __future__ import annotations

import sys

import click

OURS = "…·"
"""Marks of our own sentences, for which stand-ins do."""


def report(message: str, hint: str = "") -> None:
    """``shardviz: error: …`` and, where there is one, ``hint: …``."""
    for line in (f"shardviz: error: {message}", *([f"hint: {hint}"] if hint else [])):
        click.echo(recognisable(line, sys.stderr.encoding), err=True)


def recognisable(text: str, encoding: str) -> str:
    """The text with ``\\u03b2`` and the like for what an encoding lacks: a stand-in would not be what was
    typed."""
    return "".join(
        char if char in OURS else char.encode(encoding, "backslashreplace").decode(encoding) for char in text
    )
