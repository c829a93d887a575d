"""What the server says on the terminal where it runs, each thing once: visitors can cause much of it."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from shardviz.drafts.form import one_line

MOST = 100


class Notes:
    """Notes on stderr, of one line each."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        """Say it, unless it has been said."""
        line = one_line(text)
        if line not in self._said and len(self._said) < MOST:
            self._said.add(line)
            print(f"shardviz: note: {line}", file=sys.stderr, flush=True)

    def say_of_loop(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What goes wrong in the event loop, which itself would print a traceback for each connection that
        finds no descriptor."""
        error = context.get("exception")
        reason = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        self.say(f"{context['message']}: {reason}")
