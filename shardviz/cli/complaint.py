"""How an error is said: one line, and one with a hint, both on stderr."""

from __future__ import annotations

import click


def report(message: str, hint: str = "") -> None:
    """``shardviz: error: …`` and, where there is one, ``hint: …``."""
    click.echo(f"shardviz: error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
